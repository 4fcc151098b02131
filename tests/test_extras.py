"""A package that an extra installs, where it is missing: one line that says how to get it."""

import pathlib
import re
import subprocess
import sys

import pytest
from helpers import SCRIPT, needs_tensorflow

ROOT = pathlib.Path(__file__).parents[1]
# Not `requests` and `six`, which TensorFlow needs itself
EXTRAS = ("PIL", "keras_tuner", "matplotlib", "sklearn", "tensorboard")
EXTRAS += ("tensorflow_datasets", "tqdm", "onnxruntime", "openvino", "tf2onnx", "ai_edge_litert")

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
    "predict {model} x.png": ("tqdm", "train"),
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
    done = without(EXTRAS, script, tmp_path / "model.keras", *lines)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("highway-keras")]
    for line, (package, name) in zip(said, LINES.values(), strict=True):
        assert f"{package} is missing. Install the extra `{name}`: pip install" in line


@needs_tensorflow
def test_a_missing_backend_names_its_extra():
    done = without(["tensorflow"], SCRIPT, "evaluate", "thin-highway-10", "--weights", "mnist")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert "Keras runs on tensorflow. tensorflow is missing. Install the extra `cpu`" in line


@pytest.mark.skipif(
    "no release yet" not in (ROOT / "README.md").read_text("utf-8"), reason="published"
)
def test_no_page_and_no_message_installs_from_an_index():
    """The package is not published yet."""
    patterns = ["*.md", "docs/**/*.md", "models/**/*.md", "highway_keras/**/*.py", "tuning/*.py"]
    for file in (path for pattern in patterns for path in ROOT.glob(pattern)):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"pip\S* install (-\S+ )*[\"']?highway[-_]keras", text), file
