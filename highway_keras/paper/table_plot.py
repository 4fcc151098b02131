"""Accuracy by epoch of the runs of a table, as a picture."""

from highway_keras import results
from highway_keras.extras import extra
from highway_keras.io import write_figure
from highway_keras.messages import in_picture
from highway_keras.training.curves import COLOURS

LINES = {"authors": "--", "modern": "-"}
LEAST_ERROR = 0.01  # percent; the logarithm needs one above 0


def plot_runs(runs, path, title):
    """Draw the accuracy of each run by epoch, and its test accuracy as a point at its best epoch.

    The lines show the accuracy on held-out images if the recipe holds some out, otherwise that in
    training, with dropout and augmentation active. Dotted: the authors' log of that network, if
    they published one. Both axes are logarithmic; accuracy is shown by its distance from 100 %.

    Args:
        runs: (card, recipe, `RunFolder`) of runs that have ended.
        path: Where to put the PNG, a `pathlib.Path`.
        title: Title of the picture.
    """
    with extra("plot"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes, colours, labelled = figure.subplots(), {}, set()
    for card, recipe, folder in runs:
        colour = colours.setdefault(card.name, COLOURS[len(colours) % len(COLOURS)])
        _plot_run(axes, f"{card.name}, {recipe}", folder, LINES[recipe], colour, labelled)
    for name, log in results.authors_logs().items():
        if name in colours:
            _plot_log(axes, name, log, colours[name])
    axes.plot([], [], "o", ms=4, color="k", label="test images, once a run")
    _scale(axes)
    axes.set(title=in_picture(title), xlabel="epoch", ylabel="accuracy (%)")
    axes.legend(frameon=False, fontsize="small")
    write_figure(path, figure)


def _plot_run(axes, name, folder, line, colour, labelled):
    history, measured = folder.read_history(), folder.read_json()["results"]
    curve = "val_accuracy" if "val_accuracy" in history[0] else "accuracy"
    label = in_picture(f"{name}: {'training' if curve == 'accuracy' else 'held out'}")
    shown = None if label in labelled else label  # once for several runs
    labelled.add(label)
    errors = [_error(row[curve]) for row in history]
    style = {"lw": 1, "alpha": 0.6, "color": colour}
    axes.plot(range(1, len(errors) + 1), errors, line, label=shown, **style)
    tested = _error(measured["test_accuracy"])
    axes.plot(measured["best_epoch"], tested, "o", ms=4, color=colour)


def _plot_log(axes, name, log, colour):
    errors = [_error(float(row["test_accuracy"])) for row in log]
    epochs = [int(row["epoch"]) for row in log]
    axes.plot(epochs, errors, ":", lw=1, color=colour, label=f"{name}, authors' log: test")


def _error(accuracy):
    return max(100 * (1 - accuracy), LEAST_ERROR)


def _scale(axes):
    with extra("plot"):
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.invert_yaxis()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda error, _: f"{100 - error:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda epoch, _: f"{epoch:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(which="both", alpha=0.25)
