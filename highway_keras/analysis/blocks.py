"""What the analyses need from gated layers: axes, biases, carry gates, stacked weights."""

import numpy as np
from keras import ops

from highway_keras.layers import HighwayStack, stacked
from highway_keras.layers.highway_stack import joint_weights


def channel_axis(layer):
    """Return the axis of the units in inputs, outputs and gates of a gated layer."""
    return 1 if getattr(layer.transform, "data_format", None) == "channels_first" else -1


def block_biases(graph):
    """Return the biases of the transform gates, an array `(units,)` for each block."""
    biases = []
    for call in graph.gated:
        bias = ops.convert_to_numpy(call.layer.transform_bias).astype("float32")
        biases.extend(bias.reshape(len(call.blocks), -1))
    return biases


def block_starts(graph):
    """Return where the biases of each block started, an array `(blocks,)`; NaN where they varied.

    The layer's initializer shows it: a constant one returns the same number for a whole block.
    """
    starts = np.full(len(graph.blocks), np.nan)
    for call in graph.gated:
        layer = call.layer
        if isinstance(layer, HighwayStack):
            initializer = stacked.initializer(layer.transform_bias_initializer)
        else:
            initializer = layer.transform.bias_initializer
        start = initializer(layer.transform_bias.shape, dtype="float32")
        start = ops.convert_to_numpy(start).reshape(len(call.blocks), -1)
        constant = (start == start[:, :1]).all(axis=1)
        starts[call.blocks] = np.where(constant, start[:, 0], np.nan)
    return starts


def closed(layer, inputs):
    """Return what a gated layer returns with transform gates of 0: `x`, or `x * C(x)`."""
    if layer.carry is None:
        return inputs
    return inputs * ops.cast(layer.carry(inputs), inputs.dtype)


def stacked_weights(layers):
    """Return the kernels and biases of a chain of `Highway`s and `HighwayStack`s.

    They are what `highway_keras.depth_loop.scan` takes: `(depth, d, m * d)` and `(depth, m * d)`.
    """
    width = layers[0].transform_kernel.shape[-1]
    kernels, biases = zip(*map(joint_weights, layers), strict=True)
    kernels = [ops.reshape(kernel, (-1, width, kernel.shape[-1])) for kernel in kernels]
    biases = [ops.reshape(bias, (-1, bias.shape[-1])) for bias in biases]
    return ops.concatenate(kernels), ops.concatenate(biases)
