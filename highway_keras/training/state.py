"""The live file of a run, `state.npz`: a run resumes from it, replaced whole after each epoch."""

import json
import time
import zipfile

import keras
import numpy as np

from highway_keras import models
from highway_keras.training.machine import here
from highway_keras.util import checks
from highway_keras.util.files import replacing, write_json

GENERATORS = 1000  # of a model, at most
DRAWS_PER_EPOCH = 2**20  # of a generator, at most
# Settings that describe a run and do not decide it
DESCRIPTIONS = ("dataset", "class_names", "recipe.name", "recipe.source", "recipe.reasons")


class State(keras.callbacks.Callback):
    """Weights, optimizer, best weights, history and settings of a run.

    They are one file, so they never disagree; every other file of a run is derived from it. An
    epoch that is not in it is trained again. The best epoch has the highest accuracy on held-out
    images, or is the last one without any.

    Args:
        folder: Folder of the run.
        settings: Dictionary that decides the training: a run resumes under equal settings only.
        trainee: The model that trains; its last layer is the network. It is compiled, and its
            optimizer built.
        complete: The model for `best.keras`; its last layer takes the best weights.
    """

    def __init__(self, folder, settings, trainee, complete):
        super().__init__()
        self.folder = folder
        self.settings = json.loads(json.dumps(settings, default=lambda number: number.item()))
        self.trainee, self.complete = trainee, complete
        self.history, self.sessions = [], []
        self.best_weights, self.best_epoch = None, 0
        self.has_stopped = self.has_diverged = False

    @property
    def has_ended(self):
        """Whether no epoch is left to train."""
        return self.has_stopped or len(self.history) >= self.settings["recipe"]["epochs"]

    @property
    def _variables(self):
        return [*self.trainee.weights, *self.trainee.optimizer.variables]

    def restore(self, path):
        """Restore weights and history from a file.

        Raises:
            ValueError: If the settings of the run differ, or the file is damaged.
        """
        arrays = read_state(path)
        run = json.loads(str(arrays["run"]))
        self._check_same_run(run["settings"], len(run["history"]), path.parent)
        self.history, self.sessions = run["history"], run["sessions"]
        self.best_epoch = run["best_epoch"]
        self.best_weights = [array for key, array in arrays.items() if key.startswith("best-")]
        same_epochs = run["settings"]["recipe"]["epochs"] == self.settings["recipe"]["epochs"]
        self.has_stopped = run["has_stopped"] and same_epochs
        self._save_best()  # first, because it may set the network's weights; the file may be older
        for number, variable in enumerate(self._variables):
            variable.assign(arrays[f"variable-{number}"])

    def _check_same_run(self, earlier, epochs_done, folder):
        before, now = _flat(earlier), _flat(self.settings)
        if now["recipe.schedule"] != "cosine" and now["recipe.epochs"] >= epochs_done:
            before["recipe.epochs"] = now["recipe.epochs"]  # a run may continue to more epochs
        checks.same_settings(folder, before, now)

    def on_train_begin(self, logs=None):
        """Note where and when this process begins to train."""
        first = len(self.history)
        self.sessions.append({**here(), "first_epoch": first, "last_epoch": first, "seconds": 0})
        self.session_began = time.perf_counter()
        self.write_run()

    def on_epoch_end(self, epoch, logs=None):
        """Save the epoch, unless the loss or a weight is no longer finite."""
        network = self.trainee.layers[-1]
        weights = [array.copy() for array in network.get_weights()]  # PyTorch's are views
        if not np.isfinite(logs["loss"]) or not all(np.isfinite(a).all() for a in weights):
            self.model.stop_training = self.has_diverged = True
            return
        self.history.append({"epoch": epoch, **{key: float(v) for key, v in logs.items()}})
        self.has_stopped = self.model.stop_training
        values = [row.get("val_accuracy", row["epoch"]) for row in self.history]
        is_best = values[-1] > max(values[:-1], default=-np.inf)
        if is_best:
            self.best_weights, self.best_epoch = weights, epoch + 1
        took = time.perf_counter() - self.session_began
        self.sessions[-1] |= {"last_epoch": epoch + 1, "seconds": round(took, 1)}
        self._save()
        if is_best:
            self._save_best()

    def _save(self):
        arrays = {f"variable-{n}": _for_numpy(v) for n, v in enumerate(self._variables)}
        arrays |= {f"best-{n}": _for_numpy(v) for n, v in enumerate(self.best_weights)}
        run = {
            "settings": self.settings,
            "history": self.history,
            "sessions": self.sessions,
            "best_epoch": self.best_epoch,
            "has_stopped": self.has_stopped,
        }
        with replacing(self.folder / "state.npz") as temporary:
            np.savez(temporary, **arrays, run=json.dumps(run))

    def _save_best(self):
        self.complete.layers[-1].set_weights(self.best_weights)
        about = {key: self.settings[key] for key in ("class_names", "dataset", "model")}
        about["preprocessing"] = self.settings["recipe"]["preprocessing"]
        models.save(self.folder / "best.keras", self.complete, **about)

    def write_run(self, **results):
        """Write `run.json`."""
        write_json(self.folder / "run.json", {**self.settings, "machine": self.sessions, **results})


def read_state(path):
    """Return the arrays in the live file of a run, and `run`, JSON with all else."""
    try:
        with path.open("rb") as file, np.load(file) as state:
            return dict(state)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"The saved state {path} is damaged. Delete the folder to start anew."
        ) from error


def _flat(settings):
    """Return the settings that decide a run, with the recipe's as `recipe.epochs`."""
    flat = settings | {f"recipe.{key}": value for key, value in settings["recipe"].items()}
    return {key: value for key, value in flat.items() if key not in ("recipe", *DESCRIPTIONS)}


def _for_numpy(array):
    array = keras.ops.convert_to_numpy(array)
    return array.astype("float32") if array.dtype.kind == "V" else array  # bfloat16


class EpochSeeds(keras.callbacks.Callback):
    """Set the state of dropout and augmentation from the seed and the epoch alone.

    An epoch then draws the same numbers whether or not the run was interrupted before it.
    """

    def __init__(self, seed):
        super().__init__()
        self.seed, self.epoch = seed, 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        states = [v for v in self.model.variables if v.path.endswith("seed_generator_state")]
        for index, state in enumerate(states):
            start = [self.seed * GENERATORS + index, epoch * DRAWS_PER_EPOCH]
            state.assign(np.array(start, "uint64").astype("uint32"))

    def on_train_batch_begin(self, batch, logs=None):
        # Under PyTorch, Keras's dropout without a seed draws from PyTorch's generator. The iterator
        # over the batches draws a number, too, after `on_epoch_begin` of a session's first epoch.
        if batch == 0 and keras.backend.backend() == "torch":
            import torch

            state = np.random.SeedSequence([self.seed, self.epoch]).generate_state(1)
            torch.manual_seed(int(state[0]))
