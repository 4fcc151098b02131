"""A user's own images from a `.npz` file."""

import zipfile

import numpy as np

from highway_keras import checks
from highway_keras.data.arrays import KEYS, check_arrays
from highway_keras.data.dataset import DataError
from highway_keras.data.memory import check_fits


def read_npz(path):
    """Return `x_train, y_train, x_test, y_test, class_names` of the file at `path`."""
    path = checks.existing_file("dataset", path)
    return check_arrays(_read_arrays(path), path)


def _read_arrays(path):
    try:
        with zipfile.ZipFile(path) as members:
            size = sum(member.file_size for member in members.infolist())
    except Exception as error:  # zip headers that are damaged raise errors of many kinds
        raise _unreadable(path) from error
    check_fits(size, path)
    try:
        with path.open("rb") as file:
            # Never allow_pickle: a pickle runs whatever code its writer chose.
            content = dict(np.load(file, allow_pickle=False))
    except Exception as error:  # zip, zlib and NumPy's header parser raise errors of many kinds
        raise _unreadable(path) from error
    missing = [key for key in KEYS if key not in content]
    if missing:
        raise DataError(
            f"{path} must hold the arrays {', '.join(KEYS)}. Missing: {', '.join(missing)}. "
            f"Received: {', '.join(content) or 'no arrays'}."
        )
    return content


def _unreadable(path):
    return DataError(
        f"Cannot read {path}: it is damaged, cut short, or not a .npz of plain arrays. "
        "Write it with numpy.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)."
    )
