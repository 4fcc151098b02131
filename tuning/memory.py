"""How many networks fit into a population, and how many cores train them."""

import math
import os

from highway_keras import memory
from highway_keras.backends.current import shim
from highway_keras.tuning.cohorts import MOST_IN_A_COHORT

FLOAT = 4  # bytes
SHARE = 0.5  # of the free memory; the rest is for images, the compiler and other programs
# A CPU gains nothing from more. Small populations end sooner, and an interruption costs less.
COHORTS_A_CORE = 2


def bytes_per_trial(hypermodel, batch_size):
    """Return the memory that training one network takes, in bytes: weights and kept states."""
    units, blocks = hypermodel.units, hypermodel.depth - 1
    parts = 2 if hypermodel.kind == "highway" else 1
    ends = units * (hypermodel.inputs + hypermodel.classes + 2)
    weights = blocks * parts * units * (units + 1) + ends
    states = blocks * batch_size * units * (1 + 2 * parts)  # x, H, T and the gradients of H, T
    return FLOAT * (7 * weights + states)  # weights, velocity, gradient, best; old and new


def population_size(hypermodel, batch_size, trials):
    """Return how many networks to train together: as many as fit, in populations of equal size."""
    free, most = shim.accelerator_memory(), trials
    if free is None:
        free = memory.free()
        most = min(trials, COHORTS_A_CORE * MOST_IN_A_COHORT * cores())
    fitting = max(1, int(SHARE * free) // bytes_per_trial(hypermodel, batch_size))
    rounds = math.ceil(trials / min(most, fitting))
    return math.ceil(trials / rounds)


def cores():
    """Return the number of CPU cores to train on, or `None` if an accelerator does the work."""
    return os.cpu_count() if shim.accelerator_memory() is None else None
