"""Put what `fit` trained into the zoo: `python -m tools.pack RUN_FOLDER...`.

The folders are runs of one network with one recipe and different seeds. The weights of the first
one are shipped, so nothing is chosen by the test images; the figures cover all of them.
"""

import argparse
import dataclasses
import zipfile

import keras
import numpy as np

from highway_keras import checks, data, models
from highway_keras.io import replacing, write_json, write_text
from highway_keras.models import shipped
from highway_keras.runs.folder import RunFolder
from highway_keras.runs.provenance import hardware_and_versions, sessions
from highway_keras.training.evaluation import evaluate
from highway_keras.training.recipe import compared_fields
from tools.alike import common_settings

DTYPES = ("float16", "float32")


@dataclasses.dataclass(frozen=True)
class Packed:
    """What packing did.

    Attributes:
        entry: The new entry of the index, a dictionary.
        before: (loss, accuracy) of the run's best network on the test images.
        after: The same of the packed file.
    """

    entry: dict
    before: tuple
    after: tuple


def pack(folders, dtype="float16", data_dir=None):
    """Pack runs of `fit` into the folder of weights that comes with the package.

    Write `NAME-DATASET.keras`, its model card `NAME-DATASET.md`, and its entry in `index.json`.

    Args:
        folders: Folders of finished runs that differ only in their seeds.
        dtype: `"float16"` or `"float32"`: the precision that the weights are rounded to.
        data_dir: Where TFDS keeps its data.

    Returns:
        A `Packed`.

    Raises:
        ValueError: If `common_settings` refuses the runs, or a weight is too large for `dtype`.
    """
    checks.one_of("dtype", dtype, DTYPES)
    runs = [RunFolder(folder) for folder in folders]
    settings = common_settings(runs)
    name, dataset, recipe = settings["model"], settings["dataset"], settings["recipe"]
    images = data.load(dataset, data_dir, recipe["validation"], settings["limit"])
    shipped.FOLDER.mkdir(exist_ok=True)
    file = shipped.FOLDER / f"{name}-{dataset}.keras"
    before, after = _pack_network(name, runs[0].best, file, dtype, images)
    entry = {
        "name": name,
        "dataset": dataset,
        "file": file.name,
        "sha256": shipped.sha256(file),
        "bytes": file.stat().st_size,
        "dtype": dtype,
        "loss": after[0],
        "accuracy": after[1],
        "accuracy_before": before[1],
        **_training(runs, settings, images),
        "licence": "Apache-2.0",
    }
    _write_entry(entry)
    write_text(file.with_suffix(".md"), models.card_text(name, dataset))
    return Packed(entry, before, after)


def _pack_network(name, best, file, dtype, images):
    """Write the best network of a run to `file`; return what it measured before and after."""
    trained = keras.models.load_model(best)
    # The network as registered: the trained one has its recipe's dropout and an optimizer.
    network = models.create(name, weights=best)
    packed = keras.Sequential([trained.layers[0], network], name=name)
    before = evaluate(trained, images)
    with np.errstate(over="ignore"):
        weights = [weight.astype(dtype) for weight in packed.get_weights()]
    if not all(np.isfinite(weight).all() for weight in weights):
        raise ValueError(f"The weights of {best} do not fit into {dtype}. Pack them as float32.")
    packed.set_weights(weights)
    with replacing(file) as temporary:
        packed.save(temporary)
        _compress(temporary)
        after = evaluate(keras.models.load_model(temporary), images)
    return before, after


def _compress(path):
    """Compress a `.keras` file.

    Keras stores float32; if weights are rounded to float16, half the bits are 0. LZMA, which can be
    told about four-byte numbers, leaves 0.45 to 0.5 of the size, deflate 0.55 to 0.65.
    """
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in sorted(archive.namelist())}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def _training(runs, settings, images):
    """Return what the entry says about how the networks were trained."""
    recipe, ended = settings["recipe"], [run.read_json() for run in runs]
    return {
        "accuracies": [run["results"]["test_accuracy"] for run in ended],
        "seeds": [run["seed"] for run in ended],
        "recipe": recipe["name"],
        "epochs": recipe["epochs"],
        "dtype_policy": compared_fields(recipe)["dtype_policy"],
        "images": len(images.x_train),
        "held_out": len(images.x_val),
        "preprocessing": recipe["preprocessing"],
        "class_names": settings["class_names"],
        **hardware_and_versions(sessions(runs[0])),
    }


def _write_entry(entry):
    key = entry["name"], entry["dataset"]
    others = [e for e in shipped.read_index() if (e["name"], e["dataset"]) != key]
    order = {name: number for number, name in enumerate(models.list_models())}
    entries = sorted([*others, entry], key=lambda e: (order[e["name"]], e["dataset"]))
    write_json(shipped.FOLDER / shipped.INDEX, entries, indent=1)


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.pack", description=__doc__)
    parser.add_argument("folders", nargs="+", metavar="RUN_FOLDER")
    parser.add_argument("--dtype", default="float16", choices=DTYPES)
    parser.add_argument("--data-dir")
    options = parser.parse_args()
    try:
        packed = pack(options.folders, options.dtype, options.data_dir)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for when, (loss, accuracy) in (("before", packed.before), ("after", packed.after)):
        print(f"{when:<6}  test accuracy {100 * accuracy:.2f} %  test loss {loss:.5f}")
    print(f"packed {packed.entry['file']}  ({packed.entry['bytes']:,} bytes)")


if __name__ == "__main__":
    main()
