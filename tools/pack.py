"""Put what `fit` trained into the zoo: `python -m tools.pack RUN_FOLDER...`.

The folders are runs of one network with one recipe and different seeds. The weights of the first
one are shipped, so nothing is chosen by the test images; the figures cover all of them.

What they compute on made-up images is recorded, too. A test compares that with the record: without
the data sets, it thus shows whether a change to a layer or to the preprocessing would change the
accuracies on model cards.
"""

import argparse
import hashlib
import json
import pathlib

import keras
import numpy as np

from benchmarks.measurements import ROOT, read_run
from highway_keras import data, models, results
from highway_keras.export.cards import picture_code
from highway_keras.models.cards import INDEX, WEIGHTS, read_index
from highway_keras.results.spread import mean_text
from highway_keras.training.evaluation import evaluate
from highway_keras.util.files import compress, replacing, write_json, write_text

DTYPE = "float16"  # that weights are rounded to
RECORD = ROOT / "tests" / "recorded" / "outputs.json"
# Where the images of a data set come from, and what a network trained on them is not fit for
_CIFAR = (
    "CIFAR-{0} (Krizhevsky, 2009): 50,000 training and 10,000 test images in {0} classes. Its "
    "authors ask to be cited and name no license.",
    "Pictures of 32x32 pixels with one of {1} kinds of things in the middle. Any other picture is "
    "given one of these classes too, often with a high probability.",
)
DATA = {
    "mnist": (
        "MNIST (LeCun, Cortes, Burges): 60,000 training and 10,000 test images of handwritten "
        "digits. Its terms are stated differently in different places, often as CC BY-SA 3.0.",
        "Light digits on a dark ground, centered and scaled as MNIST's are. Any other picture is "
        "given a digit too, often with a high probability.",
    ),
    "cifar10": [text.format("10", "ten") for text in _CIFAR],
    "cifar100": [text.format("100", "a hundred") for text in _CIFAR],
}
# What each step of the preprocessing does to an image.
STEPS = {
    "scale": "`scale` (gray levels / 256)",
    "gcn": "`gcn` (mean 0 and standard deviation 1 per image)",
    "mean": "`mean` (minus the mean training image)",
    "half": "`half` (times 1/2)",
}


def pack(folders):
    """Pack runs of `fit` into the folder of weights that comes with the package.

    Write `NAME-DATASET.keras`, its model card `NAME-DATASET.md`, and its entry in `index.json`;
    return the entry.
    """
    runs = [read_run(folder) for folder in folders]
    check_alike(runs)
    run, trained = runs[0], models.load(folders[0])
    name, dataset, recipe = run["model"], run["dataset"], run["recipe"]
    images = data.load(dataset, validation=recipe["validation"])
    before = evaluate(trained.model, images).accuracy
    # The network as registered: the trained one has its recipe's dropout.
    network = models.create(name, weights=folders[0])
    file = WEIGHTS / f"{name}-{dataset}.keras"
    write_weights(file, trained.preprocess, network, trained.settings)
    measured = evaluate(models.load(file).model, images)
    entry = {
        "name": name,
        "dataset": dataset,
        "dtype": DTYPE,
        "loss": measured.loss,
        "accuracy": measured.accuracy,
        "accuracy_before": before,
        "accuracies": [each["results"]["test_accuracy"] for each in runs],
        "seeds": [each["seed"] for each in runs],
        "recipe": recipe["name"],
        "epochs": recipe["epochs"],
        "dtype_policy": recipe["dtype_policy"],
        "images": len(images.x_train),
        "held_out": len(images.x_val),
        "preprocessing": recipe["preprocessing"],
        "class_names": run["class_names"],
        "hardware": run["machine"][0]["hardware"],
        "versions": run["machine"][0]["versions"],
        "licence": "Apache-2.0",
    }
    return add_to_index(entry, file)


def check_alike(runs):
    """Raise a `ValueError` unless runs have ended and differ only in their seeds."""
    apart = ("seed", "results", "machine")
    alike = [{key: value for key, value in run.items() if key not in apart} for run in runs]
    seeds = {run["seed"] for run in runs}
    ended = all("results" in run for run in runs)
    if not ended or len(seeds) < len(runs) or any(each != alike[0] for each in alike):
        raise ValueError("Runs must have ended and be the same but for their seeds.")


def write_weights(file, preprocess, network, settings):
    """Write a network and its preprocessing, their weights rounded, to a file."""
    inputs = keras.Input(network.input_shape[1:])
    complete = keras.Sequential([inputs, preprocess, network], name=network.name)
    with np.errstate(over="raise"):  # a weight that is too large for float16
        complete.set_weights([weight.astype(DTYPE) for weight in complete.get_weights()])
    with replacing(file) as temporary:
        models.save(temporary, complete, **settings)
        compress(temporary)


def add_to_index(entry, file):
    """Add an entry with the file's size and SHA-256 to the index; write the model card."""
    content = file.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    key = entry["name"], entry["dataset"]
    entry = {**entry, "file": file.name, "sha256": sha256, "bytes": len(content)}
    entries = [each for each in read_index() if (each["name"], each["dataset"]) != key]
    order = models.list_models()
    entries = sorted([*entries, entry], key=lambda e: (order.index(e["name"]), e["dataset"]))
    write_json(WEIGHTS / INDEX, entries, indent=1)
    write_text(file.with_suffix(".md"), card_text(entry))
    return entry


def card_text(entry):
    """Return the model card of an entry of the index, as Markdown."""
    name, dataset = entry["name"], entry["dataset"]
    card = models.get(name)
    source, limits = DATA[dataset]
    steps = ", ".join(STEPS.get(step, f"`{step}`") for step in entry["preprocessing"])
    images = f"{entry['images']:,} training images, preprocessed by {steps}"
    if entry["held_out"]:
        images += f"; {entry['held_out']:,} others held out to choose the epoch by"
    recipe = f"`{entry['recipe']}`, {entry['epochs']} epochs, in `{entry['dtype_policy']}`"
    before = f"{100 * entry['accuracy_before']:.2f} % before the weights were rounded"
    runs = results.spread([100 * accuracy for accuracy in entry["accuracies"]])
    seeds = ", ".join(map(str, entry["seeds"]))
    rows = {
        "Network": f"{card.layers} layers, {card.parameters:,} parameters, "
        f"{card.multiplications:,} multiplications an image, from the experiments of "
        "[Srivastava et al., 2015](https://arxiv.org/abs/1507.06228)",
        "Origin": card.origin,
        "Data": f"{source} None of the images are in this package.",
        "Trained on": images,
        "Recipe": recipe,
        "Test accuracy": f"{100 * entry['accuracy']:.2f} % ({before} to {entry['dtype']})",
        "The paper's, %": card.paper,
        "All runs": f"{mean_text(runs)}, seeds {seeds}. These weights are of the first",
        "Hardware": entry["hardware"],
        "Versions": entry["versions"],
        "File": f"`{entry['file']}`, {entry['bytes']:,} bytes, {entry['dtype']}",
        "SHA-256": f"`{entry['sha256']}`",
        "License": f"{entry['licence']}, as the package",
        "Limits": limits,
    }
    table = "\n".join(f"| {key} | {value} |" for key, value in rows.items() if value)
    return f"""# {name}, trained on {dataset}

| | |
|---|---|
{table}

```sh
highway-keras evaluate {name} --weights {dataset}
highway-keras predict {name} picture.png --weights {dataset}
```

In Python, with the pixels of a picture `file` as `highway-keras predict` makes them:

```python
import keras
from highway_keras import models
{picture_code(card.input_shape)}
model = keras.models.load_model(models.get("{name}").weights_file("{dataset}"))
probabilities = model.predict(images)
```
"""


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


def record(entry):
    """Record what an entry's network computes on made-up images."""
    rounded = outputs(entry["name"], entry["dataset"]).astype("float64").round(4).tolist()
    records = json.loads(RECORD.read_text("utf-8"))
    records[entry["file"]] = {"sha256": entry["sha256"], "outputs": rounded}
    lines = (f"  {json.dumps(file)}: {json.dumps(records[file])}" for file in sorted(records))
    write_text(RECORD, "{\n" + ",\n".join(lines) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.pack", description=__doc__)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="RUN_FOLDER")
    entry = pack(parser.parse_args().folders)
    record(entry)
    print(json.dumps(entry, indent=1))


if __name__ == "__main__":
    main()
