"""How closed should the gates start? Every trial by its transform bias, activation and depth."""

from highway_keras.extras import extra
from highway_keras.io import write_figure
from highway_keras.paper.searches import ACTIVATIONS
from highway_keras.training.curves import COLOURS

FAILED = 20  # nats: where trials that diverged are drawn, above all others


def plot_biases(trials, medians, path):
    """Draw a dot per trial and the median of each step of the bias: a row per activation.

    Args:
        trials: Rows of `figure1-trials.csv`, dictionaries of numbers or of their text.
        medians: The same for `transform-bias.csv`.
        path: Where to put the PNG, a `pathlib.Path`.
    """
    with extra("plot"):
        from matplotlib.figure import Figure

    trials = [row for row in trials if row["kind"] == "highway"]
    depths = sorted({int(row["depth"]) for row in trials})
    figure = Figure(figsize=(9.6, 4.8), layout="constrained")
    shape = {"nrows": len(ACTIVATIONS), "ncols": len(depths), "squeeze": False}
    panels = figure.subplots(**shape, sharex=True, sharey=True)
    for activation, line in zip(ACTIVATIONS, panels, strict=True):
        for depth, axes in zip(depths, line, strict=True):
            case = {"activation": activation, "depth": str(depth)}
            _plot_trials(axes, _like(trials, case))
            _plot_medians(axes, _like(medians, case))
            axes.set_title(f"{activation}, {depth} layers", fontsize="medium")
            axes.set_yscale("log")
            axes.grid(alpha=0.25)
    for axes in panels[-1]:
        axes.set_xlabel("transform bias at the start")
    for axes in panels[:, 0]:
        axes.set_ylabel("training loss (nats)")
    write_figure(path, figure)


def _like(rows, case):
    return [row for row in rows if all(str(row[key]) == value for key, value in case.items())]


def _plot_trials(axes, rows):
    ended = [row for row in rows if row["score"] != ""]
    biases, scores = ([float(row[key]) for row in ended] for key in ("transform_bias", "score"))
    axes.plot(biases, scores, "o", ms=3, alpha=0.6, color=COLOURS[0])
    failed = [float(row["transform_bias"]) for row in rows if row["score"] == ""]
    axes.plot(failed, [FAILED] * len(failed), "x", ms=4, color=COLOURS[1])


def _plot_medians(axes, rows):
    for row in rows:
        if row["median"] != "":
            ends = [int(row["bias_from"]), int(row["bias_to"])]
            axes.plot(ends, [float(row["median"])] * 2, color="k", lw=1.5)
