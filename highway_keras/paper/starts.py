"""Thin networks trained from zero-mean starts (section 2.2), each with its best learning rate.

    highway-keras reproduce starts --depth 50    # minutes on 2 CPU cores

docs/depth.md has the results.
"""

import itertools
import math
import pathlib

import numpy as np

from highway_keras.paper.gradients import scaled_mnist
from highway_keras.results import update_rows
from highway_keras.results.provenance import command_line
from highway_keras.training.machine import here
from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.population import Images, Population, check_backend
from highway_keras.tuning.weights import draw, initial_state, stacked
from highway_keras.util import checks

STARTS = ("uniform", "normal", "orthogonal")
# Times sqrt(gain / fan-in): He's deviation and, for square kernels, Glorot's. The first kernel of a
# tanh network, which is not square, starts at three quarters of Glorot's.
SCALES = (0.5, 1.0, 2.0)
GAINS = {"relu": 2.0, "tanh": 1.0}
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
BIASES = (-4.0, -10.0)  # of the gates; the paper searches -1 to -10
BATCH_SIZE = 128
START = ("activation", "start", "scale", "transform_bias")
CASE = ("kind", "depth", *START, "images", "epochs", "seed")  # of a row


def draw_start(start, scale, shape, rng):
    """Draw kernels with mean 0 and standard deviation `scale / sqrt(fan_in)`.

    `shape` is `(..., fan_in, fan_out)`. With `"orthogonal"`, the columns of each kernel are
    orthogonal, so `fan_out` must be at most `fan_in`.
    """
    deviation = scale / math.sqrt(shape[-2])
    if start == "uniform":
        kernels = rng.uniform(-1, 1, shape) * deviation * math.sqrt(3)
    elif start == "normal":
        kernels = rng.standard_normal(shape) * deviation
    else:
        q, r = np.linalg.qr(rng.standard_normal(shape))
        signs = np.sign(np.diagonal(r, axis1=-2, axis2=-1))  # else not uniform over rotations
        kernels = scale * q * signs[..., None, :]
    return kernels.astype("float32")


def start_weights(hypermodel, values, start, scale, seed):
    """Return the weights of a trial, as `tuning.weights.draw` does, with H from another start."""
    weights = draw(hypermodel, values, [seed])
    rng = np.random.default_rng([seed, 1])
    units, blocks = hypermodel.units, hypermodel.depth - 1
    scale *= math.sqrt(GAINS[values["activation"]])
    weights["first_kernel"] = draw_start(start, scale, (hypermodel.inputs, units), rng)
    weights["kernel"][..., :units] = draw_start(start, scale, (blocks, units, units), rng)
    return weights


def train_from_starts(kind, depth, x, y, epochs=5, seed=0, rates=RATES):
    """Train a thin network from every start and activation, each with every learning rate.

    A start initializes all kernels of H, at three scales around the normalized one; the kernels of
    the gates start as in Figure 1. Training uses SGD with a momentum of 0.9, and the rate falls by
    a tenth after each epoch.

    Return a row for each activation, start, scale and transform bias (one of `BIASES` for highway
    networks, otherwise empty), with the rate that ends with the lowest training loss (nats, mean
    over the last epoch). If training diverged at every rate, the rate is empty and the loss `inf`.
    """
    hypermodel = HighwayHyperModel(depth, kind, x.shape[1:], int(np.max(y)) + 1)
    biases = BIASES if kind == "highway" else ("",)
    cases = list(itertools.product(GAINS, STARTS, SCALES, biases))
    values, states = [], []
    for (activation, start, scale, bias), rate in itertools.product(cases, rates):
        trial = {"activation": activation, "transform_bias": bias, "learning_rate": rate}
        values.append({**trial, "one_minus_momentum": 0.1, "decay": 0.9})
        states.append(initial_state(start_weights(hypermodel, trial, start, scale, seed)))
    population, images = Population(kind, values, stacked(states)), Images(x, y, BATCH_SIZE)
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(len(x))
        losses, *_ = population.train(images, epoch, order)
    losses = np.where(np.isfinite(losses), losses, np.inf).reshape(len(cases), len(rates))
    rows = []
    for case, row in zip(cases, losses, strict=True):
        best = int(np.argmin(row))
        rate = rates[best] if np.isfinite(row[best]) else ""
        result = {"learning_rate": rate, "loss": float(row[best])}
        rows.append(dict(zip(START, case, strict=True)) | result)
    return rows


def reproduce_starts(
    kinds=("highway", "plain"),
    depth=50,
    epochs=5,
    limit=5000,
    seed=0,
    out="runs/starts",
    data_dir=None,
):
    """Train from all starts on images of MNIST, and put a row for each into `OUT/starts.csv`.

    Rows of other settings stay there. Return the new ones.
    """
    check_backend()
    checks.positive_integer("epochs", epochs)
    checks.seed(seed)
    x, y = scaled_mnist(limit, data_dir)
    command = ("highway-keras", "reproduce", "starts")
    sizes = {"epochs": epochs, "limit": len(x), "seed": seed}
    command = command_line(*command, kind=kinds, depth=depth, **sizes)
    out, rows = pathlib.Path(out).expanduser(), []
    out.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        for row in train_from_starts(kind, depth, x, y, epochs, seed):
            row = {"kind": kind, "depth": depth, **row, "loss": f"{row['loss']:.4g}"}
            row |= {"images": len(x), "epochs": epochs, "n": 1, "seed": seed}
            rows.append({**row, **here(), "command": command})
        update_rows(out / "starts.csv", rows, CASE)
    return rows
