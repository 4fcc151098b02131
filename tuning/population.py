"""Many networks of one shape, trained as one: the trial axis K is part of every tensor.

A tensor of weights has the trial axis second, after depth (or after the inputs of the first layer,
whose product for all trials is then one matrix product). Every trial sees the same batches; nothing
that it computes depends on another.
"""

import functools

import numpy as np
from keras import ops

from highway_keras.backends.current import shim
from highway_keras.depth_loop import scan


class Images:
    """Inputs and labels on the device, and the batches of an epoch.

    Args:
        x: Inputs, `(n, ...)`; they are flattened.
        y: Class numbers, `(n,)`.
        batch_size: Images a step; the last step of an epoch takes what is left.
    """

    def __init__(self, x, y, batch_size):
        self.size, self.batch_size = len(x), min(batch_size, len(x))
        self.x = ops.convert_to_tensor(np.reshape(x, (len(x), -1)).astype("float32"))
        self.y = ops.convert_to_tensor(np.reshape(y, -1).astype("int32"))

    def batches(self, order=None):
        """Indices of each step's images, and 1 for each or 0 for what only fills the last step."""
        order = np.arange(self.size) if order is None else order
        filling = -self.size % self.batch_size
        counted = np.ones(self.size, "float32")
        pieces = np.pad(order.astype("int32"), (0, filling)), np.pad(counted, (0, filling))
        return tuple(ops.convert_to_tensor(p.reshape(-1, self.batch_size)) for p in pieces)


class Population:
    """K networks of one shape with their own hyperparameters and starts.

    Args:
        kind: `"highway"`, `"plain"` or `"residual"`.
        hyperparameters: A dictionary for each trial, of `HighwayHyperModel`'s hyperparameters.
        weights: A dictionary of arrays for each trial, as `weights.draw` makes them.
    """

    def __init__(self, kind, hyperparameters, weights):
        self.programs = _programs(kind)
        column = {key: np.array([h[key] for h in hyperparameters]) for key in hyperparameters[0]}
        self.rates, self.decays = column["learning_rate"], column["decay"]
        self.settings = {
            "relu": _tensor(column["activation"] == "relu"),
            "momentum": _tensor(1 - column["one_minus_momentum"]),
        }
        stacked = {key: np.stack([w[key] for w in weights], axis=1) for key in weights[0]}
        self.best = {key: ops.convert_to_tensor(value) for key, value in stacked.items()}
        self.state = {
            "weights": self.best,
            "velocity": {key: ops.zeros_like(value) for key, value in self.best.items()},
            "alive": ops.ones((len(weights),), "float32"),
        }

    def train(self, images, epoch, order):
        """Trains for one epoch, the images in the given order.

        A trial stops where the loss of a batch is not finite: its weights stay as they are.

        Returns:
            Mean loss (nats) and accuracy over the epoch's batches, each `(K,)`; the loss is not
            finite for a trial that has stopped.
        """
        rates = _tensor(self.rates * self.decays**epoch)
        settings = {**self.settings, "rate": rates}
        batches = images.batches(order)
        self.state, sums = self.programs["train"](
            self.state, settings, images.x, images.y, *batches
        )
        loss, accuracy = _means(sums, images)
        return np.where(ops.convert_to_numpy(self.state["alive"]) > 0, loss, np.nan), accuracy

    def evaluate(self, images):
        """Mean loss (nats) and accuracy of every trial, each `(K,)`."""
        weights, batches = self.state["weights"], images.batches()
        sums = self.programs["measure"](weights, self.settings, images.x, images.y, *batches)
        return _means(sums, images)

    def keep(self, improved):
        """Remembers the weights of the trials in the mask `improved` as their best so far."""
        self.best = self.programs["keep"](self.best, self.state["weights"], _tensor(improved))

    def best_weights(self, trial):
        """The weights of one trial as `keep` last saw them: a dictionary of arrays."""
        return {key: ops.convert_to_numpy(value[:, trial]) for key, value in self.best.items()}


def _tensor(values):
    return ops.convert_to_tensor(np.asarray(values, "float32"))


def _means(sums, images):
    return tuple(ops.convert_to_numpy(total) / images.size for total in sums)


@functools.cache
def _programs(kind):
    """The compiled programs of a kind of network, made once: new functions compile anew."""

    def logits(weights, settings, x):
        """Class scores `(K, batch, classes)` of one batch `(batch, inputs)`."""
        relu = settings["relu"][:, None, None]
        kernel = weights["first_kernel"]
        z = ops.matmul(x, ops.reshape(kernel, (kernel.shape[0], -1)))
        z = ops.reshape(z, (-1, *kernel.shape[1:])) + weights["first_bias"]
        z = ops.transpose(z, (1, 0, 2))
        h = ops.where(relu > 0, ops.relu(z), ops.tanh(z))
        h = scan(h, weights["kernel"], weights["bias"], activation=relu, kind=kind)
        top = weights["top_bias"][0][:, None]
        return ops.matmul(h, weights["top_kernel"][0]) + top

    def batch_sums(weights, settings, x, y, counted):
        """Cross-entropy and number of hits of every trial, summed over a batch."""
        scores = logits(weights, settings, x)
        labels = ops.one_hot(y, scores.shape[-1])
        losses = -ops.sum(labels * ops.log_softmax(scores), axis=-1)
        hits = ops.cast(ops.argmax(scores, axis=-1), "int32") == y
        return (
            ops.sum(losses * counted, axis=-1),
            ops.sum(ops.cast(hits, "float32") * counted, axis=-1),
        )

    def train(state, settings, x, y, indices, counted):
        def step(carry, index, counted):
            state, sums = carry
            batch = ops.take(x, index, axis=0), ops.take(y, index, axis=0), counted

            def total(weights):
                found = batch_sums(weights, settings, *batch)
                return ops.sum(found[0]) / ops.sum(counted), found

            found, slopes = shim.gradients(total, state["weights"])
            state = _descend(state, slopes, found[0], settings)
            return state, tuple(a + b for a, b in zip(sums, found, strict=True))

        zeros = ops.zeros_like(state["alive"])
        return shim.fold(step, (state, (zeros, zeros)), (indices, counted))

    def measure(weights, settings, x, y, indices, counted):
        def step(sums, index, counted):
            batch = ops.take(x, index, axis=0), ops.take(y, index, axis=0), counted
            found = batch_sums(weights, settings, *batch)
            return tuple(a + b for a, b in zip(sums, found, strict=True))

        zeros = ops.zeros_like(settings["relu"])
        return shim.fold(step, (zeros, zeros), (indices, counted))

    def keep(best, weights, improved):
        return {
            key: ops.where(_by_trial(improved, best[key]) > 0, weights[key], best[key])
            for key in best
        }

    programs = {"train": train, "measure": measure, "keep": keep}
    return {name: shim.compiled(program) for name, program in programs.items()}


def _descend(state, slopes, losses, settings):
    """One step of SGD with momentum: v = momentum * v - rate * slope; w = w + v."""
    alive = state["alive"] * ops.cast(ops.isfinite(losses), "float32")
    weights, velocity = {}, {}
    for key, weight in state["weights"].items():
        momentum, rate, lives = (
            _by_trial(v, weight) for v in (settings["momentum"], settings["rate"], alive)
        )
        velocity[key] = momentum * state["velocity"][key] - rate * slopes[key]
        # The velocity of a trial that has stopped may be infinite or NaN, so choose, not multiply.
        weights[key] = weight + ops.where(lives > 0, velocity[key], 0)
    return {"weights": weights, "velocity": velocity, "alive": alive}


def _by_trial(values, weight):
    """`(K,)` shaped to act along the trial axis of a weight."""
    return ops.reshape(values, (1, -1) + (1,) * (len(weight.shape) - 2))
