"""Trained weights that come with the package: which there are, and finding them undamaged.

`weights/index.json` has an entry a file. Importing this module does not import Keras.
"""

import hashlib
import json
import pathlib

FOLDER = pathlib.Path(__file__).with_name("weights")
INDEX = "index.json"


def read_index():
    """The entries of the index, dictionaries; `models.pack` says what they hold."""
    path = FOLDER / INDEX
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def datasets(name):
    """The data sets that there are weights of a registered network for."""
    return tuple(entry["dataset"] for entry in read_index() if entry["name"] == name)


def entry_of(path):
    """The entry of a file in the folder of weights; empty for any other file."""
    path = pathlib.Path(path).resolve()
    found = (e for e in read_index() if (FOLDER / e["file"]).resolve() == path)
    return next(found, {})


def find_entry(name, dataset):
    """The entry of a network's weights for a data set.

    Raises:
        ValueError: If there are none; the message lists those there are.
    """
    for entry in read_index():
        if (entry["name"], entry["dataset"]) == (name, dataset):
            return entry
    there = ", ".join(datasets(name))
    raise ValueError(
        f"`weights` must name trained weights of {name!r}: "
        f"{there or 'there are none yet'}. Received: weights={dataset!r}."
    )


def find_file(name, dataset):
    """Path of the `.keras` file with a network's weights for a data set.

    Raises:
        ValueError: If there are no such weights, or the file is not the one that was published.
    """
    entry = find_entry(name, dataset)
    path = FOLDER / entry["file"]
    found = sha256(path) if path.is_file() else "no file"
    if found != entry["sha256"]:
        raise ValueError(
            f"The weights {path} are damaged or missing: reinstall highway-keras. "
            f"Expected sha256={entry['sha256'][:12]}..., received {found[:12]}."
        )
    return path


def resolve(name, weights):
    """What a user passes as `weights`, as a path: a data set's name is looked up."""
    there = datasets(name)
    if weights in there:
        return find_file(name, weights)
    if weights is None or pathlib.Path(weights).is_file():
        return weights
    named = f", or one of the trained ones: {', '.join(there)}" if there else ""
    raise FileNotFoundError(
        f"`weights` must be None or an existing file{named}. Received: weights={weights}."
    )


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
