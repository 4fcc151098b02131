"""Fine-tuning on few images, four ways: `python -m benchmarks.transfer`.

`mnist-highway-16` learns digits 5 to 9 of the embedded data set, five images of each, placed in
images of MNIST's size: with its features frozen, with low-rank adapters, all of it from MNIST's
weights, and all of it from scratch. Every way has the same epochs and the same choice of learning
rates. The rate is the one with the highest accuracy on held-out images with the first seed; ties go
to the lower loss there. Then other seeds draw new images and a new classifier. Rows go into
`results/transfer.csv`, where only the `chosen` rate has been tested.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import keras
import numpy as np

from benchmarks import report
from highway_keras import data, models, training
from highway_keras.data.dataset import hold_out
from highway_keras.results import DIVERGED

FILE = pathlib.Path(__file__).parents[1] / "results" / "transfer.csv"
MODEL, WEIGHTS, FIRST = "mnist-highway-16", "mnist", 5  # the first of the digits
IMAGES, HELD_OUT = 5, 40  # of each class
RATES, SEEDS, EPOCHS, RANK = (0.1, 0.03, 0.01), (0, 1, 2), 20, 2
SETTINGS = {"recipe": "quick", "epochs": EPOCHS, "batch_size": 5, "clip_norm": 1.0, "verbose": 0}


def few_images(seed):
    """Return a `data.Dataset` of few images to train on and more to choose by."""
    digits = data.load("digits", validation=0)
    x, y = _wanted(digits.x_train, digits.y_train)
    x_test, y_test = _wanted(digits.x_test, digits.y_test)
    classes = y.max() + 1
    rest, train = hold_out(y, IMAGES * classes / len(y), seed)
    _, chosen = hold_out(y[rest], HELD_OUT * classes / len(rest), seed)
    val = rest[chosen]
    names = tuple(map(str, range(FIRST, 10)))
    return data.Dataset("digits-5-9", x[train], y[train], x[val], y[val], x_test, y_test, names)


def _wanted(x, y):
    """Return the images of some digits as MNIST has them: 20 pixels within a border of 4."""
    x, y = x[y >= FIRST], y[y >= FIRST]
    x = keras.ops.convert_to_numpy(keras.ops.image.resize(x.astype("float32"), (20, 20)))
    return np.pad(x.round().astype("uint8"), ((0, 0), (4, 4), (4, 4), (0, 0))), y - FIRST


def train(way, images, rate, seed, out):
    """Train one way; return the `Result` and the number of trained parameters."""
    options = {"dataset": images, "out": out, "learning_rate": rate, "seed": seed, **SETTINGS}
    if way == "adapters":
        model = with_adapters(images)
        return training.fit(model, **options), _count(model)
    weights = None if way == "scratch" else WEIGHTS
    result = training.fit(MODEL, weights=weights, freeze=way == "frozen", **options)
    return result, _count(keras.models.load_model(result.folder.best))


def with_adapters(images):
    """Return the network with low-rank adapters in all layers below a new classifier."""
    model = models.create(MODEL, weights=WEIGHTS, classes=images.classes)
    for layer in model.layers:
        if hasattr(layer, "enable_lora") and layer.name != "predictions":
            layer.enable_lora(RANK)
    return model


def _count(model):
    return sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)


WAYS = ("frozen", "adapters", "all", "scratch")


def run(way, rate, seed):
    """Return what one run reached and took; a run that diverges reaches nothing."""
    keras.utils.set_random_seed(seed)  # the classifier's start in a model of one's own
    images = few_images(seed)
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        try:
            result, parameters = train(way, images, rate, seed, pathlib.Path(folder) / "run")
        except training.TrainingDiverged:
            return None
        seconds = time.process_time() - started
    best = result.history[result.best_epoch - 1]
    reached = {"held_out": best["val_accuracy"], "loss": best["val_loss"]}
    return {**reached, "test": result.test_accuracy, "parameters": parameters, "seconds": seconds}


def choose(runs):
    """Return the rate whose run is best on held-out images."""
    finite = [rate for rate in RATES if runs[rate]]
    return max(finite, key=lambda rate: (runs[rate]["held_out"], -runs[rate]["loss"]))


def row(way, rate, runs, seeds, chosen):
    """Return a row of `results/transfer.csv`: all runs of one way with one rate."""
    percent = {key: [100 * one[key] for one in runs if one] for key in ("held_out", "test")}
    finite, several = bool(percent["test"]), len(runs) > 1
    return {
        "way": way,
        "learning_rate": rate,
        "chosen": "1" if chosen else "",
        "held_out": round(statistics.mean(percent["held_out"]), 2) if finite else DIVERGED,
        "mean": round(statistics.mean(percent["test"]), 2) if chosen else "",
        "std": round(statistics.stdev(percent["test"]), 2) if chosen and several else "",
        "parameters": runs[0]["parameters"] if finite else "",
        "processor_seconds": round(statistics.mean(one["seconds"] for one in runs), 1)
        if finite
        else "",
        "images": IMAGES * (10 - FIRST),
        "epochs": EPOCHS,
        "n": len(runs),
        "seed": " ".join(map(str, seeds)),
    }


def measure(way):
    """Return the rows of a way: each rate with the first seed, the best one with all."""
    first, *others = SEEDS
    runs = {rate: run(way, rate, first) for rate in RATES}
    chosen = choose(runs)
    again = [run(way, chosen, seed) for seed in others]
    if None in again:
        raise RuntimeError(f"{way} diverged with another seed at the rate {chosen}.")
    rows = [row(way, r, [runs[r]], SEEDS[:1], False) for r in RATES if r != chosen]
    return [*rows, row(way, chosen, [runs[chosen], *again], SEEDS, True)]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfer", description=__doc__)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    options = parser.parse_args(arguments)
    for way in options.ways:
        rows = measure(way)
        for found in rows:
            print(*list(found.values())[:8], flush=True)
        report.save(FILE, rows, ("way", "learning_rate"), "python -m benchmarks.transfer")


if __name__ == "__main__":
    main()
