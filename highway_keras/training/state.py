"""The saved state of a run: weights and optimizer, with the settings and history they belong to."""

import hashlib
import io
import json
import pathlib
import tempfile
import zipfile

import h5py
import numpy as np

from highway_keras.io import write_bytes

BELONGS_TO = "run"  # the data set of the HDF5 file with settings and history, as JSON
DIGEST = "sha256"


def save_state(model, path, settings, history):
    """Write the state of a compiled model, for `model.load_weights` and `read_belongings`.

    Args:
        model: A Keras model.
        path: Path of the `.weights.h5` file.
        settings: What `run.json` holds, a dictionary.
        history: Rows of `history.csv` up to this state.
    """
    content = weights_file(model)
    with h5py.File(content, "r+") as file:
        _put_belongings(file, settings, history)
    write_bytes(path, content.getvalue())


def replace_settings(path, settings):
    """Record in a saved state that it belongs to the settings of a longer run."""
    belongings = read_belongings(path)
    if belongings:
        content = io.BytesIO(pathlib.Path(path).read_bytes())
        with h5py.File(content, "r+") as file:
            del file[BELONGS_TO]
            _put_belongings(file, settings, belongings["history"])
        write_bytes(path, content.getvalue())


def _put_belongings(file, settings, history):
    file[BELONGS_TO] = json.dumps({"settings": settings, "history": history})
    file[BELONGS_TO].attrs[DIGEST] = _digest(file)


def read_belongings(path):
    """Return `{"settings": …, "history": …}` of a saved state; `{}` for one of version 0.1.0.

    Raises:
        ValueError: If the file is damaged.
    """
    try:
        with h5py.File(path) as file:
            if BELONGS_TO not in file:
                return {}
            if file[BELONGS_TO].attrs[DIGEST] != _digest(file):
                raise ValueError("its content is not what was written")
            return json.loads(file[BELONGS_TO][()])
    except Exception as error:  # damaged files raise errors of many kinds
        raise unreadable(path) from error


def _digest(file):
    """Return the SHA-256 of everything in an HDF5 file: HDF5 does not notice a changed number."""
    digest = hashlib.sha256()

    def add(name, item):
        if isinstance(item, h5py.Dataset):
            digest.update(name.encode())
            digest.update(np.asarray(item[()]).tobytes())

    file.visititems(add)
    return digest.hexdigest()


def unreadable(path):
    """Return the error that says that a saved state is damaged."""
    return ValueError(f"The saved state {path} cannot be read. Delete the folder to start anew.")


def weights_file(model):
    """Return what `model.save_weights` writes, as an `io.BytesIO`.

    If the disk is full, HDF5 ends the whole process with a segmentation fault. For a `.keras`
    archive, Keras writes it in memory, so it is taken from there.
    """
    with tempfile.TemporaryDirectory() as folder:
        archive = pathlib.Path(folder) / "model.keras"
        model.save(archive)
        with zipfile.ZipFile(archive) as members:
            return io.BytesIO(members.read("model.weights.h5"))
