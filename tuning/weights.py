"""Weights of one trial: drawn from its number, and assigned to its Keras model.

A trial's weights are a dictionary of arrays. Each has an axis for layers or inputs first, or one of
length 1, so that the trial axis can be the second of every array of a population.

```
first_kernel  (inputs, d)        first_bias  (1, d)
kernel        (L, d, m * d)      bias        (L, m * d)      m = 2, halves [H | T]; m = 1, [H]
top_kernel    (1, d, classes)    top_bias    (1, classes)
```

The state of a trial has three of each: `weights/kernel`, `velocity/kernel`, and `best/kernel` of
its best epoch. `alive`, of shape (1,), is 0 once the trial has diverged, and `curve/loss` is its
loss by epoch.
"""

import math

import numpy as np

from highway_keras.layers import HighwayStack


def draw(hypermodel, values, seed):
    """Draw the initial weights of `thin_mlp`: he_uniform for relu, else glorot_uniform.

    `seed` is a sequence of integers: the seed of the search and the number of the trial.
    """
    rng = np.random.default_rng(seed)
    units, blocks, has_gates = hypermodel.units, hypermodel.depth - 1, hypermodel.has_gates

    def uniform(*shape, he):
        fan_in, fan_out = shape[-2:]
        limit = math.sqrt(6 / fan_in if he else 6 / (fan_in + fan_out))
        return rng.uniform(-limit, limit, shape).astype("float32")

    he = values["activation"] == "relu"
    parts = [uniform(blocks, units, units, he=he) for _ in range(1 + has_gates)]
    bias = np.zeros((blocks, len(parts), units), "float32")
    if has_gates:
        bias[:, 1] = values["transform_bias"]
    return {
        "first_kernel": uniform(hypermodel.inputs, units, he=he),
        "first_bias": np.zeros((1, units), "float32"),
        "kernel": np.concatenate(parts, axis=-1),
        "bias": bias.reshape(blocks, -1),
        "top_kernel": uniform(1, units, hypermodel.classes, he=False),
        "top_bias": np.zeros((1, hypermodel.classes), "float32"),
    }


def initial_state(weights):
    """Return the state of a trial that starts from these weights."""
    state = {"alive": np.ones(1, "float32")}
    for key, weight in weights.items():
        state[f"weights/{key}"] = state[f"best/{key}"] = weight
        state[f"velocity/{key}"] = np.zeros_like(weight)
    return state


def stacked(states):
    """Return the states of trials as one, with the trial axis second in every array."""
    return {key: np.stack([state[key] for state in states], axis=1) for key in states[0]}


def part_of(state, part):
    """Return the `"weights"`, `"velocity"`, `"best"` weights or `"curve"` of a state."""
    return {k.removeprefix(f"{part}/"): v for k, v in state.items() if k.startswith(f"{part}/")}


def assign(model, weights):
    """Assign a trial's weights to a Keras model that its hypermodel built."""
    kernel, bias = weights["kernel"], weights["bias"]
    count = kernel.shape[-1] // kernel.shape[-2]  # H alone, or H and T
    pairs = zip(np.split(kernel, count, axis=-1), np.split(bias, count, axis=-1), strict=True)
    blocks = [array for pair in pairs for array in pair]  # in the order of a stack's weights
    if not any(isinstance(layer, HighwayStack) for layer in model.layers):
        blocks = [array[index] for index in range(len(kernel)) for array in blocks]
    first = weights["first_kernel"], weights["first_bias"][0]
    model.set_weights([*first, *blocks, weights["top_kernel"][0], weights["top_bias"][0]])
