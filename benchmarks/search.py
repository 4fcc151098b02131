"""Random search as one program against random search trial by trial, as ratios of trials.

    python -m benchmarks.search --depth 10 50

The peer is what a keras-tuner user writes: `keras_tuner.RandomSearch` over a network with two Dense
layers per block. Both search the same space on the same MNIST images for the same number of epochs.
Each run has its own process; its time includes building and compiling, but not importing, reading
images and what else a process does once, for which a trial of two layers runs first. Half of the
peer's trials run before ours and half after, so a machine that slows down slows both. Trials are
compared by time and by processor time.
"""

import collections
import tempfile

from benchmarks import measurements
from benchmarks.turns import Worker, take_turns

BATCH_SIZE = 128
SIZES = {
    "trials": (100, "trials of ours"),
    "stock_trials": (4, "trials of the peer, two or more"),
    "limit": (10_000, "images"),
    "epochs": (1, "epochs of a trial"),
}


def main(arguments=None):
    parser = measurements.parser("benchmarks.search", __doc__, data=True, **SIZES)
    parser.add_argument("--depth", type=int, nargs="+", default=[10, 50])
    options = parser.parse_args(arguments)
    if options.stock_trials < 2:  # half of them: none, which keras-tuner takes for no limit
        parser.error(f"--stock-trials must be 2 or more. Received: {options.stock_trials}.")
    asked, keys = {name: getattr(options, name) for name in SIZES}, ("depth", "images", "epochs")
    for depth in options.depth:
        row = _compare(options, depth)
        measurements.record([row], keys, options.out, "benchmarks.search", depth=depth, **asked)


def _compare(options, depth):
    """Return how the two compare at a depth."""

    def half(seed):
        trials = (options.stock_trials + seed - 1) // 2
        return collections.Counter(_run("stock", depth, trials, options, seed))

    before = half(1)
    ours = _run("population", depth, options.trials, options)
    stock = before + half(2)
    row = {"depth": depth, "images": options.limit, "epochs": options.epochs}
    row |= {"n": ours["trials"], "stock_n": stock["trials"]}
    row["an_hour"] = 3600 * ours["trials"] / ours["seconds"]
    row["stock_an_hour"] = 3600 * stock["trials"] / stock["seconds"]
    for unit in ("seconds", "cpu"):
        a_trial = (run[unit] / run["trials"] for run in (stock, ours))
        row[f"ratio_{unit}"] = next(a_trial) / next(a_trial)
    return row


def _run(name, depth, trials, options, seed=1):
    """Search in a new process, as its only turn, and return the figures."""
    asked = (name, depth, trials, options.epochs, seed, options.limit, options.data_dir)
    worker = Worker(name, "benchmarks.search:work", *asked)
    take_turns(
        [worker],
        0,
        lambda said: measurements.say(f"depth {depth}, {name}: {said}"),
        all_needed=True,
    )
    return worker.turns[0]


def work(name, depth, trials, epochs, seed, limit, data_dir):
    """Search in the first turn; report the number of trials."""
    import keras_tuner
    import numpy as np

    from highway_keras import data
    from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch

    def search(depth, trials, images, epochs):
        with tempfile.TemporaryDirectory() as folder:
            sizes = {"max_trials": trials, "directory": folder, "seed": seed}
            if name == "population":
                tuner = PopulationRandomSearch(HighwayHyperModel(depth), "loss", **sizes)
            else:
                sizes |= {"max_consecutive_failed_trials": trials + 1}
                tuner = keras_tuner.RandomSearch(two_dense_hypermodel(depth), "loss", **sizes)
            tuner.search(x[:images], y[:images], epochs=epochs, batch_size=BATCH_SIZE, verbose=0)

    images = data.load("mnist", data_dir=data_dir, validation=0.0, limit=limit)
    x, y = images.x_train / np.float32(256), images.y_train
    search(2, 1, BATCH_SIZE, 1)  # what a process does once, however many trials it has
    yield
    search(depth, trials, limit, epochs)
    yield {"trials": trials}


def two_dense_hypermodel(depth):
    """Return the search space of this library over what a Keras user writes."""
    import keras

    from benchmarks.peers.with_keras import two_dense
    from highway_keras.tuning import HighwayHyperModel

    class TwoDense(HighwayHyperModel):
        """The same space over what a Keras user writes: two Dense layers per block."""

        def build(self, hp):
            values = self.declare_hyperparameters(hp)
            activation, bias = values["activation"], values.get("transform_bias", -1.0)
            start = f"{'he' if activation == 'relu' else 'glorot'}_uniform"
            model = two_dense(self.depth, activation, bias, start)
            momentum = 1 - values["one_minus_momentum"]
            optimizer = keras.optimizers.SGD(values["learning_rate"], momentum)
            model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
            return model

    return TwoDense(depth)


if __name__ == "__main__":
    main()
