"""Initializers, regularizers and constraints of a layer, each acting on every layer of a stack."""

import math

import keras
from keras import ops

from highway_keras.initializers import redrawn


class StackedInitializer:
    """The initializer that starts each layer as `of_layer` does, each with its own draw.

    A class, because Keras on JAX compiles the initializer of a large distributed weight by way of a
    weak reference to its `__call__`, and that of a function takes none.
    """

    def __init__(self, of_layer):
        self.of_layer = of_layer or keras.initializers.GlorotUniform()  # as `add_weight` has it

    def __call__(self, shape, dtype=None):
        (depth, *layer_shape), of_layer = shape, self.of_layer
        scaling = isinstance(of_layer, keras.initializers.VarianceScaling)
        if scaling and of_layer.input_axes is None and len(layer_shape) == 2:
            # One draw for all: its depth axis multiplies both fans.
            return math.sqrt(depth) * of_layer(shape, dtype=dtype)
        return ops.stack([redrawn(of_layer, i)(layer_shape, dtype=dtype) for i in range(depth)])


def regularizer(of_layer):
    """Return the sum of the penalties of all layers, as a function of the stacked weight."""
    return of_layer and (lambda weight: ops.sum(_map(of_layer, weight)))


def constraint(of_layer):
    """Return what constrains the weight of each layer by itself."""
    return of_layer and (lambda weight: _map(of_layer, weight))


def _map(of_layer, weight):
    return ops.vectorized_map(of_layer, ops.convert_to_tensor(weight))
