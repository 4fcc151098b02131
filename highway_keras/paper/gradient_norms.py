"""What depth does to gradients before the first step: their norms by layer.

    highway-keras reproduce gradients    # minutes on 2 CPU cores

Result (docs/depth.md, results/gradient-norms.csv): at half of the normalized start a plain
network's gradient vanishes with depth, while a highway network's hardly changes.
"""

import itertools
import math

import numpy as np

from highway_keras import checks, data
from highway_keras.analysis.pictures import write_picture
from highway_keras.io import folder_lock, write_rows
from highway_keras.models.thin import UNITS
from highway_keras.results import provenance
from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.population import Images, Population
from highway_keras.tuning.searches import DEPTHS
from highway_keras.tuning.weights import draw

KINDS = tuple(UNITS)
SCALES = (0.5, 1.0, 2.0)
ACTIVATIONS = ("tanh", "relu")


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
    trials, weights = [], []
    for activation, seed in itertools.product(ACTIVATIONS, range(seeds)):
        trials.append({**values, "activation": activation})
        weights.append(draw(hypermodel, trials[-1], [seed]))
        weights[-1]["first_kernel"] *= scale
        weights[-1]["kernel"][..., : hypermodel.units] *= scale
    population = Population(kind, trials, weights)
    population.train(Images(x, y, len(x)), 0, np.arange(len(x)))
    kernels = [population.state(trial)["velocity/kernel"] for trial in range(len(trials))]
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
    command = provenance.command_line(
        *("highway-keras", "reproduce", "gradients"),
        kind=kinds,
        depth=depths,
        scale=scales,
        seeds=seeds,
        limit=len(x),
    )
    made, rows = provenance.of_command(command), []
    with folder_lock(out):
        for kind, depth, scale in itertools.product(kinds, depths, scales):
            found = gradient_norms(kind, depth, x, images.y_train, scale, seeds)
            for activation, norms in found.items():
                with np.errstate(divide="ignore", invalid="ignore"):  # 0, inf and NaN stay so
                    means = [f"{norm:.2e}" for norm in np.exp(np.log(norms).mean(axis=0))]
                row = {"kind": kind, "depth": depth, "scale": scale, "activation": activation}
                row["transform_bias"] = f"{-math.log(depth):.3f}" if kind == "highway" else ""
                row |= {"images": len(x), "n": seeds, "seeds": f"0-{seeds - 1}"}
                row |= {"first": means[0], "last": means[-1], "by_layer": " ".join(means)}
                rows.append(row | made)
        write_rows(out / "gradient-norms.csv", rows)
        write_picture(out / "gradient-norms.png", lambda plots: plots.plot_gradient_norms(rows))
    return rows
