"""The numbers of the analyses beside the same networks with gated layers replaced by hand."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from highway_keras import (
    ConvHighway2D,
    Highway,
    HighwayStack,
    HighwayWrapper,
    TransformBias,
    analysis,
)
from highway_keras.analysis import blocks
from highway_keras.layers.gated import GatedLayer

SAMPLES, CLASSES = 23, 3
eagerly = pytest.mark.usefixtures("untraced")


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
    chain = Mine(3, activation="tanh", carry="learned", name="stack")
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
    x = ConvHighway2D(4, 3, name="first")(x)
    x = skipped = keras.layers.Conv2D(6, 3, strides=2)(x)
    x = ConvHighway2D(6, 3, name="second")(x)
    x = keras.layers.Add()([x, skipped])
    x = keras.layers.Flatten()(x)
    return drawn(keras.Model(inputs, softmax()(x)))


def convolutions_by_hand(model, x, gated):
    _, stem, first, shrink, second, _, flatten, top = model.layers
    skipped = shrink(gated(0, first, stem(x)))
    return top(flatten(gated(1, second, skipped) + skipped))


def nested():
    inner = as_model((8,), keras.layers.Dense(7), Highway(name="one"), Highway(name="two"))
    layers = [keras.layers.Rescaling(1 / 3), inner, Highway(name="one"), softmax()]
    return drawn(keras.Sequential([keras.Input((8,)), *layers]))


def shared():
    layer = Highway(name="shared")
    return as_model((8,), layer, keras.layers.Dense(8), layer, softmax())


def shared_by_hand(model, x, gated):
    _, layer, dense, top = model.layers
    layer = layer.layers[-1] if isinstance(layer, keras.Model) else layer
    return top(gated(1, layer, dense(gated(0, layer, x))))


def shared_model():
    inner = keras.Sequential([keras.Input((8,)), Highway(name="one")])
    return as_model((8,), inner, keras.layers.Dense(8), inner, softmax())


def quantized():
    model = as_model((8,), Highway(name="a"), Highway(name="b"), softmax())
    model.quantize("int8")
    return model


def normalized():
    """A gate that is a Sequential and ends in batch normalization."""
    parts = [
        keras.layers.Conv2D(3, 3, padding="same", use_bias=False),
        keras.layers.BatchNormalization(beta_initializer=TransformBias(-2.0)),
        keras.layers.Activation("sigmoid"),
    ]
    block = keras.layers.Conv2D(3, 3, padding="same")
    gated = HighwayWrapper(block, transform=keras.Sequential(parts), name="a")
    model = as_model((5, 5, 3), gated, keras.layers.Flatten(), softmax())
    for layer in parts[1:2]:
        layer.moving_variance.assign(np.ones(3))
    return model


def every_step():
    """A prediction for each step of a sequence."""
    return as_model((4, 8), HighwayStack(2, name="a"), softmax())


def uses_its_gate():
    inputs = keras.Input((8,))
    x, gate = Highway(name="a")(inputs, return_gate=True)
    return drawn(keras.Model(inputs, softmax()(keras.layers.Concatenate()([x, gate]))))


def samples(model):
    random = np.random.default_rng(1)
    x = random.standard_normal((SAMPLES, *model.input_shape[1:])).astype("float32")
    return x, random.integers(0, CLASSES, (SAMPLES, *model.output_shape[1:-1]))


def scores(probabilities, y):
    """Cross-entropy and error in NumPy."""
    chosen = np.take_along_axis(np.asarray(probabilities), y[..., None], axis=-1)
    return -np.log(chosen).mean(), (probabilities.argmax(-1) != y).mean()


def chain_by_hand(model, x, gated):
    numbers = itertools.count()

    def run(layers, z):
        for layer in layers:
            if isinstance(layer, keras.Model):
                z = run(layer.layers, z)
            elif isinstance(layer, GatedLayer):
                for link in layer.unstack() if isinstance(layer, HighwayStack) else [layer]:
                    z = gated(next(numbers), link, z)
            elif not isinstance(layer, keras.layers.InputLayer):
                z = layer(z)
        return z

    return run(model.layers, x)


def layer_by_layer(model, x, gated, by_hand=chain_by_hand):
    """The output of `model`, with `gated(number, layer, z)` in place of each call of a block."""
    return ops.convert_to_numpy(by_hand(model, ops.convert_to_tensor(x), gated))


def carried(layer, x):
    """What is left of a gated layer without its transform: y - H T."""
    if not layer.learned_carry:
        return x
    return x * ops.sigmoid(x @ ops.convert_to_tensor(layer.carry_kernel) + layer.carry_bias)


# Each with the names of its blocks, and how to compute it by hand.
MODELS = {
    stack: ([f"stack_{i}" for i in range(3)], chain_by_hand),
    wrapped: (["w0", "w1"], chain_by_hand),
    convolutions: (["first", "second"], convolutions_by_hand),
    nested: (["one", "two", "one (2)"], chain_by_hand),
    shared: (["shared", "shared (2)"], shared_by_hand),
    shared_model: (["one", "one (2)"], shared_by_hand),
    quantized: (["a", "b"], chain_by_hand),
    normalized: (["a"], chain_by_hand),
    every_step: (["a_0", "a_1"], chain_by_hand),
}
every_model = pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)


# Closing must reach what is compiled: the first two models, those of most functions.
COMPILED = list(MODELS)[:2]


@every_model
def test_a_lesion_is_the_network_without_the_layer(make, request):
    if make not in COMPILED:
        request.getfixturevalue("untraced")
    model, (names, by_hand) = make(), MODELS[make]
    (x, y), before = samples(model), model.get_weights()
    lesions = analysis.lesions(model, x, y, batch_size=10, verbose=0)
    assert list(lesions.layers) == names
    assert lesions.samples == y.size and lesions.wrong.dtype.kind == "i"
    np.testing.assert_array_equal(lesions.error, lesions.wrong / y.size)
    np.testing.assert_allclose(
        (lesions.intact_loss, lesions.intact_error),
        scores(model.predict(x, verbose=0), y),
        atol=1e-6,
    )
    for number, name in enumerate(names):
        is_shared = make in (shared, shared_model)  # a shared layer closes in all its calls
        without = layer_by_layer(
            model,
            x,
            lambda i, layer, z, n=number, every=is_shared: (
                carried(layer, z) if every or i == n else layer(z)
            ),
            by_hand,
        )
        measured = lesions.loss[number], lesions.error[number]
        np.testing.assert_allclose(measured, scores(without, y), atol=1e-6, err_msg=name)
    np.testing.assert_equal(model.get_weights(), before)


@eagerly
@every_model
def test_gates_and_block_outputs_are_the_layers(make):
    model, (names, by_hand) = make(), MODELS[make]
    x, _ = samples(model)
    gates = analysis.gates(model, x, per_position=True, batch_size=10)
    outputs = analysis.block_outputs(model, x, per_position=True)
    biases = analysis.transform_biases(model)
    assert list(gates) == list(outputs) == list(biases) == names
    close = {"rtol": 1e-5, "atol": 1e-6}

    def check(number, layer, z):
        z, gate = layer(z, return_gate=True)
        np.testing.assert_allclose(gates[names[number]], ops.convert_to_numpy(gate), **close)
        np.testing.assert_allclose(outputs[names[number]], ops.convert_to_numpy(z), **close)
        bias = ops.convert_to_numpy(layer.gate_bias)
        np.testing.assert_array_equal(biases[names[number]], bias)
        return z

    layer_by_layer(model, x, check, by_hand)


@eagerly
@pytest.mark.parametrize("make", [stack, nested, normalized])
def test_the_model_of_the_gates_is_saved_and_follows_the_training(make, tmp_path):
    model = make()
    x, y = samples(model)
    gates = analysis.gate_model(model)
    both = analysis.gate_model(model, with_outputs=True).predict(x, verbose=0)
    np.testing.assert_allclose(both["outputs"], model.predict(x, verbose=0), rtol=1e-5, atol=1e-6)
    path = tmp_path / "gates.keras"
    gates.save(path)
    loaded = keras.models.load_model(path)
    before, of_loaded = (keras.tree.flatten(m.predict(x, verbose=0)) for m in (gates, loaded))
    for ours, theirs in zip(before, of_loaded, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    model.compile(keras.optimizers.SGD(1.0), "sparse_categorical_crossentropy")
    model.fit(x, y, verbose=0)
    after = keras.tree.flatten(gates.predict(x, verbose=0))[0]
    assert not np.allclose(before[0], after)
    expected = next(iter(analysis.gates(model, x, per_position=True).values()))
    np.testing.assert_allclose(after, expected, rtol=1e-5, atol=1e-6)


@eagerly
def test_names_of_a_dictionary_of_inputs_stay():
    ends = {name: keras.Input((width,), name=name) for name, width in (("pixels", 5), ("age", 3))}
    joined = keras.layers.Concatenate()(list(ends.values()))
    model = drawn(keras.Model(ends, softmax()(Highway(name="a")(Highway(name="b")(joined)))))
    random = np.random.default_rng(0)
    x = {"age": random.normal(size=(6, 3)), "pixels": random.normal(size=(6, 5))}
    y = np.arange(6) % CLASSES
    inner = keras.Model(ends, model.get_layer("b").output)
    (before, _), z = analysis.gate_model(model).predict(x, verbose=0), inner.predict(x, verbose=0)
    assert before.shape == z.shape
    lesions = analysis.lesions(model, x, y, verbose=0)
    assert lesions.intact_loss == pytest.approx(scores(model.predict(x, verbose=0), y)[0], rel=1e-5)
    small = analysis.compact(model, x, y, layers=1, verbose=0).model
    assert small.predict(x, verbose=0).shape == (6, CLASSES)


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


@eagerly
@pytest.mark.parametrize("make", [causal, masked, uses_its_gate])
def test_masks_and_the_arguments_of_a_call_hold(make):
    model = make()
    x, y = samples(model)
    x[::2, 2:] = 0  # what is masked
    layers = [layer for layer in model.layers if isinstance(layer, GatedLayer)]
    if make is not uses_its_gate:
        truth = keras.Model(model.inputs, [layer.output for layer in layers])
        outputs = analysis.block_outputs(model, x, per_position=True).values()
        for block, expected in zip(outputs, truth.predict(x, verbose=0), strict=True):
            np.testing.assert_allclose(block, expected, rtol=1e-5, atol=1e-6)
    lesions = analysis.lesions(model, x, y, verbose=0)
    for layer, loss, error in zip(layers, lesions.loss, lesions.error, strict=True):
        with analysis.closed(layer):
            by_hand = scores(model.predict(x, verbose=0), y)
        assert (loss, error) == pytest.approx(by_hand, rel=1e-5)
    intact = scores(model.predict(x, verbose=0), y)
    assert (lesions.intact_loss, lesions.intact_error) == pytest.approx(intact, rel=1e-5)


@eagerly
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
        lesions = analysis.lesions(model, x, y, verbose=0)
        expected = scores(model.predict(x, verbose=0), y)
        assert (lesions.intact_loss, lesions.intact_error) == pytest.approx(expected, rel=1e-5)
        (block,) = analysis.gates(model, x).values()
        assert block.shape == (30, block.shape[-1])


# Closing in place


def test_what_was_closed_opens_whatever_happens():
    model = stack()
    chain, before = model.get_layer("stack"), model.get_weights()
    for index in (None, 1):
        with pytest.raises(KeyboardInterrupt), analysis.closed(chain, index):
            is_closed = ops.convert_to_numpy(chain.transform_bias)[:, 0] == blocks.CLOSED
            assert is_closed.tolist() == [index in (None, i) for i in range(3)]
            raise KeyboardInterrupt
        np.testing.assert_equal(model.get_weights(), before)


def bias_before_normalization():
    parts = [keras.layers.Dense(8), keras.layers.BatchNormalization(center=False)]
    return keras.Sequential([*parts, keras.layers.Activation("sigmoid")])


CANNOT_CLOSE = {
    "tanh": lambda: keras.layers.Dense(8, "tanh"),
    "softmax": lambda: keras.layers.Dense(8, "softmax"),
    "no bias": lambda: keras.layers.Dense(8, "sigmoid", use_bias=False),
    "a bias before a normalization": bias_before_normalization,
}


@eagerly
@pytest.mark.parametrize("name", CANNOT_CLOSE)
def test_gates_that_no_bias_closes(name):
    gated = HighwayWrapper(keras.layers.Dense(8), transform=CANNOT_CLOSE[name](), name="gated")
    model = as_model((8,), gated, softmax())
    before = model.get_weights()
    with pytest.raises(ValueError, match="gated"):
        analysis.lesions(model, *samples(model), verbose=0)
    np.testing.assert_equal(model.get_weights(), before)


@eagerly
@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_bfloat16", "float16"])
def test_gates_close_in_16_bits(dtype):
    layers = Highway(dtype=dtype), HighwayStack(4, dtype=dtype, transform_bias_initializer=-6.5)
    model = as_model((8,), *layers, keras.layers.Dense(CLASSES, "softmax"))
    x, y = samples(model)
    lesions = analysis.lesions(model, x, y, verbose=0)
    expected = scores(model.predict(x, verbose=0).astype("float32"), y)[0]
    assert lesions.intact_loss == pytest.approx(expected, rel=1e-5)


# Numbers


@eagerly
def test_logits():
    model = shared()
    logits = keras.models.clone_model(model)
    logits.set_weights(model.get_weights())
    logits.layers[-1].activation = keras.activations.linear
    x, y = samples(model)
    expected = analysis.lesions(model, x, y, verbose=0)
    lesions = analysis.lesions(logits, x, y, from_logits=True, verbose=0)
    np.testing.assert_allclose(lesions.loss, expected.loss, atol=1e-6)


@eagerly
def test_the_loss_of_what_is_wrong_for_certain_is_not_clipped():
    top = keras.layers.Dense(CLASSES, "softmax", kernel_initializer="zeros")
    model = as_model((8,), Highway(), top)
    top.kernel.assign(np.zeros(top.kernel.shape))
    top.bias.assign([0.0, 30.0, 0.0])
    lesions = analysis.lesions(model, samples(model)[0], np.zeros(SAMPLES, int), verbose=0)
    np.testing.assert_allclose([lesions.intact_loss, *lesions.loss], 30, rtol=0.01)


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


@eagerly
def test_gates_are_averaged_over_samples_classes_and_space():
    model = convolutions()
    x, y = samples(model)
    maps, gates = analysis.gates(model, x, per_position=True), analysis.gates(model, x)
    assert maps["first"].shape == (SAMPLES, 6, 6, 4)
    np.testing.assert_allclose(gates["first"], maps["first"].mean((1, 2)), atol=1e-6)
    means = analysis.mean_gates(model, x, y, batch_size=10, verbose=0)
    for name, of_samples in gates.items():
        mean = of_samples.mean(0)
        np.testing.assert_allclose(means.overall[name], mean, atol=1e-6)
        for number in range(CLASSES):
            expected = of_samples[y == number].mean(0) - mean
            np.testing.assert_allclose(means.by_class[number][name], expected, atol=1e-6)
    assert analysis.mean_gates(model, x, verbose=0).by_class is None
    biases = analysis.transform_biases(model)
    np.testing.assert_array_equal(biases["second"], model.get_layer("second").get_weights()[3])


@eagerly
def test_channels_are_the_last_axis():
    first, last = (
        as_model(shape, ConvHighway2D(3, 3, data_format=f"channels_{end}", name="a"))
        for end, shape in (("first", (3, 5, 4)), ("last", (5, 4, 3)))
    )
    x = np.random.default_rng(1).standard_normal((2, 5, 4, 3)).astype("float32")
    for measure in (analysis.gates, analysis.block_outputs):
        transposed, expected = measure(first, np.moveaxis(x, -1, 1)), measure(last, x)
        np.testing.assert_allclose(transposed["a"], expected["a"], atol=1e-6)


@eagerly
def test_the_model_is_left_as_it_was():
    model = nested()
    x, y = samples(model)
    model.compile("sgd", lambda y_true, y_pred: ops.mean(y_pred))  # which Keras cannot load
    before = model.get_config(), model.predict(x, verbose=0)
    analysis.lesions(model, x, y, verbose=0)
    analysis.gates(model, x)
    assert model.get_config() == before[0] and model.compiled
    np.testing.assert_array_equal(model.predict(x, verbose=0), before[1])


Y = np.zeros(SAMPLES, int)


def lesions(model, y=Y, **options):
    return analysis.lesions(model, samples(model)[0], y, verbose=0, **options)


WRONG = [
    ("`model`", lambda: analysis.gate_model(as_model((8,), softmax()))),
    ("from_logits", lambda: lesions(as_model((8,), Highway(), keras.layers.Dense(3)))),
    ("`y`", lambda: lesions(shared(), Y - 1)),
    ("threshold", lambda: analysis.needed_layers(counted(0, 1, samples=2), 1.5)),
]


@eagerly
@pytest.mark.parametrize(("argument", "mistake"), WRONG)
def test_mistakes(argument, mistake):
    with pytest.raises(ValueError, match=argument):
        mistake()
