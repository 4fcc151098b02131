"""Public names of packages that are imported on first use.

Keras takes seconds to import, keras-tuner and matplotlib more; `highway-keras list` needs none of
them. A package's `__init__` lists its names as imports under `if TYPE_CHECKING:`, where editors
and type checkers read them; `lazy` also reads them there.
"""

import ast
import importlib
import pathlib
import sys


def lazy(package):
    """Return the `__getattr__` and `__dir__` of a package from the imports in its source."""
    module = sys.modules[package]
    tree = ast.parse(pathlib.Path(module.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module for node in imports for alias in node.names}

    def __getattr__(name):
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:  # a module of the package
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(homes[name]), name)

    def __dir__():
        return sorted(module.__all__)

    return __getattr__, __dir__
