"""Where a number comes from: what every row of a measurement says besides the number."""

import datetime

from highway_keras.training.machine import commit, hardware, joined, sessions, versions

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
    """Return the same columns of a run, from what was recorded while it was trained.

    Args:
        folder: A `RunFolder`.
        command: The command that makes the row.
    """
    recorded = sessions(folder)
    return {key: joined(recorded, key) for key in COLUMNS[:-1]} | {"command": command}
