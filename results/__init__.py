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


def authors_logs():
    """The authors' logs: by model the rows of the epochs from 1 on; 0 is before the first step."""
    logs = {}
    for row in read("authors-logs"):
        if row["epoch"] != "0":
            logs.setdefault(row["model"], []).append(row)
    return logs


def accuracies():
    """Test accuracy by model: "best (mean ± std)" in percent, as text.

    Of several settings the one with the most runs and then the most epochs, not the one that did
    best: that would be a choice by test images.
    """
    runs = [row for table in TABLES for row in read(table) if row["images"] == "all"]
    rows = [*read("accuracy"), *summarize(runs)]
    rows.sort(key=lambda row: (int(row["n"]), int(row["epochs"])))
    return {row["model"]: text(row) for row in rows}


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
            **spread(percent),
        }
        for key, percent in groups.items()
    ]


def spread(percent):
    """`n`, `best`, `mean` and `std` of several runs; the last is 0 for a single one."""
    return {
        "n": len(percent),
        "best": max(percent),
        "mean": statistics.mean(percent),
        "std": statistics.stdev(percent) if len(percent) > 1 else 0.0,
    }


def text(row):
    """A row with `n`, `best`, `mean` and `std` as the paper writes it: "best (mean ± std)"."""
    if int(row["n"]) == 1:
        return f"{float(row['best']):.2f}"
    return f"{float(row['best']):.2f} ({float(row['mean']):.2f} ± {float(row['std']):.2f})"
