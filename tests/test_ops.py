"""The gating formula on given tensors."""

import keras
import numpy as np
import pytest
from harness import array, gradients, standard_normal

from highway_keras import ops


def operands(shape):
    x, h, dy = (standard_normal(shape, seed) for seed in range(3))
    t, c = (1 / (1 + np.exp(-standard_normal(shape, seed))) for seed in (3, 4))
    return x, h, t, c, dy


@pytest.mark.parametrize("shape", [(), (2, 3, 4, 5)])
def test_equations_2_and_3(shape):
    x, h, t, c, _ = operands(shape)
    np.testing.assert_allclose(array(ops.highway(x, h, t, c)), h * t + x * c, atol=1e-6)
    np.testing.assert_allclose(array(ops.highway(x, h, t)), h * t + x * (1 - t), atol=1e-6)


def test_gradients_are_those_of_equation_4():
    x, h, t, c, dy = operands((4, 3))
    learned = gradients(lambda *z: keras.ops.sum(ops.highway(*z) * dy), x, h, t, c)
    coupled = gradients(lambda *z: keras.ops.sum(ops.highway(*z) * dy), x, h, t)
    expected = [c * dy, t * dy, h * dy, x * dy, (1 - t) * dy, t * dy, (h - x) * dy]
    for gradient, by_hand in zip([*learned, *coupled], expected, strict=True):
        np.testing.assert_allclose(gradient, by_hand, atol=1e-6)


def test_a_closed_gate_carries_the_very_input():
    x, h, t, _, _ = operands((4, 3))
    np.testing.assert_array_equal(array(ops.highway(x, 1e6 * h, 0 * t)), x)
    np.testing.assert_allclose(array(ops.highway(x, h, t**0)), h, atol=1e-6)


def test_no_samples_and_unknown_sizes():
    nothing = np.zeros((0, 4), "float32")
    assert array(ops.highway(nothing, nothing, nothing)).shape == (0, 4)
    x, h = keras.Input((None, 3)), keras.Input((7, 3))
    assert ops.highway(x, h, h).shape[-1] == 3


def test_shapes_must_agree():
    x, h, t, c, _ = operands((4, 3))
    with pytest.raises(ValueError, match=r"must have one shape.*=\(4, 3\), h\.shape=\(3,\)"):
        ops.highway(x, h[0], t)
    with pytest.raises(ValueError, match=r"t\.shape=\(4, 1\)\."):
        ops.highway(x, h, t[:, :1])
    with pytest.raises(ValueError, match=r"c\.shape=\(1, 3\)\."):
        ops.highway(x, h, t, c[:1])
