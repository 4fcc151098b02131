"""Checks of what a user passes to a search."""

import keras
import numpy as np

from highway_keras import checks
from highway_keras.backends.current import shim
from highway_keras.tuning.hypermodel import HighwayHyperModel


def check_backend():
    """Raise an `ImportError` unless the backend can train populations."""
    if not shim.HAS_LOOPS:
        raise ImportError(
            "The population search needs the TensorFlow or the JAX backend; with any backend "
            "`keras_tuner.RandomSearch` can search a `HighwayHyperModel`. "
            f"Received: KERAS_BACKEND={keras.backend.backend()}."
        )


def check_hypermodel(hypermodel):
    """Raise unless the backend can train populations, and `hypermodel` is one of ours."""
    check_backend()
    if not isinstance(hypermodel, HighwayHyperModel):
        raise TypeError(
            "`hypermodel` must be a `HighwayHyperModel`; for others there is "
            f"`keras_tuner.RandomSearch`. Received: hypermodel={hypermodel!r}."
        )


def check_data(hypermodel, x, y, validation_data):
    """Return pairs of arrays by the prefix of their metrics: `""` to train on, `"val_"` to measure.

    Raises:
        ValueError: If they are not inputs and class numbers for the hypermodel.
    """
    pairs = {"": _check_pair(hypermodel, x, y, "x", "y")}
    if validation_data is None:
        return pairs
    if not isinstance(validation_data, tuple | list) or len(validation_data) != 2:
        raise ValueError(
            "`validation_data` must be a pair of inputs and class numbers, or None. "
            f"Received: validation_data={checks.short_repr(validation_data)}."
        )
    names = ("validation_data[0]", "validation_data[1]")
    return pairs | {"val_": _check_pair(hypermodel, *validation_data, *names)}


def check_objective(objective, measured):
    """Raise unless `objective` is one of the metrics that the search will measure."""
    if getattr(objective, "name", None) not in measured:
        raise ValueError(
            f"`objective` must be one of {', '.join(measured)}; those with `val_` need "
            f"`validation_data`. Received: {objective}."
        )


def _check_pair(hypermodel, x, y, x_name, y_name):
    """Return `x` and `y` as arrays."""
    x, y = _numbers(x_name, x), _numbers(y_name, y)
    if x.ndim < 2 or not len(x) or x[0].size != hypermodel.inputs:
        raise ValueError(
            f"`{x_name}` must hold inputs of the hypermodel's shape {hypermodel.input_shape}. "
            f"Received: shape={x.shape}."
        )
    if y.size != len(x):
        raise ValueError(
            f"`{y_name}` must hold one class number for each input. "
            f"Received: shape={y.shape} for {len(x)} inputs."
        )
    between = y[y != np.floor(y)]
    if between.size or y.min() < 0 or y.max() >= hypermodel.classes:
        raise ValueError(
            f"`{y_name}` must hold class numbers from 0 to {hypermodel.classes - 1}. "
            f"Received: {between[0] if between.size else f'{y.min()} to {y.max()}'}."
        )
    return x, y


def _numbers(name, values):
    """Return an array of finite numbers."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "uif" or not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must be an array of finite numbers. Received: an array of {array.dtype}"
            f"{' with NaN or infinity' if array.dtype.kind == 'f' else ''}."
        )
    return array
