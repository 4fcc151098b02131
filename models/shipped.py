"""Trained weights that come with the package: which there are, and whether they are intact.

`weights/index.json` has an entry for each file, written by `tools/pack.py`: what the file holds,
how it was trained and what it reaches. Importing this module does not import Keras.
"""

import hashlib
import json
import pathlib

from highway_keras.runs import trained_file
from highway_keras.util import checks

FOLDER = pathlib.Path(__file__).with_name("weights")
INDEX = "index.json"


def read_index():
    """Return the entries of the index, a dictionary for each file of weights."""
    path = FOLDER / INDEX
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def entries(name):
    """Return the entries of a network's weights, by the data sets that they were trained on."""
    return {entry["dataset"]: entry for entry in read_index() if entry["name"] == name}


def entry_of(path):
    """Return the entry of a file in the folder of weights; an empty one for any other file."""
    path = pathlib.Path(path).resolve()
    return next((e for e in read_index() if (FOLDER / e["file"]).resolve() == path), {})


def find_entry(name, dataset):
    """Return the entry of a network's weights for a data set, or raise a `ValueError`."""
    known = entries(name)
    if not known:
        raise ValueError(f"There are no trained weights for {name!r} yet.")
    return known[checks.one_of("weights", dataset, known)]


def find_file(name, dataset):
    """Return the path of a network's weights for a data set; see `Card.weights_file`."""
    entry = find_entry(name, dataset)
    path = FOLDER / entry["file"]
    if sha256(path) != entry["sha256"]:
        raise ValueError(f"The weights {path} are damaged: reinstall highway-keras.")
    return path


def is_on_hub(weights):
    """Return whether `weights` is an address on the Hugging Face Hub, which Keras reads itself."""
    return isinstance(weights, str) and weights.startswith("hf://")


def resolve(name, weights):
    """Return the file that a user means by `weights`; `None` and addresses on the hub stay."""
    if weights is None or is_on_hub(weights):
        return weights
    trained = entries(name)
    if isinstance(weights, str) and weights in trained:
        return find_file(name, weights)
    path = checks.path("weights", trained_file(weights))
    if not path.is_file():
        raise FileNotFoundError(
            "`weights` must be None, a file, the folder of a run, or one of the trained ones: "
            f"{', '.join(trained) or 'there are none yet'}. {checks.received('weights', weights)}"
        )
    return path


def sha256(path):
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
