"""Training curves as a picture."""

from highway_keras.extras import extra
from highway_keras.io import write_figure
from highway_keras.messages import in_picture

# Okabe and Ito's colors, which color-blind eyes tell apart, too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def plot_curves(curves, path, title, label="training loss (nats)"):
    """Draw losses by epoch on a logarithmic axis.

    Args:
        curves: Dictionary of names to sequences of losses, one per epoch.
        path: Where to put the PNG, a `pathlib.Path`.
        title: Title of the picture.
        label: What the losses are.
    """
    with extra("plot"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for (name, losses), colour in zip(curves.items(), COLOURS * len(curves), strict=False):
        axes.semilogy(
            range(1, len(losses) + 1), losses, "o-", ms=3, color=colour, label=in_picture(name)
        )
    axes.set(title=in_picture(title), xlabel="epoch", ylabel=label)
    axes.grid(which="both", alpha=0.25)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    write_figure(path, figure)
