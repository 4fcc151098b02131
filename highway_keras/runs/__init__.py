"""What a run or a search leaves on disk: its folder, its settings, and what it was made on.

Importing this imports neither Keras nor NumPy.
"""

import os

PROSE = ("name", "source", "reasons")  # of a recipe in `run.json`: they do not decide the training
HELD = ("run.json", "state.npz", "history.csv", "best.keras", "final.keras")  # by a run's folder


def trained_file(named):
    """Return the path of the network in a run's folder; whatever else is named as it is."""
    if not isinstance(named, str | os.PathLike):
        return named
    file = os.path.join(os.path.expanduser(named), "best.keras")
    return file if os.path.isfile(file) else named


def check_free(folder, resumable=True):
    """Raise a `ValueError` if a folder holds a run; if `resumable`, it suggests `resume=True`."""
    if any((folder / name).exists() for name in HELD):
        remedy = "Pass resume=True to continue it, or name" if resumable else "Name"
        raise ValueError(
            f"`out` already holds a run. Received: out={folder}. {remedy} another folder."
        )
