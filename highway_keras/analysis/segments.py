"""A network as segments, run one after another: what comes before a lesion is computed once."""

import contextlib
import functools
import itertools

import keras
import numpy as np
from keras import ops

from highway_keras.analysis import blocks
from highway_keras.layers import HighwayStack
from highway_keras.layers.backends import shim
from highway_keras.layers.depth_loop.block import Block
from highway_keras.layers.gated import GatedLayer


def segments(model):
    """Cut a model before its gated layers; return the segments in order.

    A segment is a model, or a `HighwayStack`. A cut is where one tensor alone is passed on and has
    no mask, which a cut would lose: at a vector or an image.
    """
    tensors = []

    def call(layer, *args, **kwargs):
        outputs = layer(*args, **kwargs)
        is_nested = blocks.is_model(layer) and any(blocks.gated_layers(layer))
        if isinstance(layer, GatedLayer) or is_nested:
            tensors.append(args[0] if args else kwargs["inputs"])
        if isinstance(layer, HighwayStack) or is_nested:
            tensors.append(outputs)
        return outputs

    rebuilt = blocks.rebuild(model, call)
    ends = [rebuilt.input]
    for tensor in tensors:
        passes = isinstance(tensor, keras.KerasTensor) and len(tensor.shape) in (2, 4)
        if not passes or any(tensor is end for end in (*ends, rebuilt.output)):
            continue
        with contextlib.suppress(ValueError):  # of Keras, if something else is passed on, too
            keras.Model(tensor, rebuilt.output)
            ends.append(tensor)
    parts = []
    for start, end in itertools.pairwise([*ends, rebuilt.output]):
        part = keras.Model(start, end)
        layers = [x for x in part.layers if not isinstance(x, keras.layers.InputLayer)]
        alone = layers[0] if len(layers) == 1 else part
        if blocks.is_model(alone) and alone is not part:
            parts.extend(segments(alone))
        else:
            parts.append(alone if isinstance(alone, HighwayStack) else part)
    return parts


def layers_of(part):
    """Return the gated layers of a segment."""
    return [part] if isinstance(part, HighwayStack) else blocks.gated_layers(part)


def run_all(parts, x):
    """Run some segments, each on the output of the one before; return the last output."""
    for part in parts:
        x, _ = run(part, x)
    return x


def run(part, x, lesions=()):
    """Return the output of a segment, and a dictionary of its output with each lesion."""
    if isinstance(part, HighwayStack):
        return run_stack(part, x, lesions)
    lesioned = {}
    for lesion in lesions:
        with blocks.closed(*lesion):
            lesioned[lesion] = part.predict_on_batch(x)
    return part.predict_on_batch(x), lesioned


def run_stack(stack, x, lesions):
    """Do what `run` does in one compiled loop, which starts each lesion at its layer."""
    kernel, bias = stack.joint_weights()
    with blocks.closed(stack):
        _, closed = stack.joint_weights()
    wanted = np.isin(np.arange(stack.depth), [index for _, index in lesions])
    tensors = [ops.cast(z, stack.compute_dtype) for z in (x, kernel, bias, closed)]
    gates = [stack.transform_activation] * (2 if stack.learned_carry else 1)
    loop = lesion_loop(Block("highway", (stack.activation, *gates)))
    output, lesioned = map(ops.convert_to_numpy, loop(*tensors, ops.convert_to_tensor(wanted)))
    return output, {lesion: lesioned[lesion[1]] for lesion in lesions}


@functools.lru_cache(maxsize=16)
def lesion_loop(block):
    """Return a compiled loop from an input to the output of a stack, and that of each lesion."""

    def loop(x, kernel, bias, closed, wanted):
        def layer(i, x, bias):
            w, b = ops.take(kernel, i, axis=0), ops.take(bias, i, axis=0)
            return block.forward(x, w, b[:, None], ops.zeros((), x.dtype))[0]

        def lesion(i, x):
            first = ops.where(ops.take(wanted, i), i + 1, depth)
            x = layer(i, x, closed)
            return ops.while_loop(
                lambda i, _: i < depth, lambda i, x: (i + 1, layer(i, x, bias)), (first, x)
            )[1]

        def step(x, i):
            return layer(i, x, bias), lesion(i, x)

        depth = kernel.shape[0]
        x, lesioned = shim.scan(step, ops.swapaxes(x, -1, -2), ops.arange(depth))
        return ops.swapaxes(x, -1, -2), ops.swapaxes(lesioned, -1, -2)

    return shim.compiled(loop)
