"""A user's own pictures in folders, one folder per class.

Keras's `image_dataset_from_directory` takes folders with the same layout, but sorts numeric names
as text (10 before 2), ignores the EXIF rotation of photos, and scales differently from `predict`
and exported networks.
"""

import contextlib
import os
import re

import numpy as np

from highway_keras.data.dataset import DataError, fits_training
from highway_keras.data.picture_files import (
    PictureArray,
    broken_pictures,
    check_channels,
    files_below,
    picture_shape,
    pictures_among,
    say_left_out,
)
from highway_keras.util.cores import on_every_core
from highway_keras.util.messages import notice

PARTS = ("train", "test")
LISTED = 50  # paths in a message


def read_folder(folder, skip_broken):
    """Return pairs `(paths, labels)`, to train on and perhaps to test on, and the class names.

    Paths stand in for images, so that `read_pictures` reads only those that are used. `skip_broken`
    leaves out pictures that cannot be read, and a notice names them.
    """
    names = _folders(folder)
    of_parts = [re.fullmatch("(?i)train(ing)?|test(ing)?|val(id(ation)?)?", n) for n in names]
    has_classes_in_train = "train" in names and _folders(folder / "train")
    if not has_classes_in_train and not (names and all(of_parts)):
        return [_read_classes(folder, names, skip_broken)], tuple(names)
    if set(names) != set(PARTS):
        raise DataError(
            "`dataset` must be a folder with train/ and test/, named like this, or with a folder "
            f"for each class. Received: dataset={folder} with {', '.join(names)}. Pictures to "
            "choose by are held out from those in train/."
        )
    classes = {part: _folders(folder / part) for part in PARTS}
    if classes["train"] != classes["test"]:
        only = sorted({*classes["train"]} ^ {*classes["test"]})
        raise DataError(
            "`dataset` must be a folder with the same classes in train/ and test/. Received: "
            f"dataset={folder} with {', '.join(only)} in only one of them."
        )
    parts = [_read_classes(folder / part, classes[part], skip_broken) for part in PARTS]
    return parts, tuple(classes["train"])


def _folders(folder):
    """Return the names of the folders in a folder, sorted; hidden ones and a Mac's are left out."""
    with os.scandir(folder) as entries:
        names = [e.name for e in entries if e.is_dir() and not e.name.startswith((".", "__MACOSX"))]
    numbers = all(name.isdecimal() for name in names)
    return sorted(names, key=(lambda name: (int(name), name)) if numbers else None)


def _read_classes(folder, names, skip_broken):
    """Return `(paths, labels)` of the pictures in a folder of classes."""
    files = [files_below(folder / name) for name in names]
    found = list(map(pictures_among, files))
    if skip_broken:
        broken = broken_pictures([path for paths in found for path in paths])
        found = [[path for path in paths if path not in broken] for paths in found]
        if broken:
            notice(f"{folder}: {_listed(broken)} cannot be read and are left out.")
    if len(names) < 2 or not all(found):
        empty = [name for name, paths in zip(names, found, strict=True) if not paths]
        raise DataError(
            "`dataset` must be a folder with a folder of PNG or JPEG files for each of two or more "
            f"classes. Received: dataset={folder}, which holds {', '.join(names) or 'none'}"
            f"{', without pictures for ' + ', '.join(empty) if empty else ''}."
        )
    say_left_out(folder, [path for paths in files for path in paths])
    beside = [name for name in pictures_among(os.listdir(folder)) if name[0] != "."]
    if beside:
        notice(f"{folder}: pictures beside the folders of classes are left out: {len(beside)}.")
    labels = np.repeat(np.arange(len(names)), list(map(len, found)))
    return np.array([path for paths in found for path in paths], object), labels


def check_readable(paths):
    """Raise a `DataError` that names the pictures that cannot be read, if there are any."""
    broken = broken_pictures(paths)
    if broken:
        raise DataError(
            f"{_listed(broken)} cannot be read, the first because: {next(iter(broken.values()))} "
            "Repair or remove them, or have `fit` or `data.load` leave them out: skip_broken=True."
        )


@contextlib.contextmanager
def _naming_broken(paths):
    """Have an error name all pictures that cannot be read, instead of the first."""
    try:
        yield
    except (OSError, DataError):
        check_readable(paths)
        raise


def _listed(paths):
    more = f" and {len(paths) - LISTED} more" if len(paths) > LISTED else ""
    return f"{len(paths)} of the pictures ({', '.join(list(map(str, paths))[:LISTED])}{more})"


def read_pictures(parts, input_shape, source, checked):
    """Return uint8 images for the paths in each part: arrays if all fit, else `PictureArray`s.

    They are scaled to `input_shape`; `None` stands for that of the pictures, if they share one.
    """
    paths = np.concatenate(parts)
    with _naming_broken(paths):
        shapes = on_every_core(picture_shape, paths)
    sizes = sorted({shape[:2] for shape in shapes})
    if input_shape is None and len(sizes) > 1:
        listed = " and ".join(f"{height} x {width}" for height, width in sizes[:2])
        raise DataError(
            "`input_shape` must give the size that pictures are scaled to, (height, width, "
            f"channels), where they differ. Received: input_shape=None for {source} with {listed}."
        )
    input_shape = input_shape or (*sizes[0], max(shape[2] for shape in shapes))
    check_channels(input_shape)
    height, width, channels = input_shape
    arrays = [PictureArray(part, (height, width, channels)) for part in parts]
    if fits_training(sum(array.size for array in arrays)):
        with _naming_broken(paths):
            arrays = [array[:] for array in arrays]
    else:
        notice(f"The pictures of {source} stay on the disk and are read as they are needed.")
        if not checked:
            check_readable(paths)
    resized = sum(shape[:2] != (height, width) for shape in shapes)
    recolored = sum(shape[2] != channels for shape in shapes)
    colors = "gray levels" if channels == 1 else "colors"
    changes = [f"{resized} are scaled to {height} x {width}"] if resized else []
    changes += [f"{recolored} are read as {colors}"] if recolored else []
    if changes:
        notice(f"{source}: of {len(shapes)} pictures read, {' and '.join(changes)}.")
    return arrays
