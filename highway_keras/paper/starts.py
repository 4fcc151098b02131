"""How depth and initial weights affect a thin network: gradients before training, loss after it.

    highway-keras reproduce gradients            # minutes on 2 CPU cores
    highway-keras reproduce starts --depth 50    # minutes on 2 CPU cores

The starts are the zero-mean ones of section 2.2. docs/depth.md has the results.
"""

import itertools
import math
import pathlib

import numpy as np

from highway_keras import data
from highway_keras.models.thin import UNITS
from highway_keras.results import update_rows
from highway_keras.results.provenance import command_line
from highway_keras.training.machine import here
from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.population import Images, Population, check_backend
from highway_keras.tuning.searches import DEPTHS
from highway_keras.tuning.weights import draw, initial_state, stacked
from highway_keras.util import checks
from highway_keras.util.files import folder_lock, write_picture

ACTIVATIONS = ("tanh", "relu")
# Times sqrt(gain / fan-in): He's deviation and, for square kernels, Glorot's. The first kernel of a
# tanh network, which is not square, starts at three quarters of Glorot's.
SCALES = (0.5, 1.0, 2.0)
STARTS = ("uniform", "normal", "orthogonal")
GAINS = {"relu": 2.0, "tanh": 1.0}
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
BIASES = (-4.0, -10.0)  # of the gates; the paper searches -1 to -10
CASE = ("activation", "start", "scale", "transform_bias", "learning_rate", "loss")
SETTING = ("kind", "depth", *CASE[:-2], "images", "epochs", "seed")  # of one row of starts


def _scaled_mnist(limit, data_dir):
    images = data.load("mnist", data_dir=data_dir, validation=0.0, limit=limit)
    x = data.preprocessor(("scale",), images.x_train).predict(images.x_train, verbose=0)
    return x, images.y_train


def gradient_norms(kind, depth, x, y, scale, seeds):
    """Measure the norm of the loss gradient at the start, for the kernel of H in each layer.

    The networks are those of Figure 1 before training; highway networks have a transform bias of
    `-log(depth)`. The first hidden layer is left out because its kernel has a different size.
    `scale` is a factor on the normalized start of all kernels of H, not on those of the gates.

    Return a dictionary from `"tanh"` and `"relu"` to arrays `(seeds, depth - 1)`, the layer nearest
    to the images first.
    """
    hypermodel = HighwayHyperModel(depth, kind, x.shape[1:], int(np.max(y)) + 1)
    # Without momentum and with a rate of 1, the velocity of the first step is minus the gradient.
    values = {"learning_rate": 1.0, "one_minus_momentum": 1.0, "decay": 1.0}
    values |= {"transform_bias": -math.log(depth)}
    trials, weights = [], []
    for activation, seed in itertools.product(ACTIVATIONS, range(seeds)):
        trials.append({**values, "activation": activation})
        weights.append(draw(hypermodel, trials[-1], [seed]))
        weights[-1]["first_kernel"] *= scale
        weights[-1]["kernel"][..., : hypermodel.units] *= scale
    population = Population(kind, trials, stacked([*map(initial_state, weights)]))
    population.train(Images(x, y, len(x)), 0, np.arange(len(x)))
    gradients = population.state()["velocity/kernel"].astype("float64")[..., : hypermodel.units]
    norms = np.linalg.norm(gradients, axis=(-2, -1)).T
    return dict(zip(ACTIVATIONS, np.split(norms, len(ACTIVATIONS)), strict=True))


def reproduce_gradients(
    kinds=tuple(UNITS),
    depths=DEPTHS,
    seeds=5,
    limit=500,
    out="runs/gradients",
    data_dir=None,
):
    """Measure the norms of gradients on training images of MNIST.

    Args:
        kinds: Any of `"highway"`, `"plain"`, `"residual"`.
        depths: Numbers of hidden layers.
        seeds: Number of networks of each kind, depth, scale and activation.
        limit: Number of training images.
        out: Folder for `gradient-norms.csv`, with a row for each kind, depth, scale and activation
            that holds geometric means over the seeds, and for `gradient-norms.png`. Rows of other
            settings stay in the table; the picture shows those of this call.
        data_dir: Where TFDS keeps its data.

    Returns:
        The rows, dictionaries.
    """
    from highway_keras import plots

    check_backend()
    checks.positive_integer("seeds", seeds)
    out, case = (
        pathlib.Path(out).expanduser(),
        ("kind", "depth", "scale", "activation", "images", "n"),
    )
    x, y = _scaled_mnist(limit, data_dir)
    command = command_line(
        *("highway-keras", "reproduce", "gradients"),
        kind=kinds,
        depth=depths,
        seeds=seeds,
        limit=len(x),
    )
    provenance, rows = {**here(), "command": command}, []
    with folder_lock(out):
        for kind, depth, scale in itertools.product(kinds, depths, SCALES):
            by_activation = gradient_norms(kind, depth, x, y, scale, seeds)
            for activation, norms in by_activation.items():
                with np.errstate(divide="ignore", invalid="ignore"):  # 0, inf and NaN stay so
                    means = [f"{norm:.2e}" for norm in np.exp(np.log(norms).mean(axis=0))]
                row = {"kind": kind, "depth": depth, "scale": scale, "activation": activation}
                row["transform_bias"] = f"{-math.log(depth):.3f}" if kind == "highway" else ""
                row |= {"images": len(x), "n": seeds, "seeds": f"0-{seeds - 1}"}
                row |= {"first": means[0], "last": means[-1], "by_layer": " ".join(means)}
                rows.append(row | provenance)
                update_rows(out / "gradient-norms.csv", rows[-1:], case)
        write_picture(out / "gradient-norms.png", lambda: plots.plot_gradient_norms(rows))
    return rows


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


def train_from_starts(kind, depth, x, y, epochs=5, batch_size=128, seed=0, rates=RATES):
    """Train a thin network from every start and activation, each with every learning rate.

    A start initializes all kernels of H, at three scales around the normalized one; the kernels of
    the gates start as in Figure 1. Training uses SGD with a momentum of 0.9, and the rate falls by
    a tenth after each epoch.

    Return a list of (activation, start, scale, transform bias, learning rate, loss), one for each
    combination of the first four, with the rate that ends with the lowest training loss (nats, mean
    over the last epoch). The bias is one of `BIASES` for highway networks, otherwise empty. If
    training diverged at every rate, the rate is empty and the loss `inf`.
    """
    hypermodel = HighwayHyperModel(depth, kind, x.shape[1:], int(np.max(y)) + 1)
    biases = BIASES if kind == "highway" else ("",)
    cases = list(itertools.product(GAINS, STARTS, SCALES, biases))
    values, states = [], []
    for (activation, start, scale, bias), rate in itertools.product(cases, rates):
        trial = {"activation": activation, "transform_bias": bias, "learning_rate": rate}
        values.append({**trial, "one_minus_momentum": 0.1, "decay": 0.9})
        states.append(initial_state(start_weights(hypermodel, trial, start, scale, seed)))
    population, images = Population(kind, values, stacked(states)), Images(x, y, batch_size)
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(len(x))
        losses, *_ = population.train(images, epoch, order)
    losses = np.where(np.isfinite(losses), losses, np.inf).reshape(len(cases), len(rates))
    best_rates = []
    for case, row in zip(cases, losses, strict=True):
        best = int(np.argmin(row))
        rate = rates[best] if np.isfinite(row[best]) else ""
        best_rates.append((*case, rate, float(row[best])))
    return best_rates


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
    check_backend()
    checks.positive_integer("epochs", epochs)
    checks.seed(seed)
    out = pathlib.Path(out).expanduser()
    x, y = _scaled_mnist(limit, data_dir)
    command = command_line(
        *("highway-keras", "reproduce", "starts"),
        kind=kinds,
        depth=depth,
        epochs=epochs,
        limit=len(x),
        seed=seed,
    )
    provenance, rows = {**here(), "command": command}, []
    with folder_lock(out):
        for kind in kinds:
            for case in train_from_starts(kind, depth, x, y, epochs, seed=seed):
                row = {"kind": kind, "depth": depth, **dict(zip(CASE, case, strict=True))}
                row |= {"loss": f"{row['loss']:.4g}", "images": len(x), "epochs": epochs}
                rows.append(row | {"n": 1, "seed": seed} | provenance)
            update_rows(out / "starts.csv", rows, SETTING)
    return rows
