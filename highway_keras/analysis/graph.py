"""Record the layer calls of a model as one list, and run it again with some calls changed.

Keras offers no way to ask a finished model for a second output of its layers, and it refuses to
connect one (`layer(x, return_gate=True)`) if the layer's first call had one output. So the calls
are recorded and repeated on the same symbolic inputs, each with the caller's own function.
"""

import dataclasses
import math

import keras

from highway_keras.layers import HighwayStack
from highway_keras.layers.gated import GatedLayer
from highway_keras.util import checks
from highway_keras.util.messages import notice

# They multiply at each position of their input, others at each of their output.
TRANSPOSED = tuple(getattr(keras.layers, f"Conv{n}DTranspose") for n in (1, 2, 3))


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """One call of a layer in a graph, with the symbolic tensors that went in and came out.

    `run` is what repeats it: the layer, or one under another name. `blocks` are the numbers of its
    gated blocks: several for a `HighwayStack`, none for a layer that is not gated.
    """

    layer: keras.Operation
    run: keras.Operation
    args: tuple
    kwargs: dict
    outputs: object
    blocks: range

    @property
    def inputs(self):
        """The symbolic tensors that went in."""
        values = keras.tree.flatten((self.args, self.kwargs))
        return [x for x in values if isinstance(x, keras.KerasTensor)]

    @property
    def multiplications(self):
        """The number of multiplications by the layer's kernels, for one sample."""
        weights = getattr(self.layer, "weights", ())
        kernels = sum(math.prod(w.shape) for w in weights if w.path.endswith("kernel"))
        per_input = isinstance(self.layer, TRANSPOSED)
        shape, steps = (self.inputs if per_input else keras.tree.flatten(self.outputs))[0].shape, 1
        if not getattr(self.layer, "return_sequences", True):
            steps = self.inputs[0].shape[1] or 1  # it returns the last one alone
        of_kernel = getattr(self.layer, "transform", self.layer)
        channels_first = getattr(of_kernel, "data_format", None) == "channels_first"
        positions = shape[2:] if channels_first else shape[1:-1]
        return kernels * steps * math.prod(n or 1 for n in positions)


class Graph:
    """The layer calls of a functional or Sequential model in order, those of nested models inlined.

    `shapes`, one for each input without its batch axis, replace the model's own, which may leave
    sides open. `blocks` holds the names of the gated blocks in order: the layer's name, with the
    number of the block in place of the depth of a `HighwayStack`, and a count in brackets if a name
    is repeated.
    """

    def __init__(self, model, shapes=None):
        if not has_graph(model):
            raise TypeError(
                "`model` must be a built functional or Sequential Keras model, whose layer calls "
                f"can be repeated. {checks.received('model', model)}"
            )
        inputs = zip(model.inputs, shapes or [x.shape[1:] for x in model.inputs], strict=True)
        self.inputs = [keras.Input(shape, x.shape[0], x.dtype) for x, shape in inputs]
        self.calls, self.blocks = [], ()
        self.outputs = self._inline(model, self.inputs)
        self.gated = [call for call in self.calls if call.blocks]
        for call in self.calls:
            parts = getattr(call.layer, "_flatten_layers", list)()
            if any(isinstance(part, GatedLayer) and part is not call.layer for part in parts):
                notice(f"The gated layers inside {call.layer.name!r} are left out.")
        if not self.blocks:
            raise ValueError(
                "`model` must contain gated layers: `Highway`, `ConvHighway1D` to `3D`, "
                "`HighwayStack` or `HighwayWrapper`, itself or in the functional and Sequential "
                f"models inside it. Received: model={model.name!r} without any."
            )

    def repeat(self, visit):
        """Run the graph on its inputs, with `visit(call, *args, **kwargs)` in place of each call.

        Return the outputs of that run.
        """
        tensors = {}
        for call in self.calls:
            args, kwargs = replaced((call.args, call.kwargs), tensors)
            note(call.outputs, visit(call, *args, **kwargs), tensors)
        return replaced(self.outputs, tensors)

    def _inline(self, model, inputs):
        """Append the calls of a model, repeated on `inputs`; return its outputs."""
        recorded = []

        def record(layer, *args, **kwargs):
            outputs = layer(*args, **kwargs)
            recorded.append((layer, args, kwargs, outputs))
            return outputs

        # A model over the same graph: functional even if `model` is Sequential, and not compiled.
        functional = keras.Model(model.inputs, model.outputs)
        # "Cloning" with the very same layers is Keras's public way to visit the calls of a graph.
        clone = keras.models.clone_model(
            functional, clone_function=lambda layer: layer, call_function=record
        )
        tensors = {}
        note(clone.inputs, inputs, tensors)
        for layer, args, kwargs, outputs in recorded:
            args, kwargs = replaced((args, kwargs), tensors)
            if has_graph(layer):
                results = self._inline(layer, self._entered(layer, args, kwargs))
            else:
                homonyms = (c.layer for c in self.calls if c.layer.name == layer.name)
                clash = any(other is not layer for other in homonyms)
                run = layer
                if clash and isinstance(layer, keras.Layer):
                    run = Renamed(layer)
                elif clash:  # an operation, such as `x + y`
                    run = type(layer).from_config(layer.get_config())
                    run.name = f"{layer.name} ({len(self.calls)})"
                results, names = run(*args, **kwargs), block_names(layer)
                blocks = range(len(self.blocks), len(self.blocks) + len(names))
                self.calls.append(Call(layer, run, args, kwargs, results, blocks))
                for name in names:
                    count = 1 + sum(n.split(" (")[0] == name for n in self.blocks)
                    self.blocks += (name if count == 1 else f"{name} ({count})",)
            note(outputs, results, tensors)
        return replaced(clone.outputs, tensors)

    def _entered(self, model, args, kwargs):
        """Append what calling a nested model does to its inputs; return them."""
        inputs, masks = _inputs_of(model, args, kwargs), keras.tree.flatten(kwargs.get("mask"))
        for i, (x, own) in enumerate(zip(inputs, model.inputs, strict=True)):
            has_mask = len(masks) == len(inputs) and masks[i] is not None
            if has_mask or x.dtype != own.dtype:
                enter = Entry(own.dtype, name=f"{model.name}_input_{len(self.calls)}")
                taken = [x, masks[i]] if has_mask else [x]
                inputs[i] = enter(taken)
                self.calls.append(Call(enter, enter, (taken,), {}, inputs[i], range(0)))
        return inputs


class Entry(keras.Layer):
    """What a nested model does to an input: cast it, and give it the mask of its call, if any."""

    def __init__(self, dtype, name):
        super().__init__(autocast=False, name=name)
        self.to, self.supports_masking = dtype, True

    def call(self, inputs):
        return keras.ops.cast(inputs[0], self.to)

    def compute_mask(self, inputs, previous_mask=None):
        return inputs[1] if len(inputs) > 1 else previous_mask and previous_mask[0]


class Renamed(keras.Layer):
    """A layer under another name, since a Keras model cannot hold two layers of the same name."""

    def __init__(self, layer):
        super().__init__(autocast=False)
        self.layer = layer

    def call(self, *args, **kwargs):
        return self.layer(*args, **kwargs)

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the layer has set that of its outputs

    def compute_output_spec(self, *args, **kwargs):
        return self.layer.compute_output_spec(*args, **kwargs)


def block_names(layer):
    """Return the names of a layer's gated blocks; none if it is not gated."""
    if isinstance(layer, HighwayStack):
        name = layer.name.removesuffix(f"_x{layer.depth}")
        return [f"{name}_{i}" for i in range(layer.depth)]
    return [layer.name] if isinstance(layer, GatedLayer) else []


def of_gated(args, kwargs):
    """Return the inputs of a call, and the other arguments, which a gated layer passes on to H."""
    passed = {key: value for key, value in kwargs.items() if key not in ("inputs", "return_gate")}
    return (args[0] if args else kwargs["inputs"]), passed


def note(symbolic, actual, tensors):
    """Note in the dictionary `tensors` what stands for each symbolic tensor."""
    pairs = zip(keras.tree.flatten(symbolic), keras.tree.flatten(actual), strict=True)
    tensors.update((id(key), value) for key, value in pairs)


def replaced(structure, tensors):
    """Return a structure with its symbolic tensors replaced as `note` has noted."""
    return keras.tree.map_structure(lambda x: tensors.get(id(x), x), structure)


def _inputs_of(model, args, kwargs):
    """Return what a call of a nested model gives to its inputs, in their order."""
    given, _ = of_gated(args, kwargs)
    if isinstance(given, dict) and not isinstance(model.input, dict):  # Keras goes by names
        return [given[x.name] for x in model.inputs]
    return keras.tree.flatten(given)


def has_graph(layer):
    """Return whether the layer is a built functional or Sequential model with Keras's `call`."""
    built = isinstance(layer, keras.Model) and bool(getattr(layer, "inputs", None))
    return built and type(layer).call is class_of_keras(layer).call


def class_of_keras(model):
    """Return the class of Keras's that a model is of, without what a user's subclass overrides."""
    return next(base for base in type(model).__mro__ if base.__module__.startswith("keras."))
