"""The networks of section 4 from their rows, and a picture of their seeds."""

import numpy as np
from matplotlib.figure import Figure

from highway_keras.plots import COLORS
from tools.frames import rows

# Of each data set two networks: from the paper's start, and from the start that a search chose.
STARTS = {"mnist": ("at -2", "at -5.32"), "cifar100": ("at -4", "at -5.116")}
NAMES = {"mnist": "MNIST", "cifar100": "CIFAR-100"}


def networks(dataset):
    """Return both networks of a data set, each as a list of its layers, one table a seed.

    Layer 0 is the whole network, which has only an error and a loss.
    """
    analyzed = rows("analysis", dataset=dataset).set_index("layer")
    pair = (analyzed[analyzed["searched_bias"] == start] for start in STARTS[dataset])
    return [[layers for _, layers in network.groupby("seed")] for network in pair]


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
