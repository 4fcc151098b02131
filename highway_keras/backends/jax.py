"""JAX: compile, loop, differentiate, and what the devices are."""

import jax

HAS_LOOPS = True

compiled = jax.jit
scan = jax.lax.scan


def unwatched(x):
    """Return `x`: JAX differentiates through compiled loops, as often as one likes."""
    return x


def final(gradient):
    """Return the function unchanged: it has gradients itself."""
    return gradient


def side_by_side():
    """Return how many compiled loops run at the same time: one, within one compiled program."""
    return 1


def fold(step, state, xs):
    """Apply `state = step(state, *x)` for every x along the first axis of the tensors `xs`."""
    return jax.lax.scan(lambda state, x: (step(state, *x), None), state, xs)[0]


def pullback(f, x, dy):
    """Return the gradient of `f` at `x`, given the gradient `dy` of its output."""
    return jax.vjp(f, x)[1](dy)[0]


def gradients(f, weights):
    """For `f(weights) = (number, others)`, return the others and the gradients of the number."""
    (_, others), found = jax.value_and_grad(f, has_aux=True)(weights)
    return others, found


def summed(gradients):
    """Return the gradients unchanged: JAX sums over devices by itself."""
    return gradients


def accelerators():
    """Return the names of the GPUs or TPUs, such as `["NVIDIA H200"]`."""
    return [device.device_kind for device in jax.devices() if device.platform != "cpu"]


def accelerator_memory():
    """Return the free bytes of the first accelerator, or `None` without one."""
    memory = jax.devices()[0].memory_stats()
    return memory and memory["bytes_limit"] - memory["bytes_in_use"]
