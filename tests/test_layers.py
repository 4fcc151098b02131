"""Every row of the table through the harness, what else layers promise, and what they refuse."""

import re

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
    for layer in exported:
        assert keras.saving.get_registered_name(layer) == f"highway_keras>{layer.__name__}"
    watched = keras.saving.get_registered_object("highway_keras>Watched")  # of `gate_model`
    assert watched.__module__ == "highway_keras.layers.gated"  # imported at once


@pytest.mark.parametrize("make", [Highway, lambda **options: HighwayStack(3, **options)])
def test_the_activity_regularizer_acts_on_the_output(make):
    x, layer = standard_normal((4, 5)), make(activity_regularizer=keras.regularizers.L2(0.5))
    model = keras.Sequential([keras.Input((5,)), layer])
    model.compile("sgd", "mse", jit_compile=False)
    y = array(model(x))
    expected = 0.5 * (y**2).sum() / 4
    np.testing.assert_allclose(model.evaluate(x, y, verbose=0), expected, rtol=1e-5)


# What `HighwayWrapper` takes as H.


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


def test_wrapped_attention_takes_its_call_arguments():
    inputs = keras.Input((4, 6))
    wrapper = HighwayWrapper(keras.layers.MultiHeadAttention(2, 3))
    model = keras.Model(inputs, wrapper(inputs, use_causal_mask=True))
    x = standard_normal((2, 4, 6))
    changed = array(model(x)) - array(model(np.concatenate([x[:, :3], 2 * x[:, 3:]], axis=1)))
    assert not changed[:, :3].any() and changed[:, 3].all()  # no position sees a later one


def test_gates_see_the_mask_that_attention_removes():
    gate = keras.layers.LSTM(6, "sigmoid", return_sequences=True)
    wrapper = HighwayWrapper(keras.layers.MultiHeadAttention(2, 3), transform=gate)
    x = standard_normal((2, 5, 6))
    x[:, 2:] = 0
    _, t = wrapper(keras.layers.Masking()(x), return_gate=True)
    np.testing.assert_allclose(array(t), array(gate(keras.layers.Masking()(x))), atol=1e-6)


def test_wrapper_layer_and_gate_may_have_different_dtype_policies():
    h, gate = (Dense(3, "sigmoid", dtype="float32") for _ in range(2))
    for options in ({}, {"transform": gate}):
        wrapper = HighwayWrapper(h, **options, dtype="mixed_bfloat16")
        outputs = wrapper(standard_normal((2, 3)))
        assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"


def test_a_frozen_wrapper_and_its_copies_train_nothing():
    wrappers = [HighwayWrapper(Dense(4), trainable=flag) for flag in (False, True)]
    wrappers[1].trainable = False
    for wrapper in wrappers:
        model = keras.Sequential([keras.Input((4,)), wrapper])
        copy = keras.models.clone_model(model)
        assert not model.trainable_weights and not copy.trainable_weights


def test_match_size_samples_the_mask_with_the_steps():
    x = standard_normal((2, 5, 3))
    x[:, 2] = 0
    mask = MaskProbe()(MatchSize(strides=2)(keras.layers.Masking()(x)))
    np.testing.assert_array_equal(array(mask), 2 * [[True, False, True]])


# Adapters of low rank and int8, which a highway layer leaves to Keras's layers in it.

TO_ADAPT = {
    "dense": (lambda: Highway(carry="learned"), (4, 6)),
    "convolution": (lambda: ConvHighway2D(6, 3), (2, 5, 5, 6)),
    "wrapper": (lambda: HighwayWrapper(Dense(6), carry="learned"), (4, 5, 6)),
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


@to_adapt
@pytest.mark.parametrize("filters", ["", "^block$"], ids=["all", "H alone"])
def test_a_quantized_layer_saves_and_loads(make, shape, filters, tmp_path):
    model, x = sequential(make, shape), standard_normal(shape)
    (layer,), before = model.layers, array(model(x))
    model.quantize("int8", filters=filters)
    chosen = [part for part in layer.parts() if re.match(filters, part.name)]
    dense = sum(isinstance(part, Dense) for part in chosen)
    assert sum(w.dtype == "int8" for w in model.weights) == dense
    np.testing.assert_allclose(array(model(x)), before, atol=0.1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(array(loaded(x)), array(model(x)))
    copy = keras.models.clone_model(loaded)
    assert [w.dtype for w in copy.weights] == [w.dtype for w in model.weights]


def test_a_chain_of_merged_layers_is_a_stack():
    chain, x = [Highway() for _ in range(3)], standard_normal((4, 6))
    model = keras.Sequential([keras.Input((6,)), *chain])
    for layer in chain:
        layer.enable_lora(2, b_initializer="ones")
    stack = HighwayStack.from_layers(chain)
    np.testing.assert_allclose(array(stack(x)), array(model(x)), rtol=1e-5, atol=1e-5)


# Mistakes: the name of the argument, or the shapes, in the error.


def ready(**options):
    layer = Highway(**options)
    layer.build((None, 6))
    return layer


CONV, LSTM = keras.layers.Conv2D, keras.layers.LSTM
STATES = LSTM(4, return_sequences=True, return_state=True)
MISTAKES = [
    # Where the layer is made
    (lambda: Highway(-3), "units=-3"),
    (lambda: Highway(transform_bias=-3), "`transform_bias_initializer`.*transform_bias=-3"),
    (lambda: Highway(carry="free"), "carry"),
    (lambda: ConvHighway2D(0, 3), "filters"),
    (lambda: ConvHighway2D(4, 3, padding="valid"), "padding='valid'"),
    (lambda: HighwayStack(0), "depth"),
    (lambda: HighwayStack(2, activation=keras.layers.PReLU()), "activation"),
    (lambda: HighwayWrapper(Dense(4), Dense(4), "learned"), "carry='learned'"),
    (lambda: HighwayWrapper(Dense(4), Dense(4), transform_activation="sigmoid"), "'sigmoid'"),
    (lambda: TransformBias(0), "value"),
    (lambda: initializers.get(float("-inf")), "value"),
    # Where the layer meets its input
    (lambda: Highway(50)(keras.Input((64,))), r"MatchSize.*units=50, input_shape=\(None, 64\)"),
    (lambda: Highway()(keras.Input((5, None))), "channel axis"),
    (lambda: ConvHighway2D(16, 3)(keras.Input((8, 8, 3))), "filters=16"),
    (lambda: HighwayWrapper(LSTM(4))(keras.Input((8, 4))), "return_sequences=True"),
    (lambda: HighwayWrapper(CONV(4, 3))(keras.Input((8, 8, 4))), 'padding="same"'),
    (lambda: HighwayWrapper(CONV(5, 1))(keras.Input((8, 8, 4))), r"\(None, 8, 8, 5\)"),
    (
        lambda: HighwayWrapper(Dense(4), transform=Dense(1))(keras.Input((4,))),
        "`transform` must keep",
    ),
    (lambda: HighwayWrapper(STATES)(keras.Input((8, 4))), "return_state=False"),
    (lambda: Maxout(2)(keras.Input((3,))), "pieces"),
    # What a layer can do only once it is built, or cannot do
    (lambda: Highway().enable_lora(2), "built"),
    (lambda: HighwayStack(2).enable_lora(2), "unstack"),
    (lambda: HighwayStack.from_layers([]), "layers"),
    (lambda: HighwayStack.from_layers([ready(), ready(activation="tanh")]), "same options"),
]


@pytest.mark.parametrize("mistake, match", MISTAKES)
def test_mistakes(mistake, match):
    with pytest.raises(ValueError, match=match):
        mistake()
