"""How many networks fit into a population, and how many cores share it."""

import math
import os

import psutil

from highway_keras.backends.current import shim
from highway_keras.tuning.cohorts import MOST_IN_A_COHORT

FLOAT = 4  # bytes
SHARE = 0.5  # of the free memory; the rest is for images, the compiler and other programs
# A CPU gains nothing by more. Small populations end sooner, and leave less to do again after an
# interruption.
COHORTS_A_CORE = 2


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
    free, most = shim.accelerator_memory(), trials
    if free is None:
        free = psutil.virtual_memory().available
        most = min(trials, COHORTS_A_CORE * MOST_IN_A_COHORT * cores())
    fitting = max(1, int(SHARE * free) // bytes_per_trial(hypermodel, batch_size))
    rounds = math.ceil(trials / min(most, fitting))
    return math.ceil(trials / rounds)


def cores():
    """CPU cores to train on side by side, or None where an accelerator does the work."""
    return os.cpu_count() if shim.accelerator_memory() is None else None
