"""How many networks fit into a population, and how many cores share it."""

import math
import os

import keras
import psutil

from highway_keras.tuning.cohorts import MOST_IN_A_COHORT

FLOAT = 4  # bytes
SHARE = 0.5  # of the free memory; the rest is for images, the compiler and other programs
# A CPU gains nothing by more. Small populations end sooner, and leave less to do again after an
# interruption.
COHORTS_A_CORE = 2
UNKNOWN_GPU = 4 * 2**30  # TensorFlow has no public way to ask


def bytes_per_trial(hypermodel, batch_size):
    """Memory that training one network takes, in bytes: weights, and block states to go back by."""
    units, blocks = hypermodel.units, hypermodel.depth - 1
    parts = 2 if hypermodel.kind == "highway" else 1
    ends = units * (hypermodel.inputs + hypermodel.classes + 2)
    weights = blocks * parts * units * (units + 1) + ends
    kept = blocks * batch_size * units * (1 + 2 * parts)  # x, H, T and the gradients of H, T
    return FLOAT * (7 * weights + kept)  # weights, velocity, gradient, best; old and new


def population_size(hypermodel, batch_size, trials):
    """The number of networks to train at once: as many as fit, in populations of equal size."""
    free, most = _accelerator_memory(), trials
    if free is None:
        free = psutil.virtual_memory().available
        most = min(trials, COHORTS_A_CORE * MOST_IN_A_COHORT * cores())
    fitting = max(1, int(SHARE * free) // bytes_per_trial(hypermodel, batch_size))
    rounds = math.ceil(trials / min(most, fitting))
    return math.ceil(trials / rounds)


def cores():
    """CPU cores to train on side by side, or None where an accelerator does the work."""
    return os.cpu_count() if _accelerator_memory() is None else None


def _accelerator_memory():
    """Free bytes of the accelerator, or None without one."""
    if keras.backend.backend() == "jax":
        import jax

        memory = jax.devices()[0].memory_stats()
        return memory and memory["bytes_limit"] - memory["bytes_in_use"]
    import tensorflow as tf

    return UNKNOWN_GPU if tf.config.list_physical_devices("GPU") else None
