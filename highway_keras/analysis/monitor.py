"""A callback that watches the gates while a network trains."""

import pathlib

import keras
import numpy as np

from highway_keras.analysis.blocks import observe
from highway_keras.analysis.gating import bias_of
from highway_keras.results import read_rows
from highway_keras.util.extras import extra
from highway_keras.util.files import write_rows

COLUMNS = ("epoch", "layer", "mean_gate", "open_gates", "mean_bias")


class GateMonitor(keras.callbacks.Callback):
    """A log of what the gates of each layer do, before training and after every epoch.

    - `mean_gate`: the mean transform gate over samples, positions and units;
    - `open_gates`: the share of gates above 0.5;
    - `mean_bias`: the mean bias of the transform gate.

    They are written to `gates.csv`, one row per epoch and layer with epoch 0 as the start, and
    as TensorBoard scalars `mean_gate/LAYER` and so on, for `tensorboard --logdir FOLDER`. A
    training that begins at a later epoch (`initial_epoch`) continues the file.

    Args:
        sample: Some samples as the trained model takes them, always the same; a few hundred are
            enough.
        folder: Where to write; it is created if it does not exist.

    Raises:
        ValueError: At the start of training, if the model has no gated layers.
        ModuleNotFoundError: Without TensorBoard, of the extra `train`.

    Examples:
        >>> import tempfile
        >>> import keras
        >>> import numpy as np
        >>> from highway_keras import analysis, models
        >>> x, y = np.zeros((32, 8)), np.zeros(32, int)
        >>> network = models.thin_mlp(depth=3, input_shape=(8,))
        >>> network.compile("sgd", "sparse_categorical_crossentropy")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     monitor = analysis.GateMonitor(x[:8], folder)
        ...     _ = network.fit(x, y, verbose=0, callbacks=[monitor])
    """

    def __init__(self, sample, folder):
        super().__init__()
        self.sample = sample
        self.folder = pathlib.Path(folder).expanduser()
        self.file = self.folder / "gates.csv"

    def on_train_begin(self, logs=None):
        with extra("train"):
            from tensorboard.summary import Writer

        self.gates, self.blocks = observe(self.model)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.writer = Writer(str(self.folder))
        self.rows = None

    def on_epoch_begin(self, epoch, logs=None):
        if self.rows is not None:
            return
        earlier = read_rows(self.file) if epoch else []
        self.rows = [row for row in earlier if int(row["epoch"]) <= epoch]
        if not self.rows:
            self._write(epoch)

    def on_epoch_end(self, epoch, logs=None):
        self._write(epoch + 1)

    def on_train_end(self, logs=None):
        self.writer.close()

    def _write(self, epoch):
        gates = self.gates.predict(self.sample, verbose=0)
        for gate, block in zip(keras.tree.flatten(gates), self.blocks, strict=True):
            numbers = gate.mean(), np.mean(gate > 0.5), bias_of(block).mean()
            row = dict(zip(COLUMNS, (epoch, block.name, *map(float, numbers)), strict=True))
            self.rows.append(row)
            for name in COLUMNS[2:]:
                self.writer.add_scalar(f"{name}/{block.name}", row[name], epoch)
        write_rows(self.file, self.rows, COLUMNS)
        self.writer.flush()
