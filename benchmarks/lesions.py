"""All lesions of a network in one pass against one plain evaluation of it, as a ratio.

    python -m benchmarks.lesions run/best.keras

Figure 4 of the paper measures a network with the gates of each layer closed, layer by layer: as
many evaluations as there are layers. The two take turns, on the same training images.
"""

import argparse
import os
import statistics
import time

import keras

from highway_keras import analysis, data, training
from highway_keras.training.evaluation import compile_classifier

EVALUATE_BATCHES = (500, 2000)  # the peer may have the better one


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lesions")
    parser.add_argument("files", metavar="FILE", nargs="+", help=".keras files that `fit` saved")
    parser.add_argument("--limit", type=int, help="images (default: all of the training set)")
    parser.add_argument("--turns", type=int, default=5, help="turns of each (default: 5)")
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    options = parser.parse_args(arguments)
    for file in options.files:
        saved = training.SavedNetwork(file)
        images = data.load(
            saved.dataset, data_dir=options.data_dir, validation=0.0, limit=options.limit
        )
        _compare(saved.model, images.x_train, images.y_train, options.turns)


def _compare(model, x, y, turns):
    compile_classifier(model)
    runs = {
        f"evaluate, batches of {size}": lambda size=size: model.evaluate(x, y, size, verbose=0)
        for size in EVALUATE_BATCHES
    }
    runs["all lesions"] = lambda: analysis.lesions(model, x, y, verbose=0)
    seconds = {name: [] for name in runs}
    for run in runs.values():
        run()  # compiles
    for _ in range(turns):
        for name, run in runs.items():
            begun = time.perf_counter()
            found = run()
            seconds[name].append(time.perf_counter() - begun)
    print(f"{model.name}: {len(found.layers)} lesions, {len(x)} images, n={turns}, ", end="")
    print(f"Keras {keras.__version__}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, times in seconds.items():
        print(f"  {name:<26}{statistics.median(times):>8.2f} s  ({_range(times)})")
        if name != "all lesions":
            pairs = zip(seconds["all lesions"], times, strict=True)
            ratios = [lesions / evaluation for lesions, evaluation in pairs]
            middle = statistics.median(ratios)
            print(f"    all lesions / this one  {middle:>8.2f}    ({_range(ratios)})")


def _range(values):
    return f"{min(values):.2f}-{max(values):.2f}"


if __name__ == "__main__":
    main()
