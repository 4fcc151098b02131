"""What depth does to gradients before the first step: their norms by layer."""

import itertools
import math

import numpy as np

from highway_keras import checks, data
from highway_keras.io import folder_lock, optional_picture, write_figure, write_rows
from highway_keras.results import provenance
from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.population import Images, Population
from highway_keras.tuning.weights import draw

KINDS = ("highway", "plain", "residual")
DEPTHS = (10, 20, 50, 100)
SCALES = (0.5, 1.0, 2.0)
ACTIVATIONS = ("tanh", "relu")
COLUMNS = ("kind", "depth", "scale", "activation", "transform_bias", "images", "n", "seeds")
COLUMNS += ("first", "last", "by_layer", *provenance.COLUMNS)


def gradient_norms(kind, depth, x, y, scale=1.0, seeds=5):
    """Measure the norm of the loss gradient at the start, for the kernel of H in each layer.

    The networks are those of Figure 1 before training; highway networks have a transform bias of
    `-log(depth)`. The first hidden layer is left out because its kernel has a different size.

    Args:
        kind: `"highway"`, `"plain"` or `"residual"`.
        depth: Number of hidden layers, at least 2.
        x: Images, an array `(n, ...)`, scaled as the network expects them.
        y: Class numbers, an array `(n,)`.
        scale: Factor on the normalized start of all kernels of H, not on those of the gates.
        seeds: Number of networks of each activation, with the seeds starting at 0.

    Returns:
        A dictionary from `"tanh"` and `"relu"` to arrays `(seeds, depth - 1)`, the layer nearest
        to the images first.
    """
    hypermodel = HighwayHyperModel(depth, kind, x.shape[1:], int(np.max(y)) + 1)
    # Without momentum and with a rate of 1, the velocity of the first step is minus the gradient.
    values = {"learning_rate": 1.0, "one_minus_momentum": 1.0, "decay": 1.0}
    values |= {"transform_bias": -math.log(depth)}
    trials = [({**values, "activation": a}, seed) for a in ACTIVATIONS for seed in range(seeds)]
    weights = [draw(hypermodel, trial, [seed]) for trial, seed in trials]
    for start in weights:
        start["first_kernel"] *= scale
        start["kernel"][..., : hypermodel.units] *= scale
    population = Population(kind, [trial for trial, _ in trials], weights)
    population.train(Images(x, y, len(x)), 0, np.arange(len(x)))
    kernels = [population.state(trial)["velocity"]["kernel"] for trial in range(len(trials))]
    gradients = np.asarray(kernels, "float64")[..., : hypermodel.units]
    norms = np.linalg.norm(gradients, axis=(-2, -1))
    return dict(zip(ACTIVATIONS, np.split(norms, len(ACTIVATIONS)), strict=True))


def reproduce_gradients(
    kinds=KINDS,
    depths=DEPTHS,
    scales=SCALES,
    seeds=5,
    limit=500,
    out="runs/gradients",
    data_dir=None,
):
    """Measure the norms of gradients on training images of MNIST.

    Args:
        kinds: Any of `"highway"`, `"plain"`, `"residual"`.
        depths: Numbers of hidden layers.
        scales: Factors on the normalized start.
        seeds: Number of networks of each kind, depth, scale and activation.
        limit: Number of training images.
        out: Folder for `gradient-norms.csv`, with a row for each kind, depth, scale and activation
            that holds geometric means over the seeds, and for `gradient-norms.png`.
        data_dir: Where TFDS keeps its data.

    Returns:
        The rows, dictionaries.
    """
    out = checks.path("out", out)
    images = data.load("mnist", data_dir=data_dir, validation=0.0, limit=limit)
    x = data.preprocessor(("scale",), images.x_train).predict(images.x_train, verbose=0)
    with folder_lock(out):
        command = f"highway-keras reproduce gradients --limit {len(x)}"
        made = provenance.of_command(command)
        rows = _measure(itertools.product(kinds, depths, scales), x, images.y_train, seeds, made)
        write_rows(out / "gradient-norms.csv", rows, COLUMNS)
        with optional_picture(out / "gradient-norms.png"):
            from highway_keras.analysis.plots import plot_gradient_norms  # needs Matplotlib

            write_figure(out / "gradient-norms.png", plot_gradient_norms(rows))
    return rows


def _measure(networks, x, y, seeds, made):
    """Return a row for each network (kind, depth, scale) and activation, which ends with `made`."""
    rows = []
    for kind, depth, scale in networks:
        bias = f"{-math.log(depth):.3f}" if kind == "highway" else ""
        for activation, found in gradient_norms(kind, depth, x, y, scale, seeds).items():
            norms = [f"{norm:.2e}" for norm in _geometric_mean(found)]
            values = (kind, depth, scale, activation, bias, len(x), seeds, f"0-{seeds - 1}")
            values += (norms[0], norms[-1], " ".join(norms), *made.values())
            rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def _geometric_mean(norms):
    with np.errstate(divide="ignore", invalid="ignore"):  # 0, inf and NaN stay what they are
        return np.exp(np.log(norms).mean(axis=0))
