"""The layers against the paper's equations, worked out independently of Keras."""

import keras
import numpy as np
import pytest
from harness import array, built, layer_gradients, named_weights, standard_normal
from layer_cases import GATED, named
from numpy_highway import ACTIVATIONS, highway

from highway_keras import ConvHighway2D, Highway, HighwayWrapper
from highway_keras.layers import MatchSize, Maxout

DIRECT = [case for case in GATED if case.layer is not HighwayWrapper]
LEARNED = [case for case in GATED if case.arguments.get("carry") == "learned"]
sigmoid = ACTIVATIONS["sigmoid"]


def block_state(layer, x):
    """H(x): through the wrapped layer, or in NumPy."""
    if isinstance(layer, HighwayWrapper):
        attention = isinstance(layer.layer, keras.layers.MultiHeadAttention)
        return array(layer.layer(x, x) if attention else layer.layer(x))
    return highway(x.astype("float64"), named_weights(layer), layer.get_config())[1]


def with_random_biases(layer):
    """Biases away from their start, so that each one shows."""
    for weight in layer.trainable_weights:
        if "bias" in weight.name:
            weight.assign(weight + 0.3 * standard_normal(weight.shape, seed=1))
    return layer


# Values.


@pytest.mark.parametrize(**named(DIRECT))
def test_values_equal_numpy(case):
    layer = with_random_biases(built(case))
    x = standard_normal(case.input_shape)
    outputs, gate = layer(x, return_gate=True)
    y, _, t = highway(x.astype("float64"), named_weights(layer), case.arguments)
    np.testing.assert_allclose(array(gate), t, rtol=0, atol=1e-6)
    np.testing.assert_allclose(array(outputs), y, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(**named([case for case in GATED if case.layer is HighwayWrapper]))
def test_wrapper_mixes_its_layer_by_the_equation(case):
    layer = with_random_biases(built(case))
    x = standard_normal(case.input_shape)
    outputs, t = (array(z) for z in layer(x, return_gate=True))
    carry = array(layer.carry(x)) if layer.carry is not None else 1 - t
    expected = block_state(layer, x) * t + x * carry
    np.testing.assert_allclose(array(outputs), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_wrapped_convolution_equals_the_convolutional_layer(data_format):
    options = {"dilation_rate": 2, "data_format": data_format}
    layer = ConvHighway2D(4, 3, **options)
    wrapper = HighwayWrapper(
        keras.layers.Conv2D(4, 3, padding="same", activation="relu", **options)
    )
    x = standard_normal((2, 4, 4, 4))
    layer.build(x.shape)
    wrapper.build(x.shape)
    wrapper.set_weights(layer.get_weights())
    np.testing.assert_allclose(array(wrapper(x)), array(layer(x)), atol=1e-6)


# Gradients, against central differences of the NumPy version in float64 along random directions.


@pytest.mark.parametrize(**named(DIRECT))
def test_gradients_equal_finite_differences(case):
    layer = with_random_biases(built(case))
    x = standard_normal(case.input_shape)
    weighting = standard_normal(case.input_shape, seed=2).astype("float64")
    found = layer_gradients(layer, x, weighting.astype("float32"))
    point = {**named_weights(layer), "inputs": x.astype("float64")}

    def value(values):
        weights = {name: v for name, v in values.items() if name != "inputs"}
        return np.sum(weighting * highway(values["inputs"], weights, case.arguments)[0])

    for name, gradient in zip(point, found, strict=True):
        for seed in range(3):
            direction = standard_normal(point[name].shape, seed=3 + seed).astype("float64")
            step = 1e-6 * direction
            ahead, behind = ({**point, name: point[name] + s} for s in (step, -step))
            slope = (value(ahead) - value(behind)) / 2e-6
            scale = 1 + np.abs(gradient * direction).sum()
            assert np.sum(gradient * direction) == pytest.approx(slope, abs=1e-6 * scale), name


def test_dense_gradients_equal_the_chain_rule():
    """The supplement's Eq. 4, with dH and dT taken on to the weights by hand."""
    x, dy = (standard_normal((5, 3), seed).astype("float64") for seed in (0, 1))
    layer = Highway(activation="tanh")
    layer.build(x.shape)
    weights = named_weights(layer)
    _, h, t = highway(x, weights, {"activation": "tanh"})
    dz_h = t * dy * (1 - h**2)
    dz_t = (h - x) * dy * t * (1 - t)
    dx = (1 - t) * dy + dz_h @ weights["kernel"].T + dz_t @ weights["transform_kernel"].T
    expected = [x.T @ dz_h, dz_h.sum(0), x.T @ dz_t, dz_t.sum(0), dx]
    found = layer_gradients(layer, x.astype("float32"), dy.astype("float32"))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


# The transform gate at initialisation, and at its two ends.


@pytest.mark.parametrize("bias", [-1, -2, -3, -10])
@pytest.mark.parametrize(**named(GATED))
def test_mean_gate_starts_at_the_sigmoid_of_the_bias(case, bias):
    shape = (256, *case.input_shape[1:])
    x = standard_normal(shape)
    options = {"transform_activation": "sigmoid", "transform_bias_initializer": bias}
    blank = case.make(**options, transform_kernel_initializer="zeros")
    default = case.make(**options, transform_kernel_initializer=None)
    _, exact = blank(x, return_gate=True)
    _, near = default(x, return_gate=True)
    np.testing.assert_allclose(array(exact), sigmoid(bias), rtol=0, atol=1e-6)
    assert array(near).mean() == pytest.approx(sigmoid(bias), abs=0.02)
    assert array(near).std() > 0


@pytest.mark.parametrize(**named(GATED))
def test_a_closed_gate_gives_the_input_and_an_open_one_the_block_state(case):
    x = standard_normal(case.input_shape)
    # Gates with a carry of their own start at C = 1 - T unless told otherwise.
    free = {name: None for name in case.arguments if name.startswith("carry_")}
    options = {"transform_activation": "sigmoid", "transform_kernel_initializer": None}
    free |= {name: "sigmoid" for name in free if name == "carry_activation"}
    closed = case.make(**free, **options, transform_bias_initializer=-30)
    opened = case.make(**free, **options, transform_bias_initializer=30)
    np.testing.assert_allclose(array(closed(x)), x, rtol=0, atol=1e-6)
    np.testing.assert_allclose(array(opened(x)), block_state(opened, x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", [Highway, lambda **k: HighwayWrapper(keras.layers.Dense(6), **k)])
def test_a_number_is_a_constant_bias(make):
    for bias in (-3, 0, 1.5, np.float32(-0.5)):
        layer = make(transform_bias_initializer=bias)
        layer.build((None, 6))
        np.testing.assert_array_equal(array(layer.transform_bias), np.full(6, bias, "float32"))


# The learned carry gate.


@pytest.mark.parametrize(**named(LEARNED))
def test_learned_carry_starts_as_the_coupled_layer(case):
    start = {"carry_kernel_initializer": None, "carry_bias_initializer": None}
    layer, coupled = built(case, **start), built(case, carry="coupled")
    *shared, t_kernel, t_bias, c_kernel, c_bias = layer.get_weights()
    np.testing.assert_array_equal(c_kernel, -t_kernel)
    np.testing.assert_array_equal(c_bias, -t_bias)
    coupled.set_weights([*shared, t_kernel, t_bias])
    x = standard_normal(case.input_shape)
    np.testing.assert_allclose(array(layer(x)), array(coupled(x)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("bias, expected", [(-30, 0.0), (30, 1.0)])
def test_carry_options_act_on_the_carry_gate_alone(bias, expected):
    x = standard_normal((4, 6))
    options = {"transform_bias_initializer": -30, "carry_bias_initializer": bias}
    for layer in (Highway(carry="learned", **options), wrapped_dense(carry="learned", **options)):
        np.testing.assert_allclose(array(layer(x)), expected * x, rtol=0, atol=1e-6)


def wrapped_dense(**options):
    return HighwayWrapper(keras.layers.Dense(6), **options)


# H and T are two sets of weights, also where they run as one product.


def test_regularizers_act_on_each_half():
    options = {
        "kernel_regularizer": keras.regularizers.L2(0.1),
        "transform_kernel_regularizer": keras.regularizers.L1(0.2),
        "transform_bias_regularizer": keras.regularizers.L2(0.3),
    }
    for layer, shape in (
        (Highway(**options), (2, 5)),
        (ConvHighway2D(5, 3, **options), (2, 4, 4, 5)),
        (
            HighwayWrapper(
                keras.layers.Dense(5, kernel_regularizer=options.pop("kernel_regularizer")),
                **options,
            ),
            (2, 5),
        ),
    ):
        layer(standard_normal(shape))
        kernel, _, transform_kernel, transform_bias = layer.get_weights()
        expected = [
            0.1 * np.sum(kernel**2),
            0.2 * np.sum(np.abs(transform_kernel)),
            0.3 * np.sum(transform_bias**2),
        ]
        losses = sorted(float(array(loss)) for loss in layer.losses)
        assert losses == pytest.approx(sorted(expected), rel=1e-5)


@pytest.mark.parametrize("make", [Highway, lambda **k: ConvHighway2D(None, 3, **k)])
def test_constraints_act_on_each_half(make):
    layer = make(kernel_constraint="non_neg", transform_bias_constraint=Halved())
    shape = (8, 6) if make is Highway else (8, 4, 4, 6)
    model = keras.Sequential([keras.Input(shape[1:]), layer])
    model.compile(keras.optimizers.SGD(1e-6), "mse", jit_compile=False)
    model.fit(standard_normal(shape), standard_normal(shape), verbose=0)
    kernel, bias, transform_kernel, transform_bias = layer.get_weights()
    assert kernel.min() == 0 and kernel.max() > 0
    assert transform_kernel.min() < 0
    np.testing.assert_allclose(bias, 0, atol=1e-4)
    np.testing.assert_allclose(transform_bias, -1, atol=1e-4)


class Halved(keras.constraints.Constraint):
    def __call__(self, w):
        return w / 2


@pytest.mark.parametrize(
    "layer, shape, fans",
    [
        (Highway, (2, 64), 64 + 64),
        (lambda **k: ConvHighway2D(32, 3, **k), (2, 4, 4, 32), 9 * (32 + 32)),
        (lambda **k: ConvHighway2D(32, 3, groups=4, **k), (2, 4, 4, 32), 9 * (8 + 32)),
    ],
)
def test_initializers_see_the_fans_of_their_own_half(layer, shape, fans):
    limit = np.sqrt(6 / fans)  # Glorot's, for a kernel that stands alone.
    default, glorot = layer(), layer(transform_kernel_initializer="glorot_uniform")
    default.build(shape)
    glorot.build(shape)
    for weight, expected in (
        (glorot.kernel, limit),
        (glorot.transform_kernel, limit),
        (default.transform_kernel, limit / 2),
    ):
        assert 0.98 * expected < np.abs(array(weight)).max() <= expected * (1 + 1e-6)


# The layers without weights.


def test_maxout_takes_the_largest_of_the_pieces():
    x = standard_normal((4, 3, 6))
    expected = np.stack([x[..., 0::2].max(-1), x[..., 1::2].max(-1)], -1)
    np.testing.assert_array_equal(array(Maxout(3)(x)), expected)
    expected = np.maximum(x[..., :3], x[..., 3:])
    np.testing.assert_array_equal(array(Maxout(2)(x)), expected)
    np.testing.assert_array_equal(array(Maxout(3, axis=1)(x)), x.max(1, keepdims=True))
    np.testing.assert_array_equal(array(Maxout(1, axis=1)(x)), x)


def test_match_size_appends_zeros_or_cuts_and_samples():
    x = standard_normal((2, 5, 4, 3))
    padded = array(MatchSize(5, strides=2)(x))
    np.testing.assert_array_equal(padded[..., :3], x[:, ::2, ::2])
    np.testing.assert_array_equal(padded[..., 3:], 0)
    np.testing.assert_array_equal(array(MatchSize(2)(x)), x[..., :2])
    first = array(MatchSize(7, data_format="channels_first")(x))
    np.testing.assert_array_equal(first[:, :5], x)
    np.testing.assert_array_equal(first[:, 5:], 0)
