"""The gated blocks of a model: how to walk them, watch their gates and close them.

A block is a gated layer, or one layer of a `HighwayStack`. Blocks are found in functional and
Sequential models and in such models inside them, not inside other layers or subclassed models.
"""

import contextlib
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from highway_keras.data import inference_batch_size
from highway_keras.layers import HighwayStack
from highway_keras.layers.gated import GatedLayer, Watched
from highway_keras.util import checks
from highway_keras.util.messages import shows_progress

CLOSED = -1e4  # a bias at which a sigmoid is exactly 0 in every floating-point type


class GatedBlock(NamedTuple):
    """One gated block of a model: its name, its layer and, in a `HighwayStack`, its index."""

    name: str
    layer: keras.Layer
    index: int | None = None


def is_model(layer):
    """Return whether a layer is a functional or Sequential model."""
    return isinstance(layer, keras.Model) and bool(getattr(layer, "inputs", None))


def gated_layers(model):
    """Yield the gated layers of a model and of the models inside it."""
    for layer in model.layers:
        if isinstance(layer, GatedLayer):
            yield layer
        elif is_model(layer):
            yield from gated_layers(layer)


def rebuild(model, call=None):
    """Return a functional model of the same layers, whose calls may be `call(layer, ...)` instead.

    `keras.models.clone_model` with the very same layers is Keras's public way to do so.
    """
    if isinstance(model, keras.Sequential):
        ends = model.inputs[0], model.outputs[0]
    else:
        ends = model.input, model.output
    uncompiled = keras.Model(*ends, name=model.name)
    return keras.models.clone_model(
        uncompiled, clone_function=lambda layer: layer, call_function=call
    )


def observe(model, what="gates", with_outputs=False):
    """Return a model from the inputs of `model` to a list of `what` of each block, and the blocks.

    `what` is `"gates"` or `"outputs"`. With `with_outputs`, the model returns
    `{"outputs": ..., what: [...]}`, the outputs of `model` first.
    """
    observed, blocks = _observe(model, what, {})
    if not blocks:
        raise ValueError(
            "`model` must contain gated layers, itself or in functional and Sequential models "
            f"inside it. Received: model={model.name!r} without any."
        )
    counts = {}
    for i, block in enumerate(blocks):
        counts[block.name] = count = counts.get(block.name, 0) + 1
        if count > 1:
            blocks[i] = block._replace(name=f"{block.name} ({count})")
    outputs = observed.output["blocks"]
    if with_outputs:
        outputs = {"outputs": observed.output["outputs"], what: outputs}
    return keras.Model(observed.input, outputs, name=model.name), blocks


def _observe(model, what, replacements):
    """Return a model to `{"outputs": ..., "blocks": [...]}`, and its blocks.

    `replacements` has the layers that take the place of a layer in all its calls.
    """
    tensors, blocks = [], []

    def call(layer, *args, **kwargs):
        if is_model(layer) and any(gated_layers(layer)):
            if layer not in replacements:
                replacements[layer] = _observe(layer, what, replacements)
            inner, inner_blocks = replacements[layer]
            results = inner(*args, **kwargs)
            tensors.extend(results["blocks"])
            blocks.extend(inner_blocks)
            return results["outputs"]
        if not isinstance(layer, GatedLayer):
            return layer(*args, **kwargs)
        is_stack = isinstance(layer, HighwayStack)
        if layer not in replacements:
            links = layer.unstack() if is_stack and what == "outputs" else [layer]
            replacements[layer] = [Watched(link) for link in links]
        returns_gate = kwargs.pop("return_gate", False)
        outputs, gates = [], []
        for link in replacements[layer]:
            output, gate = link(*args, **kwargs)
            outputs.append(output)
            gates.extend(ops.unstack(gate) if isinstance(link.layer, HighwayStack) else [gate])
            args, kwargs = (output,), {}  # of the next layer of an unrolled stack
        tensors.extend(gates if what == "gates" else outputs)
        blocks.extend(blocks_of(layer))
        gate = ops.stack(gates) if is_stack else gates[0]
        return (outputs[-1], gate) if returns_gate else outputs[-1]

    rebuilt = rebuild(model, call)
    structure = {"outputs": rebuilt.output, "blocks": tensors}
    return keras.Model(rebuilt.input, structure, name=model.name), blocks


def blocks_of(layer):
    """Return the blocks of a gated layer."""
    if not isinstance(layer, HighwayStack):
        return [GatedBlock(layer.name, layer)]
    name = layer.name.removesuffix(f"_x{layer.depth}")
    return [GatedBlock(f"{name}_{i}", layer, i) for i in range(layer.depth)]


# Closing


@contextlib.contextmanager
def closed(layer, index=None):
    """Close the transform gates of a layer: `with closed(layer): model.evaluate(...)`.

    The bias (or beta) of the last layer of the gate is -10,000 meanwhile, so that a sigmoid is
    exactly 0 and the layer returns `x`, or `x * C(x)` with a learned carry. A layer that is used
    several times is closed in all its calls.

    Args:
        layer: A built gated layer.
        index: Which layer of a `HighwayStack`. Default: all.

    Raises:
        ValueError: If no bias follows the last weights of the gate.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import Highway, analysis
        >>> layer, x = Highway(), np.ones((2, 8))
        >>> _ = layer(x)
        >>> with analysis.closed(layer):
        ...     bool((layer(x) == x).numpy().all())
        True
    """
    bias = layer.gate_bias
    if bias is None:
        raise ValueError(
            "`layer` must have a transform gate that ends in a bias, which closes it. "
            f"{checks.received('layer', layer)}"
        )
    before = ops.convert_to_numpy(bias)
    after = np.array(before)
    after[... if index is None else index] = CLOSED
    try:
        bias.assign(after)
        yield
    finally:
        bias.assign(before)


# Batches


def in_batches(x, batch_size, verbose):
    """Yield `(slice, batch)` over samples: an array, or a list or dictionary of them."""
    arrays = keras.tree.flatten(x)
    if batch_size is None:
        batch_size = min(inference_batch_size(array.shape[1:]) for array in arrays)
    checks.positive_integer("batch_size", batch_size)
    count = len(arrays[0])
    bar = keras.utils.Progbar(count, verbose=shows_progress(verbose), unit_name="sample")
    for start in range(0, count, batch_size):
        part = slice(start, min(start + batch_size, count))
        yield part, keras.tree.map_structure(lambda array, part=part: array[part], x)
        bar.update(part.stop)
