"""Draw the curves of README and docs from `results/`: `python -m tools.pictures`.

So every picture shows only what has rows. Those of a network's layers, Figures 2 to 4, come from
`highway-keras analyze`, and their numbers from `tools.gates` and `tools.layers`.
"""

from highway_keras import models, results
from highway_keras.analysis.plots import (
    Line,
    plot_biases,
    plot_figure1,
    plot_gradient_norms,
    plot_lines,
)
from highway_keras.io import write_figure
from highway_keras.paper.finals_plot import better_curves
from tools.numbers.rows import rows, whole_runs
from tools.render import ROOT


def depth_50():
    """Return the best highway and the best plain network of 50 layers, by epoch."""
    lines = []
    for kind in ("highway", "plain"):
        curve = rows("figure1-curves", kind=kind, depth=50)
        size = models.get(f"thin-{kind}-50").parameters
        label = f"{kind}, {size:,} parameters: best of {curve[0]['of']}"
        lines.append(Line([row["loss"] for row in curve], label, colour=len(lines)))
    return plot_lines(lines, "50 layers on 10,000 images of MNIST")


def depth_1000():
    """Return training and held-out loss of a network of 1000 layers, by epoch."""
    curve = [r for r in rows("training-curves") if "depth=1000" in r["command"]]
    if not curve:
        raise LookupError("training-curves.csv has no network of 1000 layers.")
    lines = [
        Line([row["loss"] for row in curve], "training"),
        Line([row["val_loss"] for row in curve], "held out", colour=1),
    ]
    return plot_lines(lines, "1000 layers on MNIST", "cross-entropy (nats)")


def beside_logs(title, *names):
    """Return the authors' logs, where they published one, and a point for each of our runs."""
    lines, logs = [], results.authors_logs()
    for colour, name in enumerate(names):
        if name in logs:
            errors = [_error(row["test_accuracy"]) for row in logs[name]]
            lines.append(Line(errors, f"{name}: authors' log", "-", colour))
        wanted = {"model": name, "recipe": "modern", "images": "all"}
        runs = [r for table in results.TABLES for r in rows(table, **wanted)]
        errors, epochs = (
            [_error(r["test_accuracy"]) for r in runs],
            [int(r["epochs"]) for r in runs],
        )
        lines.append(Line(errors, f"{name}, modern: one point per run", "o", colour, epochs))
    return plot_lines(lines, title, "test error (%)", xscale="log")


def table_2():
    """Return the training accuracy of Highway A and Fitnet A, and the test accuracy at the end."""
    lines = []
    for colour, name in enumerate(("highway-a", "fitnet-a")):
        runs = whole_runs(name)
        if not runs:
            raise LookupError(f"training-curves.csv has no run of {name} on all training images.")
        for run in runs:
            values = [100 * float(row["accuracy"]) for row in run]
            label = f"{name}, {models.get(name).parameters:,} parameters: training"
            lines.append(Line(values, label, "-", colour))
            tested = [100 * float(run[-1]["test_accuracy"])]
            lines.append(Line(tested, f"{name}: test", "o", colour, [len(run)]))
    title = "CIFAR-10: a line and a point for each run"
    return plot_lines(lines, title, "accuracy (%)", yscale="linear")


def _error(accuracy):
    return 100 * (1 - float(accuracy))


PICTURES = {
    "depth50-mnist.png": depth_50,
    "depth1000-mnist.png": depth_1000,
    "table1.png": lambda: beside_logs("Table 1", "mnist-highway-16", "mnist-highway-32"),
    "table2-cifar.png": table_2,
    "table3-cifar.png": lambda: beside_logs("Table 3", "highway-gap-10", "highway-gap-100"),
    "figure1-finals.png": lambda: plot_figure1(better_curves(rows("figure1-finals"))),
    "gradient-norms.png": lambda: plot_gradient_norms(rows("gradient-norms")),
    "figure1-transform-bias.png": lambda: plot_biases(
        rows("figure1-trials"), rows("transform-bias")
    ),
}


def main():
    for name, make in PICTURES.items():
        write_figure(ROOT / "docs" / name, make())
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
