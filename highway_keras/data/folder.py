"""A user's own pictures in folders, one folder per class.

Keras's `image_dataset_from_directory` takes folders with the same layout, but sorts numeric names
as text (10 before 2), ignores the EXIF rotation of photos, and scales differently from `predict`
and exported networks.
"""

import os

import numpy as np

from highway_keras.data import dataset
from highway_keras.data.dataset import DataError
from highway_keras.data.pictures import (
    PictureArray,
    common_shape,
    files_below,
    is_picture,
    read_image,
)
from highway_keras.util.cores import on_every_core
from highway_keras.util.messages import notice

PARTS = ("train", "test")
NAMES_OF_PARTS = ("train", "training", "test", "testing", "val", "validation")
LONGEST_LIST = 50  # paths in a message


def read_folder(folder, skip_broken):
    """Return pairs `(paths, labels)`, to train on and perhaps to test on, and the class names.

    Paths stand in for images, so that `read_pictures` reads only those that are used. `skip_broken`
    leaves out pictures that cannot be read, and a notice names them.
    """
    names = _folders(folder)
    if not any(name.lower() in NAMES_OF_PARTS and _folders(folder / name) for name in names):
        return [_read_classes(folder, names, skip_broken)], names
    if sorted(names) != sorted(PARTS):
        raise DataError(
            "`source` must be a folder with train/ and test/, named like this, or with a folder "
            f"for each class. Received: source={folder} with {', '.join(names)}. Pictures to "
            "choose by are held out from those in train/."
        )
    classes = _folders(folder / "train")
    differing = sorted({*classes} ^ {*_folders(folder / "test")})
    if differing:
        raise DataError(
            "`source` must be a folder with the same classes in train/ and test/. Received: "
            f"source={folder} with {', '.join(differing)} in only one of them."
        )
    return [_read_classes(folder / part, classes, skip_broken) for part in PARTS], classes


def _folders(folder):
    """Return the names of the folders in a folder, sorted; hidden ones and a Mac's are left out."""
    with os.scandir(folder) as entries:
        names = [e.name for e in entries if e.is_dir() and not e.name.startswith((".", "__MACOSX"))]
    numbers = all(name.isdecimal() for name in names)
    return sorted(names, key=(lambda name: (int(name), name)) if numbers else None)


def _read_classes(folder, names, skip_broken):
    """Return `(paths, labels)` of the pictures in a folder of classes."""
    files = [
        (path, label) for label, name in enumerate(names) for path in files_below(folder / name)
    ]
    pictures = [(path, label) for path, label in files if is_picture(path)]
    if len(pictures) < len(files):
        notice(f"{folder}: {len(files) - len(pictures)} files are left out: neither PNG nor JPEG.")
    if skip_broken:
        broken = _broken_pictures([path for path, _ in pictures])
        pictures = [(path, label) for path, label in pictures if path not in broken]
        if broken:
            notice(f"{folder}: {_listed(broken)} cannot be read and are left out.")
    empty = sorted({*range(len(names))} - {label for _, label in pictures})
    if len(names) < 2 or empty:
        without = f", without pictures for {', '.join(names[label] for label in empty)}"
        raise DataError(
            "`source` must be a folder with a folder of PNG or JPEG files for each of two or more "
            f"classes. Received: source={folder} with {', '.join(names) or 'none'}"
            f"{without if empty else ''}."
        )
    paths, labels = zip(*pictures, strict=True)
    return np.array(paths, object), np.array(labels)


def read_pictures(parts, input_shape, are_checked):
    """Return uint8 images for the paths in each part: arrays if all fit, else `PictureArray`s.

    The images are scaled to `input_shape`; `None` stands for the shape that all pictures share. An
    error names all broken pictures, so those on disk are read once, unless they `are_checked`.
    """
    paths = np.concatenate(parts)
    try:
        input_shape = input_shape or common_shape(paths)
        arrays = [PictureArray(part, input_shape) for part in parts]
        if sum(array.size for array in arrays) <= dataset.MOST_IN_MEMORY:
            return [array[:] for array in arrays]
    except (OSError, DataError):
        _check_readable(paths)
        raise
    if not are_checked:
        _check_readable(paths)
    return arrays


def _check_readable(paths):
    """Raise a `DataError` that names the pictures that cannot be read, if there are any."""
    broken = _broken_pictures(paths)
    if broken:
        raise DataError(
            f"{_listed(broken)} cannot be read, the first because: {next(iter(broken.values()))} "
            "Repair or remove them, or leave them out: skip_broken=True."
        )


def _broken_pictures(paths):
    """Return `{path: reason}` for the picture files that cannot be read."""

    def why(path):
        try:
            read_image(path, (1, 1, 1))
        except (OSError, DataError) as error:
            return str(error)

    reasons = on_every_core(why, paths)
    return {path: error for path, error in zip(paths, reasons, strict=True) if error}


def _listed(paths):
    more = f" and {len(paths) - LONGEST_LIST} more" if len(paths) > LONGEST_LIST else ""
    return f"{len(paths)} of the pictures ({', '.join(list(paths)[:LONGEST_LIST])}{more})"
