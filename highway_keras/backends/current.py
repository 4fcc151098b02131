"""The shim of the backend that Keras runs on."""

import importlib

import keras

BACKENDS = ("tensorflow", "jax", "torch")


def _load(name):
    if name not in BACKENDS:
        raise ImportError(
            f"`KERAS_BACKEND` must be one of {', '.join(BACKENDS)}. Received: KERAS_BACKEND={name}."
        )
    return importlib.import_module(f"highway_keras.backends.{name}")


shim = _load(keras.backend.backend())
