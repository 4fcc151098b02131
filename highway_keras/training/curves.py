"""Training curves as a picture."""

from highway_keras.io import write_figure


def plot_curves(curves, path, title, label="training loss (nats)"):
    """Draw losses by epoch on a logarithmic axis.

    Args:
        curves: Dictionary of names to sequences of losses, one per epoch.
        path: Where to put the PNG, a `pathlib.Path`.
        title: Title of the picture.
        label: What the losses are.
    """
    from highway_keras.analysis.plots import plot_losses  # needs Matplotlib

    write_figure(path, plot_losses(curves, title, label))
