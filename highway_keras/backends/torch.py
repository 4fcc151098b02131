"""PyTorch: no compiled loops; the depth loop is a plain one and autodiff gives its gradient."""

import torch
from keras import ops

HAS_LOOPS = False

scan = ops.scan


def compiled(f):
    """Return `f` unchanged."""
    return f


def parallel_loops():
    """Return how many compiled loops run at the same time: one, on one thread."""
    return 1


def summed(gradients):
    """Return the gradients unchanged: training runs on one device."""
    return gradients


def accelerators():
    """Return the names of the GPUs, such as `["NVIDIA H200"]`."""
    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
