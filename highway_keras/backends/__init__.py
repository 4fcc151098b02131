"""What differs between TensorFlow, JAX and PyTorch, one file each; `shim` is the one in use."""

import importlib
import os

import keras

from highway_keras.extras import BACKENDS


def cores():
    """Return how many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


name = keras.backend.backend()
if name not in BACKENDS:
    raise ImportError(
        f"highway-keras runs on {', '.join(BACKENDS)}. Received: KERAS_BACKEND={name}."
    )
shim = importlib.import_module(f"highway_keras.backends.{name}")
