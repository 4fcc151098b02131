"""The extension of griffe that `mkdocs.yml` names."""

import griffe

from tools.docs.google_style import in_google_style


class Docstrings(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj, **_):
        if obj.docstring:
            obj.docstring.value = in_google_style(obj.docstring.value)
