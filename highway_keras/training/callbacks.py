"""What the trainer adds to Keras's own callbacks: epochs that can be repeated, and checkpoints."""

import keras
import numpy as np

from highway_keras.training.evaluation import compare, outputs
from highway_keras.util import checks

_DRAWS_AN_EPOCH = 2**20


def check_users_own(callbacks, schedule):
    """Raise unless `callbacks` are Keras's, and agree with ours and with the recipe's schedule."""
    if not isinstance(callbacks, list | tuple) or not all(
        isinstance(callback, keras.callbacks.Callback) for callback in callbacks
    ):
        raise TypeError(
            "`callbacks` must be a list of `keras.callbacks.Callback`. "
            f"{checks.received('callbacks', callbacks)}"
        )
    if any(isinstance(c, keras.callbacks.BackupAndRestore) for c in callbacks):
        raise ValueError(
            "`callbacks` must not hold a BackupAndRestore, which starts at an epoch of its own: "
            "`resume=True` continues a run."
        )
    sets_rate = keras.callbacks.ReduceLROnPlateau | keras.callbacks.LearningRateScheduler
    if schedule != "constant" and any(isinstance(c, sets_rate) for c in callbacks):
        raise ValueError(
            "`callbacks` that set the learning rate need schedule='constant' and decay=1.0. "
            f"{checks.received('schedule', schedule)}"
        )


class EpochSeeds(keras.callbacks.Callback):
    """Set the state of dropout and augmentation from the seed and the epoch alone.

    Keras's checkpoints leave it out. With this, an epoch draws the same numbers whether or not the
    run was interrupted before it.
    """

    def __init__(self, seed):
        super().__init__()
        self.seed, self.epoch = seed, 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        states = [v for v in self.model.variables if v.path.endswith("seed_generator_state")]
        for index, state in enumerate(states):
            start = [self.seed * 1000 + index, epoch * _DRAWS_AN_EPOCH]
            state.assign(np.array(start, "uint64").astype("uint32"))

    def on_train_batch_begin(self, batch, logs=None):
        # Under PyTorch, Keras's dropout without a seed draws from PyTorch's generator.
        # `on_epoch_begin` would be too early to seed it: in the first epoch after a start or
        # resumption, the iterator over the batches is made after that call, and draws a number,
        # too.
        if batch == 0 and keras.backend.backend() == "torch":
            import torch

            state = np.random.SeedSequence([self.seed, self.epoch]).generate_state(1)
            torch.manual_seed(int(state[0]))


class Measured(keras.callbacks.Callback):
    """Add `PREFIX_loss` and `PREFIX_accuracy` of a network on raw images to every epoch's logs."""

    def __init__(self, prefix, network, x, y):
        super().__init__()
        self.prefix, self.network, self.x, self.y = prefix, network, x, y

    def on_epoch_end(self, epoch, logs=None):
        # Like Keras's metrics, accept outputs that are NaN: the loss is then NaN, too.
        loss, accuracy = compare(outputs(self.network(), self.x), self.y)
        logs |= {f"{self.prefix}_loss": loss, f"{self.prefix}_accuracy": accuracy}


class Checkpoint(keras.callbacks.Callback):
    """Save history, the state to resume from and the best network so far after every epoch.

    Keras's `BackupAndRestore` and `ModelCheckpoint` do not survive a kill at every moment: the
    former writes weights and epoch to two files in turn, the latter overwrites the previous file.
    When the loss or a weight is no longer finite, training ends, `has_diverged` is true, and of
    that epoch only the row in the history is saved. The history is written whole, since an editor
    may have put another one there, which Keras's `CSVLogger` would append to.

    The best network has the highest value of the metric `monitor`; with `None`, it is the last one.
    """

    def __init__(self, folder, save, monitor, best=-np.inf):
        super().__init__()
        self.folder, self.save, self.monitor, self.best = folder, save, monitor, best
        self.rows, self.has_diverged, self.rate = folder.saved_history(), False, None

    def on_epoch_begin(self, epoch, logs=None):
        self._save_changed_rate()

    def on_train_end(self, logs=None):
        if self.has_diverged:
            return
        self._save_changed_rate()  # the run may go on to more epochs
        if self.model.stop_training:  # by a callback, whose state is not saved
            self.folder.write_json({**self.folder.read_json(), "stopped": len(self.rows)})

    def on_epoch_end(self, epoch, logs=None):
        row = {"val_loss": "NA", "val_accuracy": "NA", **logs}
        self.rows.append({"epoch": str(epoch), **{name: str(row[name]) for name in sorted(row)}})
        self.folder.write_history(self.rows)
        # The loss was measured before the epoch's last step, which may have spoiled the weights.
        weights = map(keras.ops.convert_to_numpy, self.model.weights)
        if not np.isfinite(logs["loss"]) or not all(np.isfinite(w).all() for w in weights):
            self.model.stop_training = self.has_diverged = True
            return
        self.folder.save_state(self.model, self.rows)
        self.rate = self._current_rate()
        value = logs[self.monitor] if self.monitor else epoch
        if value > self.best:  # after the state, which can bring it back if a kill comes between
            self.best = value
            self.save(self.folder.best, len(self.rows))

    def _save_changed_rate(self):
        if self.rate not in (None, self._current_rate()):  # set by a callback after this one
            self.folder.save_state(self.model, self.rows)

    def _current_rate(self):
        return float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
