"""The networks of section 4 from their rows: their measures, and a picture of the seeds."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.measurements import RESULTS
from highway_keras.plots import COLORS

# Of each data set two networks: from the paper's start, and from the start that a search chose.
# The first seed of the latter is the network that the search trained.
STARTS = {
    "mnist": (["at -2"], ["from -10 to -1", "at -5.32"]),
    "cifar100": (["at -4"], ["from -10 to -1", "at -5.116"]),
}
NAMES = {"mnist": "MNIST", "cifar100": "CIFAR-100"}


def networks(dataset):
    """Return both networks of a data set, each as a list of its layers, one table a seed.

    Layer 0 is the whole network, which has only an error and a loss.
    """
    rows = pd.read_csv(RESULTS / "analysis.csv")
    rows = rows[rows["dataset"] == dataset].set_index("layer")
    pair = (rows[rows["searched_bias"].isin(starts)] for starts in STARTS[dataset])
    return [[layers for _, layers in network.groupby("seed")] for network in pair]


def measured(dataset, measure, form=".0f"):
    """Return a measure of both networks of a data set as text: mean and deviation of the seeds."""
    of_seeds = (pd.Series([measure(seed) for seed in seeds]) for seeds in networks(dataset))
    return [f"{values.mean():{form}} ± {values.std():{form}}" for values in of_seeds]


# Measures of the layers of one network


def loss(layers):
    return layers["lesion_loss"][0]


def error(layers):
    return 100 * layers["lesion_error"][0]


def fallen(layers):
    """Return the percentage of biases that are below their start."""
    return 100 * layers["below_start"].mean()


def is_open(layers):
    """Return the percentage of gates that are above 0.5 for a sample."""
    return 100 * layers["open"].mean()


def with_depth(column):
    """Return a function that correlates the ranks of a column and of the depth."""
    return lambda layers: layers[column].corr(layers.index.to_series(), "spearman")


def change(last):
    """Return a function that gives the percentage that the first layers have of all change."""
    return lambda layers: 100 * layers["change"].loc[:last].sum() / layers["change"].sum()


def routing(layers):
    """Return the percentage that the first 15 layers have of how two classes differ from all."""
    second = "routing_7" if layers["dataset"].iloc[0] == "mnist" else "routing_1"
    difference = layers["routing_0"] + layers[second]
    return 100 * difference.loc[:15].sum() / difference.sum()


def matter(first=1, last=49):
    """Return a function that counts the layers that matter."""
    return lambda layers: layers.loc[first:last, "matters"].sum()


def idle(layers):
    """Return the percentage of layers that do not matter."""
    return 100 * (1 - layers["matters"].mean())


def raised(column, difference=0, factor=1):
    """Return a function that counts the layers whose closing raises the error or the loss."""
    return lambda layers: (layers[column] > factor * layers[column][0] + difference).sum()


def draw_seeds():
    """Draw biases, mean gates and lesions by layer: a line for each seed, a color for each start.

    The left columns of Figure 2, averaged over units, and Figure 4. Where closing a layer raises
    the error by nothing, a logarithmic axis shows half an image.
    """
    figure = Figure(figsize=(9.6, 5.4), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True)
    for (biases, gates, rises), dataset in zip(panels, STARTS, strict=True):
        for color, seeds in zip(COLORS, networks(dataset), strict=False):
            label = f"started at {seeds[0]['start'][1]:.1f}"
            for layers in seeds:
                style = {"color": color, "lw": 1, "alpha": 0.8, "label": label}
                biases.plot(layers["mean_bias"] - layers["start"], **style)
                gates.plot(layers["mean_gate"], **style)
                rise = layers["lesion_error"][1:] - layers["lesion_error"][0]
                if dataset == "mnist":
                    rise = np.maximum(rise, 0.5 / layers["samples"])
                rises.plot(100 * rise, **style)
                label = None
        biases.set(ylabel=NAMES[dataset])
        gates.set(yscale="log")
        rises.legend(frameon=False)
    panels[0, 2].set(yscale="log")
    titles = "mean bias, minus its start", "mean gate", "rise of the error, points"
    for top, bottom, title in zip(*panels, titles, strict=True):
        top.set(title=title)
        bottom.set(xlabel="layer")
    return figure
