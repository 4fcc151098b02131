"""Random search as one program against random search trial by trial, as a ratio of trials an hour.

    python -m benchmarks.search --depth 10 50

The peer is what a keras-tuner user writes: `keras_tuner.RandomSearch` over a network with two Dense
layers a block. Both search the same space on the same MNIST images with as many epochs. Each run is
a process of its own; its time includes building and compiling, not importing and reading images.
Half of the peer's trials run before ours and half after, so that a machine that slows down slows
both.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

BATCH_SIZE = 128
PROJECTED = {"images": 60_000, "epochs": 20}


def main(arguments=None):
    """Measures and prints; with `--run`, is one of the runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search")
    parser.add_argument("--depth", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--trials", type=int, default=100, help="ours (default: 100)")
    parser.add_argument("--stock-trials", type=int, default=10, help="the peer's (default: 10)")
    parser.add_argument("--limit", type=int, default=10_000, help="images (default: 10000)")
    parser.add_argument("--epochs", type=int, default=1, help="of a trial (default: 1)")
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        print(json.dumps(_timed(options)))
        return
    for depth in options.depth:
        _compare(options, depth)


def _compare(options, depth):
    half = options.stock_trials // 2
    stock = [_process(options, "stock", depth, half, options.epochs)]
    ours = _process(options, "population", depth, options.trials, options.epochs)
    stock.append(_process(options, "stock", depth, options.stock_trials - half, options.epochs))
    size = f"{options.limit} images, {options.epochs} epochs"
    print(f"depth {depth}, {size}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, run in (
        ("stock, before", stock[0]),
        ("population", ours),
        ("stock, after", stock[1]),
    ):
        print(
            f"  {name:<14}n={run['trials']:<4}{3600 * run['trials'] / run['seconds']:>8.0f} trials "
            f"an hour{run['cpu'] / run['trials']:>8.2f} CPU s a trial{run['peak_mb']:>7.0f} MB"
        )
    print(f"  population / stock, trials an hour: {_ratio(ours, stock, 'seconds'):.1f}")
    print(f"  population / stock, trials a CPU hour: {_ratio(ours, stock, 'cpu'):.1f}")
    _project(options, depth, [_sum(stock), ours])


def _project(options, depth, short):
    """Time a trial is a start and so much a step: two lengths give both, for any length."""
    epochs = options.epochs + 2
    long = [
        _process(options, "stock", depth, min(4, options.stock_trials), epochs),
        _process(options, "population", depth, min(20, options.trials), epochs),
    ]
    steps = -(-options.limit // BATCH_SIZE)
    whole = -(-PROJECTED["images"] // BATCH_SIZE) * PROJECTED["epochs"]
    costs = []
    for name, one, other in zip(("stock", "population"), short, long, strict=True):
        a_trial = [run["cpu"] / run["trials"] for run in (one, other)]
        a_step = (a_trial[1] - a_trial[0]) / (steps * (epochs - options.epochs))
        costs.append(a_trial[0] + a_step * (whole - steps * options.epochs))
        print(f"  {name}: {1000 * a_step:.2f} CPU ms a step, {costs[-1]:.0f} CPU s in 20 epochs")
    print(f"  projected to all images and 20 epochs, trials a CPU hour: {costs[0] / costs[1]:.1f}")


def _ratio(ours, stock, unit):
    stock = _sum(stock)
    return (stock[unit] / stock["trials"]) / (ours[unit] / ours["trials"])


def _sum(runs):
    return {key: sum(run[key] for run in runs) for key in runs[0]}


def _process(options, run, depth, trials, epochs):
    command = [sys.executable, "-m", "benchmarks.search", "--run", run]
    sizes = {"--depth": depth, "--trials": trials, "--epochs": epochs, "--limit": options.limit}
    for name, value in sizes.items():
        command += [name, str(value)]
    if options.data_dir:
        command += ["--data-dir", options.data_dir]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def _timed(options):
    import resource

    import numpy as np

    from highway_keras import data

    images = data.load("mnist", data_dir=options.data_dir, validation=0.0, limit=options.limit)
    x, y = images.x_train / np.float32(256), images.y_train
    search = RUNS[options.run](options.depth[0], options.trials)
    with tempfile.TemporaryDirectory() as folder:
        begun, cpu = time.perf_counter(), time.process_time()
        search(folder, x, y, epochs=options.epochs, batch_size=BATCH_SIZE, verbose=0)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"trials": options.trials, "seconds": seconds, "cpu": cpu, "peak_mb": peak}


def _population(depth, trials):
    from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch

    def search(folder, *images, **arguments):
        tuner = PopulationRandomSearch(
            HighwayHyperModel(depth), "loss", max_trials=trials, directory=folder
        )
        tuner.search(*images, **arguments)

    return search


def _stock(depth, trials):
    import keras_tuner

    def search(folder, *images, **arguments):
        tuner = keras_tuner.RandomSearch(
            _two_dense(depth),
            "loss",
            max_trials=trials,
            seed=1,
            max_consecutive_failed_trials=trials + 1,
            directory=folder,
        )
        tuner.search(*images, **arguments)

    return search


def _two_dense(depth):
    """The same space over what a Keras user writes: two Dense layers a block."""
    import keras

    from highway_keras.tuning import HighwayHyperModel

    class TwoDense(HighwayHyperModel):
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
            optimizer = keras.optimizers.SGD(
                values["learning_rate"], 1 - values["one_minus_momentum"]
            )
            model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
            return model

    return TwoDense(depth)


RUNS = {"stock": _stock, "population": _population}

if __name__ == "__main__":
    main()
