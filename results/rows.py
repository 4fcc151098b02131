"""Reading measurements: CSV files, joined to the zoo's registry by model name."""

import csv
from importlib import resources

from highway_keras.results.spread import summarize, text

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
