"""Puts what `fit` trained into the zoo: `python -m tools.pack RUN_FOLDER...`.

The folders are runs of one network by one recipe, with different seeds. The weights of the first
one are shipped, so that nothing is chosen by the test images; the figures are those of all.
"""

import argparse
import dataclasses
import io
import zipfile

import h5py
import keras
import numpy as np

from highway_keras import data, models
from highway_keras.files import replacing, write_json
from highway_keras.models import shipped
from highway_keras.training.evaluation import evaluate
from highway_keras.training.folder import RunFolder
from highway_keras.training.machine import hardware_and_versions, sessions

DTYPES = ("float16", "float32")
WEIGHTS = "model.weights.h5"


@dataclasses.dataclass(frozen=True)
class Packed:
    """What packing did.

    Attributes:
        entry: The new entry of the index, a dictionary.
        before: (loss, accuracy) on the test images before.
        after: The same of the packed file.
    """

    entry: dict
    before: tuple
    after: tuple


def pack(folders, dtype="float16", data_dir=None):
    """Packs runs of `fit` into the folder of weights that comes with the package.

    Writes `NAME-DATASET.keras`, its model card `NAME-DATASET.md`, and its entry in `index.json`.

    Args:
        folders: Folders of runs that have ended, alike but for their seeds.
        dtype: `"float16"` or `"float32"`: how the weights are stored.
        data_dir: Where TFDS keeps its data.

    Returns:
        A `Packed`.

    Raises:
        ValueError: If a run has not ended, or the runs are not alike.
    """
    if dtype not in DTYPES:
        raise ValueError(f"`dtype` must be {' or '.join(DTYPES)}. Received: dtype={dtype!r}.")
    runs = [RunFolder(folder) for folder in folders]
    settings = _alike(runs)
    name, dataset = settings["model"], settings["dataset"]
    images = data.load(dataset, data_dir=data_dir)
    saved = keras.models.load_model(runs[0].best)
    before = evaluate(saved, images)
    # A fresh network: the trained one is saved with its optimizer, as large as itself.
    network = models.create(name, weights=runs[0].best)
    shipped.FOLDER.mkdir(exist_ok=True)
    file = shipped.FOLDER / f"{name}-{dataset}.keras"
    with replacing(file) as temporary:
        keras.Sequential([saved.layers[0], network], name=name).save(temporary)
        temporary.write_bytes(shrink(temporary.read_bytes(), dtype))
    after = evaluate(keras.models.load_model(file), images)
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
        **_training(runs, settings),
        "licence": "Apache-2.0",
    }
    _write_entry(entry)
    card = models.card_text(name, dataset)
    file.with_suffix(".md").write_text(card, encoding="utf-8")
    return Packed(entry, before, after)


def shrink(archive, dtype):
    """The bytes of a `.keras` file with its weights in another precision, compressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(file, "w") as new:
        for name in sorted(old.namelist()):
            content = old.read(name)
            if name == WEIGHTS:
                content = _compressed(content, dtype)
            new.writestr(name, content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _compressed(content, dtype):
    file = io.BytesIO()
    with h5py.File(io.BytesIO(content)) as old, h5py.File(file, "w") as new:

        def copy(path, item):
            if isinstance(item, h5py.Group):
                made = new.create_group(path)
            else:
                made = _copy_array(new, path, item[()], dtype)
            for key, value in item.attrs.items():
                made.attrs[key] = value

        old.visititems(copy)
    return file.getvalue()


def _copy_array(file, path, array, dtype):
    if array.dtype == np.float32:  # counters and seeds stay as they are
        with np.errstate(over="ignore"):
            array = array.astype(dtype)
        if not np.isfinite(array).all():
            raise ValueError(f"The weights {path} do not fit into {dtype}. Pack them as float32.")
    compression = {"compression": "gzip", "shuffle": True} if array.ndim else {}
    return file.create_dataset(path, data=array, **compression)


def _alike(runs):
    """The settings of the first run, if all have ended and are alike but for their seeds."""
    for run in runs:
        if not run.has_ended:
            raise ValueError(f"{run.path} holds no run that has ended.")
    settings = [run.read_json() for run in runs]
    for key in ("model", "model_options", "dataset", "limit", "recipe"):
        if any(own[key] != settings[0][key] for own in settings):
            raise ValueError(f"Runs to pack together must be alike. They differ in: {key}.")
    if settings[0]["model_options"]:
        raise ValueError(
            "Weights in the zoo are of networks as they are registered. Received: model_options="
            f"{settings[0]['model_options']}."
        )
    return settings[0]


def _training(runs, settings):
    recipe = settings["recipe"]
    measured = [run.read_json() for run in runs]
    return {
        "accuracies": [run["results"]["test_accuracy"] for run in measured],
        "seeds": [run["seed"] for run in measured],
        "recipe": recipe["name"],
        "epochs": recipe["epochs"],
        "images": settings["limit"] or "all",
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
    except ValueError as error:
        parser.error(str(error))
    for when, (loss, accuracy) in (("before", packed.before), ("after", packed.after)):
        print(f"{when:<6}  test accuracy {100 * accuracy:.2f} %  test loss {loss:.5f}")
    print(f"packed {packed.entry['file']}  ({packed.entry['bytes']:,} bytes)")


if __name__ == "__main__":
    main()
