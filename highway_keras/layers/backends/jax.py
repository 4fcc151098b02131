"""JAX: compile, loop, differentiate, and what the devices are."""

import jax

compiled = jax.jit
scan = jax.lax.scan


def has_loops():
    """Return whether loops may be compiled."""
    return True


def differentiable_once(gradient):
    """Return the function unchanged: JAX differentiates it as often as one likes."""
    return gradient


def parallel_loops():
    """Return how many compiled loops run at the same time: one, within one compiled program."""
    return 1


def gradients(f, weights):
    """For `f(weights) = (number, others)`, return the others and the gradients of the number."""
    (_, others), of_weights = jax.value_and_grad(f, has_aux=True)(weights)
    return others, of_weights


def accelerators():
    """Return the names of the GPUs or TPUs, such as `["NVIDIA H200"]`."""
    return [device.device_kind for device in jax.devices() if device.platform != "cpu"]
