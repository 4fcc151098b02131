"""Draw the curves of README and docs from `results/`: `python -m tools.pictures`.

So every picture shows only what has rows. Those of a network's layers, Figures 2 to 4, come from
`highway-keras analyze`, and their numbers from `tools.gates` and `tools.layers`.
"""

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from highway_keras import models, results
from highway_keras.io import write_figure
from highway_keras.paper.bias_plot import plot_biases
from highway_keras.paper.finals_plot import plot_finals
from highway_keras.paper.gradient_norms import plot_gradient_norms
from highway_keras.training.curves import COLOURS
from tools.numbers.rows import rows, whole_runs
from tools.render import ROOT

TITLES = {"xlabel": "epoch", "ylabel": "training loss (nats)"}


def draw_depth_50(path):
    """Draw the best highway and the best plain network of 50 layers, by epoch."""
    figure, axes = _axes()
    for kind, colour in zip(("highway", "plain"), COLOURS, strict=False):
        curve = rows("figure1-curves", kind=kind, depth=50)
        size = models.get(f"thin-{kind}-50").parameters
        losses = [float(row["loss"]) for row in curve]
        label = f"{kind}, {size:,} parameters: best of {curve[0]['of']}"
        axes.semilogy(range(1, len(losses) + 1), losses, "o-", ms=4, color=colour, label=label)
    axes.set(title="50 layers on 10,000 images of MNIST", **TITLES)
    _finish(figure, axes, path)


def draw_depth_1000(path):
    """Draw training and held-out loss of a network of 1000 layers, by epoch."""
    figure, axes = _axes()
    curve = [r for r in rows("training-curves") if "depth=1000" in r["command"]]
    if not curve:
        raise LookupError("training-curves.csv has no network of 1000 layers.")
    for colour, (key, label) in zip(COLOURS, LOSSES.items(), strict=False):
        losses = [float(row[key]) for row in curve]
        axes.semilogy(range(1, len(losses) + 1), losses, "o-", ms=4, color=colour, label=label)
    axes.set(title="1000 layers on MNIST", **{**TITLES, "ylabel": "cross-entropy (nats)"})
    _finish(figure, axes, path)


LOSSES = {"loss": "training", "val_loss": "held out"}


def draw_beside_logs(path, title, names):
    """Draw the authors' logs, where they published one, and a point for each of our runs."""
    figure, axes = _axes()
    logs = results.authors_logs()
    for colour, name in zip(COLOURS, names, strict=False):
        if name in logs:
            errors = [_error(row["test_accuracy"]) for row in logs[name]]
            label = f"{name}: authors' log"
            axes.loglog(range(1, len(errors) + 1), errors, "-", lw=0.8, color=colour, label=label)
        wanted = {"model": name, "recipe": "modern", "images": "all"}
        runs = [r for table in results.TABLES for r in rows(table, **wanted)]
        points = [int(r["epochs"]) for r in runs], [_error(r["test_accuracy"]) for r in runs]
        label = f"{name}, modern: one point per run"
        axes.loglog(*points, "o", ms=5, alpha=0.6, color=colour, label=label)
    axes.margins(y=0.25)  # room for the legend
    axes.set(title=title, xlabel="epoch", ylabel="test error (%)")
    _finish(figure, axes, path)


def draw_table_2(path):
    """Draw the training accuracy of Highway A and Fitnet A, and the test accuracy at the end."""
    figure, axes = _axes()
    for name, colour in zip(("highway-a", "fitnet-a"), COLOURS, strict=False):
        runs = whole_runs(name)
        if not runs:
            raise LookupError(f"training-curves.csv has no run of {name} on all training images.")
        for run in runs:
            values = [100 * float(r["accuracy"]) for r in run]
            (line,) = axes.plot(range(1, len(run) + 1), values, "-", lw=1, color=colour)
            accuracy = 100 * float(run[-1]["test_accuracy"])
            (point,) = axes.plot(len(run), accuracy, "o", ms=5, alpha=0.6, color=colour)
        line.set_label(f"{name}, {models.get(name).parameters:,} parameters: training")
        point.set_label(f"{name}: test")
    title = "CIFAR-10: a line and a point for each run"
    axes.set(title=title, xlabel="epoch", ylabel="accuracy (%)")
    _finish(figure, axes, path)


def _error(accuracy):
    return 100 * (1 - float(accuracy))


def _axes():
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    return figure, figure.subplots()


def _finish(figure, axes, path):
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        else:
            axis.get_major_locator().set_params(integer=True)
    axes.grid(which="both", alpha=0.25)
    axes.legend(frameon=False, fontsize="small")
    write_figure(path, figure)


PICTURES = {
    "depth50-mnist.png": draw_depth_50,
    "depth1000-mnist.png": draw_depth_1000,
    "table1.png": lambda path: draw_beside_logs(
        path, "Table 1", ("mnist-highway-16", "mnist-highway-32")
    ),
    "table2-cifar.png": draw_table_2,
    "table3-cifar.png": lambda path: draw_beside_logs(
        path, "Table 3", ("highway-gap-10", "highway-gap-100")
    ),
    "figure1-finals.png": lambda path: plot_finals(rows("figure1-finals"), path),
    "gradient-norms.png": lambda path: plot_gradient_norms(rows("gradient-norms"), path),
    "figure1-transform-bias.png": lambda path: plot_biases(
        rows("figure1-trials"), rows("transform-bias"), path
    ),
}


def main():
    for name, draw in PICTURES.items():
        draw(ROOT / "docs" / name)
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
