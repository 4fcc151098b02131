"""The house: imports point one way, and what the project says of itself agrees with what it is."""

import ast
import configparser
import pathlib
import re
import shutil
import subprocess
import sys

import keras
import pytest
from helpers import SCRIPT, needs_tensorflow
from packaging.requirements import Requirement

import highway_keras
from tools import release

ROOT = pathlib.Path(__file__).parents[1]
ROOMS = ("highway_keras", "models", "results", "tuning")


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def parsed(text):
    parser = configparser.ConfigParser()
    parser.read_string(text)
    return parser


SETUP = parsed(text("setup.cfg"))


# Rooms


def test_a_room_imports_only_from_the_rooms_below_it(tmp_path):
    """The contract of pyproject.toml, for the package as it installs."""
    ignored = shutil.ignore_patterns("__pycache__", "weights", "*.csv")
    for room in ROOMS:
        inside = "" if room == "highway_keras" else room
        shutil.copytree(ROOT / room, tmp_path / "highway_keras" / inside, ignore=ignored)
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", lint, "--config", ROOT / "pyproject.toml", "--no-cache"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_few_underscore_names_of_other_libraries():
    """CONTRIBUTING.md lists them with their reasons."""
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    defined = {node.name for node in nodes if hasattr(node, "name") and node.name}
    used = set()
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Name):
            names = defined if isinstance(node.ctx, ast.Store) else used
            names.add(node.attr if isinstance(node, ast.Attribute) else node.id)
        elif isinstance(node, ast.ImportFrom):
            assert not node.module.startswith(("keras.src", "tensorflow.python"))
    extended = (keras.Layer, keras.Model, keras.optimizers.Muon, keras.initializers.Initializer)
    overridden = {name for name in defined if any(hasattr(each, name) for each in extended)}
    borrowed = {name for name in (used - defined) | overridden if name.startswith("_")}
    borrowed = {name for name in borrowed if not name.endswith("__")} - {"_replace"}  # documented
    assert borrowed == {"_get_variable_index", "_should_use_adamw"}


# What setup.cfg declares is what the library imports

# The name of a distribution where it is not that of the module.
DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn"}
# Needed by a library that does not declare them; setup.cfg says which beside each.
FOR_OTHERS = {"six", "scipy", "tf2onnx"}
BACKENDS = {"tensorflow", "jax", "torch"}


def requirements(text):
    lines = [line for line in text.strip().splitlines() if not line.startswith("#")]
    return [Requirement(line) for line in lines]


EXTRAS = {k: requirements(text) for k, text in SETUP["options.extras_require"].items()}
CORE = {each.name: each for each in requirements(SETUP["options"]["install_requires"])}


def names(*extras):
    """The distributions of extras; TensorFlow has several builds, and ours are made of extras."""
    distributions = {
        each.name.replace("tensorflow-cpu", "tensorflow") for e in extras for each in EXTRAS[e]
    }
    return distributions - {"highway-keras"}


def imports(node, within=None):
    """The modules that a syntax tree imports when it runs, with the `extra` around each."""
    if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.With):
        call = node.items[0].context_expr
        if getattr(getattr(call, "func", None), "id", None) == "extra":
            within = getattr(call.args[0], "value", None)  # `None`: the extra of a format
    if isinstance(node, ast.Import):
        yield from ((alias.name, within) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module, within
    for child in ast.iter_child_nodes(node):
        yield from imports(child, within)


def test_what_is_imported_is_declared_and_what_is_declared_is_imported():
    """In the core, in the extra that the import names, as a backend, or in that of a format."""
    used = set()
    for file in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        for module, within in imports(ast.parse(file.read_text(encoding="utf-8"))):
            top = module.partition(".")[0]
            if top not in sys.stdlib_module_names and top != "highway_keras":
                name = DISTRIBUTIONS.get(top, top.replace("_", "-"))
                allowed = names(within) if within else CORE.keys() | BACKENDS
                if file.parent.name == "export":
                    allowed |= names("litert", "onnx", "openvino")
                assert name in allowed, f"{file}: {name} needs `with extra(...)`"
                used.add(name)
    assert (CORE.keys() | names(*EXTRAS.keys() - {"docs", "test"})) - used == FOR_OTHERS
    (everything,) = EXTRAS["all"]
    others = {"docs", "test", "all", "cpu", "gpu", "jax", "torch"}
    assert everything.extras == EXTRAS.keys() - others


@pytest.mark.parametrize("machine", ["x86_64", "AMD64", "arm64", "aarch64"])
def test_one_build_of_tensorflow(machine):
    """Two overwrite each other's files; `tensorflow-cpu` has wheels for x86-64 only."""
    for extra in ("cpu", "gpu"):
        builds = [each for each in EXTRAS[extra] if each.name.startswith("tensorflow")]
        here = {"platform_machine": machine}
        names_here = [b.name for b in builds if b.marker is None or b.marker.evaluate(here)]
        slim = extra == "cpu" and machine in ("x86_64", "AMD64")
        assert names_here == ["tensorflow-cpu" if slim else "tensorflow"]


def test_the_least_keras_is_safe():
    """3.10.0 downloads what a file from a stranger names; 3.11.0 reads local files for it."""
    (least,) = (each.version for each in CORE["keras"].specifier)
    assert tuple(map(int, least.split("."))) >= (3, 12) and least in text("SECURITY.md")


# Where a package that an extra installs is missing, one line says how to get it.

# Not `requests` and `six`, which TensorFlow needs itself
OPTIONAL = ("PIL", "keras_tuner", "matplotlib", "sklearn", "tensorboard")
OPTIONAL += ("tensorflow_datasets", "onnxruntime", "openvino", "tf2onnx", "ai_edge_litert")

HIDE = """
import sys

class Hide:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide)
"""


def without(absent, script, *arguments):
    """Run a script in a new process that finds none of the `absent` modules."""
    command = [sys.executable, "-c", HIDE.format(absent=absent) + script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


LINES = {
    "fit thin-highway-10 --dataset digits": ("sklearn", "train"),
    "search --depth 2 --trials 1": ("keras_tuner", "tune"),
    "predict {model} x.png": ("PIL", "train"),
    "evaluate {model} --dataset mnist": ("tensorflow_datasets", "train"),
}


def test_the_core_does_without_extras(tmp_path):
    """Layers, zoo, weights that come along, `load_model`, training by Keras, gates as numbers.

    The command names the extra that it needs.
    """
    script = """
import keras, numpy as np
import highway_keras as hk
from highway_keras.cli.command import main

path, *lines = sys.argv[1:]
for name in hk.models.list_models():
    hk.models.get(name)
model = hk.models.create("thin-highway-10", weights="mnist")
model.save(path)
again = keras.models.load_model(path)
x = np.random.default_rng(0).random((8, 28, 28, 1), "float32")
outputs = [keras.ops.convert_to_numpy(network(x)) for network in (model, again)]
assert np.array_equal(*outputs)
again.compile("sgd", "sparse_categorical_crossentropy", run_eagerly=True)
again.fit(x, np.arange(8), verbose=0)
hk.analysis.gates(model, x)
hk.training.get_recipe("digits"), hk.convert, hk.results.accuracies()
assert [main(line.split()) for line in lines] == [2] * len(lines)
"""
    lines = [line.format(model=tmp_path / "model.keras") for line in LINES]
    done = without(OPTIONAL, script, tmp_path / "model.keras", *lines)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("highway-keras")]
    for line, (package, name) in zip(lines, LINES.values(), strict=True):
        assert f"{package} is missing. Install the extra `{name}`: pip install" in line


@needs_tensorflow
def test_a_missing_backend_names_its_extra():
    done = without(["tensorflow"], SCRIPT, "evaluate", "thin-highway-10", "--weights", "mnist")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert "Keras runs on tensorflow. tensorflow is missing. Install the extra `cpu`" in line


# A release


def test_the_version_stands_in_one_place():
    assert SETUP["metadata"]["version"] == "attr: highway_keras.version.__version__"
    version, _, development = highway_keras.__version__.partition(".dev")
    for file in ("pyproject.toml", "CITATION.cff", "properdocs.yml", "README.md"):
        assert version not in text(file)
    first, *released = re.findall(r"^## (.*)$", text("CHANGELOG.md"), re.MULTILINE)
    assert first.startswith(f"{version}, ")
    assert (first == f"{version}, unreleased") == bool(development)
    for head in released:
        assert re.fullmatch(r"\d+\.\d+\.\d+, \d{4}-\d\d-\d\d", head), head


def test_a_release_says_where_the_project_is():
    metadata = parsed(release.setup(text("setup.cfg"), "https://host/us/it", "v1.0"))
    lines = metadata["metadata"]["project_urls"].strip().splitlines()
    urls = dict(line.split(" = ") for line in lines)
    assert urls["Source"] == "https://host/us/it" and urls["Issues"] == "https://host/us/it/issues"
    for name in ("Documentation", "Changelog"):
        place, _, file = urls[name].partition("/blob/v1.0/")
        assert place == "https://host/us/it" and (ROOT / file).is_file()
