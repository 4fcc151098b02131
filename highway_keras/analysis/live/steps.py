"""The layers of a network as steps that the page's `network.js` runs."""

import keras

from highway_keras.data.normalization import GlobalContrastNormalization, MeanImage
from highway_keras.layers import ConvHighway2D, Highway, HighwayStack

ACTIVATIONS = ("linear", "relu", "sigmoid", "softmax", "tanh")


def network_steps(graph, weights):
    """Return the steps of a chain of layers, each a dictionary that JSON can hold.

    A dense layer is a convolution at a single position, so both are the same kind of step. A
    highway layer takes two or three of them: H, T and, if it is learned, C.

    Args:
        graph: The `Graph` of the network.
        weights: The `Weights` to add the layers' weights to.

    Raises:
        ValueError: If the network is not a chain, or the page cannot compute one of its layers.
    """
    steps, before = [], graph.inputs[0]
    for call in graph.calls:
        if not _is_fed_by(call, before):
            raise ValueError(
                "The live page supports chains of layers, each fed by the one before it. Received: "
                f"layer {call.layer.name!r}, which is not."
            )
        steps += _steps_of(call.layer, weights)
        before = call.outputs
    if steps[-1].get("activation") != "softmax" or len(before.shape) != 2:
        raise ValueError(
            "The live page supports networks that end in a softmax over classes. "
            f"Received: {call.layer.name!r} as the last layer."
        )
    return steps


def _is_fed_by(call, tensor):
    inputs = keras.tree.flatten((call.args, call.kwargs))
    inputs = [x for x in inputs if isinstance(x, keras.KerasTensor)]
    return len(inputs) == 1 and inputs[0] is tensor


def _steps_of(layer, weights):
    # By exact type: what a subclass computes is unknown here.
    make = _MAKERS.get(type(layer))
    if make is None:
        raise _unsupported(layer, "a layer of that type")
    parts = [] if isinstance(layer, HighwayStack) else getattr(layer, "sublayers", [])
    for part in (layer, *parts):
        if getattr(part, "quantization_mode", None):
            raise _unsupported(layer, "quantized layers")
        if getattr(part, "data_format", None) == "channels_first":
            raise _unsupported(layer, "data_format='channels_first'")
        if getattr(part, "groups", 1) != 1:
            raise _unsupported(layer, "groups")
    return make(layer, weights)


def _unsupported(layer, what):
    return ValueError(
        f"The live page cannot compute {what}. Received: layer {layer.name!r} "
        f"({type(layer).__name__})."
    )


def _nothing(layer, weights):
    return []


def _flatten(layer, weights):
    return [{"op": "flatten"}]


def _rescaling(layer, weights):
    if not all(isinstance(number, int | float) for number in (layer.scale, layer.offset)):
        raise _unsupported(layer, "a scale or offset for each channel")
    return [{"op": "rescale", "scale": layer.scale, "offset": layer.offset}]


def _contrast(layer, weights):
    return [{"op": "contrast", "epsilon": layer.epsilon}]


def _mean_image(layer, weights):
    return [{"op": "subtract", "image": weights.add(layer.mean)}]


def _activation(layer, weights):
    return [{"op": "activate", "activation": _name(layer, layer.activation)}]


def _pooling(kind):
    def make(layer, weights):
        size, strides = list(layer.pool_size), list(layer.strides)
        options = {"size": size, "strides": strides, "padding": layer.padding}
        return [{"op": "pool", "kind": kind, **options}]

    return make


def _global_pooling(kind):
    def make(layer, weights):
        pool = {"op": "pool", "kind": kind, "size": None, "strides": [1, 1], "padding": "valid"}
        return [pool, *([] if layer.keepdims else [{"op": "flatten"}])]

    return make


def _plain(layer, weights):
    return [{"op": "transform", **_transform(layer, layer.activation, weights)}]


def _highway(layer, weights):
    gates = [layer.transform_activation] * (len(layer.sublayers) - 1)
    transforms = [
        _transform(part, activation, weights)
        for part, activation in zip(layer.sublayers, (layer.activation, *gates), strict=True)
    ]
    return [{"op": "highway", "transforms": transforms}]


def _stack(layer, weights):
    return [step for one in layer.unstack() for step in _highway(one, weights)]


def _transform(layer, activation, weights):
    """Return the step of H, T, C or a plain layer: `activation(conv(x, kernel) + bias)`."""
    kernel, bias = layer.kernel, layer.bias
    shape = (1, 1, *kernel.shape) if len(kernel.shape) == 2 else tuple(kernel.shape)
    return {
        "kernel": weights.add(keras.ops.convert_to_numpy(kernel), shape),
        "bias": None if bias is None else weights.add(keras.ops.convert_to_numpy(bias)),
        "activation": _name(layer, activation),
        "strides": list(getattr(layer, "strides", (1, 1))),
        "dilation": list(getattr(layer, "dilation_rate", (1, 1))),
        "padding": getattr(layer, "padding", "valid"),
    }


def _name(layer, activation):
    name = keras.activations.serialize(activation)
    if name not in ACTIVATIONS:
        raise _unsupported(layer, f"activation {name!r}")
    return name


_MAKERS = {
    keras.layers.Activation: _activation,
    keras.layers.AveragePooling2D: _pooling("average"),
    keras.layers.Conv2D: _plain,
    keras.layers.Dense: _plain,
    keras.layers.Dropout: _nothing,
    keras.layers.Flatten: _flatten,
    keras.layers.GlobalAveragePooling2D: _global_pooling("average"),
    keras.layers.GlobalMaxPooling2D: _global_pooling("max"),
    keras.layers.MaxPooling2D: _pooling("max"),
    keras.layers.Rescaling: _rescaling,
    ConvHighway2D: _highway,
    GlobalContrastNormalization: _contrast,
    Highway: _highway,
    HighwayStack: _stack,
    MeanImage: _mean_image,
}
