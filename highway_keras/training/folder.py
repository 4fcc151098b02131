"""The folder of a training run: what is in it, and what makes it safe to continue."""

import contextlib
import csv
import json
import os

import numpy as np

from highway_keras import checks, data
from highway_keras.io import LEFTOVERS, folder_lock, write_json, write_rows
from highway_keras.training.recipe import deciding
from highway_keras.training.state import read_belongings, replace_settings

TEST_IMAGES = "test_images"
# Settings that do not decide the training
DESCRIPTIVE = ("class_names", "diverged", "results", TEST_IMAGES)
LATER = ("images",)  # recorded since version 0.2.0
MEASURED = ("test_accuracy", "test_loss", "best_epoch")  # what `results` in `run.json` holds


# What to do about a run.json that cannot be read: for a run that is resumed, and for a network
RESUME = (
    "Delete that file to resume with the settings that the saved state was made with, or the "
    "folder to start anew."
)
MOVE = "Restore it from a copy, or move the network away from that file."


class RunFolder:
    """Paths of a run, its settings and its history.

    ```
    best.keras          the network with its preprocessing, as of the best epoch
    final.keras         the same, as of the last epoch
    curves.png          losses by epoch
    history.csv         a row per epoch
    machine.json        what it was trained on, and for how long
    run.json            settings, and results once it has ended, or the epoch in which it diverged
    state.weights.h5    weights and optimizer, to resume from
    tensorboard/        for `tensorboard --logdir`, with the TensorFlow backend
    ```

    Files are written under another name and renamed, so a run killed at any moment leaves no
    half-written file.

    Args:
        path: Path of the folder, which need not exist yet.
    """

    def __init__(self, path):
        self.path = checks.path("out", path)
        self.best = self.path / "best.keras"
        self.final = self.path / "final.keras"
        self.curves = self.path / "curves.png"
        self.history = self.path / "history.csv"
        self.settings = self.path / "run.json"
        self.state = self.path / "state.weights.h5"
        self.tensorboard = self.path / "tensorboard"

    def __repr__(self):
        return f"RunFolder({str(self.path)!r})"

    @contextlib.contextmanager
    def locked(self):
        """Make the folder, and keep other processes from writing to it: `with folder.locked():`."""
        with folder_lock(self.path):
            for leftover in self.path.glob(LEFTOVERS):  # of a process that was killed
                leftover.unlink(missing_ok=True)
            yield

    def open(self, settings, resume):
        """Start a run or, with `resume`, check that it is the one that was started.

        Args:
            settings: What `run.json` will hold, a dictionary. A run is the same if what decides its
                training is: model, data, seed and the numbers of the recipe. The saved state must
                have been made with them, too.
            resume: Whether to continue an existing run.

        Raises:
            ValueError: If there is already a run and `resume` is off, or its settings differ or
                are gone.
            OSError: If the folder cannot be written.
        """
        settings = json.loads(json.dumps(settings, default=_python_number))
        if any(file.exists() for file in (self.settings, self.state, self.history)):
            self._check_same(settings, resume)
        if not self.settings.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            self.write_json(settings)

    def _check_same(self, settings, resume):
        if not resume:
            raise ValueError(
                f"`out` already holds a run. Received: out={self.path}. Pass resume=True to "
                "continue it, or name another folder."
            )
        recorded = self._recorded_settings()
        if not recorded:
            raise ValueError(
                f"`out` holds a run whose settings are gone. Received: out={self.path} without "
                "run.json. Bring that file back, or delete the folder to start anew."
            )
        for before in recorded:
            check_same(_deciding(before), _deciding(_without_later(settings, before)), "run")

    def _recorded_settings(self):
        """Return the settings that `run.json` holds, and those that the state was made with."""
        recorded = [self.read_json()] if self.settings.exists() else []
        belongings = read_belongings(self.state) if self.state.exists() else {}
        return [*recorded, belongings["settings"]] if belongings else recorded

    def read_json(self, remedy=RESUME):
        """Return what `run.json` holds, a dictionary; an error ends with `remedy`."""
        try:
            content = json.loads(self.settings.read_text(encoding="utf-8"))
            _check_settings(content)
        except (RecursionError, TypeError, ValueError) as error:
            raise ValueError(
                f"The run's settings {self.settings} cannot be read. {remedy}"
            ) from error
        return content

    def write_json(self, content):
        """Write `run.json`."""
        write_json(self.settings, content)

    def lengthen(self, epochs):
        """Let the run continue to `epochs`; its schedule must not depend on their number."""
        settings = self.read_json()
        settings["recipe"]["epochs"] = epochs
        settings.pop("results", None)
        settings.pop("diverged", None)
        if self.state.exists():
            replace_settings(self.state, settings)
        self.write_json(settings)

    @property
    def has_ended(self):
        """Whether the run was trained to its end and measured."""
        return self.settings.exists() and "results" in self.read_json()

    @property
    def has_diverged(self):
        """Whether the training ended because the loss or a weight was no longer finite.

        Not while it is trained again: the history then lacks the epoch in which it diverged.
        """
        epoch = self.read_json().get("diverged") if self.settings.exists() else None
        return bool(epoch) and epoch == len(self.read_rows())

    def read_history(self):
        """Return the rows of `history.csv`, with numbers as floats."""
        rows = self._numbers(self.read_rows())
        if self.has_ended and len(rows) != self.epochs:
            raise self._unreadable_history()
        return rows

    @property
    def epochs(self):
        """Epochs of a run that has ended: fewer than planned if a callback stopped it."""
        settings = self.read_json()
        return settings["results"].get("epochs", settings.get("recipe", {}).get("epochs"))

    def _numbers(self, rows):
        try:
            # Keras writes NA where no images are held out.
            numbers = [{k: float(v) for k, v in row.items() if v != "NA"} for row in rows]
        except (TypeError, ValueError) as error:
            raise self._unreadable_history() from error
        epochs = [row.get("epoch") for row in numbers]
        whole = all({"loss", "accuracy"} <= row.keys() for row in numbers)
        if epochs != list(range(len(rows))) or not whole:
            raise self._unreadable_history()
        return numbers

    def read_rows(self):
        """Return the rows of `history.csv` as dictionaries of text."""
        if not self.history.exists():
            return []
        try:
            with self.history.open(newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))
        except (ValueError, csv.Error) as error:
            raise self._unreadable_history() from error

    def restore_history(self, epochs):
        """Reset the history to what the saved state has seen; return the number of its epochs.

        The state holds them itself. One of version 0.1.0 does not: `history.csv` is cut back to
        the `epochs` that the state's steps make.
        """
        belongings = read_belongings(self.state) if self.state.exists() else {}
        rows = belongings["history"] if belongings else self.read_rows()[:epochs]
        if not belongings and len(self._numbers(rows)) != epochs:
            raise self._unreadable_history()
        if rows:
            write_rows(self.history, rows, line_end="\r\n")  # as Keras's CSVLogger, which goes on
        else:
            self.history.unlink(missing_ok=True)
        return len(rows)

    def _unreadable_history(self):
        return ValueError(
            f"The run's history {self.history} cannot be read, or lacks epochs. Delete the folder "
            "to start anew."
        )


def data_settings(dataset, images):
    """Return what `run.json` says about the images: a user's own may change under the same name.

    Args:
        dataset: What `data.load` took.
        images: The `data.Dataset` that it returned.
    """
    source = str(dataset) if isinstance(dataset, str | os.PathLike) else None
    settings = {"dataset": source, "class_names": list(images.class_names)}
    if source in data.NAMES:
        return settings
    of_test = images.fingerprint(("test",))
    return settings | {"images": images.fingerprint(), TEST_IMAGES: of_test}


def check_same(before, now, what):
    """Raise a `ValueError` that lists the settings that differ, if any do."""
    differing = [key for key in before | now if before.get(key) != now.get(key)]
    if differing:
        listed = "; ".join(f"{k}: {before.get(k)!r} -> {now.get(k)!r}" for k in differing)
        raise ValueError(
            f"A {what} resumes with the settings it was started with. {listed}. Pass those, or "
            "name another folder."
        )


def _python_number(value):
    """Return what JSON can hold of a NumPy number, which the checks of arguments accept."""
    if not isinstance(value, np.generic):
        raise TypeError(
            f"Settings of a run must fit into JSON. Received: {checks.short_repr(value)}."
        )
    return value.item()


def _without_later(settings, before):
    """Return settings without those that a run of an earlier version did not record."""
    return {key: value for key, value in settings.items() if key in before or key not in LATER}


def _deciding(settings):
    """Return the settings that decide the training, those of the recipe alongside the others."""
    kept = {key: value for key, value in settings.items() if key not in DESCRIPTIVE}
    return kept | deciding(kept.pop("recipe", {}))


def _check_settings(settings):
    """Raise a `ValueError` unless `settings` have the structure of a run's or a search's."""
    parts = {"the settings": settings}
    if isinstance(settings, dict):
        parts |= {"recipe": settings.get("recipe", {}), "results": settings.get("results", {})}
    for name, part in parts.items():
        if not isinstance(part, dict):
            raise ValueError(f"{name} must be a dictionary")
    steps = parts["recipe"].get("preprocessing", [])
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
        raise ValueError("preprocessing must be a list of names")
    results = settings.get("results")
    if results is not None and not all(checks.is_number(results.get(key)) for key in MEASURED):
        raise ValueError(f"results must hold {', '.join(MEASURED)}")
