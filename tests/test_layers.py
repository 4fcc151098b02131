"""Every row of the table through the harness, what else layers promise, and what they refuse."""

import re

import h5py
import keras
import numpy as np
import pytest
from harness import MaskProbe, array, check_layer, standard_normal
from keras.layers import Dense
from layer_cases import CASES, named

from highway_keras import TransformBias, initializers, layers
from highway_keras.layers import (
    ConvHighway2D,
    Highway,
    HighwayStack,
    HighwayWrapper,
    MatchSize,
    Maxout,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* does not have a `quantize` method"),
    pytest.mark.usefixtures("untraced"),
]
# Other cases have their options.
SLOW = ("stack-gate-options", "stack-penalized", "dense-rank4", "2d-groups", "2d-penalized")
SLOW += ("3d-gate-options", "wrapped-conv2d", "wrapped-first", "wrapped-dense-gate-options")


@pytest.mark.parametrize(**named(CASES, SLOW))
def test_layer(case, tmp_path):
    check_layer(case, tmp_path)


def test_every_layer_has_a_row_and_is_registered_under_the_package():
    exported = {getattr(layers, name) for name in layers.__all__}
    assert exported == {case.layer for case in CASES}
    assert len({case.name for case in CASES}) == len(CASES)
    for layer in exported:
        assert keras.saving.get_registered_name(layer) == f"highway_keras>{layer.__name__}"


@pytest.mark.parametrize("make", [Highway, lambda **options: HighwayStack(3, **options)])
def test_the_activity_regularizer_acts_on_the_output_alone(make):
    x, layer = standard_normal((4, 5)), make(activity_regularizer=keras.regularizers.L2(0.5))
    inputs = keras.Input((5,))
    model = keras.Model(inputs, layer(inputs, return_gate=True)[0])
    model.compile("sgd", "mse", jit_compile=False)
    expected = 0.5 * (array(layer(x)) ** 2).sum() / 4
    for return_gate in (False, True):
        layer(x, return_gate=return_gate)
        np.testing.assert_allclose([array(loss) for loss in layer.losses], [expected], rtol=1e-5)
    y = array(model(x))
    np.testing.assert_allclose(model.evaluate(x, y, verbose=0), expected, rtol=1e-5)


def test_weights_are_stored_under_the_names_of_the_parts(tmp_path):
    keras.Sequential([keras.Input((4,)), Highway(carry="learned")]).save_weights(
        tmp_path / "w.weights.h5"
    )
    stored = []
    with h5py.File(tmp_path / "w.weights.h5") as file:
        file["layers/highway"].visit(stored.append)
    groups = {name.removesuffix("/vars/0") for name in stored if name.endswith("/0")}
    assert groups == {"block", "carry", "transform"}


def test_wrapper_passes_the_mask_to_its_layer():
    wrapper = HighwayWrapper(keras.layers.LSTM(3, return_sequences=True))
    x = standard_normal((2, 6, 3))
    x[:, :2] = 5
    masked = keras.layers.Masking(mask_value=5)(x)
    # With the mask, the LSTM starts at the first step that it lets through.
    np.testing.assert_allclose(array(wrapper(masked))[:, 2:], array(wrapper(x[:, 2:])), atol=1e-6)
    assert not np.allclose(array(wrapper(x))[:, 2:], array(wrapper(x[:, 2:])), atol=1e-4)


class Own(keras.layers.Layer):
    """A user's layer with only `build` and `call`; it adds a vector to each of up to 32 steps."""

    kernel_size, dilation_rate = (3,), 1  # although it has no kernel

    def build(self, input_shape):
        self.table = self.add_weight(shape=(32, input_shape[-1]), initializer="ones")

    def call(self, x):
        return x + self.table[: x.shape[1] or keras.ops.shape(x)[1]]


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_wrapper_takes_layers_of_a_users_own(policy):
    keras.config.set_dtype_policy(policy)
    steps = None if keras.backend.backend() == "tensorflow" else 3  # others need its size
    layer = Own()
    wrapper, x = HighwayWrapper(layer), standard_normal((2, 3, 4))
    assert wrapper(keras.Input((steps, 4))).shape == (None, steps, 4)
    assert tuple(wrapper.transform_kernel.shape) == (4, 4)
    y, t = (array(z).astype("float32") for z in wrapper(x, return_gate=True))
    h = array(layer(x)).astype("float32")
    np.testing.assert_allclose(y, x + t * (h - x), atol=1e-6 if policy == "float32" else 0.05)


def test_wrapped_attention_attends_to_its_input():
    layer, x = keras.layers.Attention(), standard_normal((2, 3, 4))
    y, t = (array(z) for z in HighwayWrapper(layer)(x, return_gate=True))
    np.testing.assert_allclose(y, x + t * (array(layer([x, x])) - x), atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: keras.layers.ConvLSTM1D(4, 3, padding="same", return_sequences=True), (3, 5, 4)),
        (lambda: keras.layers.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d"), (3, 4)),
    ],
)
def test_wrapper_takes_layers_that_keep_the_shape(layer, shape):
    wrapper = HighwayWrapper(layer(), transform_bias_initializer=-30)
    x = standard_normal((2, *shape))
    wrapper(keras.Input(shape))
    np.testing.assert_allclose(array(wrapper(x)), x, atol=1e-6)


def test_wrapped_attention_takes_its_call_arguments():
    inputs = keras.Input((4, 6))
    wrapper = HighwayWrapper(keras.layers.MultiHeadAttention(2, 3))
    model = keras.Model(inputs, wrapper(inputs, use_causal_mask=True))
    x = standard_normal((2, 4, 6))
    changed = array(model(x)) - array(model(np.concatenate([x[:, :3], 2 * x[:, 3:]], axis=1)))
    assert not changed[:, :3].any() and changed[:, 3].all()  # no position sees a later one
    with pytest.raises(TypeError, match="use_casual_mask"):
        wrapper(x, use_casual_mask=True)


def test_a_frozen_wrapper_and_its_copies_train_nothing():
    wrappers = [HighwayWrapper(keras.layers.Dense(4), trainable=flag) for flag in (False, True)]
    wrappers[1].trainable = False
    for wrapper in wrappers:
        inputs = keras.Input((4,))
        model = keras.Model(inputs, wrapper(inputs))
        copy = keras.models.clone_model(model)
        assert not model.trainable_weights and not copy.trainable_weights
        copy.layers[1].trainable = True
        assert len(copy.trainable_weights) == 4


def test_wrapper_layer_and_gate_may_have_different_dtype_policies():
    h, gate = (keras.layers.Dense(3, "sigmoid", dtype="float32") for _ in range(2))
    for options in ({}, {"transform": gate}):
        wrapper = HighwayWrapper(h, **options, dtype="mixed_bfloat16")
        outputs = wrapper(standard_normal((2, 3)))
        assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"
        assert wrapper(keras.Input((3,))).dtype == "bfloat16"


def test_wrapper_trains_the_layer_in_training_mode():
    wrapper = HighwayWrapper(keras.layers.Dropout(0.5), transform_bias_initializer=30)
    x = np.ones((50, 20), "float32")
    np.testing.assert_allclose(array(wrapper(x)), x, atol=1e-6)
    assert 0.4 < (array(wrapper(x, training=True)) == 0).mean() < 0.6


def test_match_size_samples_the_mask_with_the_steps():
    x = standard_normal((2, 5, 3))
    x[:, 2] = 0
    mask = MaskProbe()(MatchSize(strides=2)(keras.layers.Masking()(x)))
    np.testing.assert_array_equal(array(mask), 2 * [[True, False, True]])
    assert MatchSize(strides=2)(keras.Input((4, None))).shape == (None, 2, None)
    of_images = MatchSize(strides=2).compute_mask(None, np.ones((2, 8, 7), bool))
    assert of_images.shape == (2, 4, 4)


@pytest.mark.parametrize("make", [Highway, lambda **k: HighwayStack(2, **k)])
def test_activations_may_change_in_a_built_layer(make, tmp_path):
    x, names = standard_normal((3, 4)), ("activation", "transform_activation")
    model = keras.Sequential([keras.Input((4,)), make(carry="learned", dtype="mixed_bfloat16")])
    for name, function in zip(names, ("gelu", "hard_sigmoid"), strict=True):
        setattr(model.layers[0], name, keras.activations.get(function))
    changed = array(model.layers[0](x))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(array(loaded(x)), changed)
    assert [getattr(loaded.layers[0], name).__name__ for name in names] == ["gelu", "hard_sigmoid"]


@pytest.mark.parametrize("make", [Highway, lambda **k: HighwayStack(2, **k)])
def test_a_penalty_trains_where_the_layer_is_rematerialized(make):
    x, found = standard_normal((3, 4)), []
    for mode, penalty in ((None, "l2"), ("full", "l2"), (None, None)):
        keras.utils.set_random_seed(0)
        with keras.RematScope(mode):
            layer = make(activity_regularizer=penalty)
        model = keras.Sequential([keras.Input((4,)), layer])
        model.compile("sgd", "mse", jit_compile=False)
        model.fit(x, x, verbose=0)
        found.append(model.get_weights())
    for plain, rematerialized, without in zip(*found, strict=True):
        np.testing.assert_allclose(rematerialized, plain, atol=1e-6)
        assert not np.allclose(without, plain, atol=1e-6)


# Adapters of low rank and int8, which a highway layer leaves to Keras's layers in it.

TO_ADAPT = {
    "dense": (lambda: Highway(carry="learned"), (4, 6)),
    "convolution": (lambda: ConvHighway2D(6, 3), (2, 5, 5, 6)),
    "wrapper": (lambda: HighwayWrapper(keras.layers.Dense(6), carry="learned"), (4, 5, 6)),
}
to_adapt = pytest.mark.parametrize(("make", "shape"), TO_ADAPT.values(), ids=TO_ADAPT)


def sequential(make, shape):
    return keras.Sequential([keras.Input(shape[1:]), make()])


@to_adapt
def test_adapters_learn_and_a_saved_model_loads_merged(make, shape, tmp_path):
    model, x = sequential(make, shape), standard_normal(shape)
    (layer,), before = model.layers, array(model(x))
    layer.enable_lora(2, lora_alpha=6)
    np.testing.assert_allclose(array(model(x)), before, atol=1e-6)
    parts = layer.parts()
    assert {part.lora_alpha for part in parts} == {6}
    model.compile("sgd", "mse")
    model.fit(x, -x, epochs=2, verbose=0)
    trained = {w.path.removeprefix(layer.path) for w in layer.trainable_weights}
    weights = ("lora_kernel_a", "lora_kernel_b", "bias")
    assert trained == {f"/{part.name}/{weight}" for part in parts for weight in weights}
    assert all(array(part.lora_kernel_b).any() for part in parts)  # which were zeros
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(array(loaded(x)), array(model(x)), rtol=1e-5, atol=1e-5)


QUANTIZATIONS = {
    "all": {"mode": "int8"},
    "H alone": {"mode": "int8", "filters": "^block$"},
}


@to_adapt
@pytest.mark.parametrize("change", QUANTIZATIONS.values(), ids=QUANTIZATIONS)
def test_a_quantized_layer_saves_and_loads(make, shape, change, tmp_path):
    model, x = sequential(make, shape), standard_normal(shape)
    (layer,), before = model.layers, array(model(x))
    model.quantize(**change)
    chosen = [part for part in layer.parts() if re.match(change.get("filters", ""), part.name)]
    dense = sum(isinstance(part, keras.layers.Dense) for part in chosen)
    assert sum(w.dtype == "int8" for w in model.weights) == dense
    np.testing.assert_allclose(array(model(x)), before, atol=0.1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(array(loaded(x)), array(model(x)))
    for _ in range(2):  # the second time of a layer that is not built
        layer = type(layer).from_config(layer.get_config())
    copied = keras.Sequential([keras.Input(shape[1:]), layer])
    for other in (loaded, copied, keras.models.clone_model(loaded)):
        assert [w.dtype for w in other.weights] == [w.dtype for w in model.weights]


def test_gates_see_the_mask_that_attention_removes():
    gate = keras.layers.LSTM(6, "sigmoid", return_sequences=True)
    wrapper = HighwayWrapper(keras.layers.MultiHeadAttention(2, 3), transform=gate)
    x = standard_normal((2, 5, 6))
    x[:, 2:] = 0
    _, found = wrapper(keras.layers.Masking()(x), return_gate=True)
    np.testing.assert_allclose(array(found), array(gate(keras.layers.Masking()(x))), atol=1e-6)


def test_a_chain_of_merged_layers_is_a_stack():
    chain, x = [Highway() for _ in range(3)], standard_normal((4, 6))
    model = keras.Sequential([keras.Input((6,)), *chain])
    for layer in chain:
        layer.enable_lora(2, b_initializer="ones")
    stack = HighwayStack.from_layers(chain)
    np.testing.assert_allclose(array(stack(x)), array(model(x)), rtol=1e-5, atol=1e-5)


# Mistakes: the type of the error, and the name of the argument or the shapes in it.


def image(*sizes, dtype=None):
    return keras.Input(sizes, dtype=dtype)


def ready(**options):
    layer = Highway(**options)
    layer.build((None, 6))
    return layer


# Each is caught where the layer is made.
ARGUMENTS = [
    (lambda: Highway(-3), "units=-3"),
    (lambda: Highway(transform_kernal_initializer="zeros"), "transform_kernal_initializer"),
    (lambda: Highway(carry="free"), "carry"),
    (lambda: ConvHighway2D(0, 3), "filters"),
    (lambda: ConvHighway2D(4, 3, strides=2), "strides"),
    (lambda: ConvHighway2D(4, 3, padding="valid"), "padding='valid'"),
    (lambda: ConvHighway2D(4, 3, padding="causal"), "one of 'same'"),
    (lambda: HighwayStack(0), "depth"),
    (lambda: HighwayWrapper(Dense(4), Dense(4), "learned"), "carry='learned'"),
    (lambda: HighwayWrapper(Dense(4), Dense(4), transform_activation="sigmoid"), "'sigmoid'"),
    (lambda: HighwayWrapper(Dense(4), Dense(4), transform_bias_initializer=-3), "initializer=-3"),
    (lambda: HighwayWrapper(Dense(4), carry=None), "carry"),
    (lambda: HighwayWrapper(Dense(4), activation="relu"), "activation"),
    (lambda: HighwayStack(3, transform_bias_initializer=[-1.0, np.nan, -2.0]), "value"),
    (lambda: MatchSize(0), "channels"),
    (lambda: Maxout(2.0), "pieces"),
    (lambda: TransformBias(0), "value"),
    (lambda: TransformBias.for_depth(2.5), "depth"),
    (lambda: initializers.get(float("-inf")), "value"),
]
LSTM = keras.layers.LSTM
CONV = keras.layers.Conv2D
# Each is caught where the layer meets its input.
SHAPES = [
    (lambda: Highway(50)(image(64)), r"MatchSize.*units=50, input_shape=\(None, 64\)"),
    (lambda: Highway()(image(5, None)), "last axis.*give the input a size"),
    (lambda: HighwayStack(4, 128)(image(80)), "plain layer.*units=128"),
    (lambda: HighwayStack(2, activation=keras.layers.PReLU())(image(6)), "activation"),
    (lambda: HighwayStack(2, activation=keras.layers.Dropout(0.2))(image(6)), "activation"),
    (lambda: Highway()([image(6), image(6)]), "expects 1 input"),
    (lambda: HighwayWrapper(LSTM(4))(image(8, 4)), "return_sequences=True"),
    (lambda: HighwayWrapper(LSTM(4, return_state=True))(image(8, 4)), "return_state=False"),
    (lambda: ConvHighway2D(16, 3)(image(8, 8, 3)), "filters=16"),
    (lambda: HighwayWrapper(CONV(4, 3))(image(8, 8, 4)), 'padding="same"'),
    (lambda: HighwayWrapper(CONV(4, 3))(image(None, None, 4)), 'padding="same"'),
    (lambda: HighwayWrapper(CONV(5, 1))(image(8, 8, 4)), "MatchSize"),
    (lambda: ConvHighway2D(4, 3, transform_kernel_size=0)(image(8, 8, 4)), "kernel_size"),
    (lambda: HighwayWrapper(Dense(5, name="h"))(image(4)), r"`layer`.*h.*into \(None, 5\)"),
    (lambda: HighwayWrapper(Dense(4), transform=Dense(1))(image(4)), "`transform` must keep"),
    (lambda: Maxout(2)(image(3)), "pieces"),
    (lambda: ready()(image(4)), "expected axis -1"),
    (lambda: HighwayStack.from_layers([ready()])(image(4)), "expected axis -1"),
    # What a layer can do only once it is built, or cannot do.
    (lambda: Highway().enable_lora(2), "built"),
    (lambda: HighwayStack(2).enable_lora(2), "unstack"),
    (lambda: ready(kernel_constraint="unit_norm").enable_lora(2), "kernel_constraint"),
    (lambda: HighwayStack.from_layers([]), "layers"),
    (lambda: HighwayStack.from_layers([ready(), ready(activation="tanh")]), "same options"),
]
TYPES = [
    (lambda: ConvHighway2D(4, 3, 1, "same"), "positional"),
    (lambda: Highway(transform_bias=-2.0), "transform_bias_initializer"),
    (lambda: ready()(image(6), context=image(6)), "context"),
    (lambda: HighwayWrapper(Dense(6))(image(6), context=image(6)), "context"),
]


@pytest.mark.parametrize(
    "error, mistake, match",
    [(ValueError, *case) for case in ARGUMENTS + SHAPES] + [(TypeError, *case) for case in TYPES],
)
def test_mistakes(error, mistake, match):
    with pytest.raises(error, match=match):
        mistake()
