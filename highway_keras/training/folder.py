"""The folder of a training run: what lies in it, and what makes it safe to continue."""

import csv
import json
import pathlib

from highway_keras.files import write_json, write_rows
from highway_keras.training.recipe import deciding

DESCRIPTIVE = ("class_names", "results")  # settings that do not decide the training


class RunFolder:
    """Paths of a run, its settings and its history.

    ```
    best.keras          the network with its preprocessing, as of the best epoch
    final.keras         the same, as of the last epoch
    curves.png          losses by epoch
    history.csv         a row an epoch
    machine.json        what it was trained on, and for how long
    run.json            settings, and results once it has ended
    state.weights.h5    weights and optimizer, to resume from
    tensorboard/        for `tensorboard --logdir`, with the TensorFlow backend
    ```

    Files are written under another name and renamed, so that a run killed at any moment leaves
    none half-written.

    Args:
        path: Path of the folder, which need not exist yet.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.best = self.path / "best.keras"
        self.final = self.path / "final.keras"
        self.curves = self.path / "curves.png"
        self.history = self.path / "history.csv"
        self.settings = self.path / "run.json"
        self.state = self.path / "state.weights.h5"
        self.tensorboard = self.path / "tensorboard"

    def open(self, settings, resume):
        """Start a run or, with `resume`, check that it is the one that was started.

        Args:
            settings: What `run.json` is to hold, a dictionary. A run is the same if what decides
                its training is: model, data, seed and the numbers of the recipe.
            resume: Whether to continue a run that is there.

        Raises:
            ValueError: If there is a run already and `resume` is off, or its settings differ.
            OSError: If the folder cannot be written.
        """
        settings = json.loads(json.dumps(settings))
        if self.settings.exists():
            self._check_same(settings, resume)
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.write_json(settings)
        except OSError as error:
            raise OSError(
                f"`out` must be a folder that can be written. Received: out={self.path} "
                f"({error.strerror})."
            ) from error

    def _check_same(self, settings, resume):
        if not resume:
            raise ValueError(
                f"`out` already holds a run. Received: out={self.path}. Pass resume=True to "
                "continue it, or name another folder."
            )
        before, now = _deciding(self.read_json()), _deciding(settings)
        differing = [key for key in before | now if before.get(key) != now.get(key)]
        if differing:
            listed = "; ".join(f"{k}: {before.get(k)!r} -> {now.get(k)!r}" for k in differing)
            raise ValueError(f"A run resumes with the settings it was started with. {listed}.")

    def read_json(self):
        """Return what `run.json` holds, a dictionary."""
        try:
            return dict(json.loads(self.settings.read_text(encoding="utf-8")))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The run's settings {self.settings} cannot be read. Delete that file, or the "
                "folder to start anew."
            ) from error

    def write_json(self, content):
        """Write `run.json`."""
        write_json(self.settings, content)

    @property
    def has_ended(self):
        """Whether the run was trained to its end and measured."""
        return self.settings.exists() and "results" in self.read_json()

    def read_history(self):
        """Return the rows of `history.csv`, with numbers as floats."""
        try:
            return [
                # Keras writes NA where no images are held out.
                {key: float(value) for key, value in row.items() if value != "NA"}
                for row in self._rows()
            ]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The run's history {self.history} cannot be read. Delete the folder to start anew."
            ) from error

    def keep_history(self, epochs):
        """Cut the history back to its first epochs: those that the saved state has seen."""
        rows = self._rows()[:epochs]
        if rows:
            write_rows(self.history, rows)
        else:
            self.history.unlink(missing_ok=True)

    def _rows(self):
        if not self.history.exists():
            return []
        with self.history.open(newline="") as file:
            return list(csv.DictReader(file))


def _deciding(settings):
    """Return the settings that decide the training, those of the recipe beside the others."""
    kept = {key: value for key, value in settings.items() if key not in DESCRIPTIVE}
    return kept | deciding(kept.pop("recipe", {}))
