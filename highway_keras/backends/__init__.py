"""What differs between TensorFlow, JAX and PyTorch, one file each; `shim` is that of the backend.

The backend is the one that Keras runs on.
"""

import importlib

import keras

from highway_keras.extras import BACKENDS

_backend = keras.backend.backend()
if _backend not in BACKENDS:
    raise ImportError(
        f"`KERAS_BACKEND` must be one of {', '.join(BACKENDS)}. Received: KERAS_BACKEND={_backend}."
    )
shim = importlib.import_module(f"highway_keras.backends.{_backend}")
