"""Where a number comes from: what every row of a measurement says besides the number."""

import datetime
import pathlib
import subprocess

from highway_keras.training.machine import hardware, versions

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
        "commit": _commit(),
        "date": datetime.date.today().isoformat(),
        "command": command,
    }


def _commit():
    ask = ["git", "rev-parse", "--short", "HEAD"]
    here = pathlib.Path(__file__).parent
    try:
        return subprocess.run(ask, cwd=here, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git
        return ""
