"""The packages that setup.cfg declares are those that the library imports."""

import ast
import configparser
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
SHIPPED = ("highway_keras", "models", "results", "tuning")
# The name of a distribution where it is not that of the module.
DISTRIBUTIONS = {"PIL": "pillow", "grpc": "grpcio", "sklearn": "scikit-learn"}
# Imported by a library that does not declare them; setup.cfg says which beside each.
FOR_OTHERS = {"six", "scipy", "tf2onnx"}


def distribution(requirement):
    """The name of a distribution without version and extras; TensorFlow has several builds."""
    name = re.match(r"[\w-]+", requirement)[0].lower()
    return "tensorflow" if name == "tensorflow-cpu" else name


def declared():
    """Names of distributions: those always installed, and those of the users' extras."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    always = parser["options"]["install_requires"]
    extras = [
        text
        for name, text in parser["options.extras_require"].items()
        if name not in ("docs", "test")
    ]
    split = (text.strip().splitlines() for text in (always, "\n".join(extras)))
    return [{distribution(line) for line in lines if line} for lines in split]


def imports(node):
    """The modules that a syntax tree imports, wherever in it, when it runs."""
    if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module
    for child in ast.iter_child_nodes(node):
        yield from imports(child)


def imported():
    """Names of the distributions that the library's files import."""
    files = [ROOT / "highway_keras_command.py"]
    for folder in SHIPPED:
        files += sorted((ROOT / folder).rglob("*.py"))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    modules = {name.partition(".")[0] for tree in trees for name in imports(tree)}
    others = modules - set(sys.stdlib_module_names) - {"highway_keras"}
    return {DISTRIBUTIONS.get(name, name.replace("_", "-")) for name in others}


def test_what_is_imported_is_declared():
    always, extras = declared()
    assert imported() <= always | extras


def test_what_is_declared_is_imported():
    always, extras = declared()
    assert (always | extras) - imported() == FOR_OTHERS


def test_what_is_declared_for_others_says_for_whom():
    lines = (ROOT / "setup.cfg").read_text(encoding="utf-8").splitlines()
    for name in FOR_OTHERS:
        (index,) = [i for i, line in enumerate(lines) if line.strip().startswith(f"{name}>=")]
        assert lines[index - 1].strip().startswith("#")
