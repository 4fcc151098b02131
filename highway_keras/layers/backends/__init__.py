"""What differs between TensorFlow, JAX and PyTorch, one file each; `shim` is the one in use."""

import importlib

import keras
from keras import ops, tree


def plain_scan(step, carry, xs):
    """Loop as `jax.lax.scan` does, in Python.

    Not `keras.ops.scan`: on PyTorch the gradient of its indexing is as large as all of `xs`, once a
    block.
    """
    emitted = []
    for rows in zip(*map(ops.unstack, tree.flatten(xs)), strict=True):
        carry, outputs = step(carry, tree.pack_sequence_as(xs, rows))
        emitted.append(outputs)
    return carry, tree.map_structure(lambda *rows: ops.stack(rows), *emitted)


name = keras.backend.backend()
shim = importlib.import_module(f"highway_keras.layers.backends.{name}")
