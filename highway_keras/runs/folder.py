"""The folder of a run: what is in it, and what makes it safe to continue."""

import contextlib
import csv
import hashlib
import json
import pathlib
import re
import zipfile

import keras
import numpy as np

from highway_keras.runs import HELD, PROSE, check_free
from highway_keras.util import checks
from highway_keras.util.files import (
    LEFTOVERS,
    folder_lock,
    is_transient,
    read_text,
    replacing,
    write_rows,
    write_text,
)

# Settings that are not compared: they do not affect training, or a fingerprint stands in for them
DESCRIPTIVE = (
    "class_names",
    "class_weight",
    "diverged",
    "edge_brightness",
    "image_shape",
    "results",
    "stopped",
    "test_images",
)
# Settings that are fingerprints, each with the argument that a message names if that differs, too
BEHIND = {"images": "image_shape", "loss_weights": "class_weight"}
# Settings that are paths, each with the fingerprint of what is there: it may move
MOVABLE = {"dataset": "images", "weights": "weights_sha256"}
# What `results` in `run.json` must hold. Add none: older runs lack it and would be refused.
MEASURED = ("test_accuracy", "test_loss", "best_epoch")


class RunFolder:
    """Paths of a run, its settings and its history.

    ```
    best.keras          the network with its preprocessing, as of the best epoch
    final.keras         the same, as of the last epoch
    confusion.png       test images by class and by the class they are taken for
    curves.png          losses by epoch
    history.csv         a row per epoch
    machine.json        what it was trained on, and for how long
    run.json            settings, and results once it has ended, or the epoch in which it diverged
    state.npz           weights, optimizer, settings and history, to resume from
    tensorboard/        for `tensorboard --logdir`, with the TensorFlow backend
    ```

    Files are written under another name and renamed, so a run killed at any moment leaves no
    half-written file. Weights, epoch and history that a run resumes from are one file, so they
    never disagree; the best network so far must be there, too, unless it is that of the last epoch.

    Args:
        path: Path of the folder, which need not exist yet.
    """

    def __init__(self, path):
        self.path = checks.path("out", path)
        self.best = self.path / "best.keras"
        self.final = self.path / "final.keras"
        self.confusion = self.path / "confusion.png"
        self.curves = self.path / "curves.png"
        self.history = self.path / "history.csv"
        self.machine = self.path / "machine.json"
        self.settings = self.path / "run.json"
        self.state = self.path / "state.npz"
        self.tensorboard = self.path / "tensorboard"

    def owns(self, path):
        """Return whether a path is that of one of these files."""
        files = (file for file in vars(self).values() if file != self.path)
        return pathlib.Path(path).resolve() in {file.resolve() for file in files}

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
            settings: Dictionary that `run.json` will hold. What affects the training (model, data,
                seed and the numbers of the recipe) must be the same in the existing run and in its
                saved state; only its epochs may differ, if they do not decide the rate and are not
                fewer than it was trained for.
            resume: Whether to continue an existing run.

        Returns:
            Whether the run has another number of epochs than before.

        Raises:
            ValueError: If there is already a run and `resume` is off, or its settings differ or
                are gone.
            OSError: If the folder cannot be written.
        """
        settings = json.loads(json.dumps(settings, default=lambda number: number.item()))  # NumPy's
        if not resume:
            check_free(self.path)
        recorded = [self.read_json()] if self.settings.exists() else []
        state = self.read_state() if self.state.exists() else None
        recorded += [state["settings"]] if state else []
        trained = len(state["history"]) if state else 0
        changes = [_changes_epochs(before, settings, trained) for before in recorded]
        for before, changed in zip(recorded, changes, strict=True):
            if changed:
                before = _planned(before, settings["recipe"]["epochs"])
            check_same_settings(before, settings, f"the run in {self.path}")
        # A search whose run.json is gone can continue, even if it has a best.keras.
        held = HELD if "model" in settings else set(HELD) - {"best.keras", "final.keras"}
        if not recorded and any((self.path / name).exists() for name in held):
            raise ValueError(
                f"`out` holds a run whose settings are gone. Received: out={self.path} without "
                "run.json. Restore that file, or delete the folder to start over."
            )
        before = recorded[0] if recorded else settings
        moved = {name: settings[name] for name in MOVABLE if settings.get(name)}
        if not self.settings.exists() or before | moved != before:
            self.write_json(before | moved)
        return bool(changes) and changes[0]  # in `run.json`, if that is there

    def plan(self, epochs):
        """Make `run.json` that of a run of so many epochs, which has not ended."""
        self.write_json(_planned(self.read_json(), epochs))

    def read_json(self):
        """Return what `run.json` holds, a dictionary.

        Raises:
            ValueError: If it is damaged.
        """
        try:
            content = json.loads(read_text(self.settings))
            parts = [content, content.get("recipe", {}), content.get("results", {})]
            if not all(isinstance(part, dict) for part in parts):
                raise ValueError("not a dictionary")
            if "results" in content and not all(checks.is_number(parts[2][k]) for k in MEASURED):
                raise ValueError("results that are no numbers")
        except (AttributeError, KeyError, RecursionError, ValueError) as error:
            raise ValueError(
                f"The run's settings {self.settings} cannot be read. Restore that file from a "
                "copy, or delete it: a run then resumes with the settings of its saved state."
            ) from error
        return content

    def write_json(self, content):
        """Write `run.json`; a row of numbers takes one line."""
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        text = re.sub(r"\[\n[\s\d.,-]+\]", lambda row: "".join(row[0].split()), text)
        write_text(self.settings, text)

    def identity(self):
        """Return 16 hexadecimal digits that mark the networks that this run saves."""
        whole = {**_compared(self.read_json()), "epochs": None}  # whatever their number
        lasting = {key: v for key, v in whole.items() if MOVABLE.get(key) not in whole}
        return hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()[:16]

    def saved(self, path):
        """Return whether this run saved the network in a file, which may carry no mark."""
        return mark_in(path)[0] in ("", self.identity())

    @property
    def has_ended(self):
        """Whether the run was trained to its end and measured."""
        return self.settings.exists() and "results" in self.read_json()

    @property
    def epochs(self):
        """Epochs of a run that has ended: fewer than planned if a callback stopped it."""
        settings = self.read_json()
        return settings["results"].get("epochs", settings.get("recipe", {}).get("epochs"))

    def read_history(self):
        """Return the rows of `history.csv`, with numbers as floats.

        Raises:
            ValueError: If it is damaged, or lacks epochs of a run that has ended.
        """
        has_ended = self.has_ended
        try:
            lines = read_text(self.history).splitlines() if self.history.exists() else []
            read = csv.DictReader(lines)
            # NA where no images are held out.
            rows = [{k: float(v) for k, v in row.items() if v != "NA"} for row in read]
            found = [row["epoch"] for row in rows if {"loss", "accuracy"} <= row.keys()]
            if found != list(range(self.epochs if has_ended else len(rows))):
                raise ValueError("not a row for each epoch")
        except (KeyError, TypeError, ValueError, csv.Error) as error:
            raise ValueError(
                f"The run's history {self.history} cannot be read, or lacks epochs. Resume the "
                "run, which restores it, or delete the folder to start anew."
            ) from error
        return rows

    def save_state(self, model, history):
        """Save what the run of a compiled model resumes from, after the epochs of `history`.

        It is one file, replaced as a whole.
        """
        arrays = {}
        for number, variable in enumerate([*model.weights, *model.optimizer.variables]):
            array = keras.ops.convert_to_numpy(variable)  # NumPy's files lack bfloat16
            arrays[f"{number}"] = array.astype("float32") if array.dtype.kind == "V" else array
        run = json.dumps({"settings": self.read_json(), "history": history})
        with replacing(self.state) as temporary:
            np.savez(temporary, **arrays, run=run)

    def read_state(self):
        """Return the settings and the history that the saved state was made with.

        Raises:
            ValueError: If it is damaged.
        """
        with self._opened_state() as state:
            return json.loads(str(state["run"]))

    def saved_history(self):
        """Return the rows of `history.csv` that the saved state has; none without a state."""
        return self.read_state()["history"] if self.state.exists() else []

    def write_history(self, rows):
        """Write `history.csv`."""
        write_rows(self.history, rows)

    def restore_state(self, model):
        """Load the saved state, if there is one, and rewrite `history.csv` from it.

        Raises:
            ValueError: If the state is damaged, or gone although an epoch was saved.
        """
        rows = self.saved_history()
        if rows:
            self.load_weights(model)
            self.write_history(rows)
        elif self.has_ended:
            raise ValueError(
                f"The run in {self.path} has ended, and its saved state is gone. Its results are "
                "in run.json; delete the folder to start anew."
            )
        elif self.history.is_file() and self.history.read_bytes().count(b"\n") > 2:
            # The row of the first epoch is written before a state, that of the second one after.
            raise ValueError(
                f"The saved state of the run is gone: {self.state}. Restore it, or delete the "
                "folder to start anew."
            )
        else:
            self.history.unlink(missing_ok=True)

    def load_weights(self, model):
        """Load weights and optimizer of the saved state into the compiled model of the run."""
        variables = [*model.weights, *model.optimizer.variables]
        with self._opened_state() as state:
            arrays = [state[f"{number}"] for number in range(len(state.files) - 1)]
            if [array.shape for array in arrays] != [tuple(v.shape) for v in variables]:
                raise ValueError("of another model")
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)

    @contextlib.contextmanager
    def _opened_state(self):
        """Open the saved state; any error inside the `with` block counts as damage to the file."""
        try:
            with np.load(checks.existing_file("state", self.state)) as state:
                yield state
        except Exception as error:  # damaged archives raise errors of many kinds
            if is_transient(error):
                raise
            raise ValueError(
                f"The saved state {self.state} cannot be read. Delete the folder to start anew."
            ) from error


def mark(path, identity, epoch=""):
    """Note in a network's file which run saves it, and after which epoch, as `mark_in` reads it."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = f"{identity} {epoch}".strip().encode()


def mark_in(path):
    """Return `identity` and epoch of the run that saved a network; what its file lacks is empty."""
    try:
        with zipfile.ZipFile(path) as archive:
            identity, _, epoch = archive.comment.decode(errors="replace").partition(" ")
    except zipfile.BadZipFile:  # such as `.weights.h5`, or damaged, which loading it reports
        return "", ""
    return identity, epoch


def check_same_settings(before, now, what):
    """Raise a `ValueError` that lists the settings that differ, if any do."""
    described = before, now
    before, now = _compared(before), _compared(now)
    for source, content in MOVABLE.items():
        if content in before and before[content] == now.get(content):  # only moved
            now[source] = before.get(source)
    differing = [key for key in before | now if before.get(key) != now.get(key)]
    if differing:
        further = "epochs" in differing and "model" in before  # a search cannot
        listed = []
        for key in differing:
            values = [settings.get(key) for settings in (before, now)]
            shown = BEHIND.get(key)
            passed = [settings.get(shown) for settings in described]
            # Older runs recorded only the fingerprint, as do those with `sample_weight`.
            if passed[0] != passed[1] and all((key in s) == (shown in s) for s in described):
                key, values = shown, passed
            listed.append(f"{key}: {values[0]!r} → {values[1]!r}")
        raise ValueError(
            f"Cannot resume {what}: settings differ ({'; '.join(listed)}). Pass the earlier "
            "values, or name another folder"
            f"{', to train its best.keras further' if further else ''}."
        )


def _changes_epochs(before, now, trained):
    """Return whether the epochs differ, do not decide the rate, and are those trained or more."""
    before, now = before.get("recipe"), now.get("recipe")
    if not before or not now or now.get("schedule") == "cosine":
        return False
    return trained <= now["epochs"] != before.get("epochs")


def _planned(settings, epochs):
    kept = {key: value for key, value in settings.items() if key not in ("results", "stopped")}
    return {**kept, "recipe": {**kept["recipe"], "epochs": epochs}}


def _compared(settings):
    """Return the settings that affect the training, with those of the recipe at the top level."""
    kept = {key: value for key, value in settings.items() if key not in DESCRIPTIVE}
    recipe = kept.pop("recipe", {})
    return kept | {key: value for key, value in recipe.items() if key not in PROSE}
