"""Gradients of thin networks before training, by layer, at any depth.

    highway-keras reproduce gradients    # minutes on 2 CPU cores

docs/depth.md has the results.
"""

import itertools
import math
import pathlib

import numpy as np

from highway_keras import data
from highway_keras.models.thin import DEPTHS, UNITS
from highway_keras.results import update_rows
from highway_keras.results.provenance import command_line
from highway_keras.training.machine import here
from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.population import Images, Population, check_backend
from highway_keras.tuning.weights import draw, initial_state, stacked
from highway_keras.util import checks
from highway_keras.util.files import write_picture

ACTIVATIONS = ("tanh", "relu")
SCALES = (0.5, 1.0, 2.0)  # times the normalized start
CASE = ("kind", "depth", "scale", "activation", "images", "n")  # of a row


def scaled_mnist(limit, data_dir):
    """Return training images of MNIST, scaled as for Figure 1, and their classes."""
    images = data.load("mnist", data_dir=data_dir, validation=0.0, limit=limit)
    x = data.preprocessor(("scale",), images.x_train).predict(images.x_train, verbose=0)
    return x, images.y_train


def gradient_norms(kind, depth, x, y, scale, seeds):
    """Return the norms of the loss gradient at the start, for the kernel of H in each layer.

    The networks are those of Figure 1 before training; highway networks have a transform bias of
    `-log(depth)`. The first hidden layer is left out because its kernel has a different size.
    `scale` is a factor on the normalized start of all kernels of H, not on those of the gates.

    The result is a dictionary from `"tanh"` and `"relu"` to arrays `(seeds, depth - 1)`, the layer
    nearest to the images first.
    """
    hypermodel = HighwayHyperModel(depth, kind, x.shape[1:], int(np.max(y)) + 1)
    # Without momentum and with a rate of 1, the velocity of the first step is minus the gradient.
    values = {"learning_rate": 1.0, "one_minus_momentum": 1.0, "decay": 1.0}
    values |= {"transform_bias": -math.log(depth)}
    trials, states = [], []
    for activation, seed in itertools.product(ACTIVATIONS, range(seeds)):
        trials.append({**values, "activation": activation})
        weights = draw(hypermodel, trials[-1], [seed])
        weights["first_kernel"] *= scale
        weights["kernel"][..., : hypermodel.units] *= scale
        states.append(initial_state(weights))
    population = Population(kind, trials, stacked(states))
    population.train(Images(x, y, len(x)), 0, np.arange(len(x)))
    gradients = population.state()["velocity/kernel"].astype("float64")[..., : hypermodel.units]
    norms = np.linalg.norm(gradients, axis=(-2, -1)).T
    return dict(zip(ACTIVATIONS, np.split(norms, len(ACTIVATIONS)), strict=True))


def reproduce_gradients(
    kinds=tuple(UNITS), depths=DEPTHS, seeds=5, limit=500, out="runs/gradients", data_dir=None
):
    """Measure the norms of gradients on training images of MNIST.

    `OUT/gradient-norms.csv` gets a row for each kind, depth, scale and activation, which holds
    geometric means over the seeds. Rows of other settings stay there; `OUT/gradient-norms.png`
    shows those of this call, which are returned.
    """
    from highway_keras import plots

    check_backend()
    checks.positive_integer("seeds", seeds)
    x, y = scaled_mnist(limit, data_dir)
    command = ("highway-keras", "reproduce", "gradients")
    command = command_line(*command, kind=kinds, depth=depths, seeds=seeds, limit=len(x))
    out, rows = pathlib.Path(out).expanduser(), []
    out.mkdir(parents=True, exist_ok=True)
    for kind, depth, scale in itertools.product(kinds, depths, SCALES):
        for activation, norms in gradient_norms(kind, depth, x, y, scale, seeds).items():
            with np.errstate(divide="ignore", invalid="ignore"):  # 0, inf and NaN stay so
                means = [f"{norm:.2e}" for norm in np.exp(np.log(norms).mean(axis=0))]
            row = {
                "kind": kind,
                "depth": depth,
                "scale": scale,
                "activation": activation,
                "transform_bias": f"{-math.log(depth):.3f}" if kind == "highway" else "",
                "images": len(x),
                "n": seeds,
                "seeds": f"0-{seeds - 1}",
                "first": means[0],
                "last": means[-1],
                "by_layer": " ".join(means),
                **here(),
                "command": command,
            }
            rows.append(row)
        update_rows(out / "gradient-norms.csv", rows, CASE)
    write_picture(out / "gradient-norms.png", lambda: plots.plot_gradient_norms(rows))
    return rows
