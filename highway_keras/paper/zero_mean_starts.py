"""Section 2.2: with closed gates a deep network trains from various zero-mean starts of H.

    highway-keras reproduce starts --depth 50    # minutes on 2 CPU cores

Result (docs/depth.md, results/starts.csv): with a transform bias of -10 highway networks train from
all 18 starts, with -4 from 15; plain ones only from the normalized scale.
"""

import itertools
import math

import numpy as np

from highway_keras import checks, data
from highway_keras.io import folder_lock
from highway_keras.results import provenance, update_rows
from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.population import Images, Population
from highway_keras.tuning.weights import draw

STARTS = ("uniform", "normal", "orthogonal")
SCALES = (0.5, 1.0, 2.0)  # times the normalized deviation: sqrt(gain / fan-in), He's and Glorot's
GAINS = {"relu": 2.0, "tanh": 1.0}
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
BIASES = (-4.0, -10.0)  # of the gates; the paper searches -1 to -10
CASE = ("activation", "start", "scale", "transform_bias", "learning_rate", "loss")
SETTING = ("kind", "depth", *CASE[:-2], "images", "epochs", "seed")  # of one row


def draw_start(start, scale, shape, rng):
    """Draw kernels with mean 0 and standard deviation `scale / sqrt(fan_in)`.

    Args:
        start: `"uniform"`, `"normal"` or `"orthogonal"`; the last is orthogonal in each kernel.
        scale: Factor on the deviation that keeps the size of a signal without activation.
        shape: `(..., fan_in, fan_out)`, with `fan_out` at most `fan_in`.
        rng: A `numpy.random.Generator`.

    Returns:
        A float32 array.
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


def train_from_starts(kind, depth, x, y, epochs=5, batch_size=128, seed=0, rates=RATES):
    """Train a thin network from every start and activation, each with every learning rate.

    The starts are those of all kernels of H, at three scales around the normalized one; the gate
    kernels start as in Figure 1. Training uses SGD with a momentum of 0.9, and the rate falls by a
    tenth after each epoch.

    Args:
        kind: `"highway"`, `"plain"` or `"residual"`.
        depth: Number of hidden layers.
        x: Images, an array `(n, ...)`, scaled as the network expects them.
        y: Class numbers, an array `(n,)`.
        epochs: Epochs of each training.
        batch_size: Images per step.
        seed: Decides weights and order of images.
        rates: Learning rates to try.

    Returns:
        A list of (activation, start, scale, transform bias, learning rate, loss), one for each
        start, with the rate that ends with the lowest training loss (nats, mean over the last
        epoch). Highway networks have one for each bias of `BIASES`, too. Where every training
        diverged, the rate is empty and the loss `inf`.
    """
    hypermodel = HighwayHyperModel(depth, kind, x.shape[1:], int(np.max(y)) + 1)
    biases = BIASES if kind == "highway" else ("",)
    cases = list(itertools.product(GAINS, STARTS, SCALES, biases))
    values, weights = [], []
    for (activation, start, scale, bias), rate in itertools.product(cases, rates):
        trial = {"activation": activation, "transform_bias": bias, "learning_rate": rate}
        values.append({**trial, "one_minus_momentum": 0.1, "decay": 0.9})
        weights.append(start_weights(hypermodel, trial, start, scale, seed))
    population, images = Population(kind, values, weights), Images(x, y, batch_size)
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(len(x))
        losses, _ = population.train(images, epoch, order)
    losses = np.where(np.isfinite(losses), losses, np.inf).reshape(len(cases), len(rates))
    found = []
    for case, row in zip(cases, losses, strict=True):
        best = int(np.argmin(row))
        rate = rates[best] if np.isfinite(row[best]) else ""
        found.append((*case, rate, float(row[best])))
    return found


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

    Rows of other settings stay there.

    Args:
        kinds: Any of `"highway"`, `"plain"`, `"residual"`.
        depth: Number of hidden layers.
        epochs: Epochs of each training.
        limit: Number of training images.
        seed: Decides weights and order of images.
        out: Folder.
        data_dir: Where TFDS keeps its data.

    Returns:
        The rows, dictionaries.
    """
    checks.positive_integer("epochs", epochs)
    out = checks.path("out", out)
    images = data.load("mnist", data_dir=data_dir, validation=0.0, limit=limit)
    x = data.preprocessor(("scale",), images.x_train).predict(images.x_train, verbose=0)
    command = provenance.command_line(
        *("highway-keras", "reproduce", "starts"),
        kind=kinds,
        depth=depth,
        epochs=epochs,
        limit=len(x),
        seed=seed,
    )
    made, rows = provenance.of_command(command), []
    with folder_lock(out):
        for kind in kinds:
            for case in train_from_starts(kind, depth, x, images.y_train, epochs, seed=seed):
                row = {"kind": kind, "depth": depth, **dict(zip(CASE, case, strict=True))}
                row |= {"loss": f"{row['loss']:.4g}", "images": len(x), "epochs": epochs}
                rows.append(row | {"n": 1, "seed": seed} | made)
            update_rows(out / "starts.csv", rows, SETTING)
    return rows
