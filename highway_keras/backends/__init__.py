"""What differs between TensorFlow, JAX and PyTorch, one file each; `shim` is Keras's backend's."""

import importlib

import keras

shim = importlib.import_module(f"highway_keras.backends.{keras.backend.backend()}")
