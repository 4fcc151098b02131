"""What differs between TensorFlow, JAX and PyTorch, one file each; `shim` is the one in use."""

import importlib

import keras

shim = importlib.import_module(f"highway_keras.layers.backends.{keras.backend.backend()}")
