"""A population cut into cohorts that train side by side, one on each CPU core.

A network of 50 units is too small to be shared among cores: two threads took twice the processor
time of one for a whole population. An accelerator takes the population in one piece.
"""

import concurrent.futures
import math

import numpy as np

from highway_keras.tuning.population import Population

# Measured at depths 10 to 100: a trial costs about the same in cohorts of 2 to 5, and up to 25 %
# more in cohorts of 10, whose block states no longer fit into the cache of a core.
MOST_IN_A_COHORT = 5


class Cohorts:
    """Networks of one shape that train together, used like a `Population`.

    Args:
        kind: `"highway"`, `"plain"` or `"residual"`.
        hyperparameters: A dictionary for each trial.
        weights: A dictionary of arrays for each trial.
        cores: Number of cohorts to train at a time; `None` for a single one with all trials.
    """

    def __init__(self, kind, hyperparameters, weights, cores):
        trials = np.arange(len(weights))
        self.members = np.array_split(trials, _count(len(trials), cores) if cores else 1)
        self.cohorts = [
            Population(kind, [hyperparameters[t] for t in m], [weights[t] for t in m])
            for m in self.members
        ]
        self.threads = concurrent.futures.ThreadPoolExecutor(cores or 1)

    def train(self, images, epoch, order):
        """Train for one epoch, as `Population.train` does."""
        return self._join(lambda cohort: cohort.train(images, epoch, order))

    def evaluate(self, images):
        """Measure every trial, as `Population.evaluate` does."""
        return self._join(lambda cohort: cohort.evaluate(images))

    def keep(self, improved):
        """Remember the weights of improved trials, as `Population.keep` does."""
        for cohort, members in zip(self.cohorts, self.members, strict=True):
            cohort.keep(improved[members])

    def best_weights(self, trial):
        """Return the weights of one trial, as `Population.best_weights` does."""
        index = next(i for i, members in enumerate(self.members) if trial in members)
        return self.cohorts[index].best_weights(trial - self.members[index][0])

    def _join(self, measure):
        columns = zip(*self.threads.map(measure, self.cohorts), strict=True)
        return tuple(np.concatenate(column) for column in columns)


def _count(trials, cores):
    """Return how many cohorts of at most `MOST_IN_A_COHORT` trials share the cores evenly."""
    rounds = math.ceil(trials / (cores * MOST_IN_A_COHORT))
    return min(trials, rounds * cores)
