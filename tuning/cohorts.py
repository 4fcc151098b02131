"""A population cut into cohorts that train side by side, one a CPU core.

A network of 50 units is too small to be shared among cores: the two threads of a whole population
took twice the processor time of one. An accelerator takes the population in one piece.
"""

import concurrent.futures
import math

import numpy as np

from highway_keras.tuning.population import Population

# Measured at depth 10 to 100: trials of cohorts of 2 to 5 cost about the same; 10 cost up to 25 %
# more, since their block states no longer fit into the cache of a core.
MOST_IN_A_COHORT = 5


class Cohorts:
    """Networks of one shape that train together; to be used as a `Population` is.

    Args:
        kind: `"highway"`, `"plain"` or `"residual"`.
        hyperparameters: A dictionary for each trial.
        weights: A dictionary of arrays for each trial.
        cores: Cohorts to train at once; `None` for a single one of all trials.
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
        """As `Population.train`."""
        return self._join(lambda cohort: cohort.train(images, epoch, order))

    def evaluate(self, images):
        """As `Population.evaluate`."""
        return self._join(lambda cohort: cohort.evaluate(images))

    def keep(self, improved):
        """As `Population.keep`."""
        for cohort, members in zip(self.cohorts, self.members, strict=True):
            cohort.keep(improved[members])

    def best_weights(self, trial):
        """As `Population.best_weights`."""
        place = next(i for i, members in enumerate(self.members) if trial in members)
        return self.cohorts[place].best_weights(trial - self.members[place][0])

    def _join(self, measure):
        columns = zip(*self.threads.map(measure, self.cohorts), strict=True)
        return tuple(np.concatenate(column) for column in columns)


def _count(trials, cores):
    """Cohorts of at most `MOST_IN_A_COHORT`, so many that no core has one more than another."""
    rounds = math.ceil(trials / (cores * MOST_IN_A_COHORT))
    return min(trials, rounds * cores)
