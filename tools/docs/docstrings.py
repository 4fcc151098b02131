"""The extension of griffe that `properdocs.yml` names: docstrings of Keras's style in Google's.

`Example:` comes before doctests that are not indented, and a list of arguments may continue on a
second line.
"""

import re
import textwrap

import griffe

# A doctest ends with an empty line, and another may follow.
EXAMPLE = re.compile(
    r"^Example:\n\n(?P<doctests>(?:>>> .+(?:\n.+)*(?:\n\n(?=>>> ))?)+)", re.MULTILINE
)
NAMES = re.compile(r"^(?P<first> {4}[\w, *]+,)\n {8}(?P<second>[\w, *]+:)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Indents doctests below `Examples:` and joins lists of names before a docstring is parsed."""

    def on_object(self, *, obj, **_):
        if obj.docstring:
            text = NAMES.sub(r"\g<first> \g<second>", obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(
                lambda found: "Examples:\n" + textwrap.indent(found["doctests"], "    "), text
            )
