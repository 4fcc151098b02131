"""Where a number comes from: what every row of a measurement says besides the number."""

import csv
import datetime
import pathlib

from highway_keras.io import write_rows
from highway_keras.training.machine import commit, hardware, joined, sessions, versions

DIVERGED = "diverged"  # in a row, in place of what is not finite
COLUMNS = ("hardware", "versions", "commit", "date", "command")


def provenance(command):
    """Return the columns of a row that say how to measure it again.

    Args:
        command: The command that makes the row.

    Returns:
        A dictionary with the keys `COLUMNS`; `commit` is empty outside of a clone.
    """
    return {
        "hardware": hardware(),
        "versions": versions(),
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "command": command,
    }


def of_run(folder, command):
    """Return the same columns for a run, from what was recorded while it trained.

    Args:
        folder: A `RunFolder`.
        command: The command that makes the row.
    """
    recorded = sessions(folder)
    found = {key: joined(recorded, key) or "not recorded" for key in COLUMNS[:-1]}
    return found | {"command": command}


def update_rows(path, rows, keys):
    """Write rows to a CSV file, in place of those in it that have the same values of `keys`.

    Args:
        path: The file, which need not exist.
        rows: Dictionaries with the columns of the file; those of `COLUMNS` become the last.
        keys: Names of the columns that identify a row.
    """
    path = pathlib.Path(path)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = {_values(row, keys): row for row in (*csv.DictReader(lines), *rows)}
    columns = [name for name in rows[0] if name not in COLUMNS]
    write_rows(path, list(found.values()), [*columns, *COLUMNS])


def _values(row, keys):
    return tuple(str(row[key]) for key in keys)
