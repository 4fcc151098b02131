"""The numbers of the analyses against NumPy, and against networks built without a layer."""

import keras
import numpy as np
import pytest
from harness import named_weights
from keras import ops
from numpy_highway import highway
from selection import all_but

from highway_keras import ConvHighway2D, Highway, HighwayStack, HighwayWrapper, analysis
from highway_keras.analysis.graph import Graph
from highway_keras.analysis.lesion_model import LesionedChain, largest_batch, lesion_model

SAMPLES, CLASSES = 23, 3


def dense_chain(make=Highway, depth=5, units=7, carry="coupled"):
    """Input, a plain layer, a chain of gated ones, a softmax; all weights drawn."""
    layers = [make(units, activation="tanh", carry=carry, name=f"h{i}") for i in range(depth)]
    return as_model((8,), [keras.layers.Dense(units), *layers, softmax()])


def stack(carry="coupled"):
    chain = HighwayStack(5, activation="tanh", carry=carry, name="stack")
    return as_model((8,), [keras.layers.Dense(7), chain, softmax()])


def wrapped(carry="coupled"):
    layers = [HighwayWrapper(keras.layers.LSTM(6, return_sequences=True), carry) for _ in range(2)]
    head = [keras.layers.GlobalAveragePooling1D(), softmax()]
    return as_model((4, 3), [keras.layers.Dense(6), *layers, *head])


def two_convolutions(carry="coupled"):
    """What a user may write: two sizes, and a skip past the second gated layer."""
    inputs = keras.Input((6, 6, 3))
    x = keras.layers.Conv2D(4, 3, padding="same")(inputs)
    x = ConvHighway2D(4, 3, carry=carry, name="first")(x)
    x = skipped = keras.layers.Conv2D(6, 3, strides=2)(x)
    x = ConvHighway2D(6, 3, carry=carry, name="second")(x)
    x = keras.layers.Add()([x, skipped])
    x = keras.layers.Flatten()(x)
    return drawn(keras.Model(inputs, softmax()(x)))


def nested():
    inner = as_model((8,), [keras.layers.Dense(7), Highway(name="one"), Highway(name="two")])
    model = keras.Sequential([keras.layers.Rescaling(1 / 3), inner, Highway(name="one"), softmax()])
    model.build((None, 8))
    return drawn(model)


def softmax():
    return keras.layers.Dense(CLASSES, activation="softmax")


def as_model(shape, layers):
    inputs = x = keras.Input(shape)
    for layer in layers:
        x = layer(x)
    return drawn(keras.Model(inputs, x))


def drawn(model):
    """Weights at which gates and classes differ between samples, and no probability is 0."""
    random = np.random.default_rng(0)
    shapes = [w.shape for w in model.get_weights()]
    scales = [0.3 if len(s) == 1 else 0.4 * s[-2] ** -0.5 for s in shapes]
    weights = zip(shapes, scales, strict=True)
    model.set_weights([scale * random.standard_normal(shape) for shape, scale in weights])
    return model


MODELS = {
    "dense": dense_chain,
    "dense-learned": lambda: dense_chain(carry="learned"),
    "stack": stack,
    "stack-learned": lambda: stack("learned"),
    "wrapped": wrapped,
    "wrapped-learned": lambda: wrapped("learned"),
    "convolutions": two_convolutions,
    "convolutions-learned": lambda: two_convolutions(carry="learned"),
    "nested": nested,
}
# Learned carries leave the chain of lesions as it is, and `dense-learned` has one.
quick = [name for name in MODELS if name == "dense-learned" or not name.endswith("learned")]
every_model = pytest.mark.parametrize("name", all_but(quick, MODELS))


def samples(model, count=SAMPLES):
    random = np.random.default_rng(1)
    x = random.standard_normal((count, *model.input_shape[1:])).astype("float32")
    return x, random.integers(0, CLASSES, count)


def scores(probabilities, y):
    """Cross-entropy and error in NumPy, of probabilities above the 1e-7 at which Keras clips."""
    chosen = np.take_along_axis(probabilities, y[:, None], axis=1)
    return -np.log(chosen).mean(), (probabilities.argmax(1) != y).mean()


# Lesions


def layer_by_layer(model, x, gated):
    """The output of `model`, with `gated(number, layer, z)` in place of each gated layer's call."""
    graph = Graph(model)
    values = dict(zip(map(id, graph.inputs), [ops.convert_to_tensor(x)], strict=True))
    for call in graph.calls:
        arguments = keras.tree.map_structure(lambda z: values.get(id(z), z), call.args)
        if call.blocks:
            (result,), layer = arguments, call.layer
            chain = layer.unstack() if isinstance(layer, HighwayStack) else [layer]
            for number, link in zip(call.blocks, chain, strict=True):
                result = gated(number, link, result)
        else:
            result = call.layer(*arguments)
        values[id(call.outputs)] = result
    return ops.convert_to_numpy(values[id(graph.outputs[0])])


def without(model, skipped, x):
    """The output of `model` with the gated layer number `skipped` replaced by its carry."""
    return layer_by_layer(
        model, x, lambda number, layer, z: carried(layer, z) if number == skipped else layer(z)
    )


def carried(layer, x):
    """What is left of a gated layer without its transform: y - H T."""
    return x if layer.carry is None else x * layer.carry(x)


@every_model
def test_a_lesion_is_the_network_without_the_layer(name):
    model = MODELS[name]()
    x, y = samples(model)
    found = analysis.lesions(model, x, y, batch_size=10, verbose=0)
    assert found.samples == SAMPLES and found.wrong.dtype.kind == "i"
    np.testing.assert_array_equal(found.error, found.wrong / SAMPLES)
    np.testing.assert_allclose(
        (found.intact_loss, found.intact_error), scores(model.predict(x, verbose=0), y), atol=1e-6
    )
    for index in range(len(found.layers)):
        expected = scores(without(model, index, x), y)
        np.testing.assert_allclose((found.loss[index], found.error[index]), expected, atol=1e-6)
    assert len(set(found.loss.round(5))) > 1, "no lesion does anything"


def test_chains_of_dense_layers_of_equal_options_run_as_one_loop():
    layers = [Highway(activation="tanh"), Highway(activation="tanh"), Highway(), Highway()]
    unlike = as_model((8,), [*layers, Highway(carry="learned"), softmax()])
    for model, expected in (
        (unlike, [2, 2]),
        (dense_chain(), [5]),
        (stack(), [5]),
        (nested(), [3]),
    ):
        scored = lesion_model(Graph(model), (), from_logits=False)
        depths = [layer.depth for layer in scored.layers if isinstance(layer, LesionedChain)]
        assert depths == expected


def test_a_layer_that_is_used_twice_is_two_blocks():
    shared = Highway(name="shared")
    model = as_model((8,), [shared, keras.layers.Dense(8), shared, softmax()])
    x, y = samples(model)
    found = analysis.lesions(model, x, y, verbose=0)
    assert found.layers == ("shared", "shared (2)")
    np.testing.assert_allclose(found.loss[1], scores(without(model, 1, x), y)[0], atol=1e-6)


def test_logits():
    model = dense_chain()
    logits = as_model((8,), [*model.layers[1:-1], keras.layers.Dense(CLASSES)])
    logits.set_weights(model.get_weights())
    x, y = samples(model)
    expected = analysis.lesions(model, x, y, verbose=0)
    found = analysis.lesions(logits, x, y, from_logits=True, verbose=0)
    np.testing.assert_allclose(found.loss, expected.loss, atol=1e-6)


def test_a_prediction_for_each_step():
    model = as_model((4, 6), [Highway(), Highway(), softmax()])
    x, _ = samples(model)
    y = np.random.default_rng(2).integers(0, CLASSES, x.shape[:2])
    found = analysis.lesions(model, x, y, verbose=0)
    probabilities = without(model, 1, x).reshape(-1, CLASSES)
    loss, error = scores(probabilities, y.ravel())
    np.testing.assert_allclose(found.loss[1], loss, atol=1e-6)
    assert (found.error[1], found.samples) == (error, y.size)


def counted(intact, *lesioned, samples):
    """Lesions of so many wrong samples."""
    names = tuple(map(str, range(len(lesioned))))
    return analysis.Lesions(
        names, np.zeros(len(lesioned)), np.array(lesioned), 0.0, intact, samples
    )


def test_needed_layers():
    needed = analysis.needed_layers(counted(200, 5000, 211, 209, 100, samples=10_000))
    assert (needed.layers, needed.of, needed.threshold) == (("0", "1"), 4, 0.001)
    assert "2 of 4" in str(needed) and "10 of 10,000" in str(needed)
    few = str(analysis.needed_layers(counted(18, 18, 19, 20, samples=1000)))
    assert few.startswith("1 of 3") and "chance" in few
    lesions = counted(200, 5000, 211, 209, 100, samples=10_000)
    assert analysis.needed_layers(lesions, threshold=0.1).layers == ("0",)


@pytest.mark.parametrize(
    ("threshold", "samples", "limit"), [(0.001, 1000, 1), (0.0029, 10_000, 29), (0, 50, 0)]
)
def test_a_layer_on_the_threshold_is_idle(threshold, samples, limit):
    for intact in range(0, samples - limit, 7):
        found = counted(intact, intact + limit, intact + limit + 1, samples=samples)
        assert analysis.needed_layers(found, threshold).layers == ("1",), intact


# Gates


def by_hand(model, x):
    """Gates and block outputs of a chain of dense gated layers in NumPy, layers first."""
    _, plain, *gated, _ = model.layers
    chain = gated[0].unstack() if isinstance(gated[0], HighwayStack) else gated
    z = ops.convert_to_numpy(plain(x))
    gates, outputs = [], []
    for layer in chain:
        z, _, t = highway(z, named_weights(layer), {"activation": "tanh"})
        gates.append(t)
        outputs.append(z)
    return np.array(gates), np.array(outputs)


@pytest.mark.parametrize("name", ["dense", "dense-learned", "stack", "stack-learned"])
def test_gates_and_block_outputs_by_hand(name):
    model = MODELS[name]()
    x, y = samples(model)
    expected_gates, expected_outputs = by_hand(model, x)
    gates, outputs = analysis.gates(model, x, batch_size=10), analysis.block_outputs(model, x)
    assert list(gates.axes) == ["sample", "layer", "unit"]
    np.testing.assert_allclose(gates.values, expected_gates.swapaxes(0, 1), atol=1e-6)
    np.testing.assert_allclose(outputs.values, expected_outputs.swapaxes(0, 1), atol=1e-6)
    found = analysis.mean_gates(model, x, y, batch_size=10, verbose=0)
    mean = expected_gates.mean(1)
    np.testing.assert_allclose(found.overall.values, mean, atol=1e-6)
    for number in range(CLASSES):
        difference = expected_gates[:, y == number].mean(1) - mean
        np.testing.assert_allclose(
            found.by_class.at(**{"class": number}).values, difference, atol=1e-6
        )


@every_model
def test_gates_of_every_kind_of_layer(name):
    model = MODELS[name]()
    x, _ = samples(model, 5)
    gates = analysis.gates(model, x, per_position=True)
    outputs = analysis.block_outputs(model, x, per_position=True)
    blocks, checked = Graph(model).blocks, []

    def check(number, layer, z):
        z, gate = layer(z, return_gate=True)
        block = blocks[number]
        np.testing.assert_allclose(gates[block], ops.convert_to_numpy(gate), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(outputs[block], ops.convert_to_numpy(z), rtol=1e-5, atol=1e-6)
        checked.append(block)
        return z

    layer_by_layer(model, x, check)
    assert list(gates) == list(outputs) == checked == list(blocks)


def test_convolutional_gates_are_averaged_over_space():
    model = two_convolutions()
    x, _ = samples(model)
    maps, gates = analysis.gates(model, x, per_position=True), analysis.gates(model, x)
    assert maps["first"].shape == (SAMPLES, 6, 6, 4)
    first, second = (gates.at(layer=name).values for name in ("first", "second"))
    np.testing.assert_allclose(first[:, :4], maps["first"].mean((1, 2)), atol=1e-6)
    assert np.isnan(first[:, 4:]).all() and not np.isnan(second).any()
    mean = analysis.mean_gates(model, x, verbose=0)
    np.testing.assert_allclose(mean.overall.values[0, :4], first[:, :4].mean(0), atol=1e-6)
    assert mean.by_class is None


def test_transform_biases():
    model = two_convolutions()
    biases = analysis.transform_biases(model)
    for name in ("first", "second"):
        expected = ops.convert_to_numpy(model.get_layer(name).transform_bias)
        values = biases.at(layer=name).values
        np.testing.assert_array_equal(values[~np.isnan(values)], expected)


def test_a_saved_nested_network(tmp_path):
    model = nested()
    x, y = samples(model)
    model.save(tmp_path / "nested.keras")
    loaded = keras.models.load_model(tmp_path / "nested.keras")
    assert analysis.transform_biases(loaded).axes["layer"] == ("one", "two", "one (2)")
    expected, found = (analysis.lesions(m, x, y, verbose=0) for m in (model, loaded))
    np.testing.assert_array_equal(found.loss, expected.loss)


def test_the_model_is_left_as_it_was():
    model = nested()
    x, y = samples(model)
    model.compile("sgd", "sparse_categorical_crossentropy")
    before = model.get_config(), model.predict(x, verbose=0)
    analysis.lesions(model, x, y, verbose=0)
    analysis.gates(model, x)
    assert model.get_config() == before[0]
    np.testing.assert_array_equal(model.predict(x, verbose=0), before[1])
    model.fit(x, y, verbose=0)


# Errors


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.gated = Highway()

    def call(self, inputs):
        return self.gated(inputs)


def wrong_lesions(y, model=None, **options):
    model = model or dense_chain()
    return analysis.lesions(model, samples(model)[0], y, verbose=0, **options)


Y = np.zeros(SAMPLES, int)
WRONG = {
    "no model": (TypeError, "`model`", lambda: analysis.gate_model(Highway())),
    "subclassed": (TypeError, "`model`.*Subclassed", lambda: analysis.gate_model(Subclassed())),
    "not built": (TypeError, "built", lambda: analysis.gate_model(keras.Sequential([Highway()]))),
    "no gates": (ValueError, "gated", lambda: analysis.gate_model(as_model((8,), [softmax()]))),
    "no batch": (ValueError, "`x`", lambda: analysis.gates(dense_chain(), np.ones(8))),
    "two inputs": (ValueError, "`x`", lambda: analysis.gates(dense_chain(), [np.ones((1, 8))] * 2)),
    "a dictionary": (ValueError, "`x`", lambda: analysis.gates(dense_chain(), {"b": Y, "a": Y})),
    "no samples": (ValueError, "`x`", lambda: analysis.gates(dense_chain(), np.ones((0, 8)))),
    "batch size": (ValueError, "`batch_size`", lambda: wrong_lesions(Y, batch_size=0)),
    "floats": (ValueError, "`y`", lambda: wrong_lesions(Y.astype(float))),
    "classes": (ValueError, "`y`.*3 to 3", lambda: wrong_lesions(Y + 3, stack())),
    "steps": (
        ValueError,
        "`y`",
        lambda: analysis.mean_gates(dense_chain(), np.ones((2, 8)), np.zeros((2, 2), int)),
    ),
    "no prediction": (
        ValueError,
        "`model`",
        lambda: wrong_lesions(Y, as_model((4, 6), [Highway()])),
    ),
    "logits": (
        ValueError,
        "from_logits",
        lambda: wrong_lesions(Y, as_model((8,), [Highway(), keras.layers.Dense(3)])),
    ),
    "threshold": (
        ValueError,
        "`threshold`",
        lambda: analysis.needed_layers(counted(0, 1, samples=2), threshold=1.5),
    ),
    "label": (ValueError, "h9", lambda: analysis.transform_biases(stack()).at(layer="h9")),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    error, message, run = WRONG[name]
    with pytest.raises(error, match=message):
        run()


def test_a_batch_is_as_large_where_sides_are_open():
    layers = [ConvHighway2D(3, 3), keras.layers.GlobalAveragePooling2D(), softmax()]
    open_, known = (as_model((side, side, 3), layers) for side in (None, 64))
    found = largest_batch(Graph(open_, [(64, 64, 3)])), largest_batch(Graph(known))
    assert found[0] == found[1] < 800
