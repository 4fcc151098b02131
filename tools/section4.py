"""Figures 2 to 4 of several seeds, from their rows: the networks of docs/figures2-4.md."""

import numpy as np
from matplotlib.figure import Figure

from highway_keras.plots import COLORS
from tools.tables import rows

# Of each data set two networks: from the paper's start, and from the start that a search chose.
# The first network of a search was trained in it, the others by `fit`.
STARTS = {
    "mnist": (["at -2"], ["from -10 to -1", "at -5.32"]),
    "cifar100": (["at -4"], ["from -10 to -1", "at -5.116"]),
}
NAMES = {"mnist": "MNIST", "cifar100": "CIFAR-100"}


def networks(dataset):
    """Return both networks of a data set, each as a list of its layers, one table a seed.

    Layer 0 is the whole network.
    """
    analyzed = rows("analysis", dataset=dataset)
    return [
        [
            layers.set_index("layer")
            for _, layers in analyzed[analyzed["searched_bias"].isin(starts)].groupby("seed")
        ]
        for starts in STARTS[dataset]
    ]


def draw_seeds():
    """Draw biases, mean gates and lesions by layer: a line for each seed, a color for each start.

    The left columns of Figure 2, averaged over units, and Figure 4.
    """
    figure = Figure(figsize=(9.6, 5.4), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True)
    for (biases, gates, errors), dataset in zip(panels, STARTS, strict=True):
        for color, seeds in zip(COLORS, networks(dataset), strict=False):
            label = f"biases started at {seeds[0]['start'][1]:.1f}"
            for layers in seeds:
                style = {"color": color, "lw": 1, "alpha": 0.8, "label": label}
                biases.plot(layers["mean_bias"][1:] - layers["start"][1:], **style)
                gates.plot(layers["mean_gate"][1:], **style)
                half_an_image = 0.5 / layers["samples"]  # on a logarithmic axis, 0 needs a place
                errors.plot(100 * np.maximum(layers["lesion_error"], half_an_image)[1:], **style)
                label = None
        name = NAMES[dataset]
        biases.set(title=f"{name}: mean bias, from its start")
        gates.set(title="mean gate, all images", yscale="log")
        errors.set(title="error with the layer closed, %")
        biases.legend(frameon=False)
    panels[0, 2].set_yscale("log")
    for axes in panels[1]:
        axes.set_xlabel("layer")
    return figure
