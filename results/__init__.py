"""Measurements as CSV, one file a kind, joined to the zoo's registry by model name."""

import csv
from importlib import resources


def read(name):
    """The rows of `results/NAME.csv` as dictionaries of strings; none if there is no such file."""
    file = resources.files("highway_keras.results").joinpath(f"{name}.csv")
    if not file.is_file():
        return []
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def accuracies():
    """The best measured test accuracy by model: "best (mean ± std)" in percent, as text."""
    best = {}
    for row in read("accuracy"):
        if row["model"] not in best or float(row["mean"]) > float(best[row["model"]]["mean"]):
            best[row["model"]] = row
    return {model: _text(row) for model, row in best.items()}


def _text(row):
    if int(row["n"]) == 1:
        return f"{float(row['best']):.2f}"
    return f"{float(row['best']):.2f} ({float(row['mean']):.2f} ± {float(row['std']):.2f})"
