"""The packages that setup.cfg declares are those that the library imports."""

import ast
import configparser
import pathlib
import re
import sys

import pytest
from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).parents[1]
SHIPPED = ("highway_keras", "models", "results", "tuning")
# The name of a distribution where it is not that of the module.
DISTRIBUTIONS = {"PIL": "pillow", "grpc": "grpcio", "sklearn": "scikit-learn"}
# Imported by a library that does not declare them; setup.cfg says which beside each.
FOR_OTHERS = {"six", "scipy", "tf2onnx"}
BUILDS = ("tensorflow", "tensorflow-cpu")


def distribution(requirement):
    """The name of a distribution without version and extras; TensorFlow has several builds."""
    name = re.match(r"[\w-]+", requirement)[0].lower()
    return "tensorflow" if name == "tensorflow-cpu" else name


def options(section):
    """The options of a section of setup.cfg, each as the lines of its requirements."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return {key: text.strip().splitlines() for key, text in parser[section].items()}


def names(lines):
    """The distributions that lines of requirements name, without this project's own extras."""
    lines = [line for line in lines if not line.startswith(("#", "highway-keras["))]
    return {distribution(line) for line in lines}


EXTRAS = options("options.extras_require")
CORE = names(options("options")["install_requires"])
FORMATS = ("litert", "onnx", "openvino")
MAINTAINERS = {"docs", "test"}
BACKENDS = {"tensorflow", "jax", "torch"}


def declared():
    """Names of distributions: those always installed, and those of the users' extras."""
    return CORE, set().union(*(names(EXTRAS[name]) for name in EXTRAS.keys() - MAINTAINERS))


def imports(node, within=None):
    """The modules that a syntax tree imports when it runs, with the `extra` around each."""
    if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.With):
        call = node.items[0].context_expr
        if getattr(getattr(call, "func", None), "id", None) == "extra":
            within = call.args[0].value
    if isinstance(node, ast.Import):
        yield from ((alias.name, within) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module, within
    for child in ast.iter_child_nodes(node):
        yield from imports(child, within)


def imported():
    """Triples of what the library's files import: the file, the distribution, its extra."""
    files = [ROOT / "highway_keras_command.py"]
    for folder in SHIPPED:
        files += sorted((ROOT / folder).rglob("*.py"))
    for file in files:
        for module, within in imports(ast.parse(file.read_text(encoding="utf-8"))):
            name = module.partition(".")[0]
            if name not in sys.stdlib_module_names and name != "highway_keras":
                yield file, DISTRIBUTIONS.get(name, name.replace("_", "-")), within


IMPORTED = sorted({*imported()}, key=str)


def test_what_is_declared_is_imported():
    always, extras = declared()
    assert (always | extras) - {name for _, name, _ in IMPORTED} == FOR_OTHERS


def test_what_is_imported_is_declared_where_it_is_imported():
    """In the core, in the extra that the import names, as a backend, or in that of a format."""
    for file, name, within in IMPORTED:
        if within:
            assert name in names(EXTRAS[within]), f"{file}: {name}"
        elif file.parent.name == "export":
            assert name in CORE | BACKENDS.union(*(names(EXTRAS[f]) for f in FORMATS)), name
        else:
            assert name in CORE | BACKENDS, f"{file}: {name} needs `with extra(...)`"


@pytest.mark.parametrize("machine", ["x86_64", "AMD64", "arm64", "aarch64"])
@pytest.mark.parametrize("extra", ["cpu", "gpu", "jax", "torch"])
def test_one_build_of_tensorflow(extra, machine):
    """Two overwrite each other's files; `tensorflow-cpu` has wheels for x86-64 only."""
    found, lines = [], list(EXTRAS[extra])
    for line in lines:
        requirement = Requirement(line.partition("#")[0] or "none")
        if requirement.name == "highway-keras":
            lines += [part for name in sorted(requirement.extras) for part in EXTRAS[name]]
        elif requirement.name.startswith("tensorflow") and requirement.name in BUILDS:
            marker = requirement.marker
            if marker is None or marker.evaluate({"platform_machine": machine}):
                found.append(requirement.name)
    slim = extra != "gpu" and machine in ("x86_64", "AMD64")
    assert found == ["tensorflow-cpu" if slim else "tensorflow"]


def test_all_is_all():
    (line,) = EXTRAS["all"]
    with_backend = {"cpu", "gpu", "jax", "torch"}
    assert Requirement(line).extras == EXTRAS.keys() - MAINTAINERS - with_backend - {"all"}


def test_what_is_declared_for_others_says_for_whom():
    lines = (ROOT / "setup.cfg").read_text(encoding="utf-8").splitlines()
    for name in FOR_OTHERS:
        (index,) = [i for i, line in enumerate(lines) if line.strip().startswith(f"{name}>=")]
        assert lines[index - 1].strip().startswith("#")
