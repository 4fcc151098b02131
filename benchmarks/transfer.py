"""Fine-tuning on few images, four ways: `python -m benchmarks.transfer`.

`mnist-highway-16` learns digits 5 to 9 of the bundled data set, five images of each, placed in
images of MNIST's size: with its features frozen, with low-rank adapters, all of it from MNIST's
weights, and all of it from scratch. Every way has the same epochs and the same choice of learning
rates. The rate is the one with the highest accuracy on held-out images with the first seed; ties go
to the lower loss there. Then other seeds draw new images and a new classifier. Only the row of the
chosen rate has a test accuracy.
"""

import math
import statistics
import tempfile
import time

import keras
import numpy as np

from benchmarks import measurements
from highway_keras import data, models, training
from highway_keras.data.dataset import hold_out
from highway_keras.results import DIVERGED

MODEL, FIRST = "mnist-highway-16", 5  # the first of the digits
IMAGES, HELD_OUT = 5, 40  # of each class
RATES, SEEDS, RANK = (0.1, 0.03, 0.01), (0, 1, 2), 2
SETTINGS = {"epochs": 20, "batch_size": 5, "clip_norm": 1.0, "verbose": 0}
WAYS = ("frozen", "adapters", "all", "scratch")


def main(arguments=None):
    options = measurements.parser("benchmarks.transfer", __doc__).parse_args(arguments)
    keys = ("way", "learning_rate")
    for way in WAYS:
        measurements.record(list(measure(way)), keys, options.out, "benchmarks.transfer")


def measure(way):
    """Yield a row for each learning rate of a way, the chosen rate last."""
    runs = {rate: [run(way, rate, SEEDS[0])] for rate in RATES}
    finite = [rate for rate, (first,) in runs.items() if first]
    chosen = max(finite, key=lambda rate: (runs[rate][0]["held_out"], -runs[rate][0]["loss"]))
    runs[chosen] += [run(way, chosen, seed) for seed in SEEDS[1:]]
    for rate in sorted(RATES, key=lambda rate: rate == chosen):
        row = {"way": way, "learning_rate": rate, "chosen": "1" if rate == chosen else ""}
        row |= dict.fromkeys(("held_out", "mean", "std", "parameters", "processor_seconds"), "")
        results = runs[rate]
        if None in results:
            row["held_out"] = DIVERGED
        else:
            row["held_out"] = round(100 * statistics.mean(r["held_out"] for r in results), 2)
            row["parameters"] = results[0]["parameters"]
            row["processor_seconds"] = round(statistics.mean(r["seconds"] for r in results), 1)
        if rate == chosen:
            accuracies = [100 * r["test"] for r in results]
            row["mean"] = round(statistics.mean(accuracies), 2)
            row["std"] = round(statistics.stdev(accuracies), 2)
        row |= {"images": IMAGES * (10 - FIRST), "epochs": SETTINGS["epochs"], "n": len(results)}
        yield {**row, "seed": " ".join(map(str, SEEDS[: len(results)]))}


def run(way, rate, seed):
    """Return the accuracies and the cost of one run; `None` if it diverges."""
    keras.utils.set_random_seed(seed)  # decides what is not from the weights of MNIST
    images = few_images(seed)
    model = start(way, images)
    started = time.process_time()
    try:
        with tempfile.TemporaryDirectory() as folder:
            options = {"out": f"{folder}/run", "seed": seed, "learning_rate": rate, **SETTINGS}
            result = training.fit(model, images, "quick", **options)
    except training.TrainingDiverged:
        return None
    best = result.history[result.best_epoch - 1]
    return {
        "held_out": best["val_accuracy"],
        "loss": best["val_loss"],
        "test": result.test_accuracy,
        "parameters": sum(math.prod(weight.shape) for weight in model.trainable_weights),
        "seconds": time.process_time() - started,
    }


def start(way, images):
    """Return the network to train: a new classifier, on what the way trains below it."""
    recipe = training.get_recipe("quick")
    model = models.create(
        MODEL,
        weights=None if way == "scratch" else "mnist",
        dropout=recipe.dropout,
        classes=images.classes,
        kernel_initializer=recipe.kernel_initializer,
    )
    for layer in model.layers[:-1]:
        if way == "frozen":
            layer.trainable = False
        elif way == "adapters" and hasattr(layer, "enable_lora"):
            layer.enable_lora(RANK)
    return model


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


if __name__ == "__main__":
    main()
