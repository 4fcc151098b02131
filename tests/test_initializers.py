"""The start of the transform gate's bias."""

import keras
import numpy as np
import pytest
from harness import array

import highway_keras
from highway_keras import TransformBias, initializers


def test_is_a_constant():
    values = TransformBias(-3)((2, 3), dtype="float16")
    assert keras.backend.standardize_dtype(values.dtype) == "float16"
    np.testing.assert_array_equal(array(values), np.full((2, 3), -3, "float32"))
    assert highway_keras.TransformBias is TransformBias and TransformBias().value == -2.0


@pytest.mark.parametrize("depth, value", [(1, -0.1), (10, -1), (20, -2), (np.int64(30), -3)])
def test_for_depth_follows_the_papers_line(depth, value):
    assert TransformBias.for_depth(depth).value == pytest.approx(value)


def test_serialization():
    stored = keras.saving.serialize_keras_object(TransformBias(-4.5))
    assert stored["registered_name"] == "highway_keras>TransformBias"
    assert stored["config"] == {"value": -4.5}
    assert keras.saving.deserialize_keras_object(stored).value == -4.5
    assert keras.initializers.get(stored).value == -4.5


def test_get_reads_numbers_and_whatever_keras_reads():
    assert initializers.get(-1.5).get_config() == TransformBias(-1.5).get_config()
    for number in (0, 2, np.float32(2)):
        constant = initializers.get(number)
        assert isinstance(constant, keras.initializers.Constant) and constant.value == number
    assert isinstance(initializers.get("zeros"), keras.initializers.Zeros)
    ones = {"class_name": "Ones", "config": {}}
    assert isinstance(initializers.get(ones), keras.initializers.Ones)
    assert initializers.get(None) is None


@pytest.mark.parametrize(
    ("error", "named", "make", "value"),
    [
        *((ValueError, "value", TransformBias, v) for v in (0, 0.5, float("nan"), np.float32(1))),
        *((ValueError, "value", TransformBias, v) for v in ("-2", None, True, [-2.0])),
        *((ValueError, "depth", TransformBias.for_depth, v) for v in (0, 2.5, True, "ten", None)),
        (ValueError, "value", initializers.get, float("-inf")),
    ],
)
def test_errors(error, named, make, value):
    with pytest.raises(error, match=named):
        make(value)
