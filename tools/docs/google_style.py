"""Docstrings as Keras writes them, for a parser that knows Google's style.

`Example:` comes before doctests that are not indented, and a list of arguments may continue on a
second line.
"""

import re

# A doctest ends with an empty line, and another may follow.
EXAMPLE = re.compile(
    r"^Example:\n\n(?P<doctests>(?:>>> .+(?:\n.+)*(?:\n\n(?=>>> ))?)+)", re.MULTILINE
)
NAMES = re.compile(r"^(?P<first> {4}[\w, *]+,)\n {8}(?P<second>[\w, *]+:)", re.MULTILINE)


def in_google_style(text):
    """Return a docstring with doctests indented below `Examples:` and lists of names joined."""
    text = NAMES.sub(r"\g<first> \g<second>", text)
    return EXAMPLE.sub(lambda found: f"Examples:\n{_indented(found['doctests'])}", text)


def _indented(text):
    return re.sub(r"^(?=.)", "    ", text, flags=re.MULTILINE)
