"""Old weights: what real libraries wrote and computed, Keras's layouts, and what is refused."""

import functools
import json
import pathlib
import re

import h5py
import keras
import numpy as np
import pytest

from highway_keras import Highway, HighwayStack, convert

WIDTH = 6
OLD = pathlib.Path(__file__).with_name("old_weights")
KERAS = {"1.0.8": "1.0", "1.1.2": "1.0", "1.2.2": "1.2", "2.2.4": "2.0"}
LAYERS = {"highway_1": "tanh", "highway_2": "linear", "highway_3": "relu"}
STATES = {  # of each file, what reads it, its activation, and the prefix in a whole model
    "allennlp-2.10.1": (convert.from_allennlp, "tanh", "_token_embedder._highways."),
    "bilm-tf": (convert.from_elmo, "relu", "lm/"),
    "tacotron-tensorflow": (convert.from_tacotron, "relu", "model/inference/encoder_cbhg/"),
    "tacotron-pytorch": (convert.from_tacotron, "relu", "encoder.cbhg."),
}
EARLY = ("W", "b", "W_carry", "b_carry")
LATE = ("W", "W_carry", "b", "b_carry")
ORDERS = {"1.0": EARLY, "1.2": LATE, "2.0": LATE}
TOLERANCE = 2e-6


def draw(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def keras_weights():
    shapes = {"W": (WIDTH, WIDTH), "b": (WIDTH,)}
    return {name: draw(*shapes[name[0]], seed=10 * index) for index, name in enumerate(EARLY)}


def real_state(file):
    """What a library wrote of its layers, without the prefix, and their input and output."""
    arrays = {name.replace("|", "/"): array for name, array in np.load(OLD / f"{file}.npz").items()}
    x, y = arrays.pop("x"), arrays.pop("y")
    if file == "bilm-tf":
        with h5py.File(OLD / f"{file}.hdf5") as stored:
            for group in ("CNN_high_0", "CNN_high_1"):
                arrays |= {f"{group}/{name}": array[()] for name, array in stored[group].items()}
    prefix = STATES[file][2]
    return {n.removeprefix(prefix): w for n, w in arrays.items() if "pre_highway" not in n}, x, y


ALLENNLP, _, TENSORFLOW, PYTORCH = (real_state(file)[0] for file in STATES)


def keras_arrays(file, layer):
    """The arrays of a layer in a file of Keras, in its order."""
    with h5py.File(file) as stored:
        group = stored.get("model_weights", stored)[layer]
        return [group[name][()] for name in group.attrs["weight_names"]]


def run(layers, x):
    return keras.ops.convert_to_numpy(functools.reduce(lambda x, layer: layer(x), layers, x))


def in_order(weights, version):
    return [weights[name] for name in ORDERS[version]]


# Outputs are those that the libraries themselves computed.


@pytest.mark.parametrize("version", KERAS)
def test_file_and_arrays_of_the_real_keras(version):
    outputs, file = np.load(OLD / f"keras-{version}.npz"), OLD / f"keras-{version}.h5"
    before = "dense_1"
    for name, activation in LAYERS.items():
        arrays = keras_arrays(file, name)
        of_arrays = convert.from_keras1(arrays, activation, KERAS[version])
        of_file = convert.from_keras1(file, activation, KERAS[version], layer=name)
        for layer in (of_arrays, of_file):
            assert type(layer) is Highway and layer.use_bias == (len(arrays) == 4)
            assert 0 < np.abs(run([layer], outputs[before]) - outputs[name]).max() < TOLERANCE
        before = name
    for wrong in ORDERS.keys() - {KERAS[version]}:
        with pytest.raises(ValueError, match=f"version.*{KERAS[version]!r}"):
            convert.from_keras1(file, "tanh", wrong, layer="highway_1")
    if version != "1.0.8":  # of weights alone; the others are whole models
        with pytest.raises(ValueError, match=r"activation.*'tanh'"):
            convert.from_keras1(file, "relu", KERAS[version], layer="highway_1")


@pytest.mark.parametrize("file", STATES)
def test_state_of_the_real_library(file):
    """Alone, under other names, and with a prefix among other weights and an optimizer's slots."""
    (function, activation, prefix), (state, x, y) = STATES[file], real_state(file)
    # TensorFlow's names of variables, and fairseq's of allennlp's weights
    renamed = {f"{n}:0" if "/" in n else n.removeprefix("_"): w for n, w in state.items()}
    whole = {prefix + name: w for name, w in state.items()}
    whole |= {f"{name}/Adagrad": "no array" for name in whole}
    whole |= {f"{prefix}rnn": "no array", **{f"other.{name}": np.zeros(3) for name in state}}
    read = [function(state, activation), function(renamed, activation)]
    read.append(function(whole, activation, prefix=prefix))
    if file == "bilm-tf":
        read.append(function(OLD / f"{file}.hdf5", activation))
    for layers in read:
        assert all(type(layer) is Highway for layer in layers)
        for found in (layers, [HighwayStack.from_layers(layers)]):
            assert np.abs(run(found, x) - y).max() < TOLERANCE
    with pytest.raises(ValueError, match=re.escape(f"prefix={prefix!r}")):
        function(whole, activation)


def test_numbers_decide_the_order_of_layers():
    """Ten comes after nine, and the order in the dictionary does not count."""
    weight, bias = ALLENNLP["_layers.0.weight"], ALLENNLP["_layers.0.bias"]
    state = {}
    for index in reversed(range(11)):
        state |= {f"_layers.{index}.weight": weight, f"_layers.{index}.bias": (index + 1) * bias}
    for index, layer in enumerate(convert.from_allennlp(state, "tanh")):
        expected = -(index + 1) * bias[5:]  # of its gate of x
        np.testing.assert_allclose(layer.transform_bias, expected, rtol=1e-6)


# Files in the layouts of Keras.


def write_keras(path, version="1.2", names="{layer}_{weight}", model_config=None, weights=None):
    """Writes one layer `gate` as Keras does, with a `model_config` into a whole model's file."""
    weights = weights or keras_weights()
    with h5py.File(path, "w") as file:
        root = file
        if model_config:
            root = file.create_group("model_weights")
            file.attrs["model_config"] = model_config
        if version == "2.0":
            root.attrs["keras_version"] = b"2.1.6"
        stored = {
            names.format(layer="gate", weight=name, index=i): weights[name].astype("float32")
            for i, name in enumerate(ORDERS[version])
        }
        dense = {"dense_1_W": np.ones((4, WIDTH)), "dense_1_b": np.ones(WIDTH)}
        for layer, arrays in {"dense_1": dense, "dropout_1": {}, "gate": stored}.items():
            group = root.create_group(layer)
            group.attrs["weight_names"] = np.array([name.encode() for name in arrays], "S")
            for name, array in arrays.items():
                group[name] = array
    return path


# The `model_config` of Keras 1, of a model with a wrapped layer and another one.
WRAPPED = {"class_name": "Highway", "config": {"name": "inner", "activation": "tanh"}}
WRAPPED = {"class_name": "TimeDistributed", "config": {"name": "gate", "layer": WRAPPED}}
OTHER = {"class_name": "Highway", "config": {"name": "other", "activation": "sigmoid"}}
IN_A_WRAPPER = json.dumps({"class_name": "Sequential", "config": [WRAPPED, OTHER]})
NAMES = {  # besides those of the real files
    "a session with the name taken": "{layer}_{weight}_1:0",
    "a layer called W_carry": "W_carry_{weight}",
    "no names": "param_{index}",
}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("version", ORDERS)
def test_keras_file(tmp_path, version, names):
    path = write_keras(tmp_path / "old.h5", version, NAMES[names])
    layer = convert.from_keras1(str(path), "tanh", version, layer="gate")
    of_arrays = convert.from_keras1(in_order(keras_weights(), version), "tanh", version)
    np.testing.assert_equal(layer.get_weights(), of_arrays.get_weights())
    for wrong in [one for one in ORDERS if ORDERS[one] != ORDERS[version] and names != "no names"]:
        with pytest.raises(ValueError, match=f"version={wrong!r}"):
            convert.from_keras1(path, "tanh", wrong, layer="gate")


def test_noted_activation_of_a_wrapped_layer(tmp_path):
    path = write_keras(tmp_path / "old.h5", model_config=IN_A_WRAPPER)
    for activation in ("tanh", keras.activations.tanh, lambda z: z):  # its own is never doubted
        convert.from_keras1(path, activation, "1.2", layer="gate")
    for activation in ("relu", keras.activations.relu):
        with pytest.raises(ValueError, match=r"activation.*'tanh'"):
            convert.from_keras1(path, activation, "1.2", layer="gate")


# Biases as a hint.


def check_doubted(function, right, wrong, *arguments):
    function(right, *arguments)
    function(wrong, *arguments, check_biases=False)
    with pytest.raises(ValueError, match="check_biases=False"):
        function(wrong, *arguments)


@pytest.mark.parametrize(
    ("version", "start"), [("1.0", -2.0), ("1.0", -3.0), ("1.2", 1.0), ("2.0", 1.0)]
)
def test_biases_of_swapped_keras_weights(version, start, tmp_path):
    noise = 0.1 * draw(2, WIDTH)
    right = {**keras_weights(), "b": noise[0], "b_carry": start + noise[1]}
    wrong = {**right, "b": right["b_carry"], "b_carry": right["b"]}
    lists = in_order(right, version), in_order(wrong, version)
    check_doubted(convert.from_keras1, *lists, "tanh", version)
    # In a file with names for its weights, biases are no reason for doubt.
    path = write_keras(tmp_path / "named.h5", version, weights=wrong)
    layer = convert.from_keras1(path, "tanh", version, layer="gate")
    of_arrays = convert.from_keras1(lists[1], "tanh", version, check_biases=False)
    np.testing.assert_equal(layer.get_weights(), of_arrays.get_weights())


@pytest.mark.parametrize("halves", [(1, 0), (0, -1)])
def test_biases_of_wrong_allennlp_weights(halves):
    noise = 0.1 * draw(10)
    right, wrong = (
        {**ALLENNLP, "_layers.0.bias": np.repeat(starts, 5) + noise} for starts in ((0, 1), halves)
    )
    check_doubted(convert.from_allennlp, right, wrong, "relu")


# What a user may pass wrongly.


def from_list(version="1.0", order="1.0", activation="relu", **changes):
    weights = in_order({**keras_weights(), **changes}, order)
    return lambda path: convert.from_keras1(weights, activation, version)


def from_file(layer="gate", change=None, **layout):
    """A file of Keras, written by `layout` and changed by a function of its `h5py.File`."""

    def mistake(path):
        write_keras(path, **layout)
        if change:
            with h5py.File(path, "a") as file:
                change(file)
        return convert.from_keras1(path, "relu", "1.2", layer=layer)

    return mistake


def from_bytes(path):
    path.write_bytes(b"PK\x03\x04 a zip")
    return convert.from_keras1(path, "relu", **KERAS_1)


def array_of_another_file(file):
    """HDF5 can name any file of the reader's machine as the place of its numbers."""
    with open(f"{file.filename}.secret", "wb") as secret:
        secret.write(bytes(4 * WIDTH))
    del file["gate/gate_b"]
    place = [(secret.name, 0, h5py.h5f.UNLIMITED)]
    file.create_dataset("gate/gate_b", (WIDTH,), dtype="float32", external=place)


def link_to_another_file(name):
    def change(file):
        with h5py.File(f"{file.filename}.other", "w") as other:
            file.copy(name, other, "secret")
        del file[name]
        file[name] = h5py.ExternalLink(f"{file.filename}.other", "secret")

    return change


def of_allennlp(change, **options):
    def mistake(path):
        state = {**ALLENNLP}
        change(state)
        return convert.from_allennlp(state, "relu", **options)

    return mistake


def of_tacotron(state):
    return lambda path: convert.from_tacotron(state, "relu")


NAN = np.where(np.eye(WIDTH), np.nan, 0.0)
KERAS_1 = {"version": "1.2", "layer": "gate"}
LAYER_0 = ("_layers.0.weight", "_layers.0.bias")
SLOT = {**TENSORFLOW, "highway_1/H/kernel/Adam": np.eye(WIDTH)}
V, T = ValueError, TypeError
MISTAKES = {  # what is wrong: (call, error, the argument that it names)
    "no activation": (from_list(activation=None), V, "activation"),
    "hard sigmoid": (from_list(activation="hard_sigmoid"), V, "activation.*0.2"),
    "slope": (lambda _: convert.from_allennlp(ALLENNLP, "leaky_relu"), V, "activation"),
    "version unknown": (from_list("1.1"), V, "version"),
    "late as early": (from_list("1.0", order="1.2"), V, "version.*'1.2'"),
    "a dictionary": (lambda _: convert.from_keras1(keras_weights(), "relu", "1.0"), T, "weights"),
    "not square": (from_list(W=np.zeros((4, 6))), V, r"weights\[0\]"),
    "NaN": (from_list(W_carry=NAN), V, r"weights\[2\].* 6 of 36"),
    "no file": (lambda path: convert.from_keras1(path, "relu", **KERAS_1), OSError, "weights"),
    "not HDF5": (from_bytes, V, "weights.*HDF5"),
    "external array": (from_file(change=array_of_another_file), V, "weights.*HDF5"),
    "external link": (from_file(change=link_to_another_file("gate/gate_b")), V, "weights.*HDF5"),
    "external layer": (from_file(change=link_to_another_file("gate")), V, "weights.*HDF5"),
    "layer not named": (from_file(None), V, "layer.*'gate'"),
    "a name unknown": (from_file(names="{layer}_{weight}_kernel"), V, "layer.*W_kernel"),
    "a path": (lambda path: convert.from_tacotron(path, "relu"), T, "state"),
    "nothing": (lambda _: convert.from_elmo({}, "relu"), V, "weights.*CNN_high_0/W_carry"),
    "missing": (of_allennlp(lambda s: s.pop("_layers.1.bias")), V, "state.* without 'bias'"),
    "twice": (of_allennlp(lambda s: s.update({"layers.1.bias": 0})), V, "state.*layers.1.bias"),
    "no layer 0": (of_allennlp(lambda s: [s.pop(w) for w in LAYER_0]), V, "state.*layer 0 without"),
    "prefix": (of_allennlp(lambda s: None, prefix="encoder."), V, "encoder._layers.0.weight"),
    "parts": (of_allennlp(lambda s: s.update({LAYER_0[0]: np.ones((18, 6))})), V, "(12, 6)"),
    "two frameworks": (of_tacotron(TENSORFLOW | PYTORCH), V, "state.*highway_1"),
    "a slot": (of_tacotron(SLOT), V, "state.*Adam"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name, tmp_path):
    mistake, error, argument = MISTAKES[name]
    with pytest.raises(error, match=argument):
        mistake(tmp_path / "old.h5")
