"""Put what `fit` trained into the zoo: `python -m tools.pack RUN_FOLDER...`.

The folders are runs of one network with one recipe and different seeds. The weights of the first
one are shipped, so nothing is chosen by the test images; the figures cover all of them.

What they compute on made-up images is recorded, too. A test compares that with the record: without
the data sets, it thus shows whether a change to a layer or to the preprocessing would change the
accuracies on model cards.
"""

import argparse
import json

import keras
import numpy as np

from benchmarks.rows import ROOT
from highway_keras import data, models
from highway_keras.models import shipped
from highway_keras.runs import PROSE
from highway_keras.runs.folder import RunFolder
from highway_keras.runs.machine import joined, sessions
from highway_keras.training.evaluation import evaluate
from highway_keras.util.files import compress, replacing, write_json, write_text

DTYPE = "float16"  # that weights are rounded to
RECORD = ROOT / "tests" / "recorded" / "outputs.json"


def compared_fields(stored):
    """Return the attributes of a recipe in `run.json` that decide the training."""
    whole = json.loads(json.dumps(stored))
    return {name: value for name, value in whole.items() if name not in PROSE}


def common_settings(runs):
    """Return the settings of the first of some `RunFolder`s.

    Raise a `ValueError` unless all of them trained the network as it is registered, from scratch
    and to the end, and differ only in their seeds.
    """
    first, *others = [run.read_json() for run in runs]

    def compared(settings):
        return {**settings, "recipe": compared_fields(settings["recipe"]), "seed": 0, "results": 0}

    if (
        any(not run.has_ended or run.epochs < first["recipe"]["epochs"] for run in runs)
        or any(compared(other) != compared(first) for other in others)
        or len({each["seed"] for each in (first, *others)}) < len(runs)
        or first["model_options"]
        or not {"weights", "loss_weights"}.isdisjoint(first)
    ):
        raise ValueError(
            "Runs must have ended after all epochs, be of the network as it is registered, from "
            "scratch, with images of equal weight, and be the same but for their seeds. "
            f"Received: {', '.join(str(run.path) for run in runs)}."
        )
    return first


def pack(folders, data_dir=None):
    """Pack runs of `fit` into the folder of weights that comes with the package.

    Write `NAME-DATASET.keras`, its model card `NAME-DATASET.md`, and its entry in `index.json`;
    return the entry.
    """
    runs = [RunFolder(folder) for folder in folders]
    settings, ended = common_settings(runs), [run.read_json() for run in runs]
    name, dataset, recipe = settings["model"], settings["dataset"], settings["recipe"]
    images = data.load(dataset, data_dir, recipe["validation"], settings["limit"])
    trained = keras.models.load_model(runs[0].best)
    # The network as registered: the trained one has its recipe's dropout and an optimizer.
    network = models.create(name, weights=runs[0].best)
    packed = keras.Sequential([trained.layers[0], network], name=name)
    with np.errstate(over="raise"):  # a weight that is too large for float16
        packed.set_weights([weight.astype(DTYPE) for weight in packed.get_weights()])
    before, edge = evaluate(trained, images)[1], data.edge_brightness(images.x_train[:100])
    made = {key: joined(sessions(runs[0]), key) for key in ("hardware", "versions")}
    shipped.FOLDER.mkdir(exist_ok=True)
    file = shipped.FOLDER / f"{name}-{dataset}.keras"
    with replacing(file) as temporary:
        packed.save(temporary)
        compress(temporary)
        loss, accuracy = evaluate(keras.models.load_model(temporary), images)
    entry = {
        "name": name,
        "dataset": dataset,
        "file": file.name,
        "sha256": shipped.sha256(file),
        "bytes": file.stat().st_size,
        "dtype": DTYPE,
        "loss": loss,
        "accuracy": accuracy,
        "accuracy_before": before,
        "accuracies": [run["results"]["test_accuracy"] for run in ended],
        "seeds": [run["seed"] for run in ended],
        "recipe": recipe["name"],
        "epochs": recipe["epochs"],
        "dtype_policy": recipe["dtype_policy"],
        "images": len(images.x_train),
        "held_out": len(images.x_val),
        "preprocessing": recipe["preprocessing"],
        "class_names": settings["class_names"],
        "edge_brightness": edge,
        **made,
        "licence": "Apache-2.0",
    }
    others = [e for e in shipped.read_index() if (e["name"], e["dataset"]) != (name, dataset)]
    order = models.list_models()
    entries = sorted([*others, entry], key=lambda e: (order.index(e["name"]), e["dataset"]))
    write_json(shipped.FOLDER / shipped.INDEX, entries, indent=1)
    write_text(file.with_suffix(".md"), models.card_text(name, dataset))
    return entry


def outputs(name, dataset):
    """Return the probabilities that a network with its weights gives to three images."""
    network = keras.models.load_model(models.get(name).weights_file(dataset))
    return network.predict(_images(network.input_shape[1:]), verbose=0)


def _images(shape):
    """Return patches of random color with some noise."""
    height, width, channels = shape
    rng = np.random.default_rng(0)
    patches = rng.integers(0, 256, (3, 4, 4, channels))
    images = patches.repeat(height // 4, 1).repeat(width // 4, 2)
    return (images + rng.integers(-20, 21, images.shape)).clip(0, 255).astype("uint8")


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.pack", description=__doc__)
    parser.add_argument("folders", nargs="+", metavar="RUN_FOLDER")
    parser.add_argument("--data-dir")
    options = parser.parse_args()
    entry = pack(options.folders, options.data_dir)
    rounded = outputs(entry["name"], entry["dataset"]).astype("float64").round(4).tolist()
    record = json.loads(RECORD.read_text("utf-8"))
    record[entry["file"]] = {"sha256": entry["sha256"], "outputs": rounded}
    lines = (f"  {json.dumps(file)}: {json.dumps(record[file])}" for file in sorted(record))
    write_text(RECORD, "{\n" + ",\n".join(lines) + "\n}\n")
    accuracies = f"{100 * entry['accuracy']:.2f} %, before {100 * entry['accuracy_before']:.2f} %"
    print(f"packed {entry['file']} ({entry['bytes']:,} bytes), test accuracy {accuracies}")


if __name__ == "__main__":
    main()
