"""What `search.py` compares; each runs in the process of a `turns.Worker`."""

import json
import tempfile

import keras
import keras_tuner
import numpy as np

from highway_keras import data
from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch


def work(turns, run, options):
    """Search in the first turn; report the number of trials."""
    options = json.loads(options)
    images = data.load(
        "mnist", data_dir=options["data_dir"], validation=0.0, limit=options["limit"]
    )
    x, y = images.x_train / np.float32(256), images.y_train
    sizes = {"epochs": options["epochs"], "batch_size": options["batch_size"]}
    with tempfile.TemporaryDirectory() as folder:
        turns.wait()
        tuner = RUNS[run](options["depth"], options["trials"], folder)
        tuner.search(x, y, **sizes, verbose=0)
        turns.end(trials=options["trials"])


def _population(depth, trials, folder):
    return PopulationRandomSearch(
        HighwayHyperModel(depth), "loss", max_trials=trials, directory=folder
    )


def _stock(depth, trials, folder):
    return keras_tuner.RandomSearch(
        _TwoDense(depth),
        "loss",
        max_trials=trials,
        seed=1,
        max_consecutive_failed_trials=trials + 1,
        directory=folder,
    )


RUNS = {"stock": _stock, "population": _population}


class _TwoDense(HighwayHyperModel):
    """The same space over what a Keras user writes: two Dense layers per block."""

    def build(self, hp):
        values = self.declare_hyperparameters(hp)
        activation = values["activation"]
        kernel = "he_uniform" if activation == "relu" else "glorot_uniform"
        bias = keras.initializers.Constant(values.get("transform_bias", -1.0))
        options = {"kernel_initializer": kernel}
        inputs = keras.Input(self.input_shape)
        x = keras.layers.Flatten()(inputs)
        x = keras.layers.Dense(self.units, activation, **options)(x)
        for _ in range(self.depth - 1):
            h = keras.layers.Dense(self.units, activation, **options)(x)
            t = keras.layers.Dense(self.units, "sigmoid", bias_initializer=bias, **options)(x)
            x = h * t + x * (1 - t)
        model = keras.Model(inputs, keras.layers.Dense(self.classes, "softmax")(x))
        optimizer = keras.optimizers.SGD(values["learning_rate"], 1 - values["one_minus_momentum"])
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model
