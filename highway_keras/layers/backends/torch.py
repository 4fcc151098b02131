"""PyTorch: no compiled loops; the depth loop is a plain one and autodiff gives its gradient."""

import torch
from keras import ops


def has_loops():
    """Return whether loops may be compiled."""
    return False


def parallel_loops():
    """Return how many compiled loops run at the same time: one, on one thread."""
    return 1


def accelerators():
    """Return the name of the GPU that Keras computes on, such as `["NVIDIA H200"]`."""
    device = ops.zeros(()).device
    if device.type == "cuda":
        return [torch.cuda.get_device_name(device)]
    return [] if device.type == "cpu" else [device.type]  # "mps", "xpu"
