"""Random search as one program against random search trial by trial, as ratios of trials.

    python -m benchmarks.search --depth 10 50

The peer is what a keras-tuner user writes: `keras_tuner.RandomSearch` over a network with two Dense
layers per block. Both search the same space on the same MNIST images for the same number of epochs.
Each run has its own process; its time includes building and compiling, but not what a process does
once, for which a trial of two layers runs first. Half of the peer's trials run before ours and half
after, so a machine that slows down slows both.
"""

import tempfile

import keras
import keras_tuner
import numpy as np

from benchmarks import measurements
from benchmarks.peers.with_keras import two_dense
from benchmarks.turns import take_turns
from highway_keras import data
from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch

BATCH_SIZE = 128


def main(arguments=None):
    parser = measurements.parser("benchmarks.search", __doc__)
    parser.add_argument("--depth", type=int, nargs="+", default=[10, 50])
    sizes = {"trials": 100, "stock-trials": 4, "limit": 10_000, "epochs": 1}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default: {default}")
    options = parser.parse_args(arguments)
    asked = {name: getattr(options, name.replace("-", "_")) for name in sizes}
    for depth in options.depth:
        row = compare(depth, options)
        keys = ("depth", "images", "epochs")
        measurements.record([row], keys, options.out, "benchmarks.search", depth=depth, **asked)


def compare(depth, options):
    """Return how the two searches compare at a depth."""

    def run(name, trials, seed=1):
        print(f"depth {depth}, {name}", flush=True)
        asked = (name, depth, trials, options.epochs, seed, options.limit)
        return take_turns({name: ("benchmarks.search:work", *asked)}, 0)[name][0]

    half = options.stock_trials // 2
    before = run("stock", half)
    ours = run("population", options.trials)
    after = run("stock", options.stock_trials - half, seed=2)
    row = {"depth": depth, "images": options.limit, "epochs": options.epochs}
    row |= {"n": options.trials, "stock_n": options.stock_trials}
    for unit in ("seconds", "cpu"):
        stock = (before[unit] + after[unit]) / options.stock_trials
        row[f"ratio_{unit}"] = stock / (ours[unit] / options.trials)
    return row


def work(name, depth, trials, epochs, seed, limit):
    """Search in the first turn."""
    images = data.load("mnist", validation=0.0, limit=limit)
    x, y = images.x_train, images.y_train
    # What a process does once, however many trials it has
    search(name, x[:BATCH_SIZE], y[:BATCH_SIZE], depth=2, trials=1, epochs=1, seed=seed)
    yield
    search(name, x, y, depth, trials, epochs, seed)
    yield


def search(name, x, y, depth, trials, epochs, seed=1):
    """Search with stock keras-tuner, `"stock"`, or with ours, `"population"`."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"objective": "loss", "max_trials": trials, "seed": seed, "directory": folder}
        if name == "stock":
            options["max_consecutive_failed_trials"] = trials + 1
            tuner = keras_tuner.RandomSearch(TwoDense(depth), **options)
        else:
            tuner = PopulationRandomSearch(HighwayHyperModel(depth), **options)
        x = x / np.float32(256)
        tuner.search(x, y, epochs=epochs, batch_size=BATCH_SIZE, verbose=0)


class TwoDense(HighwayHyperModel):
    """The search space of this library over what a Keras user writes: two Dense layers a block."""

    def build(self, hp):
        values = self.declare_hyperparameters(hp)
        activation, bias = values["activation"], values.get("transform_bias", -1.0)
        start = f"{'he' if activation == 'relu' else 'glorot'}_uniform"
        model = two_dense(self.depth, activation, bias, start)
        momentum = 1 - values["one_minus_momentum"]
        optimizer = keras.optimizers.SGD(values["learning_rate"], momentum)
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model


if __name__ == "__main__":
    main()
