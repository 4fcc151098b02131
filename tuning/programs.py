"""The compiled programs of a population: train an epoch, measure one.

A tensor of weights has the trial axis K second, after depth (or after the inputs of the first
layer, whose product for all trials is then one matrix product).
"""

import functools

from keras import ops

from highway_keras.layers.backends import shim
from highway_keras.layers.depth_loop import apply_blocks

METRICS = {"loss": "min", "accuracy": "max"}  # of a trial, in the order of `_batch_sums`


@functools.cache
def programs(kind, shapes):
    """Return the programs of populations of one kind and shape.

    They are made once, because new functions would compile again. Each shape has its own:
    TensorFlow warns about a function that it has to trace for one shape after another.
    """
    return {
        "train": shim.compiled(functools.partial(_train, kind)),
        "measure": shim.compiled(functools.partial(_measure, kind)),
    }


def _train(kind, state, settings, x, y, indices, counted):
    """Return the state after an epoch, and the sums of `_batch_sums` over it."""

    def step(carry, index, counted):
        state, sums = carry
        batch = ops.take(x, index, axis=0), ops.take(y, index, axis=0), counted

        def total_loss(weights):  # of all trials: its gradients are those of each trial's loss
            batch_sums = _batch_sums(kind, weights, settings, *batch)
            return ops.sum(batch_sums[0]) / ops.sum(counted), batch_sums

        batch_sums, gradients = shim.gradients(total_loss, state["weights"])
        state = _descend(state, gradients, batch_sums[0], settings)
        return state, _added(sums, batch_sums)

    zeros = (ops.zeros_like(state["alive"]),) * len(METRICS)
    return _fold(step, (state, zeros), indices, counted)


def _measure(kind, weights, settings, x, y, indices, counted):
    """Return the sums of `_batch_sums` over all images."""

    def step(sums, index, counted):
        batch = ops.take(x, index, axis=0), ops.take(y, index, axis=0), counted
        return _added(sums, _batch_sums(kind, weights, settings, *batch))

    zeros = (ops.zeros_like(settings["relu_mask"]),) * len(METRICS)
    return _fold(step, zeros, indices, counted)


def _fold(step, state, *columns):
    """Apply `state = step(state, *row)` for every row of the tensors `columns`."""

    def body(i, state):
        return step(state, *[ops.take(column, i, axis=0) for column in columns])

    return ops.fori_loop(0, columns[0].shape[0], body, state)


def _batch_sums(kind, weights, settings, x, y, counted):
    """Return cross-entropy and number of hits of every trial, summed over a batch."""
    scores = _logits(kind, weights, settings, x)
    labels = ops.one_hot(y, scores.shape[-1], dtype=scores.dtype)
    losses = -ops.sum(labels * ops.log_softmax(scores), axis=-1)
    hits = ops.cast(ops.argmax(scores, axis=-1), "int32") == y
    return (
        ops.sum(losses * counted, axis=-1),
        ops.sum(ops.cast(hits, "float32") * counted, axis=-1),
    )


def _logits(kind, weights, settings, x):
    """Return the class scores `(K, batch, classes)` of one batch `(batch, inputs)`."""
    relu_mask = settings["relu_mask"][:, None, None]
    kernel = weights["first_kernel"]
    z = ops.matmul(x, ops.reshape(kernel, (kernel.shape[0], -1)))
    z = ops.reshape(z, (-1, *kernel.shape[1:])) + weights["first_bias"]
    z = ops.transpose(z, (1, 0, 2))
    h = ops.where(relu_mask > 0, ops.relu(z), ops.tanh(z))
    h = apply_blocks(h, weights["kernel"], weights["bias"], kind=kind, relu_mask=relu_mask)
    return ops.matmul(h, weights["top_kernel"][0]) + weights["top_bias"][0][:, None]


def _descend(state, gradients, losses, settings):
    """Take one step of SGD with momentum: v = momentum * v - rate * gradient; w = w + v."""
    alive = state["alive"] * ops.cast(ops.isfinite(losses), "float32")
    weights, velocity = {}, {}
    for key, weight in state["weights"].items():
        momentum, rate, lives = (
            by_trial(v, weight) for v in (settings["momentum"], settings["rate"], alive)
        )
        velocity[key] = momentum * state["velocity"][key] - rate * gradients[key]
        # The velocity of a stopped trial may be infinite or NaN, so select instead of multiplying.
        weights[key] = weight + ops.where(lives > 0, velocity[key], 0)
    return {"weights": weights, "velocity": velocity, "alive": alive}


def _added(sums, batch_sums):
    return tuple(a + b for a, b in zip(sums, batch_sums, strict=True))


def by_trial(values, weight):
    """Return values `(K,)` in a shape that acts along the trial axis of a weight."""
    return ops.reshape(values, (1, -1) + (1,) * (len(weight.shape) - 2))
