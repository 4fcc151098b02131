"""Accuracy by epoch of the runs of a table, as a picture."""

from highway_keras import results
from highway_keras.io import write_figure

STYLES = {"authors": "--", "modern": "-"}


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
    from highway_keras.analysis.plots import Line, plot_lines  # needs Matplotlib

    colours, lines = {}, []
    for card, recipe, folder in runs:
        colour = colours.setdefault(card.name, len(colours))
        history, measured = folder.read_history(), folder.read_json()["results"]
        held_out = "val_accuracy" in history[0]
        curve, of = ("val_accuracy", "held out") if held_out else ("accuracy", "training")
        accuracies = [100 * row[curve] for row in history]
        lines.append(Line(accuracies, f"{card.name}, {recipe}: {of}", STYLES[recipe], colour))
        tested = [100 * measured["test_accuracy"]]
        label = f"{card.name}: test images, once a run"
        lines.append(Line(tested, label, "o", colour, [measured["best_epoch"]]))
    for name, log in results.authors_logs().items():
        if name in colours:
            accuracies = [100 * float(row["test_accuracy"]) for row in log]
            epochs = [int(row["epoch"]) for row in log]
            label = f"{name}, authors' log: test"
            lines.append(Line(accuracies, label, ":", colours[name], epochs))
    figure = plot_lines(lines, title, "accuracy (%)", xscale="log", as_error=True)
    write_figure(path, figure)
