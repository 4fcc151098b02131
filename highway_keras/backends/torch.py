"""PyTorch: no compiled loops; the depth loop is a plain one and autodiff gives its gradient."""

import torch
from keras import ops, tree

HAS_LOOPS = False


def scan(step, carry, xs):
    """Loop as `jax.lax.scan` does.

    Not `keras.ops.scan`: the gradient of its indexing is as large as all of `xs`, once a block.
    """
    emitted = []
    for rows in zip(*map(torch.unbind, tree.flatten(xs)), strict=True):
        carry, found = step(carry, tree.pack_sequence_as(xs, rows))
        emitted.append(found)
    return carry, tree.map_structure(lambda *rows: torch.stack(rows), *emitted)


def compiled(f):
    """Return `f` unchanged."""
    return f


def parallel_loops():
    """Return how many compiled loops run at the same time: one, on one thread."""
    return 1


def summed(gradients):
    """Return the gradients unchanged: training runs on one device."""
    return gradients


def accelerators():
    """Return the name of the GPU that Keras computes on, such as `["NVIDIA H200"]`."""
    device = ops.zeros(()).device
    if device.type == "cuda":
        return [torch.cuda.get_device_name(device)]
    return [] if device.type == "cpu" else [device.type]  # "mps", "xpu"
