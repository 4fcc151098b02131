"""The numbers of the analyses against NumPy, and against networks built without a layer."""

import keras
import numpy as np
import pytest
from keras import ops

from highway_keras import ConvHighway2D, Highway, HighwayStack, HighwayWrapper, analysis
from highway_keras.analysis.graph import Graph
from highway_keras.analysis.lesion_model import LesionedStack, largest_batch, lesion_model
from highway_keras.util.messages import Notice

SAMPLES, CLASSES = 23, 3


def softmax():
    return keras.layers.Dense(CLASSES, activation="softmax")


def as_model(shape, *layers):
    inputs = x = keras.Input(shape)
    for layer in layers:
        x = layer(x)
    return drawn(keras.Model(inputs, x))


def drawn(model):
    """Draw weights that make gates and classes differ between samples, and no probability 0."""
    random = np.random.default_rng(0)
    shapes = [w.shape for w in model.get_weights()]
    scales = [0.3 if len(s) == 1 else 0.4 * s[-2] ** -0.5 for s in shapes]
    weights = zip(shapes, scales, strict=True)
    model.set_weights([scale * random.standard_normal(shape) for shape, scale in weights])
    return model


@keras.saving.register_keras_serializable()
class Mine(HighwayStack):
    """A user's own."""


def stack():
    chain = Mine(5, activation="tanh", carry="learned", name="stack")
    return as_model((8,), keras.layers.Dense(7), chain, softmax())


def wrapped():
    rnns = [keras.layers.LSTM(6, return_sequences=True) for _ in range(2)]
    layers = [HighwayWrapper(rnn, name=f"w{i}") for i, rnn in enumerate(rnns)]
    head = [keras.layers.GlobalAveragePooling1D(), softmax()]
    return as_model((4, 3), keras.layers.Dense(6), *layers, *head)


def convolutions():
    """What a user may write: two sizes, and a skip past the second gated layer."""
    inputs = keras.Input((6, 6, 3))
    x = keras.layers.Conv2D(4, 3, padding="same")(inputs)
    x = ConvHighway2D(4, 3, carry="learned", name="first")(x)
    x = skipped = keras.layers.Conv2D(6, 3, strides=2)(x)
    x = ConvHighway2D(6, 3, name="second")(x)
    x = keras.layers.Add()([x, skipped])
    x = keras.layers.Flatten()(x)
    return drawn(keras.Model(inputs, softmax()(x)))


def nested():
    inner = as_model((8,), keras.layers.Dense(7), Highway(name="one"), Highway(name="two"))
    layers = [keras.layers.Rescaling(1 / 3), inner, Highway(name="one"), softmax()]
    return drawn(keras.Sequential([keras.Input((8,)), *layers]))


def twins():
    """Two encoders with the same names, also of what is no layer.

    They take a dictionary, whose order is not that of their inputs.
    """
    z, a = ends = [keras.Input((8,), name=name) for name in "za"]
    x = keras.layers.Concatenate(name="join")([a, Highway(name="one")(keras.layers.subtract(ends))])
    encoder = keras.Model(ends, keras.layers.Dense(8)(x) + z)
    twin = keras.Model.from_config({**encoder.get_config(), "name": "twin"})
    inputs = keras.Input((8,))
    bent = keras.layers.Dense(8, "tanh")(inputs)
    both = [encoder({"z": inputs, "a": bent}), twin({"z": bent, "a": inputs})]
    return drawn(keras.Model(inputs, softmax()(keras.layers.subtract(both))))


def shared():
    layer = Highway(name="shared")
    return as_model((8,), layer, keras.layers.Dense(8), layer, softmax())


def quantized():
    model = as_model((8,), Highway(name="a"), Highway(name="b"), softmax())
    model.quantize("int8")
    return model


def every_step():
    """A prediction for each step of a sequence."""
    return as_model((4, 8), HighwayStack(2, name="a"), softmax())


# Each with the names of its blocks.
MODELS = {
    stack: [f"stack_{i}" for i in range(5)],
    wrapped: ["w0", "w1"],
    convolutions: ["first", "second"],
    nested: ["one", "two", "one (2)"],
    twins: ["one", "one (2)"],
    shared: ["shared", "shared (2)"],
    quantized: ["a", "b"],
    every_step: ["a_0", "a_1"],
}
every_model = pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)


def samples(model):
    random = np.random.default_rng(1)
    x = random.standard_normal((SAMPLES, *model.input_shape[1:])).astype("float32")
    return x, random.integers(0, CLASSES, (SAMPLES, *model.output_shape[1:-1]))


def scores(probabilities, y):
    """Cross-entropy and error in NumPy, of probabilities above the 1e-7 at which Keras clips."""
    chosen = np.take_along_axis(probabilities, y[..., None], axis=-1)
    return -np.log(chosen).mean(), (probabilities.argmax(-1) != y).mean()


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


def carried(layer, x):
    """What is left of a gated layer without its transform: y - H T."""
    return x if layer.carry is None else x * layer.carry(x)


@every_model
def test_a_lesion_is_the_network_without_the_layer(make):
    model = make()
    x, y = samples(model)
    found = analysis.lesions(model, x, y, batch_size=10, verbose=0)
    assert list(found.layers) == MODELS[make]
    assert found.samples == y.size and found.wrong.dtype.kind == "i"
    np.testing.assert_array_equal(found.error, found.wrong / y.size)
    np.testing.assert_allclose(
        (found.intact_loss, found.intact_error), scores(model.predict(x, verbose=0), y), atol=1e-6
    )
    for skipped in range(len(found.layers)):
        without = layer_by_layer(
            model, x, lambda i, layer, z, n=skipped: carried(layer, z) if i == n else layer(z)
        )
        scored = found.loss[skipped], found.error[skipped]
        np.testing.assert_allclose(scored, scores(without, y), atol=1e-6)
    assert len(set(found.loss.round(5))) > 1, "no lesion does anything"


def test_lesions_do_not_depend_on_the_global_policy():
    inputs = keras.Input((6,))
    skip = keras.layers.Add()([inputs, Highway()(inputs)])  # past a lesion
    model = drawn(keras.Model(inputs, softmax()(skip)))
    expected = analysis.lesions(model, *samples(model), verbose=0).loss
    keras.config.set_dtype_policy("mixed_bfloat16")
    found = analysis.lesions(model, *samples(model), verbose=0).loss
    np.testing.assert_array_equal(found, expected)


def causal():
    inputs = x = keras.Input((4, 6))
    for name in "ab":
        attention = keras.layers.MultiHeadAttention(2, 3)
        x = HighwayWrapper(attention, name=name)(inputs=x, use_causal_mask=True)
    return drawn(keras.Model(inputs, softmax()(x)))


def masked():
    lstm = keras.layers.LSTM(6, return_sequences=True)
    inputs = keras.Input((4, 6))
    x = Highway(name="b")(HighwayWrapper(lstm, name="a")(keras.layers.Masking()(inputs)))
    return drawn(keras.Model(inputs, softmax()(keras.layers.GlobalAveragePooling1D()(x))))


def masked_carry():
    lstm = keras.layers.LSTM(6, return_sequences=True)
    inputs = keras.Input((4, 6))
    wrapper = HighwayWrapper(keras.layers.Dense(6), carry=lstm, name="b")
    x = wrapper(Highway(name="a")(keras.layers.Masking()(inputs)))
    return drawn(keras.Model(inputs, softmax()(keras.layers.GlobalAveragePooling1D()(x))))


@pytest.mark.parametrize("make", [causal, masked, masked_carry])
def test_masks_and_the_arguments_of_a_call_hold_in_lesions(make):
    model = make()
    x, y = samples(model)
    x[::2, 2:] = 0  # what is masked
    gated = [model.get_layer(name) for name in "ab"]

    def by_hand():
        return pytest.approx(scores(model.predict(x, verbose=0), y), rel=1e-5)

    truth = keras.Model(model.inputs, [layer.output for layer in gated]).predict(x, verbose=0)
    outputs = analysis.block_outputs(model, x, per_position=True)
    for block, expected in zip("ab", truth, strict=True):
        np.testing.assert_allclose(outputs[block], expected, rtol=1e-5, atol=1e-6)
    found = analysis.lesions(model, x, y, verbose=0)
    assert (found.intact_loss, found.intact_error) == by_hand()
    for layer, loss, error in zip(gated, found.loss, found.error, strict=True):
        bias = ops.convert_to_numpy(layer.transform_bias)
        layer.transform_bias.assign(bias - 100)  # closed
        assert (loss, error) == by_hand()
        layer.transform_bias.assign(bias)


def test_a_nested_model_casts_its_input_and_takes_the_mask_of_its_call():
    words, ids = keras.Input((None, 4)), keras.Input((6,), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(Highway()(words))
    embedded = keras.layers.Embedding(9, 4)(ids)
    vectors = keras.Model(words, pooled)(embedded, mask=ops.not_equal(ids, 0))
    masked = keras.Model(ids, keras.layers.Dense(CLASSES, "softmax")(vectors))
    images, pixels = keras.Input((8, 8, 1)), keras.Input((8, 8, 1), dtype="uint8")
    x = keras.layers.Flatten()(keras.layers.Conv2D(2, 3)(images))
    network = keras.Model(images, keras.layers.Dense(CLASSES, "softmax")(Highway()(x)))
    rng = np.random.default_rng(0)
    for model in (masked, keras.Model(pixels, network(pixels))):
        x = rng.integers(0, 9, (30, *model.input_shape[1:])).astype(model.inputs[0].dtype)
        y = rng.integers(0, CLASSES, 30)
        found = analysis.lesions(model, x, y, verbose=0)
        expected = scores(model.predict(x, verbose=0), y)
        assert (found.intact_loss, found.intact_error) == pytest.approx(expected, rel=1e-5)


def test_all_lesions_of_a_stack_run_as_one_loop():
    scored = lesion_model(Graph(stack()), (), from_logits=False)
    depths = [layer.layer.depth for layer in scored.layers if isinstance(layer, LesionedStack)]
    assert depths == [5]


def test_names_of_the_users_and_sequences_of_one_step():
    top = keras.layers.Dense(CLASSES, "softmax", name="lesions")
    model = as_model((1, 8), Highway(name="scores"), keras.layers.Dense(8, name="labels"), top)
    x, y = samples(model)
    assert y.shape == (SAMPLES, 1)
    found = analysis.lesions(model, x, y, verbose=0)
    assert found.intact_loss == pytest.approx(scores(model.predict(x, verbose=0), y)[0], abs=1e-6)


def test_a_batch_is_as_large_where_sides_are_open():
    layers = [ConvHighway2D(3, 3), keras.layers.GlobalAveragePooling2D(), softmax()]
    open_, known = (as_model((side, side, 3), *layers) for side in (None, 64))
    found = largest_batch(Graph(open_, [(64, 64, 3)])), largest_batch(Graph(known))
    assert found[0] == found[1] < 800


def test_logits():
    model = shared()
    logits = keras.models.clone_model(model)
    logits.set_weights(model.get_weights())
    logits.layers[-1].activation = keras.activations.linear
    x, y = samples(model)
    expected = analysis.lesions(model, x, y, verbose=0)
    found = analysis.lesions(logits, x, y, from_logits=True, verbose=0)
    np.testing.assert_allclose(found.loss, expected.loss, atol=1e-6)


def counted(intact, *lesioned, samples):
    """Make `Lesions` from counts of wrong samples."""
    names, loss = tuple(map(str, range(len(lesioned)))), np.zeros(len(lesioned))
    return analysis.Lesions(names, loss, np.array(lesioned), 0.0, intact, samples)


def test_needed_layers():
    lesions = counted(200, 5000, 211, 209, 100, samples=10_000)
    needed = analysis.needed_layers(lesions)
    assert (needed.layers, needed.of, needed.threshold) == (("0", "1"), 4, 0.001)
    assert "2 of 4" in str(needed) and "10 of 10,000" in str(needed)
    assert analysis.needed_layers(lesions, threshold=0.1).layers == ("0",)
    on_the_threshold = counted(7, 36, 37, samples=10_000)
    assert analysis.needed_layers(on_the_threshold, 0.0029).layers == ("1",)
    few = str(analysis.needed_layers(counted(18, 18, 19, 20, samples=1000)))
    assert few.startswith("1 of 3") and "chance" in few


@every_model
def test_gates_and_block_outputs_are_the_layers(make):
    model = make()
    x, _ = samples(model)
    gates = analysis.gates(model, x, per_position=True, batch_size=10)
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
    for gate, values in zip(analysis.gate_model(model)(x), gates.values(), strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(gate), values, rtol=1e-5, atol=1e-6)


def test_a_batch_holds_fewer_samples_that_are_large(monkeypatch):
    sizes = []
    predict = keras.Model.predict_on_batch

    def observed(self, x):
        sizes.append(len(x[0] if isinstance(x, list) else x))
        return predict(self, x)

    monkeypatch.setattr(keras.Model, "predict_on_batch", observed)
    pictures = keras.Input((640, 640, 3))
    model = keras.Model(pictures, ConvHighway2D(3, 1)(pictures))
    analysis.gates(model, np.zeros((2, 640, 640, 3), "float32"))
    assert sizes == [1, 1]
    sizes.clear()
    flat = keras.layers.GlobalAveragePooling2D()(model.output)
    flat = keras.Model(pictures, keras.layers.Softmax()(flat))
    analysis.lesions(flat, np.zeros((2, 640, 640, 3), "float32"), [0, 1], batch_size=1, verbose=0)
    assert sizes == [1, 1]


def test_a_stack_in_16_bits_is_lesioned_as_it_computes():
    stack = HighwayStack(4, dtype="bfloat16", transform_bias_initializer=-6.5)
    model = as_model((8,), stack, keras.layers.Dense(CLASSES, "softmax"))
    x, y = samples(model)
    found = analysis.lesions(model, x, y, verbose=0).intact_loss
    assert found == pytest.approx(scores(model.predict(x, verbose=0), y)[0], rel=1e-6)


def test_the_loss_of_what_is_wrong_for_certain_is_not_clipped():
    top = keras.layers.Dense(CLASSES, "softmax", kernel_initializer="zeros")
    model = as_model((8,), Highway(), top)
    top.bias.assign([0.0, 30.0, 0.0])
    found = analysis.lesions(model, samples(model)[0], np.zeros(SAMPLES, int), verbose=0)
    np.testing.assert_allclose([found.intact_loss, *found.loss], 30, rtol=0.01)


def test_gates_are_averaged_over_samples_classes_and_space():
    model = convolutions()
    x, y = samples(model)
    maps, gates = analysis.gates(model, x, per_position=True), analysis.gates(model, x)
    assert list(gates.axes) == ["sample", "layer", "unit"]
    assert maps["first"].shape == (SAMPLES, 6, 6, 4)
    first, second = (gates.at(layer=name).values for name in ("first", "second"))
    np.testing.assert_allclose(first[:, :4], maps["first"].mean((1, 2)), atol=1e-6)
    assert np.isnan(first[:, 4:]).all() and not np.isnan(second).any()
    found = analysis.mean_gates(model, x, y, batch_size=10, verbose=0)
    mean = gates.values.mean(0)
    np.testing.assert_allclose(found.overall.values, mean, atol=1e-6)
    for number in range(CLASSES):
        difference = found.by_class.at(**{"class": number}).values
        np.testing.assert_allclose(difference, gates.values[y == number].mean(0) - mean, atol=1e-6)
    assert analysis.mean_gates(model, x, verbose=0).by_class is None
    biases = analysis.transform_biases(model).at(layer="second").values
    np.testing.assert_array_equal(biases, model.get_layer("second").get_weights()[3])


class Halves(type(keras.Model(*2 * [keras.Input((8,))]))):
    """A functional model that Keras does not call as its graph has it."""

    def call(self, x, **kwargs):
        return super().call(x / 2, **kwargs)


def test_what_is_not_seen_is_said():
    inputs = keras.Input((8,))
    halves = Halves(inputs, Highway()(inputs))
    hidden = keras.layers.TimeDistributed(Highway())
    for inner, shape in ((halves, (8,)), (hidden, (2, 8))):
        model = as_model(shape, inner, keras.layers.Flatten(), Highway(name="seen"), softmax())
        with pytest.warns(Notice, match=f"inside '{inner.name}' are left out"):
            assert [call.layer.name for call in Graph(model).gated] == ["seen"]
    for other in (halves, Highway(), keras.Sequential([Highway()])):  # the last one is not built
        with pytest.raises(TypeError, match="`model` must be a built functional or Sequential"):
            analysis.transform_biases(other)


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


def test_channels_are_the_last_axis_whatever_the_format():
    first, last = (
        as_model(shape, ConvHighway2D(3, 3, data_format=f"channels_{order}"))
        for order, shape in (("first", (3, 5, 4)), ("last", (5, 4, 3)))
    )
    x = np.random.default_rng(1).standard_normal((2, 5, 4, 3)).astype("float32")
    for measure in (analysis.gates, analysis.block_outputs):
        found, expected = measure(first, np.moveaxis(x, -1, 1)), measure(last, x)
        np.testing.assert_allclose(found.values, expected.values, atol=1e-6)


Y = np.zeros(SAMPLES, int)


def lesions(model, y=Y, **options):
    return analysis.lesions(model, samples(model)[0], y, verbose=0, **options)


WRONG = [
    ("`model`", lambda: analysis.gate_model(as_model((8,), softmax()))),  # has no gates
    ("`model`", lambda: lesions(as_model((4, 6), Highway()), np.zeros((SAMPLES, 4), int))),
    ("from_logits", lambda: lesions(as_model((8,), Highway(), keras.layers.Dense(3)))),
    ("`x`", lambda: analysis.gates(shared(), np.ones(8))),
    ("`x`", lambda: analysis.gates(shared(), [np.ones((1, 8))] * 2)),
    ("`x`", lambda: analysis.gates(shared(), {"b": Y, "a": Y})),
    ("`x`", lambda: analysis.gates(shared(), np.ones((0, 8)))),
    ("batch_size", lambda: lesions(shared(), batch_size=0)),
    ("`y`", lambda: lesions(shared(), Y.astype(float))),
    ("`y`", lambda: lesions(shared(), Y + 3)),
    ("argmax", lambda: lesions(shared(), np.eye(SAMPLES, CLASSES, dtype=int))),
    ("`model`", lambda: lesions(as_model((8,), Highway(), keras.layers.Dense(1, "sigmoid")), Y)),
    ("`model`", lambda: lesions(as_model((8,), Highway(), lambda x: ops.sum(x, axis=-1)))),
    ("`y`", lambda: analysis.mean_gates(shared(), np.ones((2, 8)), np.zeros((2, 2), int))),
    ("`y`", lambda: analysis.mean_gates(shared(), np.ones((2, 8)), np.array([-1, 0]))),
    ("threshold", lambda: analysis.needed_layers(counted(0, 1, samples=2), threshold=1.5)),
    ("h9", lambda: analysis.transform_biases(stack()).at(layer="h9")),
]


@pytest.mark.parametrize(("named", "mistake"), WRONG)
def test_mistakes(named, mistake):
    with pytest.raises(ValueError, match=named):
        mistake()
