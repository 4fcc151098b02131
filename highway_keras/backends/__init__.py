"""What differs between TensorFlow, JAX and PyTorch, one file each; `shim` is the one in use."""

import concurrent.futures
import importlib
import os

import keras
from keras import ops, tree

from highway_keras.extras import BACKENDS


def cores():
    """Return how many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def on_every_core(function, items):
    """Return `[function(item) for item in items]`, several at a time."""
    with concurrent.futures.ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(function, items))


def plain_scan(step, carry, xs):
    """Loop as `jax.lax.scan` does, in Python.

    Not `keras.ops.scan`: on PyTorch the gradient of its indexing is as large as all of `xs`, once a
    block.
    """
    emitted = []
    for rows in zip(*map(ops.unstack, tree.flatten(xs)), strict=True):
        carry, found = step(carry, tree.pack_sequence_as(xs, rows))
        emitted.append(found)
    return carry, tree.map_structure(lambda *rows: ops.stack(rows), *emitted)


name = keras.backend.backend()
if name not in BACKENDS:
    raise ImportError(
        f"highway-keras runs on {', '.join(BACKENDS)}. Received: KERAS_BACKEND={name}."
    )
shim = importlib.import_module(f"highway_keras.backends.{name}")
