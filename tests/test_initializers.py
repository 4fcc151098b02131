"""The start of the transform gate's bias."""

import keras
import numpy as np
import pytest
from harness import array

import highway_keras
from highway_keras import TransformBias, initializers


def test_is_a_constant():
    values = TransformBias(-3)((2, 3), dtype="float32")
    np.testing.assert_array_equal(array(values), np.full((2, 3), -3, "float32"))
    assert highway_keras.TransformBias is TransformBias


def test_default_is_minus_two():
    assert TransformBias().value == -2.0


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_dtype(dtype):
    assert keras.backend.standardize_dtype(TransformBias()((2,), dtype=dtype).dtype) == dtype
    assert keras.backend.standardize_dtype(TransformBias()((2,)).dtype) == keras.config.floatx()


@pytest.mark.parametrize("depth, value", [(1, -0.1), (10, -1), (20, -2), (30, -3), (900, -90)])
def test_for_depth_follows_the_papers_line(depth, value):
    assert TransformBias.for_depth(depth).value == pytest.approx(value)
    assert TransformBias.for_depth(np.int64(depth)).value == pytest.approx(value)


def test_serialization():
    stored = keras.saving.serialize_keras_object(TransformBias(-4.5))
    assert stored["registered_name"] == "highway_keras>TransformBias"
    assert stored["config"] == {"value": -4.5}
    assert keras.saving.deserialize_keras_object(stored).value == -4.5
    assert keras.initializers.get(stored).value == -4.5


@pytest.mark.parametrize("value", [0, 0.5, float("nan"), float("-inf"), np.float32(1)])
def test_value_must_be_negative(value):
    with pytest.raises(ValueError, match=r"`value` must be negative and finite: .* Received: v"):
        TransformBias(value)


@pytest.mark.parametrize("value", ["-2", None, True, [-2.0]])
def test_value_must_be_a_number(value):
    with pytest.raises(TypeError, match=r"`value` must be a negative number. Received: value="):
        TransformBias(value)


@pytest.mark.parametrize("depth", [0, -10, 2.5, True, "ten", None])
def test_depth_must_be_a_positive_integer(depth):
    with pytest.raises(ValueError, match=r"`depth` must be a positive integer. Received: depth="):
        TransformBias.for_depth(depth)


def test_get_reads_numbers_and_whatever_keras_reads():
    assert initializers.get(-1.5).get_config() == TransformBias(-1.5).get_config()
    for number in (0, 2, np.float32(2)):
        constant = initializers.get(number)
        assert isinstance(constant, keras.initializers.Constant) and constant.value == number
    assert isinstance(initializers.get("zeros"), keras.initializers.Zeros)
    ones = {"class_name": "Ones", "config": {}}
    assert isinstance(initializers.get(ones), keras.initializers.Ones)
    assert initializers.get(None) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_get_wants_finite_numbers(value):
    with pytest.raises(ValueError, match=r"An initial value must be finite. Received: "):
        initializers.get(value)
