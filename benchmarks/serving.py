"""Serving side by side: every export format next to Keras `predict`, on real test images.

    python -m benchmarks.serving run/best.keras

A saved network is exported to all installed formats; each runs in its own process. Each runtime
uses all cores and, except for OpenVINO's float32, its default options.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import numpy as np

from benchmarks import report
from benchmarks.turns import Worker, take_turns

BATCHES = {1: 50, 256: 5}  # images per call: calls per turn
PREDICT = "keras predict"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving")
    parser.add_argument("file", metavar="FILE", help="a .keras file that `fit` saved")
    parser.add_argument(
        "--turns", type=report.positive, default=9, help="turns of each (default: 9)"
    )
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    report.add_out(parser)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        paths = _export_all(options.file, folder, options.data_dir)
        workers = [
            Worker(name, "benchmarks.serving", name, path.resolve(), folder / "images.npy")
            for name, path in paths.items()
        ]
        present = take_turns(workers, options.turns, report.say)
    turns = {worker.name: [turn["calls"] for turn in worker.turns[1:]] for worker in present}
    _print(turns)
    if options.out:
        name = pathlib.Path(options.file).name
        command = report.command("benchmarks.serving", options.file, turns=options.turns)
        report.save(options.out, _rows(name, turns), ("file", "format"), command)


def _rows(file, turns):
    rows = []
    for name, measured in turns.items():
        row = {"file": file, "format": name, "n": len(measured)}
        for index, size in enumerate(BATCHES):
            theirs, ours = ([calls[index] for calls in t] for t in (turns[PREDICT], measured))
            row |= report.middle(f"ms_{size}", ours)
            row |= report.middle(f"times_faster_{size}", report.ratios(theirs, ours))
        rows.append(row)
    return rows


def _export_all(file, folder, data_dir):
    from highway_keras import data, training
    from highway_keras.export import FORMATS, export

    dataset = data.load(training.SavedNetwork(file).dataset, data_dir=data_dir)
    np.save(folder / "images.npy", dataset.x_test[: max(BATCHES)])
    paths = {PREDICT: pathlib.Path(file)}
    choices = [(f, q) for f, known in FORMATS.items() for q in (None, *known.quantizations)]
    choices.remove(("keras", None))  # the peer itself
    for format, quantize in choices:
        name = f"{format} {quantize or ''}".strip()
        path = folder / (name.replace(" ", "_") + FORMATS[format].suffix)
        report.say(f"exporting {name}")
        try:
            export(file, path, format, quantize, dataset)
            paths[name] = path
        except ImportError as error:
            report.say(f"without {name}: {error}")
    return paths


def work(turns, name, path, images):
    """Take turns that report the milliseconds of a call by size of the batch."""
    call, images = _load(name, path), np.load(images)
    while turns.wait():
        turns.end(calls=[_time(call, images[:n], BATCHES[n]) for n in BATCHES])


def _load(name, path):
    if name == PREDICT:
        from highway_keras import training

        model = training.SavedNetwork(path).model
        return lambda images: model.predict(images, batch_size=len(images), verbose=0)
    from highway_keras.export import runtimes

    return runtimes.RUNTIMES[name.split()[0]](path)[0]


def _time(call, images, calls):
    times = []
    for _ in range(calls):
        started = time.perf_counter()
        call(images)
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


def _print(turns):
    one, many = BATCHES
    count = len(turns[PREDICT])
    print(f"{count} turns of {BATCHES[one]} and {BATCHES[many]} calls; median (low-high)")
    print(report.load())
    print(
        f"{'':<18}{f'ms, batch {one}':>12}{'times faster than predict':>30}"
        f"{f'images/s, batch {many}':>22}{'times faster than predict':>30}"
    )
    keras_one, keras_many = zip(*turns[PREDICT], strict=True)
    for name, measured in turns.items():
        latency, batch = zip(*measured, strict=True)
        rate = 1000 * many / statistics.median(batch)
        print(
            f"{name:<18}{statistics.median(latency):>12.2f}"
            f"{report.spread(report.ratios(keras_one, latency), '.2f'):>30}"
            f"{rate:>22,.0f}{report.spread(report.ratios(keras_many, batch), '.2f'):>30}"
        )


if __name__ == "__main__":
    main()
