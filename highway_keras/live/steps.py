"""The layers of a network as steps that the page's `network.js` runs, and their weights as text."""

import base64

import keras
import numpy as np

from highway_keras.data.normalization import GlobalContrastNormalization, MeanImage
from highway_keras.layers import ConvHighway2D, Highway, HighwayStack

# By the function itself: a user's own may have the name of one of Keras's.
ACTIVATIONS = {
    getattr(keras.activations, name): name
    for name in ("linear", "relu", "sigmoid", "softmax", "tanh")
}
POOLS = {keras.layers.MaxPooling2D: "max", keras.layers.AveragePooling2D: "average"}
GLOBAL_POOLS = {
    keras.layers.GlobalMaxPooling2D: "max",
    keras.layers.GlobalAveragePooling2D: "average",
}


def network_steps(graph, weights):
    """Return the steps of a chain of layers, dictionaries for JSON; add their weights to `weights`.

    A dense layer is a convolution at a single position, so both are the same kind of step. A
    highway layer takes two or three of them: H, T and, if it is learned, C.
    """
    steps, before = [], graph.inputs[0]
    for call in graph.calls:
        if len(call.inputs) != 1 or call.inputs[0] is not before:
            raise ValueError(
                "The live page supports chains of layers, each fed by the one before it. Received: "
                f"layer {call.layer.name!r}, which is not."
            )
        steps += _steps(call.layer, weights)
        before = call.outputs
    if steps[-1].get("activation") != "softmax":
        raise ValueError(
            "The live page supports networks that end in a softmax over classes. "
            f"Received: {call.layer.name!r} as the last layer."
        )
    return steps


def _steps(layer, weights):
    kind = type(layer)  # exactly: what a subclass computes is unknown here
    parts = layer.sublayers if kind in (ConvHighway2D, Highway) else [layer]
    for part in parts:
        if getattr(part, "quantization_mode", None):
            raise _unsupported(layer, "quantized layers")
        if getattr(part, "data_format", None) == "channels_first":
            raise _unsupported(layer, "data_format='channels_first'")
        if getattr(part, "groups", 1) != 1:
            raise _unsupported(layer, "groups")
    if kind is keras.layers.Dropout:
        return []
    if kind is keras.layers.Flatten:
        return [{"op": "flatten"}]
    if kind is keras.layers.Rescaling:
        if np.ndim(layer.scale) or np.ndim(layer.offset):
            raise _unsupported(layer, "a scale or offset for each channel")
        return [{"op": "rescale", "scale": float(layer.scale), "offset": float(layer.offset)}]
    if kind is keras.layers.Activation:
        return [{"op": "activate", "activation": _activation(layer, layer.activation)}]
    if kind is GlobalContrastNormalization:
        return [{"op": "contrast", "epsilon": layer.epsilon}]
    if kind is MeanImage:
        return [{"op": "subtract", "image": weights.add(layer.mean)}]
    if kind in POOLS:
        sides = {"size": list(layer.pool_size), "strides": list(layer.strides)}
        return [{"op": "pool", "kind": POOLS[kind], **sides, "padding": layer.padding}]
    if kind in GLOBAL_POOLS:
        sides = {"size": None, "strides": [1, 1], "padding": "valid"}
        pool = {"op": "pool", "kind": GLOBAL_POOLS[kind], **sides}
        return [pool] if layer.keepdims else [pool, {"op": "flatten"}]
    if kind in (keras.layers.Dense, keras.layers.Conv2D):
        return [{"op": "transform", **_transform(layer, layer.activation, weights)}]
    if kind is HighwayStack:
        return [step for block in layer.unstack() for step in _steps(block, weights)]
    if kind in (ConvHighway2D, Highway):
        h, *gates = parts
        transforms = [_transform(h, layer.activation, weights)]
        transforms += [_transform(gate, layer.transform_activation, weights) for gate in gates]
        return [{"op": "highway", "transforms": transforms}]
    raise _unsupported(layer, "a layer of that type")


def _transform(layer, activation, weights):
    """Return the step of H, T, C or a plain layer: `activation(conv(x, kernel) + bias)`."""
    kernel = keras.ops.convert_to_numpy(layer.kernel)
    bias = None if layer.bias is None else keras.ops.convert_to_numpy(layer.bias)
    return {
        "kernel": weights.add(kernel.reshape((1,) * (4 - kernel.ndim) + kernel.shape)),
        "bias": None if bias is None else weights.add(bias),
        "activation": _activation(layer, activation),
        "strides": list(getattr(layer, "strides", (1, 1))),
        "dilation": list(getattr(layer, "dilation_rate", (1, 1))),
        "padding": getattr(layer, "padding", "valid"),
    }


def _activation(layer, function):
    if function not in ACTIVATIONS:
        raise _unsupported(layer, f"activation {getattr(function, '__name__', function)!r}")
    return ACTIVATIONS[function]


def _unsupported(layer, what):
    return ValueError(
        f"The live page cannot compute {what}. Received: layer {layer.name!r} "
        f"({type(layer).__name__})."
    )


class Weights:
    """The arrays of a page, one after another.

    They are written in half precision if that loses nothing, as for weights that were stored in
    half precision, and in single precision otherwise.
    """

    def __init__(self):
        self._arrays, self.count = [], 0

    def add(self, values):
        """Append an array and return its place: `{"at": offset, "shape": [...]}`."""
        array = np.asarray(values, "float32")
        self._arrays.append(array)
        self.count += array.size
        return {"at": self.count - array.size, "shape": list(array.shape)}

    def encode(self):
        """Return `(format, text)`: `"float16"` or `"float32"`, and little-endian base64."""
        numbers = np.concatenate([np.zeros(0, "float32"), *(a.ravel() for a in self._arrays)])
        with np.errstate(over="ignore"):
            halves = numbers.astype("<f2")
        if np.array_equal(halves, numbers):
            return "float16", base64.b64encode(halves.tobytes()).decode()
        return "float32", base64.b64encode(numbers.astype("<f4").tobytes()).decode()
