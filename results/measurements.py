"""Rows of the measurements: CSV files, joined to the zoo by the name of the model.

`highway-keras list` reads them too, so this module imports nothing slow.
"""

import csv
import pathlib

from highway_keras.results.provenance import COLUMNS
from highway_keras.results.spread import mean_text, summarize
from highway_keras.util.files import file_lock, write_rows

# The tables of the paper that `highway-keras reproduce` repeats: the name of the experiment, which
# is that of its CSV file with a row per run, and the title that cards of networks refer to.
TABLES = {"table1": "Table 1", "table2": "Table 2", "table3": "Table 3"}
DIVERGED = "diverged"  # in a row, in place of what is not finite


def read(name):
    """Return the rows of `results/NAME.csv`, dictionaries of strings; none without that file.

    Without a clone, only `accuracy`, `authors-logs` and `table1` to `table3` are there.
    """
    return read_rows(pathlib.Path(__file__).with_name(f"{name}.csv"))


def read_rows(path):
    """Return the rows of a CSV file, dictionaries of strings; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def update_rows(path, rows, keys):
    """Write rows to a CSV file, in place of those in it that have the same values of `keys`.

    Args:
        path: The file, a `pathlib.Path`, which need not exist.
        rows: Dictionaries with the columns of the file; those of `provenance.COLUMNS` become the
            last.
        keys: Names of the columns that identify a row.
    """
    with file_lock(path):  # another process may be writing rows of its own
        by_case = {}
        for row in (*read_rows(path), *rows):
            by_case[tuple(str(row[key]) for key in keys)] = row  # in place of the earlier one
        names = dict.fromkeys(name for row in (*rows, *by_case.values()) for name in row)
        own_names = [name for name in names if name not in COLUMNS]
        write_rows(path, list(by_case.values()), [*own_names, *COLUMNS])


def authors_logs():
    """Return the authors' logs: by model the rows of the epochs from 1 on.

    Epoch 0 of the file is the measurement before the first step.
    """
    logs = {}
    for row in read("authors-logs"):
        if row["epoch"] != "0":
            logs.setdefault(row["model"], []).append(row)
    return logs


def accuracies():
    """Return the test accuracy by model, in percent, as text: "mean ± std, n=5".

    If a model was trained with several settings, the one with the most runs counts, then the one
    with the most epochs. Taking the best one would be a choice by test images.
    """
    runs = [row for table in TABLES for row in read(table) if row["images"] == "all"]
    rows = [*read("accuracy"), *summarize(runs)]
    rows.sort(key=lambda row: (int(row["n"]), int(row["epochs"])))
    return {row["model"]: mean_text(row) for row in rows}
