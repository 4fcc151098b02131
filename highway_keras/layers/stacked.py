"""Initializers, regularizers and constraints of a layer, for weights stacked over depth."""

import math
from collections.abc import Iterable

import keras
import numpy as np
from keras import ops

from highway_keras import checks
from highway_keras.initializers import TransformBias


@keras.saving.register_keras_serializable(package="highway_keras")
class ByLayer(keras.initializers.Initializer):
    """A constant for each layer: row `l` of the stacked biases is filled with `values[l]`.

    Args:
        values: A sequence of numbers, one for each layer.
    """

    def __init__(self, values: Iterable[float]):
        self.values = list(values)
        if not all(map(checks.is_number, self.values)):
            raise ValueError(
                "A sequence of biases must have a finite number for each layer. "
                f"Received: {checks.short_repr(self.values)}."
            )
        self.values = [float(value) for value in self.values]

    def __call__(self, shape, dtype=None):
        if len(self.values) != shape[0]:
            raise ValueError(
                "A sequence of biases must have a number for each layer. "
                f"Received: {len(self.values)} numbers for depth={shape[0]}."
            )
        column = np.reshape(self.values, (-1,) + (1,) * (len(shape) - 1))
        return ops.convert_to_tensor(np.broadcast_to(column, shape), dtype=dtype)

    def get_config(self):
        return {"values": self.values}


# Their numbers do not depend on the shape: all layers are one draw.
_OF_ANY_SHAPE = (
    ByLayer,
    TransformBias,
    keras.initializers.Zeros,
    keras.initializers.Ones,
    keras.initializers.Constant,
    keras.initializers.RandomNormal,
    keras.initializers.RandomUniform,
    keras.initializers.TruncatedNormal,
)


def initializer(of_layer):
    """Return the initializer that starts each layer as `of_layer` does, each with a new draw."""

    def start(shape, dtype=None):
        if type(of_layer) in _OF_ANY_SHAPE:
            return of_layer(shape, dtype=dtype)
        if isinstance(of_layer, keras.initializers.VarianceScaling) and len(shape) == 3:
            # The depth axis multiplies both fans, so the draw is too small by sqrt(depth).
            return math.sqrt(shape[0]) * of_layer(shape, dtype=dtype)
        layers = [_reseeded(of_layer, index) for index in range(shape[0])]
        return ops.stack([layer(shape[1:], dtype=dtype) for layer in layers])

    return start


def _reseeded(of_layer, index):
    """Return what starts the layer of that index: an object with a seed always draws the same."""
    is_object = isinstance(of_layer, keras.initializers.Initializer)
    config = of_layer.get_config() if is_object else {}
    if not isinstance(config.get("seed", "none"), int | None):
        return of_layer
    if config["seed"] is not None:
        config["seed"] += index
    return type(of_layer).from_config(config)


class _Regularizer(keras.regularizers.Regularizer):
    """The sum of the penalties of all layers."""

    def __init__(self, of_layer):
        self.of_layer = of_layer

    def __call__(self, weight):
        return ops.sum(ops.vectorized_map(self.of_layer, ops.convert_to_tensor(weight)))


class _Constraint(keras.constraints.Constraint):
    """A constraint on the weight of each layer by itself."""

    def __init__(self, of_layer):
        self.of_layer = of_layer

    def __call__(self, weight):
        return ops.vectorized_map(self.of_layer, ops.convert_to_tensor(weight))


def weight_options(options):
    """Return the `initializer`, `regularizer` and `constraint` of a layer for a stacked weight."""
    wrap = {"initializer": initializer, "regularizer": _Regularizer, "constraint": _Constraint}
    return {name: option and wrap[name](option) for name, option in options.items()}
