"""Weights of other libraries: the recipes of the page compute what the libraries computed."""

import pathlib
import re
import shutil
import types

import h5py
import keras
import numpy as np
import pytest

from highway_keras import Highway, HighwayStack, convert

OLD = pathlib.Path(__file__).with_name("old_weights")
PAGE = pathlib.Path(__file__).parents[1] / "docs" / "convert.md"
SECTION = r"^## (.*?)\n.*?```python\n(.*?)```"
RECIPES = dict(re.findall(SECTION, PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))
OF_KERAS = "Keras 0.3 to 2.3"
STATES = {
    "allennlp-2.10.1": "allennlp and fairseq",
    "bilm-tf": "ELMo",
    "tacotron-tensorflow": "Tacotron in TensorFlow",
    "tacotron-pytorch": "Tacotron in PyTorch",
}
TOLERANCE = 2e-6


def cook(title, **names):
    """Run a recipe of the page in the working directory; return the names that it defines."""
    names |= {"h5py": h5py, "np": np, "convert": convert}
    exec(compile(RECIPES[title], f"{PAGE.name}: {title}", "exec"), names)
    return names


def apply(layers, x):
    for layer in layers:
        x = layer(x)
    return keras.ops.convert_to_numpy(x)


@pytest.mark.parametrize("version", ["1.0.8", "1.1.2", "1.2.2", "2.2.4"])
def test_keras(version, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(OLD / f"keras-{version}.h5", "old.h5")
    outputs = np.load(OLD / f"keras-{version}.npz")
    layer = cook(OF_KERAS)["layer"]
    assert type(layer) is Highway
    y = apply([layer], outputs["dense_1"])
    np.testing.assert_allclose(y, outputs["highway_1"], atol=TOLERANCE)


@pytest.mark.parametrize("file", STATES)
def test_state(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(OLD / "bilm-tf.hdf5", "elmo_weights.hdf5")
    state = {name.replace("|", "/"): array for name, array in np.load(OLD / f"{file}.npz").items()}
    reader = types.SimpleNamespace(get_tensor=state.get)
    names = cook(STATES[file], state=state, reader=reader)
    y = apply(names["layers"], state["x"])
    np.testing.assert_allclose(y, state["y"], atol=TOLERANCE)
    stack = HighwayStack.from_layers(names["layers"])
    np.testing.assert_allclose(apply([stack], state["x"]), state["y"], atol=1e-5)


def draw(*shape):
    return np.random.default_rng(shape).normal(size=shape)


@pytest.mark.parametrize("stacked", [(), (4,)])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("learned", [True, False])
def test_arrays_are_the_weights(stacked, biased, learned):
    names = ["kernel", "transform_kernel"] + ["carry_kernel"] * learned
    arrays = {name: draw(len(name), *stacked, 5, 5)[0] for name in names}
    if biased:
        biases = [name.replace("kernel", "bias") for name in names]
        arrays |= {name: draw(len(name), *stacked, 5)[0] for name in biases}
    options = {"activation": "tanh", "transform_activation": "hard_sigmoid"}
    layer = convert.from_arrays(**arrays, **options, name="old")
    assert layer.activation is keras.activations.tanh
    assert layer.transform_activation is keras.activations.hard_sigmoid
    assert layer.name == "old" and len(layer.weights) == 2 * len(names) - (not biased)
    assert type(layer) is (HighwayStack if stacked else Highway)
    for name, array in arrays.items():
        np.testing.assert_allclose(getattr(layer, name), array, rtol=1e-6)
    if not biased:
        assert not np.any(layer.transform_bias)
