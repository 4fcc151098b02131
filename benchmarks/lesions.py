"""All lesions of a network in one pass against one plain evaluation of it, as a ratio.

    python -m benchmarks.lesions run/best.keras

Figure 4 of the paper measures a network with the gates of each layer closed, layer by layer: one
evaluation per layer. The two take turns, on the same training images.
"""

import argparse
import pathlib
import time

import keras

from benchmarks import report
from highway_keras import analysis, data, training
from highway_keras.training.evaluation import compile_classifier

EVALUATE_BATCHES = (500, 2000)  # the peer may have the better one
OURS = "all lesions"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lesions")
    parser.add_argument("files", metavar="FILE", nargs="+", help=".keras files that `fit` saved")
    parser.add_argument(
        "--limit", type=report.positive, help="images (default: all of the training set)"
    )
    parser.add_argument(
        "--turns", type=report.positive, default=5, help="turns of each (default: 5)"
    )
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    report.add_out(parser)
    options = parser.parse_args(arguments)
    for file in options.files:
        saved = training.SavedNetwork(file)
        images = data.load(
            saved.dataset, data_dir=options.data_dir, validation=0.0, limit=options.limit
        )
        row = _compare(saved.model, images.x_train, images.y_train, options.turns)
        if options.out:
            row = {"file": pathlib.Path(file).name, **row}
            sizes = {"limit": options.limit, "turns": options.turns}
            command = report.command("benchmarks.lesions", file, **sizes)
            report.save(options.out, [row], ("file", "images"), command)


def _compare(model, x, y, turns):
    compile_classifier(model)
    runs = {
        f"evaluate, batches of {size}": lambda size=size: model.evaluate(x, y, size, verbose=0)
        for size in EVALUATE_BATCHES
    }
    runs[OURS] = lambda: analysis.lesions(model, x, y, verbose=0)
    seconds = {name: [] for name in runs}
    for name, run in runs.items():
        report.say(f"{model.name}: {name}, first turn")
        run()  # compiles
    for index in range(turns):
        report.say(f"{model.name}: turn {index + 1} of {turns}")
        for name, run in runs.items():
            begun = time.perf_counter()
            found = run()
            seconds[name].append(time.perf_counter() - begun)
    _print(model.name, len(found.layers), len(x), seconds)
    return _row(len(found.layers), len(x), seconds)


def _row(layers, images, seconds):
    row = {"layers": layers, "images": images, "n": len(seconds[OURS])}
    row |= report.middle("seconds", seconds[OURS])
    for size, peer in zip(EVALUATE_BATCHES, seconds.values(), strict=False):
        row |= report.middle(f"over_evaluate_{size}", report.ratios(seconds[OURS], peer))
    return row


def _print(name, layers, images, seconds):
    turns = len(seconds[OURS])
    versions = f"Keras {keras.__version__}, {report.load()}"
    print(f"{name}: {layers} lesions, {images} images, n={turns}, {versions}; median (low-high)")
    for run, times in seconds.items():
        print(f"  {run:<26}{report.spread(times, '.2f')} s")
        if run != OURS:
            ratios = report.ratios(seconds[OURS], times)
            print(f"    all lesions / this one  {report.spread(ratios, '.2f')}")


if __name__ == "__main__":
    main()
