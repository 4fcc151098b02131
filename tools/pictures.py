"""Draw the curves of README and docs from `results/`: `python -m tools.pictures`.

So every picture shows only what has rows. Those of a network's layers, Figures 2 to 4, come from
`highway-keras analyze`, and their numbers from `python -m tools.record section4` and `layers`.
"""

import pandas as pd

from benchmarks.measurements import ROOT
from highway_keras import plots, results
from highway_keras.plots import Line, plot_lines
from tools import figure1
from tools.tables import rows

STYLES = {"authors": (":", "^"), "modern": ("-", "o"), "muon": ("--", "s")}  # lines, points


def whole_trainings():
    """Yield the row and the curve of every whole training of Tables 2 and 3."""
    for run in pd.concat([rows(name, images="all") for name in ("table2", "table3")]).itertuples():
        optimizer = "muon" if run.recipe == "muon" else "sgd"
        command = f"--epochs {run.epochs} .*optimizer={optimizer} .*validation=0.0 --seed"
        yield run, rows("training-curves", model=run.model, seed=run.seed, command=command)


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
            label, mark = f"{name}, {recipe}", STYLES[recipe][1]
            errors = 100 * (1 - runs["test_accuracy"])
            lines.append(Line(errors, label, mark, color, runs["epochs"]))
    title = f"{results.TABLES[table]}: our runs are points"
    return plot_lines(lines, title, "test error (%)", xscale="log", columns=2)


def training_accuracy(*names):
    """Plot the training accuracy by epoch of every run, and its test accuracy as a point."""
    lines = []
    for run, curve in whole_trainings():
        if run.model in names:
            color, (style, mark) = names.index(run.model), STYLES[run.recipe]
            lines.append(Line(100 * curve["accuracy"], f"{run.model}, {run.recipe}", style, color))
            lines.append(Line([100 * run.test_accuracy], "", mark, color, [run.epochs]))
    title = "Training accuracy by epoch; points: test accuracy"
    return plot_lines(lines, title, "accuracy (%)", xscale="log", yscale="linear", columns=2)


def compacted():
    """Plot the test error of thin networks over the layers left: closed, tuned, from scratch."""
    lines, names = [], ("thin-highway-50", "thin-highway-100")
    for way, done, style in (("closed", "closed", "o-"), ("tuned", "fine-tuned", "s-")):
        for color, model in enumerate(names):
            networks = rows("compact", model=model, way=way).sort_values("layers")
            errors, label = 100 - networks["mean"], f"{model}, {done}"
            lines.append(Line(errors, label, style, color, networks["layers"]))
    scratch = rows("compact", way="scratch")  # one network per depth serves both models
    scratch = scratch[scratch["model"].isin(names)].drop_duplicates("layers").sort_values("layers")
    lines.append(Line(100 - scratch["mean"], "from scratch", "^--", 2, scratch["layers"]))
    title, axes = "MNIST: gated layers left out", ("test error (%)", "gated layers left")
    return plot_lines(lines, title, *axes, xscale="log", yscale="linear", columns=2)


PICTURES = {
    "compact.png": compacted,
    "depth1000-mnist.png": depth_1000,
    "table1.png": lambda: beside_logs("table1", "mnist-highway-16", "mnist-highway-32"),
    "curves-small.png": lambda: training_accuracy("highway-a", "fitnet-a"),
    "curves-large.png": lambda: training_accuracy(
        "highway-b", "fitnet-b", "highway-c", "highway-gap-10", "highway-gap-100"
    ),
    "table3-cifar.png": lambda: beside_logs("table3", "highway-gap-10", "highway-gap-100"),
    "gradient-norms.png": lambda: plots.plot_gradient_norms(results.read("gradient-norms")),
    "figure1-epoch10.png": figure1.draw_epoch_10,
    "figure1-400.png": figure1.draw_epoch_400,
    "figure1-transform-bias.png": lambda: plots.plot_biases(results.read("figure1-trials")),
}


def main():
    for name, make in PICTURES.items():
        make().savefig(ROOT / "docs" / name, dpi=150, pil_kwargs={"optimize": True})
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
