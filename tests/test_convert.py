"""Old weights: every source's own formula in NumPy, real files, and what must be refused."""

import json
import re

import h5py
import keras
import numpy as np
import pytest

from highway_keras import Highway, HighwayStack, convert
from highway_keras.convert import conventions
from tools.rows import KERAS, LAYERS, OLD, STATES

WIDTH = 6
EARLY = ("W", "b", "W_carry", "b_carry")
LATE = ("W", "W_carry", "b", "b_carry")
ORDERS = {"1.0": EARLY, "1.2": LATE, "2.0": LATE}
ACTIVATIONS = {
    "linear": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "elu": lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
}
TOLERANCE = 2e-6


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def keras_highway(x, w, activation):
    """What Keras 1 and 2 computed, from its source, in float64."""
    transform_weight = sigmoid(x @ w["W_carry"] + w.get("b_carry", 0))
    act = ACTIVATIONS[activation](x @ w["W"] + w.get("b", 0))
    return act * transform_weight + (1 - transform_weight) * x


# Random weights under each source's names.

ELMO = ("W_carry", "b_carry", "W_transform", "b_transform")
TENSORFLOW = ("H/kernel", "H/bias", "T/kernel", "T/bias")
PYTORCH = ("H.weight", "H.bias", "T.weight", "T.bias")


def draw(*shape, seed=0):
    """Normal numbers; matrices scaled so that a chain of layers stays of order 1."""
    scale = shape[-1] ** -0.5 if len(shape) == 2 else 1.0
    return scale * np.random.default_rng([seed, *shape]).normal(size=shape)


def keras_weights(seed=0):
    shapes = {"W": (WIDTH, WIDTH), "b": (WIDTH,)}
    return {
        name: draw(*shapes[name[0]], seed=seed + 10 * index) for index, name in enumerate(EARLY)
    }


def allennlp_state(layers=3):
    shapes = {"weight": (2 * WIDTH, WIDTH), "bias": (2 * WIDTH,)}
    return {
        f"_layers.{index}.{name}": draw(*shape, seed=index)
        for index in range(layers)
        for name, shape in shapes.items()
    }


def square_state(pattern, names, numbers):
    """Square matrices, and vectors for the names that speak of a bias."""
    return {
        pattern.format(number) + name: draw(
            *(WIDTH,) * (1 if name.startswith("b_") or name.endswith("bias") else 2),
            seed=10 * number + index,
        )
        for number in numbers
        for index, name in enumerate(names)
    }


def run(layers, x):
    for layer in layers:
        x = layer(x)
    return keras.ops.convert_to_numpy(x)


def inputs():
    return np.random.default_rng(99).normal(size=(40, WIDTH))


def difference(layers, expected):
    return np.abs(run(layers, inputs().astype("float32")) - expected).max()


def in_order(weights, version):
    return [weights[name] for name in ORDERS[version] if name in weights]


ELMO_STATE = square_state("CNN_high_{}/", ELMO, range(2))
TENSORFLOW_STATE = square_state("highway_{}/", TENSORFLOW, range(1, 5))
PYTORCH_STATE = square_state("highways.{}.", PYTORCH, range(4))


# Outputs are those of the source's formula, and those that the libraries themselves computed.


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("version", ORDERS)
def test_keras_formula(version, activation):
    weights = keras_weights()
    for _ in range(2):
        layer = convert.from_keras1(in_order(weights, version), activation, version)
        assert type(layer) is Highway and layer.use_bias == ("b" in weights)
        assert difference([layer], keras_highway(inputs(), weights, activation)) < TOLERANCE
        weights = {name: w for name, w in weights.items() if name in ("W", "W_carry")}


@pytest.mark.parametrize("file", [*STATES, "bilm-tf"])
def test_state_of_the_real_library(file):
    arrays = {name.replace("|", "/"): array for name, array in np.load(OLD / f"{file}.npz").items()}
    function, activation, options = STATES.get(file, (convert.from_elmo, "relu", {}))
    x, y = arrays.pop("x"), arrays.pop("y")
    layers = function(arrays or OLD / f"{file}.hdf5", activation, **options)
    assert all(type(layer) is Highway for layer in layers)
    for found in (layers, [HighwayStack.from_layers(layers)]):
        assert np.abs(run(found, x) - y).max() < TOLERANCE
    prefix = options.get("prefix", "")
    kernels = [n for n, w in arrays.items() if w.ndim == 2 and "pre_highway" not in n]
    for name in (n for n in kernels if n.startswith(prefix)):
        negated = function({**arrays, name: -arrays[name]}, activation, **options)
        assert np.abs(run(negated, x) - y).max() > 0.001  # a wrong sign shows


def test_numbers_decide_the_order_of_layers():
    """Ten comes after nine, and the order in the dictionary does not count."""
    state = dict(reversed(allennlp_state(layers=11).items()))
    for index, layer in enumerate(convert.from_allennlp(state, "tanh")):
        expected = -state[f"_layers.{index}.bias"][WIDTH:]  # of its gate of x
        np.testing.assert_allclose(layer.transform_bias, expected, rtol=1e-6)


SOURCES = {
    "_token_embedder._highways.": (convert.from_allennlp, allennlp_state()),
    "lm/": (convert.from_elmo, ELMO_STATE),
    "model/inference/post_cbhg/": (convert.from_tacotron, TENSORFLOW_STATE),
    "encoder.cbhg.": (convert.from_tacotron, PYTORCH_STATE),
}


@pytest.mark.parametrize("prefix", SOURCES)
def test_prefixes_and_names_of_variables(prefix):
    function, state = SOURCES[prefix]
    expected = run(function(state, "relu"), inputs().astype("float32"))
    other = {f"other.{name}": np.zeros(3) for name in state}
    whole = {**{prefix + name: w for name, w in state.items()}, **other, f"{prefix}rnn": "no array"}
    whole |= {f"{prefix}{name}/Adagrad": "no array" for name in state}  # slots of an optimizer
    assert difference(function(whole, "relu", prefix=prefix), expected) == 0
    with pytest.raises(ValueError, match=re.escape(f"prefix={prefix!r}")):
        function(whole, "relu")
    if state is TENSORFLOW_STATE or function is convert.from_allennlp:  # as fairseq names them
        renamed = {f"{n}:0" if "/" in n else n.removeprefix("_"): w for n, w in state.items()}
        assert difference(function(renamed, "relu"), expected) == 0


@pytest.mark.parametrize("written", KERAS)
def test_file_of_the_real_keras(written):
    outputs = np.load(OLD / f"keras-{written}.npz")
    x = outputs["dense_1"]
    for name, activation in LAYERS.items():
        layer = convert.from_keras1(
            OLD / f"keras-{written}.h5", activation, KERAS[written], layer=name
        )
        assert np.abs(run([layer], x) - outputs[name]).max() < TOLERANCE
        x = outputs[name]


# Files in the layouts of Keras.


def write_keras(
    path, version="1.2", names="{layer}_{weight}", order=None, whole=None, weights=None
):
    """Writes one layer `gate` as Keras does; `whole`: attributes of the file of a whole model."""
    weights = weights or keras_weights()
    order = order or ORDERS[version]
    with h5py.File(path, "w") as file:
        root = file if whole is None else file.create_group("model_weights")
        for attribute, value in (whole or {}).items():
            file.attrs[attribute] = value.encode()
        if version == "2.0":
            root.attrs["keras_version"] = b"2.1.6"
            root.attrs["backend"] = b"theano"
        root.attrs["layer_names"] = np.array([b"dense_1", b"gate"])
        stored = [names.format(layer="gate", weight=w, index=i) for i, w in enumerate(order)]
        dense = root.create_group("dense_1")
        dense.attrs["weight_names"] = np.array([b"dense_1_W", b"dense_1_b"])
        dense["dense_1_W"], dense["dense_1_b"] = np.ones((4, WIDTH)), np.ones(WIDTH)
        root.create_group("dropout_1").attrs["weight_names"] = []
        group = root.create_group("gate")
        group.attrs["weight_names"] = np.array([name.encode() for name in stored])
        for name, weight in zip(stored, order, strict=True):
            group[name] = weights[weight].astype("float32")
    return path


def noted(activation, name="gate", wrapper=None):
    """The `model_config` of Keras 1, of a model with this layer and another one."""
    highway = {"class_name": "Highway", "config": {"name": name, "activation": activation}}
    if wrapper:
        config = {"name": wrapper, "layer": highway}
        highway = {"class_name": "TimeDistributed", "config": config}
    dense = {"class_name": "Dense", "config": {"name": "dense_1", "activation": "softmax"}}
    other = {"class_name": "Highway", "config": {"name": "other", "activation": "sigmoid"}}
    return json.dumps({"class_name": "Sequential", "config": [dense, highway, other]})


NAMES = {
    "Theano": "{layer}_{weight}",
    "TensorFlow": "{layer}_{weight}:0",
    "a session with the name taken": "{layer}_{weight}_1:0",
    "Keras 2 on Theano": "{layer}/{weight}",
    "Keras 2 on TensorFlow": "{layer}_1/{weight}:0",
    "a layer called W_carry": "W_carry_{weight}",
    "no names": "param_{index}",
}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("version", ORDERS)
def test_keras_file(tmp_path, version, names):
    expected = keras_highway(inputs(), keras_weights(), "tanh")
    for whole in (None, {"model_config": noted("tanh")}):
        path = write_keras(tmp_path / "old.h5", version, NAMES[names], whole=whole)
        layer = convert.from_keras1(str(path), "tanh", version, layer="gate")
        assert difference([layer], expected) < TOLERANCE
    for wrong in [one for one in ORDERS if ORDERS[one] != ORDERS[version] and names != "no names"]:
        with pytest.raises(ValueError, match=f"version={wrong!r}"):
            convert.from_keras1(path, "tanh", wrong, layer="gate")


@pytest.mark.parametrize(
    "written, right", [("1.0.8", "1.0"), ("1.1.2", "1.0"), ("1.2.0", "1.2"), ("2.2.4-tf", "2.0")]
)
def test_wrong_version_of_a_whole_model_is_refused(tmp_path, written, right):
    path = write_keras(tmp_path / "old.h5", right, whole={"keras_version": written})
    for wrong in set(ORDERS) - {right}:
        with pytest.raises(ValueError, match=f"version.*{right!r}"):
            convert.from_keras1(path, "tanh", wrong, layer="gate")
    convert.from_keras1(path, "tanh", right, layer="gate")


def test_names_outrank_the_biases(tmp_path):
    """Biases that look swapped are no reason to doubt a file that names them."""
    weights = {**keras_weights(), "b": np.full(WIDTH, -2.0), "b_carry": np.zeros(WIDTH)}
    path = write_keras(tmp_path / "named.h5", "1.0", weights=weights)
    layer = convert.from_keras1(path, "tanh", "1.0", layer="gate")
    assert difference([layer], keras_highway(inputs(), weights, "tanh")) < TOLERANCE
    path = write_keras(tmp_path / "unnamed.h5", "1.0", "param_{index}", weights=weights)
    with pytest.raises(ValueError, match="check_biases"):
        convert.from_keras1(path, "tanh", "1.0", layer="gate")


@pytest.mark.parametrize("wrapper", [None, "gate"])
def test_noted_activation(tmp_path, wrapper):
    config = noted("tanh", "inner" if wrapper else "gate", wrapper)
    path = write_keras(tmp_path / "old.h5", whole={"model_config": config})
    for activation in ("tanh", keras.activations.tanh, lambda z: z):  # its own is never doubted
        convert.from_keras1(path, activation, "1.2", layer="gate")
    for activation in ("relu", keras.activations.relu):
        with pytest.raises(ValueError, match=r"activation.*'tanh'"):
            convert.from_keras1(path, activation, "1.2", layer="gate")


def test_hard_sigmoid_of_keras_1():
    """Keras 3 gives the name to a function of another slope."""
    weights = keras_weights()
    with pytest.raises(ValueError, match=r"returns keras\.ops\.clip\(0\.2 \* z \+ 0\.5, 0, 1\)"):
        convert.from_keras1(in_order(weights, "1.0"), "hard_sigmoid", "1.0")
    layer = convert.from_keras1(
        in_order(weights, "1.0"), lambda z: keras.ops.clip(0.2 * z + 0.5, 0, 1), "1.0"
    )
    t = sigmoid(inputs() @ weights["W_carry"] + weights["b_carry"])
    h = np.clip(0.2 * (inputs() @ weights["W"] + weights["b"]) + 0.5, 0, 1)
    assert difference([layer], t * h + (1 - t) * inputs()) < TOLERANCE


# Biases as a hint.


def started(weights, bias, gate_bias):
    noise = 0.1 * draw(2 * WIDTH)
    return {**weights, "b": bias + noise[:WIDTH], "b_carry": gate_bias + noise[WIDTH:]}


@pytest.mark.parametrize(
    "version, start", [("1.0", -2.0), ("1.0", -3.0), ("1.2", 1.0), ("2.0", 1.0)]
)
def test_biases_of_swapped_keras_weights(version, start):
    right = in_order(started(keras_weights(), 0.0, start), version)
    wrong = in_order(started(keras_weights(), start, 0.0), version)
    convert.from_keras1(right, "tanh", version)
    with pytest.raises(ValueError, match=r"weights.*check_biases"):
        convert.from_keras1(wrong, "tanh", version)
    convert.from_keras1(wrong, "tanh", version, check_biases=False)


@pytest.mark.parametrize("halves", [(1, 0), (0, -1)])
def test_biases_of_wrong_allennlp_weights(halves):
    state = allennlp_state(1)
    noise = 0.1 * draw(2 * WIDTH)
    convert.from_allennlp({**state, "_layers.0.bias": np.repeat([0, 1], WIDTH) + noise}, "relu")
    state["_layers.0.bias"] = np.repeat(halves, WIDTH) + noise
    with pytest.raises(ValueError, match="check_biases=False"):
        convert.from_allennlp(state, "relu")
    convert.from_allennlp(state, "relu", check_biases=False)


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("convention", [conventions.KERAS["1.0"], conventions.ALLENNLP])
def test_biases_at_random_raise_no_doubt(convention, scale):
    start = convention.gate_start
    for bias, gate_bias in scale * np.random.default_rng(0).normal(size=(2000, 2, 16)):
        conventions.check_start("weights", bias, gate_bias, convention)
        conventions.check_start("weights", bias, start + gate_bias / 4, convention)


# What a user may pass wrongly.


def keras_list(version="1.0", **changes):
    return in_order({**keras_weights(), **changes}, version)


def from_list(weights, version="1.0", activation="relu", **options):
    return lambda path: convert.from_keras1(weights, activation, version, **options)


def from_file(layer="gate", change=None, **layout):
    """A file of Keras, written by `layout` and changed by a function of its `h5py.File`."""

    def mistake(path):
        write_keras(path, **layout)
        if change:
            with h5py.File(path, "a") as file:
                change(file)
        return convert.from_keras1(path, "relu", "1.2", layer=layer)

    return mistake


def from_bytes(content, function=convert.from_keras1, **options):
    def mistake(path):
        path.write_bytes(content)
        return function(path, activation="relu", **options)

    return mistake


def instead_of_an_array(make):
    """A file in which something else stands in the place of an array."""

    def change(file):
        del file["gate/gate_b"]
        make(file)

    return from_file(change=change)


def array_of_another_file(file):
    """HDF5 can name any file of the reader's machine as the place of its numbers."""
    with open(f"{file.filename}.secret", "wb") as secret:
        secret.write(bytes(4 * WIDTH))
    place = [(secret.name, 0, h5py.h5f.UNLIMITED)]
    file.create_dataset("gate/gate_b", (WIDTH,), dtype="float32", external=place)


def link_to_another_file(file):
    with h5py.File(f"{file.filename}.other", "w") as other:
        other["secret"] = np.zeros(WIDTH, "float32")
    file["gate/gate_b"] = h5py.ExternalLink(f"{file.filename}.other", "secret")


def layer_of_another_file(file):
    with h5py.File(f"{file.filename}.other", "w") as other:
        file.copy("gate", other)
    del file["gate"]
    file["gate"] = h5py.ExternalLink(f"{file.filename}.other", "gate")


def of_allennlp(change, **options):
    def mistake(path):
        state = allennlp_state(2)
        change(state)
        return convert.from_allennlp(state, "relu", **options)

    return mistake


def elmo_file(groups):
    def mistake(path):
        with h5py.File(path, "w") as file:
            for name, value in groups.items():
                file[name] = value
        return convert.from_elmo(path, "relu")

    return mistake


NAN = np.where(np.eye(WIDTH), np.nan, 0.0)
KERAS_1 = {"version": "1.2", "layer": "gate"}
LAYER_0 = ("_layers.0.weight", "_layers.0.bias")
NARROW = {"_layers.1.weight": np.ones((8, 4)), "_layers.1.bias": np.ones(8)}
HALF = {"CNN_high_0/W_carry": np.eye(3), "CNN_high_0/b_carry": np.zeros(3)}
FROM_2 = square_state("highway_{}/", TENSORFLOW, range(2, 4))
SLOT = {**TENSORFLOW_STATE, "highway_1/H/kernel/Adam": np.eye(WIDTH)}
MEANING = "activation.*0.01"
V, T = ValueError, TypeError
MISTAKES = {  # what is wrong: (call, error, the argument that it names)
    # activation and version
    "none": (from_list(keras_list(), activation=None), V, "activation"),
    "slope": (lambda _: convert.from_allennlp(allennlp_state(), "leaky_relu"), V, MEANING),
    "version unknown": (from_list(keras_list(), "1.1"), V, "version"),
    # lists of Keras
    "late as early": (from_list(keras_list("1.2"), "1.0"), V, "version.*'1.2'"),
    "early as late": (from_list(keras_list("1.0"), "2.0"), V, "version.*'1.0'"),
    "a dictionary": (from_list(keras_weights()), T, "weights"),
    "not square": (from_list(keras_list(W=np.zeros((4, 6)))), V, r"weights\[0\]"),
    "NaN": (from_list(keras_list(W_carry=NAN)), V, r"weights\[2\].* 6 of 36"),
    # files of Keras
    "no file": (lambda path: convert.from_keras1(path, "relu", **KERAS_1), OSError, "weights"),
    "a folder": (lambda p: convert.from_keras1(p.parent, "relu", **KERAS_1), OSError, "weights"),
    "not HDF5": (from_bytes(b"PK\x03\x04 a zip", **KERAS_1), V, "weights.*HDF5"),
    "external array": (instead_of_an_array(array_of_another_file), V, "weights.*HDF5"),
    "external link": (instead_of_an_array(link_to_another_file), V, "weights.*HDF5"),
    "external layer": (from_file(change=layer_of_another_file), V, "weights.*HDF5"),
    "layer unknown": (from_file("gata"), V, "layer.*'gate'"),
    "layer not named": (from_file(None), V, "layer.*'gate'"),
    "a name unknown": (from_file(names="{layer}_{weight}_kernel"), V, "layer.*W_kernel"),
    # states of allennlp
    "nothing": (of_allennlp(dict.clear), V, "state.*_layers.0.weight.*layer 0"),
    "too many": (of_allennlp(lambda s: s.update(bias=0)), V, "state.*'bias'"),
    "missing": (of_allennlp(lambda s: s.pop("_layers.1.bias")), V, "state.* without 'bias'"),
    "twice": (of_allennlp(lambda s: s.update({"layers.1.bias": 0})), V, "state.*layers.1.bias"),
    "no layer 0": (of_allennlp(lambda s: [s.pop(w) for w in LAYER_0]), V, "state.*layer 0 without"),
    "prefix": (of_allennlp(lambda s: None, prefix="encoder."), V, "encoder._layers.0.weight"),
    "parts": (of_allennlp(lambda s: s.update({LAYER_0[0]: np.ones((18, 6))})), V, "(12, 6)"),
    "inf": (of_allennlp(lambda s: s.update({LAYER_0[1]: np.full(12, np.inf)})), V, "0.bias.* fin"),
    # ELMo and Tacotron
    "no ELMo file": (lambda path: convert.from_elmo(path, "relu"), OSError, "weights"),
    "incomplete": (elmo_file(HALF), V, "weights.* without 'W_transform', 'b_transform'"),
    "ELMo more": (lambda _: convert.from_elmo(ELMO_STATE | {"x": 0}, "relu"), V, "weights.*'x'"),
    "two frameworks": (
        lambda _: convert.from_tacotron(TENSORFLOW_STATE | PYTORCH_STATE, "relu"),
        V,
        "state.*highway_1",
    ),
    "from 2": (lambda _: convert.from_tacotron(FROM_2, "relu"), V, "state.*layer 1 without"),
    "a slot": (lambda _: convert.from_tacotron(SLOT, "relu"), V, "state.*Adam"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name, tmp_path):
    mistake, error, argument = MISTAKES[name]
    with pytest.raises(error, match=argument):
        mistake(tmp_path / "old.h5")
