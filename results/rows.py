"""Rows of the measurements: CSV files, joined to the zoo by the name of the model."""

import csv
from importlib import resources

from highway_keras.results.spread import summarize, text

TABLES = ("table1", "table2", "table3")  # a row for each run, by `highway-keras reproduce`


def read(name):
    """Return the rows of `results/NAME.csv` as dictionaries of strings; none without the file."""
    file = resources.files("highway_keras.results").joinpath(f"{name}.csv")
    if not file.is_file():
        return []
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def authors_logs():
    """Return the rows of the authors' logs by model, from epoch 1 on: 0 is before training."""
    logs = {}
    for row in read("authors-logs"):
        if row["epoch"] != "0":
            logs.setdefault(row["model"], []).append(row)
    return logs


def accuracies():
    """Return test accuracies by model: "best (mean ± std)" in percent, as text.

    Of several settings, it is the one with the most runs and then the most epochs that counts.
    Taking the best one would be a choice by test images.
    """
    runs = [row for table in TABLES for row in read(table) if row["images"] == "all"]
    rows = [*read("accuracy"), *summarize(runs)]
    rows.sort(key=lambda row: (int(row["n"]), int(row["epochs"])))
    return {row["model"]: text(row) for row in rows}
