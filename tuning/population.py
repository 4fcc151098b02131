"""Many networks of one shape, trained as one: the trial axis K is part of every tensor.

All trials see the same batches; nothing that a trial computes depends on another.
"""

import keras
import numpy as np
from keras import ops

from highway_keras.layers.backends import shim
from highway_keras.tuning.programs import by_trial, programs
from highway_keras.tuning.weights import part_of
from highway_keras.util.cores import on_every_core

# Measured at depths 10 to 100: a trial costs about the same in cohorts of 2 to 5, up to 15 % more
# alone, and up to 25 % more in cohorts of 10, whose block states no longer fit into the cache of a
# core. Cohorts of 2 keep more cores busy when only a few trials go on from the last rung.
IN_A_COHORT = 2


def check_backend():
    """Raise an `ImportError` unless the backend can train populations."""
    if not shim.has_loops():
        raise ImportError(
            "Populations of trials need the TensorFlow or the JAX backend; with any backend "
            "`keras_tuner.RandomSearch` can search a `HighwayHyperModel`. "
            f"Received: KERAS_BACKEND={keras.backend.backend()}."
        )


class Images:
    """Inputs `(n, ...)`, flattened, and class numbers `(n,)` on the device, and their batches."""

    def __init__(self, x, y, batch_size):
        self.size, self.batch_size = len(x), min(batch_size, len(x))
        self.x = ops.convert_to_tensor(np.reshape(x, (len(x), -1)).astype("float32"))
        self.y = ops.convert_to_tensor(np.reshape(y, -1).astype("int32"))

    def batches(self, order=None):
        """Return the indices of each step's images, and a mask: 1 for an image, 0 for padding.

        Both are tensors `(steps, batch_size)`; padding fills up the last step.
        """
        order = np.arange(self.size) if order is None else order
        fillers = -self.size % self.batch_size
        counted = np.ones(self.size, "float32")
        columns = np.pad(order.astype("int32"), (0, fillers)), np.pad(counted, (0, fillers))
        return tuple(ops.convert_to_tensor(c.reshape(-1, self.batch_size)) for c in columns)


class Population:
    """Networks of one shape, each with its hyperparameters and the state that it starts from.

    They train in cohorts side by side, one on each CPU core. A network of 50 units is too small to
    be shared among cores: two threads took twice the processor time of one for a whole population.
    An accelerator takes the population in one piece.

    All cohorts have the same size, the last one filled up with copies of its first trial: another
    size would be another program, whose sums round differently. So a trial's numbers are the same
    to the last bit whatever trains next to it.

    `hyperparameters` has the values of `HighwayHyperModel` for each trial; `state` is the states of
    all, as the module `weights` stacks them. `cohort_size` is by default 2 on a CPU, else all.
    """

    def __init__(self, kind, hyperparameters, state, cohort_size=None):
        self.count = count = len(hyperparameters)
        size = cohort_size or (count if shim.accelerators() else IN_A_COHORT)
        members = [np.arange(first, first + size) for first in range(0, count, size)]
        members = [np.where(trials < count, trials, trials[0]) for trials in members]
        self.cohorts = [_Cohort(kind, hyperparameters, state, trials) for trials in members]

    def train(self, images, epoch, order):
        """Train for one epoch, the images in the given order.

        A trial stops if the loss of a batch is not finite: its weights stay unchanged.

        Returns:
            The means of `METRICS` over the epoch's batches, each `(K,)`; the loss (nats) is NaN for
            a trial that has stopped.
        """
        return self._join(lambda cohort: cohort.train(images, epoch, order))

    def evaluate(self, images):
        """Return the `METRICS` of every trial, each `(K,)`."""
        return self._join(lambda cohort: cohort.evaluate(images))

    def _join(self, measure):
        columns = zip(*on_every_core(measure, self.cohorts), strict=True)
        return tuple(np.concatenate(column)[: self.count] for column in columns)

    def keep(self, improved):
        """Remember the weights of the trials in the mask `improved` as their best so far."""
        for cohort in self.cohorts:
            cohort.keep(improved)

    def state(self):
        """Return the states of all trials."""
        states = [cohort.arrays() for cohort in self.cohorts]
        return {k: np.concatenate([s[k] for s in states], 1)[:, : self.count] for k in states[0]}


class _Cohort:
    """Trials that are one program: those of a population with the numbers `trials`."""

    def __init__(self, kind, hyperparameters, state, trials):
        self.trials = trials
        names = "learning_rate", "decay", "one_minus_momentum", "activation"
        column = {key: np.array([hyperparameters[n][key] for n in trials]) for key in names}
        self.rates, self.decays = column["learning_rate"], column["decay"]
        self.settings = {
            "relu_mask": _tensor(column["activation"] == "relu"),
            "momentum": _tensor(1 - column["one_minus_momentum"]),
        }
        weights, velocity, self.best = (
            {key: _tensor(value[:, trials]) for key, value in part_of(state, part).items()}
            for part in ("weights", "velocity", "best")
        )
        alive = _tensor(state["alive"][0, trials])
        self.state = {"weights": weights, "velocity": velocity, "alive": alive}
        self.programs = programs(kind, tuple(value.shape for value in self.best.values()))

    def train(self, images, epoch, order):
        settings = {**self.settings, "rate": _tensor(self.rates * self.decays**epoch)}
        self.state, sums = self.programs["train"](
            self.state, settings, images.x, images.y, *images.batches(order)
        )
        loss, *others = _means(sums, images)
        return np.where(ops.convert_to_numpy(self.state["alive"]) > 0, loss, np.nan), *others

    def evaluate(self, images):
        weights, batches = self.state["weights"], images.batches()
        sums = self.programs["measure"](weights, self.settings, images.x, images.y, *batches)
        return _means(sums, images)

    def keep(self, improved):
        improved, now = _tensor(improved[self.trials]), self.state["weights"]
        self.best = {
            key: ops.where(by_trial(improved, best) > 0, now[key], best)
            for key, best in self.best.items()
        }

    def arrays(self):
        """Return the states of the cohort's trials."""
        parts = {**self.state, "best": self.best}
        alive = ops.convert_to_numpy(parts.pop("alive"))[None]
        arrays = {
            f"{part}/{key}": ops.convert_to_numpy(value)
            for part, weights in parts.items()
            for key, value in weights.items()
        }
        return {**arrays, "alive": alive}


def _tensor(values):
    return ops.convert_to_tensor(np.asarray(values, "float32"))


def _means(sums, images):
    return tuple(ops.convert_to_numpy(total) / images.size for total in sums)
