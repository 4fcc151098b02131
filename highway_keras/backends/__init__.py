"""What differs between TensorFlow, JAX and PyTorch, one file each; `shim` is the one in use."""

import concurrent.futures
import importlib
import os

import keras

from highway_keras.extras import BACKENDS


def cores():
    """Return how many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def on_every_core(function, items):
    """Return `[function(item) for item in items]`, several at a time."""
    with concurrent.futures.ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(function, items))


name = keras.backend.backend()
if name not in BACKENDS:
    raise ImportError(
        f"highway-keras runs on {', '.join(BACKENDS)}. Received: KERAS_BACKEND={name}."
    )
shim = importlib.import_module(f"highway_keras.backends.{name}")
