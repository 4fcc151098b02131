"""The layers of a network as steps that the page's `network.js` runs, with their weights."""

import base64

import keras
import numpy as np

from highway_keras.analysis.blocks import is_model, rebuild
from highway_keras.data import GlobalContrastNormalization, MeanImage, Mirror, PadAndCrop
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


def network_steps(model):
    """Return the steps of a chain of layers, dictionaries for JSON.

    A dense layer is a convolution at a single position, so both are the same kind of step. A
    highway layer takes two or three of them: H, T and, if it is learned, C.
    """
    steps = _chain_steps(model)
    if not steps or steps[-1].get("activation") != "softmax":
        raise ValueError(
            "The live page supports networks that end in a softmax over classes. "
            f"Received: {model.layers[-1].name!r} as the last layer."
        )
    return steps


def _chain_steps(model):
    calls = []

    def call(layer, *args, **kwargs):
        outputs = layer(*args, **kwargs)
        calls.append((layer, args[0], outputs))
        return outputs

    expected = rebuild(model, call).inputs[0]  # fills `calls`
    steps = []
    for layer, inputs, outputs in calls:
        if inputs is not expected:
            raise ValueError(
                "The live page supports chains of layers, each fed by the one before it. Received: "
                f"layer {layer.name!r}, which is not."
            )
        steps += _chain_steps(layer) if is_model(layer) else _steps(layer)
        expected = outputs
    return steps


def _steps(layer):
    kind = type(layer)  # exactly: what a subclass computes is unknown here
    parts = layer.parts() if kind in (ConvHighway2D, Highway) else [layer]
    for part in parts:
        if getattr(part, "quantization_mode", None):
            raise _unsupported(layer, "quantized layers")
        if getattr(part, "data_format", None) == "channels_first":
            raise _unsupported(layer, "data_format='channels_first'")
        if getattr(part, "groups", 1) != 1:
            raise _unsupported(layer, "groups")
    if kind in (keras.layers.Dropout, Mirror, PadAndCrop):  # for training alone
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
        return [{"op": "subtract", "image": _packed(layer.mean)}]
    if kind in POOLS:
        sides = {"size": list(layer.pool_size), "strides": list(layer.strides)}
        return [{"op": "pool", "kind": POOLS[kind], **sides, "padding": layer.padding}]
    if kind in GLOBAL_POOLS:
        sides = {"size": None, "strides": [1, 1], "padding": "valid"}
        pool = {"op": "pool", "kind": GLOBAL_POOLS[kind], **sides}
        return [pool] if layer.keepdims else [pool, {"op": "flatten"}]
    if kind in (keras.layers.Dense, keras.layers.Conv2D):
        return [{"op": "transform", **_transform(layer, layer.activation)}]
    if kind is HighwayStack:
        return [step for block in layer.unstack() for step in _steps(block)]
    if kind in (ConvHighway2D, Highway):
        h, *gates = parts
        transforms = [_transform(h, layer.activation)]
        transforms += [_transform(gate, layer.transform_activation) for gate in gates]
        return [{"op": "highway", "transforms": transforms}]
    raise _unsupported(layer, "a layer of that type")


def _transform(layer, activation):
    """Return the step of H, T, C or a plain layer: `activation(conv(x, kernel) + bias)`."""
    kernel = keras.ops.convert_to_numpy(layer.kernel)
    return {
        "kernel": _packed(kernel.reshape((1,) * (4 - kernel.ndim) + kernel.shape)),
        "bias": None if layer.bias is None else _packed(layer.bias),
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


def _packed(values):
    """Return an array as `{"shape": [...], "float16": text}`, the text little-endian base64.

    It is `"float32"` where half precision loses something, which weights stored in it do not.
    """
    numbers = np.asarray(values, "<f4")
    with np.errstate(over="ignore"):
        halves = numbers.astype("<f2")
    stored = halves if np.array_equal(halves, numbers) else numbers
    text = base64.b64encode(stored.tobytes()).decode()
    return {"shape": list(stored.shape), stored.dtype.name: text}
