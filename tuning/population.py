"""Many networks of one shape, trained as one: the trial axis K is part of every tensor.

All trials see the same batches; nothing that a trial computes depends on another.
"""

import numpy as np
from keras import ops

from highway_keras.tuning.programs import programs


class Images:
    """Inputs and labels on the device, and the batches of an epoch.

    Args:
        x: Inputs, `(n, ...)`; they are flattened.
        y: Class numbers, `(n,)`.
        batch_size: Images per step; the last step of an epoch takes what is left.
    """

    def __init__(self, x, y, batch_size):
        self.size, self.batch_size = len(x), min(batch_size, len(x))
        self.x = ops.convert_to_tensor(np.reshape(x, (len(x), -1)).astype("float32"))
        self.y = ops.convert_to_tensor(np.reshape(y, -1).astype("int32"))

    def batches(self, order=None):
        """Return the indices of each step's images, and 1 for each or 0 for a filler.

        Args:
            order: The order of the images; default: unchanged.

        Returns:
            Two tensors `(steps, batch_size)`; fillers complete the last step.
        """
        order = np.arange(self.size) if order is None else order
        fillers = -self.size % self.batch_size
        counted = np.ones(self.size, "float32")
        columns = np.pad(order.astype("int32"), (0, fillers)), np.pad(counted, (0, fillers))
        return tuple(ops.convert_to_tensor(c.reshape(-1, self.batch_size)) for c in columns)


class Population:
    """K networks of one shape, each with its hyperparameters and initial weights.

    Args:
        kind: `"highway"`, `"plain"` or `"residual"`.
        hyperparameters: A dictionary for each trial, of `HighwayHyperModel`'s hyperparameters.
        weights: A dictionary of arrays for each trial, as `weights.draw` makes them.
    """

    def __init__(self, kind, hyperparameters, weights):
        column = {key: np.array([h[key] for h in hyperparameters]) for key in hyperparameters[0]}
        self.rates, self.decays = column["learning_rate"], column["decay"]
        self.settings = {
            "relu": _tensor(column["activation"] == "relu"),
            "momentum": _tensor(1 - column["one_minus_momentum"]),
        }
        stacked = {key: np.stack([w[key] for w in weights], axis=1) for key in weights[0]}
        self.programs = programs(kind, tuple(value.shape for value in stacked.values()))
        self.best = {key: ops.convert_to_tensor(value) for key, value in stacked.items()}
        self.state = {
            "weights": self.best,
            "velocity": {key: ops.zeros_like(value) for key, value in self.best.items()},
            "alive": ops.ones((len(weights),), "float32"),
        }

    def train(self, images, epoch, order):
        """Train for one epoch, the images in the given order.

        A trial stops if the loss of a batch is not finite: its weights stay unchanged.

        Returns:
            Mean loss (nats) and accuracy over the epoch's batches, each `(K,)`; the loss is NaN
            for a trial that has stopped.
        """
        settings = {**self.settings, "rate": _tensor(self.rates * self.decays**epoch)}
        self.state, sums = self.programs["train"](
            self.state, settings, images.x, images.y, *images.batches(order)
        )
        loss, accuracy = _means(sums, images)
        return np.where(ops.convert_to_numpy(self.state["alive"]) > 0, loss, np.nan), accuracy

    def evaluate(self, images):
        """Return the mean loss (nats) and accuracy of every trial, each `(K,)`."""
        weights, batches = self.state["weights"], images.batches()
        sums = self.programs["measure"](weights, self.settings, images.x, images.y, *batches)
        return _means(sums, images)

    def keep(self, improved):
        """Remember the weights of the trials in the mask `improved` as their best so far."""
        self.best = self.programs["keep"](self.best, self.state["weights"], _tensor(improved))

    def best_weights(self, trial):
        """Return the weights of one trial as `keep` last saw them, a dictionary of arrays."""
        return {key: ops.convert_to_numpy(value[:, trial]) for key, value in self.best.items()}


def _tensor(values):
    return ops.convert_to_tensor(np.asarray(values, "float32"))


def _means(sums, images):
    return tuple(ops.convert_to_numpy(total) / images.size for total in sums)
