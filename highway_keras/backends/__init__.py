"""What differs between TensorFlow, JAX and PyTorch, one shim per backend: see `current.shim`."""
