"""What TensorFlow, JAX and PyTorch do differently, one shim a backend; `current.shim` is in use."""
