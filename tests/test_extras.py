"""A package that an extra installs, where it is missing: one line that says how to get it."""

import os
import pathlib
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
from processes import SCRIPT

from highway_keras import models
from highway_keras.extras import extra

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


def without(absent, script, *arguments, **environment):
    """Run a script in a new process that finds none of the `absent` modules."""
    return subprocess.run(
        [sys.executable, "-c", HIDE.format(absent=absent) + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_an_absent_package_is_one_line():
    with pytest.raises(ModuleNotFoundError) as caught:
        with extra("plot"):
            import a_package_that_nobody_has  # noqa: F401
    assert str(caught.value) == (
        "a_package_that_nobody_has is missing. Install the extra `plot`: "
        'pip install -e ".[plot]" in your clone of highway-keras.'
    )
    assert caught.value.name == "a_package_that_nobody_has"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("core")
    models.thin_mlp(3, input_shape=(8, 8, 1)).save(folder / "model.keras")
    images, labels = np.zeros((20, 8, 8, 1), "uint8"), np.arange(20) % 10
    arrays = {"x_train": images, "y_train": labels, "x_test": images, "y_test": labels}
    np.savez(folder / "data.npz", **arrays)
    return {"model": folder / "model.keras", "data": folder / "data.npz"}


LINES = {
    "fit thin-highway-10 --dataset digits": ("sklearn", "train"),
    "search --depth 2 --trials 1": ("keras_tuner", "tune"),
    "predict {model} x.png": ("tqdm", "train"),
    "evaluate {model} --dataset digits": ("sklearn", "train"),
    "evaluate {model} --dataset mnist": ("tensorflow_datasets", "train"),
}


def test_the_core_does_without_extras(files, tmp_path):
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
    lines = [line.format(**files) for line in LINES]
    done = without(EXTRAS, script, tmp_path / "model.keras", *lines)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("highway-keras")]
    for line, (package, name) in zip(said, LINES.values(), strict=True):
        assert f"{package} is missing. Install the extra `{name}`: pip install" in line


@pytest.mark.slow
def test_a_run_without_pictures_says_what_draws_them(files, tmp_path):
    command = ["fit", "thin-highway-10", "--dataset", files["data"], "--epochs", 1, "--out"]
    done = without(["matplotlib"], SCRIPT, *command, tmp_path / "run", "--model-set", "depth=2")
    assert done.returncode == 0 and (tmp_path / "run" / "best.keras").exists()
    lines = done.stderr.splitlines()
    assert "curves.png could not be drawn" in done.stderr
    assert all("matplotlib is missing. Install the extra `plot`" in line for line in lines)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="hides a backend")
@pytest.mark.parametrize(
    ("backend", "name"),
    [("tensorflow", "cpu"), pytest.param("jax", "jax", marks=pytest.mark.slow)],
)
def test_a_missing_backend_names_its_extra(backend, name, files):
    done = without([backend], SCRIPT, "evaluate", files["model"], KERAS_BACKEND=backend)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert f"Keras runs on {backend}. {backend} is missing. Install the extra `{name}`" in line


def test_no_page_and_no_message_installs_from_an_index():
    """The package is not published yet."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("highway_keras/**/*.py")]
    files += [*ROOT.glob("tuning/*.py"), *ROOT.glob("models/**/*.py"), *ROOT.glob("models/**/*.md")]
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"pip\S* install (-\S+ )*[\"']?highway[-_]keras", text), file
