"""A user's own pictures in folders, one folder per class.

Keras's `image_dataset_from_directory` lists folders the same way, but does not read like `predict`
and exported networks: it does not rotate photos as their EXIF data say, and scales differently.
"""

import concurrent.futures
import os
import re

import numpy as np

from highway_keras import checks
from highway_keras.data.dataset import DataError, hold_out
from highway_keras.data.images import check_channels, picture_shape
from highway_keras.data.memory import BYTES_IN_TRAINING, fits_training
from highway_keras.data.picture_array import PictureArray
from highway_keras.data.picture_files import pictures_below
from highway_keras.memory import free, gib
from highway_keras.messages import notice

TEST_FRACTION = 0.2  # of each class, where there is no folder `test`
PARTS = ("train", "test")


def read_folder(folder):
    """Return `x_train, y_train, x_test, y_test, class_names` of a folder.

    File paths take the place of images: `read_pictures` reads the ones wanted.
    """
    folder = checks.path("dataset", folder)
    if "train" in _folders(folder) and _folders(folder / "train"):
        _check_parts(folder)
        (x_train, y_train, names), (x_test, y_test, tested) = (
            _read_classes(folder / part) for part in PARTS
        )
        _check_same(folder, names, tested)
        return x_train, y_train, x_test, y_test, names
    _check_are_classes(folder)
    paths, labels, names = _read_classes(folder)
    train, test = hold_out(labels, TEST_FRACTION)
    if not len(test):
        raise DataError(
            "`dataset` must be a folder with at least 3 pictures, of which a fifth is held out for "
            f"testing. Received: dataset={folder} with {len(paths)}."
        )
    return paths[train], labels[train], paths[test], labels[test], names


def _check_parts(folder):
    inside = _folders(folder)
    if set(inside) != set(PARTS):
        raise DataError(
            "`dataset` must be a folder with train/ and test/, or with a folder for each class. "
            f"Received: dataset={folder} with {', '.join(inside)}. Pictures to choose by are held "
            "out from those in train/."
        )


def _check_are_classes(folder):
    """Raise if the folders in a folder are named like parts, such as Train, not like classes."""
    names = _folders(folder)
    if names and all(re.fullmatch("(?i)train(ing)?|test(ing)?|val(id(ation)?)?", n) for n in names):
        raise DataError(
            "`dataset` must be a folder with train/ and test/, named like this, or with a folder "
            f"for each class. Received: dataset={folder} with {', '.join(names)}."
        )


def _check_same(folder, names, tested):
    if names == tested:
        return
    missing, extra = sorted({*names} - {*tested}), sorted({*tested} - {*names})
    only = [f"Only in train/: {', '.join(missing)}."] if missing else []
    only += [f"Only in test/: {', '.join(extra)}."] if extra else []
    raise DataError(
        "`dataset` must be a folder with the same classes in train/ and test/. Received: "
        f"dataset={folder}. {' '.join(only)}"
    )


def _read_classes(folder):
    """Return paths of pictures, their class numbers, and the names of the classes in `folder`."""
    names = _folders(folder)
    if len(names) < 2:
        held = f"only {names[0]}" if names else "none"
        raise DataError(
            "`dataset` must be a folder with a folder of pictures for each of two or more classes. "
            f"Received: dataset={folder}, which holds {held}."
        )
    found = [pictures_below(os.path.join(folder, name)) for name in names]
    for name, paths in zip(names, found, strict=True):
        if not paths:
            raise DataError(
                f"`dataset` must be a folder with PNG or JPEG files for each class. "
                f"Received: dataset={folder}, which has none for {name}."
            )
    labels = np.repeat(np.arange(len(names)), list(map(len, found)))
    return np.array([path for paths in found for path in paths], object), labels, tuple(names)


def _folders(folder):
    """Return the names of the folders in a folder, sorted, hidden ones left out."""
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))


def read_pictures(parts, input_shape, source):
    """Return images for the paths in each part, read into memory if all parts fit.

    Args:
        parts: Arrays of paths.
        input_shape: (height, width, channels) to scale each to; `None` for that of the pictures,
            if they all share one.
        source: Where they are from, for messages.

    Returns:
        A list of arrays, each uint8 `(n, height, width, channels)`; of `PictureArray` if they do
        not fit.
    """
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as readers:
        shapes = list(readers.map(picture_shape, np.concatenate(parts)))
    input_shape = _common(shapes, source) if input_shape is None else tuple(input_shape)
    check_channels(input_shape)
    arrays = [PictureArray(part, input_shape) for part in parts]
    values = sum(array.size for array in arrays)
    if fits_training(values):
        arrays = [array[:] for array in arrays]
    else:
        needed = gib(BYTES_IN_TRAINING * values)
        notice(
            f"The pictures of {source} stay on the disk and are read anew in each epoch: training "
            f"on them in memory would take {needed}; {gib(free())} are free."
        )
    _say_changes(shapes, input_shape, source)
    return arrays


def _common(shapes, source):
    height_width = {shape[:2] for shape in shapes}
    if len(height_width) > 1:
        listed = " and ".join(f"{h} x {w}" for h, w in sorted(height_width)[:2])
        raise DataError(
            "`input_shape` must give the size that pictures are scaled to, (height, width, "
            f"channels), where they differ. Received: input_shape=None for {source} with {listed}."
        )
    return (*height_width.pop(), max(shape[2] for shape in shapes))


def _say_changes(shapes, input_shape, source):
    height, width, channels = input_shape
    resized = sum(shape[:2] != (height, width) for shape in shapes)
    recoloured = sum(shape[2] != channels for shape in shapes)
    colours = "grey levels" if channels == 1 else "colours"
    changes = [f"{resized} are scaled to {height} x {width}"] if resized else []
    changes += [f"{recoloured} are read as {colours}"] if recoloured else []
    if changes:
        notice(f"{source} holds {len(shapes)} pictures: {' and '.join(changes)}.")
