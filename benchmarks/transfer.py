"""Fine-tuning on few images, four ways: `python -m benchmarks.transfer`.

`mnist-highway-16` learns the digits 5 to 9 of the embedded data set, five images of each, set into
images of MNIST's size: with its features frozen, with adapters of low rank, all of it from MNIST's
weights, and all of it from scratch. Every way has the same epochs and the same choice of learning
rates; each seed draws the images and the classifier anew. The rate is the one with the highest
mean accuracy on held-out images, of equal ones that with the lower loss there. Rows of every rate
go into `results/transfer.csv`; `chosen` marks the rate whose test accuracy counts.
"""

import argparse
import pathlib
import tempfile
import time

import keras
import numpy as np

from highway_keras import data, models, training
from highway_keras.data.dataset import hold_out
from highway_keras.paper import provenance

FILE = pathlib.Path(__file__).parents[1] / "results" / "transfer.csv"
MODEL, WEIGHTS, FIRST = "mnist-highway-16", "mnist", 5  # the first of the digits
IMAGES, HELD_OUT = 5, 40  # of each class
RATES, SEEDS, EPOCHS, RANK = (0.1, 0.03, 0.01), (0, 1, 2), 20, 2
SETTINGS = {"recipe": "quick", "epochs": EPOCHS, "batch_size": 5, "dropout": 0.25, "verbose": 0}


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
    """Return the network with adapters of low rank in all layers below a new classifier."""
    model = models.create(MODEL, weights=WEIGHTS, classes=images.classes)
    for layer in model.layers:
        if hasattr(layer, "enable_lora") and layer.name != "predictions":
            layer.enable_lora(RANK)
    return model


def _count(model):
    return sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)


WAYS = ("frozen", "adapters", "all", "scratch")


def measure(way, rate):
    """Return a row: a way with a learning rate, over all seeds."""
    found, seconds = [], []
    for seed in SEEDS:
        keras.utils.set_random_seed(seed)  # the classifier's start in a model of one's own
        images = few_images(seed)
        with tempfile.TemporaryDirectory() as folder:
            started = time.process_time()
            result, parameters = train(way, images, rate, seed, pathlib.Path(folder) / "run")
            seconds.append(time.process_time() - started)
        best = result.history[result.best_epoch - 1]
        found.append((best["val_accuracy"], best["val_loss"], result.test_accuracy))
    held_out, loss, test = (np.array(column) for column in zip(*found, strict=True))
    return {
        "way": way,
        "learning_rate": rate,
        "chosen": "",
        "held_out": round(100 * float(held_out.mean()), 2),
        "held_out_loss": round(float(loss.mean()), 4),
        "mean": round(100 * float(test.mean()), 2),
        "std": round(100 * float(test.std(ddof=1)), 2),
        "parameters": parameters,
        "processor_seconds": round(float(np.mean(seconds)), 1),
        "images": IMAGES * images.classes,
        "epochs": EPOCHS,
        "n": len(SEEDS),
        "seed": " ".join(map(str, SEEDS)),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfer", description=__doc__)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    options = parser.parse_args(arguments)
    made = provenance.provenance("python -m benchmarks.transfer")
    for way in options.ways:
        rows = [measure(way, rate) for rate in RATES]
        best = max(rows, key=lambda row: (row["held_out"], -row["held_out_loss"]))
        best["chosen"] = "1"
        for row in rows:
            print(*list(row.values())[:9])
        provenance.update_rows(FILE, [row | made for row in rows], ("way", "learning_rate"))


if __name__ == "__main__":
    main()
