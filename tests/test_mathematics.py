"""The formula and the layers against the paper's equations, worked out independently of Keras."""

import keras
import numpy as np
import pytest
from harness import array, built, named_weights, shaken, standard_normal, value_and_gradients
from layer_cases import GATED, named
from numpy_highway import ACTIVATIONS, highway, transform

from highway_keras import (
    ConvHighway2D,
    Highway,
    HighwayWrapper,
    initializers,
    ops,
)
from highway_keras.layers import MatchSize, Maxout

DIRECT = [case for case in GATED if case.layer is not HighwayWrapper]
LEARNED = [case for case in GATED if case.arguments.get("carry") == "learned"]
LEARNED = [case for case in LEARNED if "transform_activation" not in case.arguments]
DEFAULT = [case for case in GATED if "transform" not in case.arguments]  # gates
sigmoid = ACTIVATIONS["sigmoid"]


@pytest.mark.parametrize(**named(GATED))
def test_values_equal_numpy(case):
    layer, x = shaken(built(case)), standard_normal(case.input_shape)
    outputs, gate = (array(z) for z in layer(x, return_gate=True))
    weights, exact = named_weights(layer), x.astype("float64")
    if case in DIRECT:
        y, t = highway(exact, weights, case.arguments)
    else:
        if case in DEFAULT:
            options = {**layer.layer.get_config(), **case.arguments}
            t = transform("transform_", exact, weights, options)
            carry = transform("carry_", exact, weights, options) if layer.learned_carry else 1 - t
        else:
            t, carry = array(layer.transform(x)), array(layer.carry(x))
        attends = isinstance(layer.layer, keras.layers.MultiHeadAttention)
        y = array(layer.layer(x, x) if attends else layer.layer(x)) * gate + x * carry
    np.testing.assert_allclose(gate, t, rtol=0, atol=1e-6)
    np.testing.assert_allclose(outputs, y, rtol=1e-6, atol=1e-6)


def test_equations_2_to_4_on_given_tensors():
    x, h, dy = (standard_normal((2, 3, 4), seed) for seed in range(3))
    t, c = (sigmoid(standard_normal((2, 3, 4), seed)) for seed in (3, 4))
    np.testing.assert_allclose(array(ops.highway(x, h, t, c)), h * t + x * c, atol=1e-6)
    np.testing.assert_allclose(array(ops.highway(x, h, t)), h * t + x * (1 - t), atol=1e-6)

    def weighted(*z):
        return keras.ops.sum(keras.ops.multiply(ops.highway(*z), dy))

    learned, coupled = (value_and_gradients(weighted, z)[1:] for z in ((x, h, t, c), (x, h, t)))
    expected = [c * dy, t * dy, h * dy, x * dy, (1 - t) * dy, t * dy, (h - x) * dy]
    for gradient, by_hand in zip([*learned, *coupled], expected, strict=True):
        np.testing.assert_allclose(gradient, by_hand, atol=1e-6)
    np.testing.assert_array_equal(array(ops.highway(x, 1e6 * h, 0 * t)), x)
    assert array(ops.highway(x[:0], h[:0], t[:0])).shape == (0, 3, 4)
    with pytest.raises(ValueError, match=r"\(1, 3, 4\)"):
        ops.highway(x, h, t, c[:1])
    with pytest.raises(ValueError, match="one shape"):
        ops.highway(*2 * [keras.Input((None,))], keras.Input(()))


@pytest.mark.parametrize(**named(DEFAULT))
def test_biases_start_as_asked_and_the_gate_at_the_sigmoid_of_its_own(case):
    options = {"transform_activation": "sigmoid", "transform_kernel_initializer": "zeros"}
    options |= {"bias_initializer": 0.25} if case in DIRECT else {}
    layer = case.make(**options, transform_bias_initializer=-3)
    _, gate = layer(standard_normal(case.input_shape), return_gate=True)
    np.testing.assert_allclose(array(gate), sigmoid(-3), rtol=0, atol=1e-6)
    if case in DIRECT and layer.use_bias:
        np.testing.assert_array_equal(array(layer.bias), 0.25)


@pytest.mark.parametrize(**named(LEARNED))
def test_learned_carry_starts_as_the_coupled_layer(case):
    layer, coupled = built(case), built(case, carry="coupled")
    *shared, t_kernel, t_bias, c_kernel, c_bias = layer.get_weights()
    np.testing.assert_array_equal(c_kernel, -t_kernel)
    np.testing.assert_array_equal(c_bias, -t_bias)
    coupled.set_weights([*shared, t_kernel, t_bias])
    x = standard_normal(case.input_shape)
    np.testing.assert_allclose(array(layer(x)), array(coupled(x)), rtol=0, atol=1e-6)


def test_a_number_is_an_initializer():
    start = initializers.get(-3)
    stored = keras.saving.serialize_keras_object(start)
    assert stored["registered_name"] == "highway_keras>TransformBias"
    assert keras.saving.deserialize_keras_object(stored).value == start.value == -3
    assert type(initializers.get(3)) is keras.initializers.Constant


def test_regularizers_and_constraints_act_on_each_part():
    options = {
        "kernel_regularizer": keras.regularizers.L2(0.1),
        "bias_regularizer": keras.regularizers.L1(0.3),
        "kernel_constraint": "non_neg",
        "bias_constraint": keras.constraints.MaxNorm(1.0),
    }
    layer, shape = ConvHighway2D(5, 3, carry="learned", **options), (8, 4, 4, 5)
    model = keras.Sequential([keras.Input(shape[1:]), layer])
    kernels, biases = layer.get_weights()[::2], layer.get_weights()[1::2]
    expected = [0.1 * np.sum(w**2) for w in kernels] + [0.3 * np.abs(w).sum() for w in biases]
    losses = sorted(float(array(loss)) for loss in layer.losses)
    assert losses == pytest.approx(sorted(expected), rel=1e-5)
    model.compile(keras.optimizers.SGD(1e-6), "mse", jit_compile=False)
    model.fit(standard_normal(shape), standard_normal(shape), verbose=0)
    for kernel, bias in zip(layer.get_weights()[::2], layer.get_weights()[1::2], strict=True):
        assert kernel.min() == 0 and kernel.max() > 0
        assert np.linalg.norm(bias) <= 1 + 1e-5


def test_gates_compute_in_float32():
    found = []

    def gate(z):
        found.append(keras.backend.standardize_dtype(z.dtype))
        return keras.ops.sigmoid(z)

    options = {"transform_activation": gate, "activation": gate, "carry": "learned"}
    outputs = Highway(dtype="mixed_bfloat16", **options)(standard_normal((2, 3)))
    assert found[-3:] == ["float32", "float32", "bfloat16"]
    assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"


def test_maxout_takes_the_largest_of_the_pieces():
    x = standard_normal((4, 3, 6))
    expected = np.stack([x[..., 0::2].max(-1), x[..., 1::2].max(-1)], -1)
    np.testing.assert_array_equal(array(Maxout(3)(x)), expected)
    np.testing.assert_array_equal(array(Maxout(3, axis=1)(x)), x.max(1, keepdims=True))


def test_match_size_appends_zeros_or_cuts_and_samples():
    x = standard_normal((2, 5, 4, 3))
    padded = array(MatchSize(5, strides=2)(x))
    np.testing.assert_array_equal(padded[..., :3], x[:, ::2, ::2])
    np.testing.assert_array_equal(padded[..., 3:], 0)
    np.testing.assert_array_equal(array(MatchSize(2)(x)), x[..., :2])
    first = array(MatchSize(7, data_format="channels_first")(x))
    np.testing.assert_array_equal(first, np.pad(x, [(0, 0), (0, 2), (0, 0), (0, 0)]))
