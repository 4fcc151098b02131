"""The folder of a training run: what lies in it, and what makes it safe to continue."""

import contextlib
import csv
import json
import os
import pathlib


class RunFolder:
    """Paths of a run, its settings and its history.

    ```
    best.keras          the network with its preprocessing, as of the best epoch
    final.keras         the same, as of the last epoch
    history.csv         a row an epoch
    run.json            settings, and results once it has ended
    state.weights.h5    weights and optimizer, to resume from
    tensorboard/        for `tensorboard --logdir`
    ```

    Files are written under another name and renamed, so that a run killed at any moment leaves
    none half-written.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.best = self.path / "best.keras"
        self.final = self.path / "final.keras"
        self.history = self.path / "history.csv"
        self.settings = self.path / "run.json"
        self.state = self.path / "state.weights.h5"
        self.tensorboard = self.path / "tensorboard"

    def open(self, settings, resume):
        """Starts the run or, with `resume`, checks that it is the one that was started.

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
                f"`out` already holds a run. Received: out={self.path}. Continue it with --resume "
                "(resume=True), or name another folder."
            )
        before = self.read_json()
        differing = [key for key in settings if before.get(key) != settings[key]]
        if differing:
            listed = "; ".join(f"{k}: {before.get(k)!r} -> {settings[k]!r}" for k in differing)
            raise ValueError(f"A run resumes with the settings it was started with. {listed}.")

    def read_json(self):
        try:
            return json.loads(self.settings.read_text())
        except ValueError as error:
            raise ValueError(f"{self.settings} is not a run's settings: {error}.") from error

    def write_json(self, content):
        with replacing(self.settings) as temporary:
            temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def read_history(self):
        """The rows of `history.csv`, numbers as floats."""
        if not self.history.exists():
            return []
        with self.history.open(newline="") as file:
            return [
                {key: float(value) for key, value in row.items()} for row in csv.DictReader(file)
            ]

    def keep_history(self, epochs):
        """Cuts the history back to its first epochs: those that the saved state has seen."""
        rows = self.read_history()[:epochs]
        if not rows:
            self.history.unlink(missing_ok=True)
            return
        with replacing(self.history) as temporary, temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows({**row, "epoch": int(row["epoch"])} for row in rows)


@contextlib.contextmanager
def replacing(path):
    """`with replacing(path) as temporary:` writes a file that is then there whole or not at all."""
    # The suffix stays last: Keras chooses the format by it.
    temporary = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
