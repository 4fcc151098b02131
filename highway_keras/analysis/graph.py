"""Record the layer calls of a model as one list, and run it again with some calls changed.

Keras offers no way to ask a finished model for a second output of its layers, and it refuses to
connect one (`layer(x, return_gate=True)`) if the layer's first call had one output. So the calls
are recorded and repeated on the same symbolic inputs, each with the caller's own function.
"""

import dataclasses

import keras

from highway_keras.layers import HighwayStack
from highway_keras.layers.gated import GatedLayer


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """One call of a layer in a graph, with the symbolic tensors that went in and came out.

    `blocks` are the numbers of its gated blocks: several for a `HighwayStack`, none for a layer
    that is not gated.
    """

    layer: keras.Operation
    args: tuple
    kwargs: dict
    outputs: object
    blocks: range = range(0)


class Graph:
    """The layer calls of a functional or Sequential model in order, those of nested models inlined.

    Args:
        model: A Keras model.
        shapes: Shape of a sample for each input; default the model's, which may leave sides open.

    Attributes:
        inputs: New symbolic inputs, one for each of the model's.
        calls: A list of `Call`.
        outputs: The symbolic outputs.
        blocks: The names of the gated blocks in order: the layer's, with the number of the block
            in place of the depth of a `HighwayStack`, and a count in brackets if a name is
            repeated.

    Raises:
        TypeError: If the model is not a Keras model, or its layer calls cannot be known.
        ValueError: If it is not built or has no gated layers.
    """

    def __init__(self, model, shapes=None):
        _check_model(model)
        inputs = zip(model.inputs, shapes or [x.shape[1:] for x in model.inputs], strict=True)
        self.inputs = [keras.Input(shape, x.shape[0], x.dtype) for x, shape in inputs]
        self.calls = []
        self.outputs = self._inline(model, self.inputs)
        self.blocks = _block_names(self.gated)
        if not self.blocks:
            raise ValueError(
                "`model` must contain gated layers: `Highway`, `ConvHighway1D` to `3D`, "
                "`HighwayStack` or `HighwayWrapper`, itself or in the functional and Sequential "
                f"models inside it. Received: model={model.name!r} without any."
            )

    @property
    def gated(self):
        """Calls of gated layers."""
        return [call for call in self.calls if call.blocks]

    def repeat(self, visit):
        """Run the graph on its inputs, with `visit(call, *args, **kwargs)` for each layer call.

        Return what then takes the place of the outputs.
        """
        tensors = {}
        for call in self.calls:
            args, kwargs = _replace((call.args, call.kwargs), tensors)
            _note(call.outputs, visit(call, *args, **kwargs), tensors)
        return _replace(self.outputs, tensors)

    def model(self, outputs):
        """Return a model over the inputs of the graph; it takes what the analyzed one takes."""
        return keras.Model(self.inputs if len(self.inputs) > 1 else self.inputs[0], outputs)

    def _inline(self, model, inputs):
        recorded_inputs, calls, outputs = _record(model)
        tensors = {}
        _note(recorded_inputs, inputs, tensors)
        for call in calls:
            args, kwargs = _replace((call.args, call.kwargs), tensors)
            if _has_graph(call.layer):
                results = self._inline(call.layer, keras.tree.flatten(args))
            else:
                results = call.layer(*args, **kwargs)
                self._append(call.layer, args, kwargs, results)
            _note(call.outputs, results, tensors)
        return _replace(outputs, tensors)

    def _append(self, layer, args, kwargs, outputs):
        first = self.calls[-1].blocks.stop if self.calls else 0
        depth = getattr(layer, "depth", 1) if isinstance(layer, GatedLayer) else 0
        self.calls.append(Call(layer, args, kwargs, outputs, range(first, first + depth)))


def _record(model):
    """Return the inputs, calls and outputs of a model; each model inside it is one call."""
    calls = []

    def record(layer, *args, **kwargs):
        outputs = layer(*args, **kwargs)
        calls.append(Call(layer, args, kwargs, outputs))
        return outputs

    # A model over the same graph: functional even if `model` is Sequential, and not compiled.
    functional = keras.Model(model.inputs, model.outputs)
    # "Cloning" with the very same layers is Keras's public way to visit the calls of a graph.
    clone = keras.models.clone_model(
        functional, clone_function=lambda layer: layer, call_function=record
    )
    return clone.inputs, calls, clone.outputs


def _note(symbolic, actual, tensors):
    pairs = zip(keras.tree.flatten(symbolic), keras.tree.flatten(actual), strict=True)
    tensors.update((id(key), value) for key, value in pairs)


def _replace(structure, tensors):
    return keras.tree.map_structure(lambda x: tensors.get(id(x), x), structure)


def _has_graph(layer):
    """Return whether the layer is a built functional or Sequential model."""
    if not isinstance(layer, keras.Model):
        return False
    try:
        return bool(layer.inputs)
    except (AttributeError, ValueError):  # a subclassed model; a Sequential that is not built
        return False


def _check_model(model):
    if not isinstance(model, keras.Model):
        raise TypeError(
            f"`model` must be a Keras model. Received: model={model!r} "
            f"(of type {type(model).__name__})."
        )
    if _has_graph(model):
        return
    if isinstance(model, keras.Sequential):
        raise ValueError(
            f"`model` must be built. Received: the Sequential model {model.name!r}, which does not "
            "know its input yet. Start it with a `keras.Input`, or call it once."
        )
    raise TypeError(
        "`model` must be a functional or Sequential model, whose layer calls can be repeated. "
        f"Received: {model.name!r}, a subclassed model ({type(model).__name__}). Analyse the "
        "functional models it is made of, or write it as one: "
        "`keras.Model(inputs, outputs)`."
    )


def _block_names(calls):
    names, seen = [], {}
    for call in calls:
        of_call = [call.layer.name]
        if isinstance(call.layer, HighwayStack):
            depth = call.layer.depth
            stack = call.layer.name.removesuffix(f"_x{depth}")
            of_call = [f"{stack}_{i}" for i in range(depth)]
        for name in of_call:
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)
