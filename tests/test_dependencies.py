"""The packages that setup.cfg declares are those that the library imports."""

import ast
import configparser
import pathlib
import sys

import pytest
from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).parents[1]
SHIPPED = ("highway_keras", "models", "results", "tuning")
# The name of a distribution where it is not that of the module.
DISTRIBUTIONS = {"PIL": "pillow", "grpc": "grpcio", "sklearn": "scikit-learn"}
# Needed by a library that does not declare them; setup.cfg says which beside each.
FOR_OTHERS = {"six", "scipy", "tf2onnx"}
BACKENDS = {"tensorflow", "jax", "torch"}

SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")


def requirements(text):
    lines = [line for line in text.strip().splitlines() if not line.startswith("#")]
    return [Requirement(line) for line in lines]


EXTRAS = {k: requirements(text) for k, text in SETUP["options.extras_require"].items()}
CORE = {each.name for each in requirements(SETUP["options"]["install_requires"])}


def names(*extras):
    """The distributions of extras; TensorFlow has several builds, and ours are made of extras."""
    found = {
        each.name.replace("tensorflow-cpu", "tensorflow") for e in extras for each in EXTRAS[e]
    }
    return found - {"highway-keras"}


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


def test_what_is_imported_is_declared_and_what_is_declared_is_imported():
    """In the core, in the extra that the import names, as a backend, or in that of a format."""
    used = set()
    for file in (path for folder in SHIPPED for path in (ROOT / folder).rglob("*.py")):
        for module, within in imports(ast.parse(file.read_text(encoding="utf-8"))):
            top = module.partition(".")[0]
            if top not in sys.stdlib_module_names and top != "highway_keras":
                name = DISTRIBUTIONS.get(top, top.replace("_", "-"))
                allowed = names(within) if within else CORE | BACKENDS
                if file.parent.name == "export":
                    allowed |= names("litert", "onnx", "openvino")
                assert name in allowed, f"{file}: {name} needs `with extra(...)`"
                used.add(name)
    assert (CORE | names(*EXTRAS.keys() - {"docs", "test"})) - used == FOR_OTHERS


@pytest.mark.parametrize("machine", ["x86_64", "AMD64", "arm64", "aarch64"])
@pytest.mark.parametrize("extra", ["cpu", "gpu"])
def test_one_build_of_tensorflow(extra, machine):
    """Two overwrite each other's files; `tensorflow-cpu` has wheels for x86-64 only."""
    environment = {"platform_machine": machine}
    builds = [each for each in EXTRAS[extra] if each.name.startswith("tensorflow")]
    found = [b.name for b in builds if b.marker is None or b.marker.evaluate(environment)]
    slim = extra == "cpu" and machine in ("x86_64", "AMD64")
    assert found == ["tensorflow-cpu" if slim else "tensorflow"]


def test_all_is_all():
    (everything,) = EXTRAS["all"]
    with_backend = {"cpu", "gpu", "jax", "torch"}
    assert everything.extras == EXTRAS.keys() - {"docs", "test", "all"} - with_backend
