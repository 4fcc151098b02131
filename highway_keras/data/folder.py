"""A user's own pictures in folders, one folder per class.

Keras's `image_dataset_from_directory` takes folders with the same layout, but sorts numeric names
as text (10 before 2), ignores the EXIF rotation of photos, and scales differently from `predict`
and exported networks.
"""

import numpy as np

from highway_keras.data.dataset import DataError
from highway_keras.data.pictures import find_pictures

PARTS = ("train", "test")


def read_folder(folder):
    """Return pairs `(paths, labels)`, to train on and perhaps to test on, and the class names.

    Paths stand in for images, so that only the pictures that are used are read.
    """
    parts = PARTS if _folders(folder) == sorted(PARTS) else ("",)
    classes = _folders(folder / parts[0])
    for part in parts:
        names = _folders(folder / part)
        if len(names) < 2 or names != classes or any(_folders(folder / part / n) for n in names):
            raise DataError(
                "`source` must be a folder with a folder of PNG or JPEG files for each of two or "
                "more classes, or with train/ and test/ of such folders, the same in both. "
                f"Received: {folder / part} with {', '.join(names) or 'none'}."
            )
    return [_read_classes(folder / part, classes) for part in parts], classes


def _folders(folder):
    """Return the names of the folders in a folder, sorted; hidden ones are left out."""
    names = [path.name for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]
    are_numbers = all(name.isdecimal() for name in names)
    return sorted(names, key=int if are_numbers else None)


def _read_classes(folder, names):
    """Return `(paths, labels)` of the pictures in a folder of classes."""
    pictures = [find_pictures([folder / name]) for name in names]
    labels = np.repeat(np.arange(len(names)), [len(paths) for paths in pictures])
    return np.concatenate(pictures).astype(object), labels
