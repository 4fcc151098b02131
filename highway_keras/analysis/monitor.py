"""A callback that watches the gates while a network trains."""

import csv

import keras
import numpy as np

from highway_keras.analysis.gating import block_biases, observer
from highway_keras.analysis.graph import Graph
from highway_keras.analysis.samples import as_arrays, by_batch
from highway_keras.util import checks
from highway_keras.util.extras import extra
from highway_keras.util.messages import cell

COLUMNS = ("epoch", "layer", "mean_gate", "open_gates", "mean_bias")


class GateMonitor(keras.callbacks.Callback):
    """A log of what the gates of each layer do, before training and after every epoch.

    - `mean_gate`: the mean transform gate over samples, positions and units;
    - `open_gates`: the share of gates above 0.5;
    - `mean_bias`: the mean bias of the transform gate.

    They are written to `gates.csv`, one row per epoch and layer with epoch 0 as the start, and
    as TensorBoard scalars `mean_gate/LAYER` and so on, for `tensorboard --logdir FOLDER`.

    Args:
        sample: Some samples as the trained model takes them, always the same; a few hundred are
            enough.
        folder: Where to write; it is created if it does not exist.
        append: Whether to append to what `folder` holds, for a model that is trained further. A
            run that resumes at a later epoch always does. Otherwise the folder must be new.
        batch_size: Samples per batch. Default: 500, fewer if they are large.

    Raises:
        TypeError: At the start of training, if the model is a subclassed one.
        ValueError: At the start of training, if the model has no gated layers, `sample` does not
            fit it, or `folder` holds the gates of another run.

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

    def __init__(self, sample, folder, append=False, batch_size=None):
        super().__init__()
        self.sample, self.append, self.batch_size = sample, append, batch_size
        self.folder = checks.path("folder", folder)

    def on_train_begin(self, logs=None):
        with extra("train"):
            from tensorboard.summary import Writer

        self._graph = Graph(self.model)
        self._arrays = as_arrays(self.sample, self._graph.inputs, "sample")
        self._gates = observer(self._graph, "gates", per_position=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._events, self._file = Writer(str(self.folder)), None

    def on_epoch_begin(self, epoch, logs=None):
        if self._file is not None:
            return
        path = self.folder / "gates.csv"
        exists = path.exists()
        continues = (self.append or epoch > 0) and exists
        before = path.read_text("utf-8").splitlines() if exists and not continues else ()
        if any(row.get("epoch") != "0" for row in csv.DictReader(before)):
            raise ValueError(
                "`folder` must not hold the gates of another run. Received: "
                f"folder={self.folder}. Pass another one, or append=True."
            )
        self._file = path.open("a" if continues else "w", newline="", encoding="utf-8")
        self._rows = csv.DictWriter(self._file, COLUMNS)
        if not continues:
            self._rows.writeheader()
            self._write(epoch)

    def on_epoch_end(self, epoch, logs=None):
        self._write(epoch + 1)

    def on_train_end(self, logs=None):
        if self._file is not None:  # else there was no epoch left to train
            self._file.close()
        self._events.close()

    def _write(self, epoch):
        sums = 0.0  # of the mean gate and the share of open gates of each layer
        for part, gates in by_batch(self._gates, self._arrays, self.batch_size, verbose=0):
            means = [[gate.mean(), (gate > 0.5).mean()] for gate in gates]
            sums = sums + (part.stop - part.start) * np.array(means)
        measured = (sums / len(self._arrays[0])).tolist()
        biases = block_biases(self._graph)
        for layer, values, bias in zip(self._graph.blocks, measured, biases, strict=True):
            row = dict(zip(COLUMNS, (epoch, layer, *values, float(bias.mean())), strict=True))
            self._rows.writerow({key: cell(value) for key, value in row.items()})
            for name in COLUMNS[2:]:
                self._events.add_scalar(f"{name}/{layer}", row[name], epoch)
        self._file.flush()
        self._events.flush()
