"""Random search as one program against random search trial by trial, as ratios of trials.

    python -m benchmarks.search --depth 10 50

The peer is what a keras-tuner user writes: `keras_tuner.RandomSearch` over a network with two Dense
layers per block. Both search the same space on the same MNIST images for the same number of epochs.
Each run has its own process; its time includes building and compiling, not importing and reading
images. Half of the peer's trials run before ours and half after, so a machine that slows down slows
both. Trials count per hour, and per hour of processor time; a projection to longer trials knows
only the latter. `search_runs.py` holds the two.
"""

import argparse
import json
import pathlib
import sys

from benchmarks import report
from benchmarks.turns import NO_LIMIT, Worker, take_turns

BATCH_SIZE = 128
PROJECTED = {"images": 60_000, "epochs": 20}
LONGER = 2  # epochs, of the runs that a projection is made from
AN_HOUR = "an hour of processor time"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search")
    sizes = {
        "--trials": (100, "ours"),
        "--stock-trials": (10, "the peer's"),
        "--limit": (10_000, "images"),
        "--epochs": (1, "of a trial"),
    }
    parser.add_argument("--depth", type=report.positive, nargs="+", default=[10, 50])
    for name, (default, text) in sizes.items():
        text = f"{text} (default: {default})"
        parser.add_argument(name, type=report.positive, default=default, help=text)
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    report.add_out(parser)
    options = parser.parse_args(arguments)
    for depth in options.depth:
        row = _compare(options, depth)
        if options.out:
            names = ("trials", "stock_trials", "limit", "epochs")
            asked = {name: getattr(options, name) for name in names}
            command = report.command("benchmarks.search", depth=depth, **asked)
            report.save(options.out, [row], ("depth", "images", "epochs"), command)


def _compare(options, depth):
    """Print how the two compare at a depth; return the figures as a row."""
    half = options.stock_trials // 2
    runs = {
        "stock, before": ("stock", half),
        "population": ("population", options.trials),
        "stock, after": ("stock", options.stock_trials - half),
    }
    done = {
        name: _run(options, run, depth, trials, options.epochs)
        for name, (run, trials) in runs.items()
        if trials
    }
    print(f"depth {depth}, {options.limit} images, {options.epochs} epochs, {report.load()}")
    for name, run in done.items():
        print(
            f"  {name:<14}n={run['trials']:<4}{3600 * run['trials'] / run['seconds']:>8.0f} trials "
            f"an hour{run['cpu'] / run['trials']:>8.2f} CPU s a trial{run['megabytes']:>7.0f} MB"
        )
    ours = done.pop("population")
    stock = {key: sum(run[key] for run in done.values()) for key in ours}
    row = {"depth": depth, "images": options.limit, "epochs": options.epochs}
    row |= {"n": ours["trials"], "stock_n": stock["trials"]}
    row["an_hour"] = 3600 * ours["trials"] / ours["seconds"]
    row["stock_an_hour"] = 3600 * stock["trials"] / stock["seconds"]
    for unit, text in (("seconds", "an hour"), ("cpu", AN_HOUR)):
        ratio = (stock[unit] / stock["trials"]) / (ours[unit] / ours["trials"])
        row[f"ratio_{unit}"] = ratio
        print(f"  population / stock, trials {text}: {ratio:.1f}")
    row["projected_ratio"] = _project(options, depth, {"stock": stock, "population": ours})
    return row


def _project(options, depth, short):
    """Print and return the ratio for long trials, per hour of processor time.

    A trial takes a start time and a time per step: runs of two lengths give both.
    """
    epochs = options.epochs + LONGER
    trials = {"stock": min(4, options.stock_trials), "population": min(20, options.trials)}
    steps = -(-options.limit // BATCH_SIZE)
    projected = -(-PROJECTED["images"] // BATCH_SIZE) * PROJECTED["epochs"]
    costs = {}
    for name, one in short.items():
        other = _run(options, name, depth, trials[name], epochs)
        a_trial, longer = (run["cpu"] / run["trials"] for run in (one, other))
        a_step = (longer - a_trial) / (steps * LONGER)
        costs[name] = a_trial + a_step * (projected - steps * options.epochs)
        print(
            f"  {name}: {1000 * a_step:.2f} CPU ms a step, "
            f"{costs[name]:.0f} CPU s in {PROJECTED['epochs']} epochs"
        )
    ratio = costs["stock"] / costs["population"]
    print(
        f"  projected to all images and {PROJECTED['epochs']} epochs, "
        f"population / stock, trials {AN_HOUR}: {ratio:.1f}"
    )
    return ratio


def _run(options, name, depth, trials, epochs):
    """Return the figures of a search, the one turn of its process."""
    folder = options.data_dir and str(pathlib.Path(options.data_dir).resolve())
    sizes = {"depth": depth, "trials": trials, "epochs": epochs, "batch_size": BATCH_SIZE}
    arguments = json.dumps({**sizes, "limit": options.limit, "data_dir": folder})
    worker = Worker(name, "benchmarks.search_runs", name, arguments, limit=NO_LIMIT)
    if not take_turns([worker], 0, lambda line: report.say(f"depth {depth}, {line}")):
        sys.exit(f"{name} does not run.")
    return worker.turns[0]


if __name__ == "__main__":
    main()
