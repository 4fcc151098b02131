"""Measurements as CSV, one file a kind, joined to the zoo's registry by model name."""

import csv
import statistics
from importlib import resources

TABLES = ("table1", "table2", "table3")  # a row a run, as `highway-keras reproduce` writes them


def read(name):
    """The rows of `results/NAME.csv` as dictionaries of strings; none if there is no such file."""
    file = resources.files("highway_keras.results").joinpath(f"{name}.csv")
    if not file.is_file():
        return []
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def accuracies():
    """The best measured test accuracy by model: "best (mean ± std)" in percent, as text."""
    runs = [row for table in TABLES for row in read(table) if row["images"] == "all"]
    best = {}
    for row in [*read("accuracy"), *summarize(runs)]:
        if row["model"] not in best or float(row["mean"]) > float(best[row["model"]]["mean"]):
            best[row["model"]] = row
    return {model: text(row) for model, row in best.items()}


def summarize(rows):
    """Puts together the runs of a network by one recipe, epochs and number of images.

    Args:
        rows: A row a run, with those keys and `test_accuracy`.

    Returns:
        A dictionary for each, with `n`, and `best`, `mean` and `std` in percent; the standard
        deviation of a single run is 0.
    """
    groups = {}
    for row in rows:
        key = tuple(str(row[name]) for name in ("model", "recipe", "epochs", "images"))
        groups.setdefault(key, []).append(100 * float(row["test_accuracy"]))
    return [
        {
            **dict(zip(("model", "recipe", "epochs", "images"), key, strict=True)),
            "n": len(percent),
            "best": max(percent),
            "mean": statistics.mean(percent),
            "std": statistics.stdev(percent) if len(percent) > 1 else 0.0,
        }
        for key, percent in groups.items()
    ]


def text(row):
    """A row with `n`, `best`, `mean` and `std` as the paper writes it: "best (mean ± std)"."""
    if int(row["n"]) == 1:
        return f"{float(row['best']):.2f}"
    return f"{float(row['best']):.2f} ({float(row['mean']):.2f} ± {float(row['std']):.2f})"
