"""What the analyses need from gated layers: axes, biases, carry gates, stacked weights."""

import numpy as np
from keras import ops

from highway_keras.layers import HighwayWrapper
from highway_keras.layers.gated import GatedLayer

_WEIGHTS = ("kernel", "bias")


def channel_axis(layer):
    """Return the axis of the units in inputs, outputs and gates of a gated layer."""
    if isinstance(layer, HighwayWrapper):
        first = getattr(layer.transform_gate, "data_format", None) == "channels_first"
        return 1 if first else -1
    return layer.channel_axis


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
        layer, initializer = call.layer, call.layer.transform_bias_initializer
        if isinstance(layer, GatedLayer):
            initializer = layer.weight_initializer(initializer)
        start = initializer(layer.transform_bias.shape, dtype="float32")
        start = ops.convert_to_numpy(start).reshape(len(call.blocks), -1)
        constant = (start == start[:, :1]).all(axis=1)
        starts[call.blocks] = np.where(constant, start[:, 0], np.nan)
    return starts


def closed(layer, inputs):
    """Return what a gated layer returns with transform gates of 0: `x`, or `x * C(x)`."""
    return inputs if layer.carry == "coupled" else inputs * _carry_gate(layer, inputs)


def _carry_gate(layer, inputs):
    if isinstance(layer, HighwayWrapper):
        return layer.carry_gate(inputs)
    bias = layer.carry_bias
    if layer.channel_axis == 1:
        bias = ops.reshape(bias, (-1,) + (1,) * (len(inputs.shape) - 2))
    return layer.carry_activation(layer.project(inputs, layer.carry_kernel) + bias)


def stacked_weights(layers):
    """Return the kernels and biases of a chain of `Highway`s and `HighwayStack`s.

    They are what `highway_keras.depth_loop.scan` takes: `(depth, d, m * d)` and `(depth, m * d)`.
    """
    kernels, biases = [], []
    for layer in layers:
        kernel, bias = ([getattr(layer, p + w) for p in layer.transforms] for w in _WEIGHTS)
        if layer.bias is None:
            bias[0] = ops.zeros_like(ops.convert_to_tensor(layer.transform_bias))
        width = layer.transform_kernel.shape[-1]
        kernel, bias = ops.concatenate(kernel, axis=-1), ops.concatenate(bias, axis=-1)
        kernels.append(ops.reshape(kernel, (-1, width, kernel.shape[-1])))
        biases.append(ops.reshape(bias, (-1, bias.shape[-1])))
    return ops.concatenate(kernels), ops.concatenate(biases)
