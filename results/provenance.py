"""Where a number comes from: the columns that every row of a measurement ends with."""

import datetime

COLUMNS = ("hardware", "versions", "commit", "date", "command")


def of_command(command):
    """Return `COLUMNS` of a row that this process measures, a dictionary.

    Args:
        command: The command that measures it again.
    """
    from highway_keras.runs.provenance import commit, hardware, versions  # imports Keras

    today = datetime.date.today().isoformat()
    values = (hardware(), versions(), commit(), today, command)
    return dict(zip(COLUMNS, values, strict=True))


def of_run(folder, command):
    """Return the same columns for a run, from what was recorded while it trained.

    Args:
        folder: A `RunFolder`.
        command: The command that makes the row.
    """
    from highway_keras.runs.provenance import joined, sessions  # imports Keras

    recorded = sessions(folder)
    found = {key: joined(recorded, key) or "not recorded" for key in COLUMNS[:-1]}
    return found | {"command": command}
