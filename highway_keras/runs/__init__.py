"""What a run or a search leaves on disk: its folder, its settings, and what it was made on.

Importing this imports neither Keras nor NumPy.
"""

PROSE = ("name", "source", "reasons")  # of a recipe in `run.json`: they do not decide the training
HELD = ("run.json", "state.npz", "history.csv", "best.keras", "final.keras")  # by a run's folder


def check_free(folder, resumable=True):
    """Raise a `ValueError` if a folder holds a run; if `resumable`, it suggests `resume=True`."""
    if any((folder / name).exists() for name in HELD):
        remedy = "Pass resume=True to continue it, or name" if resumable else "Name"
        raise ValueError(
            f"`out` already holds a run. Received: out={folder}. {remedy} another folder."
        )
