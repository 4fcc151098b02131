"""Draw the curves of README and docs from `results/`: `python -m tools.pictures`.

The pictures of a network's layers, Figures 2 to 4, come from `highway-keras analyze`, and their
numbers from `python -m tools.record section4` and `layers`.
"""

from benchmarks.measurements import ROOT
from highway_keras import plots, results
from highway_keras.plots import Line, plot_lines
from tools import figure1, section4
from tools.frames import rows

MARKERS = {"authors": "^", "modern": "o", "muon": "s"}


def depth_1000():
    """Plot training and held-out loss of a network of 1000 layers by epoch."""
    curve = rows("training-curves", model="thin-highway-100", command="depth=1000")
    lines = [Line(curve["loss"], "training"), Line(curve["val_loss"], "held out", color=1)]
    return plot_lines(lines, "1000 layers on MNIST", "cross-entropy (nats)")


def beside_logs(table, *names):
    """Plot the authors' logs, where they published one, and a point for each of our runs."""
    lines, logs = [], results.authors_logs()
    for color, name in enumerate(names):
        if name in logs:
            errors = [100 * (1 - float(row["test_accuracy"])) for row in logs[name]]
            lines.append(Line(errors, f"{name}: authors' log", "-", color))
        for recipe, runs in rows(table, model=name, images="all").groupby("recipe"):
            label, errors = f"{name}, {recipe}", 100 * (1 - runs["test_accuracy"])
            lines.append(Line(errors, label, MARKERS[recipe], color, runs["epochs"]))
    title = f"{results.TABLES[table]}: our runs are points"
    return plot_lines(lines, title, "test error (%)", xscale="log")


PICTURES = {
    "depth1000-mnist.png": depth_1000,
    "table1.png": lambda: beside_logs("table1", "mnist-highway-16", "mnist-highway-32"),
    "table3-cifar.png": lambda: beside_logs("table3", "highway-gap-10", "highway-gap-100"),
    "gradient-norms.png": lambda: plots.plot_gradient_norms(results.read("gradient-norms")),
    "figure1-epoch10.png": figure1.draw_epoch_10,
    "figure1-400.png": figure1.draw_epoch_400,
    "section4-seeds.png": section4.draw_seeds,
    "figure1-transform-bias.png": lambda: plots.plot_biases(results.read("figure1-trials")),
}


def main():
    for name, make in PICTURES.items():
        make().savefig(ROOT / "docs" / name, dpi=150, pil_kwargs={"optimize": True})
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
