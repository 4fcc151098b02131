"""Serving side by side: every export format next to Keras `predict`, on real test images.

`python -m benchmarks.serving run/best.keras` exports a saved network to all formats
that are installed and times each in a process of its own. All take turns, so that a machine that
slows down slows all of them. Each runtime uses its default options and all cores.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

BATCHES = {1: 50, 256: 5}  # images a call: calls a turn


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="a .keras file that `fit` saved")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        paths = _export_all(options.file, folder, options.data_dir)
        peers = {name: _start(name, path, folder) for name, path in paths.items()}
        turns = {name: [] for name in peers}
        for _ in range(1 + options.turns):  # the first one warms up
            for name, peer in peers.items():
                turns[name].append(_turn(peer))
        for peer in peers.values():
            peer.stdin.close()
            peer.wait()
    _report({name: measured[1:] for name, measured in turns.items()})


def _export_all(file, folder, data_dir):
    from highway_keras import data, training
    from highway_keras.export import FORMATS, export

    dataset = data.load(training.SavedNetwork(file).dataset, data_dir=data_dir)
    np.save(folder / "images.npy", dataset.x_test[: max(BATCHES)])
    paths = {"keras predict": pathlib.Path(file)}
    choices = [(f, q) for f, known in FORMATS.items() for q in (None, *known.quantizations)]
    choices.remove(("keras", None))  # the peer itself
    for format, quantize in choices:
        name = f"{format} {quantize or ''}".strip()
        path = folder / (name.replace(" ", "_") + FORMATS[format].suffix)
        try:
            export(file, path, format, quantize, dataset)
            paths[name] = path
        except ImportError as error:
            print(f"without {name}: {error}", file=sys.stderr)
    return paths


def _start(name, path, folder):
    return subprocess.Popen(
        [sys.executable, __file__, "--worker", name, str(path), str(folder / "images.npy")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _turn(peer):
    peer.stdin.write("go\n")
    peer.stdin.flush()
    return json.loads(peer.stdout.readline())


def _work(name, path, images):
    """The worker: a line in starts a turn; a line out has the milliseconds a call, by batch."""
    channel = os.fdopen(os.dup(1), "w")  # libraries print as they like
    os.dup2(2, 1)
    call, images = _load(name, path), np.load(images)
    while sys.stdin.readline():
        print(json.dumps([_time(call, images[:n], BATCHES[n]) for n in BATCHES]), file=channel)
        channel.flush()


def _load(name, path):
    if name == "keras predict":
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


def _report(turns):
    one, many = BATCHES
    count = len(turns["keras predict"])
    print(f"{count} turns of {BATCHES[one]} and {BATCHES[many]} calls; median (low-high)")
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
    print(
        f"{'':<18}{f'ms, batch {one}':>12}{'times faster than predict':>30}"
        f"{f'images/s, batch {many}':>22}{'times faster than predict':>30}"
    )
    for name, measured in turns.items():
        latency, batch = zip(*measured, strict=True)
        first, second = zip(*turns["keras predict"], strict=True)
        rate = 1000 * many / statistics.median(batch)
        print(
            f"{name:<18}{statistics.median(latency):>12.2f}{_ratio(first, latency):>30}"
            f"{rate:>22,.0f}{_ratio(second, batch):>30}"
        )


def _ratio(keras_times, times):
    ratios = [a / b for a, b in zip(keras_times, times, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


if __name__ == "__main__":
    _work(*sys.argv[2:]) if sys.argv[1:2] == ["--worker"] else main()
