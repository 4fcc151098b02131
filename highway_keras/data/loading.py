"""`load`: from a name, a path or arrays to a `Dataset` in one call."""

import dataclasses
import os

import numpy as np

from highway_keras.data.arrays import check_dataset, read_memory, read_npz
from highway_keras.data.dataset import DataError, Dataset, hold_out, shuffled
from highway_keras.data.folder import read_folder, read_pictures
from highway_keras.data.picture_files import PictureArray
from highway_keras.data.public import NAMES, read_digits, read_public
from highway_keras.util import checks
from highway_keras.util.messages import did_you_mean, notice

TEST_FRACTION = 0.2  # of each class, where no images are to be tested on


def load(
    dataset,
    data_dir=None,
    validation=0.1,
    limit=None,
    input_shape=None,
    skip_broken=False,
    test_only=False,
) -> Dataset:
    """Load labeled images.

    Args:
        dataset: One of `NAMES`, the path of a folder or of a `.npz` file, arrays, or a data set.
            `"digits"`: scikit-learn's embedded 8x8 handwritten digits, gray levels 0..16 scaled to
            0..255, a fixed fifth of each class as the test set; needs no download.
            `"mnist"`, `"fashion_mnist"`, `"cifar10"`, `"cifar100"`: from TensorFlow Datasets, the
            prepared copy if there is one, else a download.
            A folder: PNG and JPEG files in one folder per class, either in `train/` and `test/`
            or in the folder itself, where a fixed fifth of each class becomes the test set. Other
            files are left out. Pictures of more than 2^29 values together stay on disk.
            A `.npz` file: arrays `x_train`, `y_train`, `x_test`, `y_test`; images uint8 of shape
            `(n, height, width, channels)` or `(n, height, width)`, labels integers from 0 of shape
            `(n,)` or `(n, 1)`; and `class_names`, strings, if they have names.
            Arrays `(images, labels)` like those, a finite `tf.data.Dataset` of them, or a pair of
            either to train on and to test on, as `keras.datasets.mnist.load_data()` returns. If
            there is only one, a fixed fifth of each class becomes the test set.
            A `Dataset` of images and labels like those; it is not split again.
        data_dir: Directory of TensorFlow Datasets. Default: the environment variable
            `TFDS_DATA_DIR`, else TensorFlow Datasets' own default.
        validation: Fraction of the training images, in [0, 1), held out for validation: drawn
            evenly over the classes with a fixed seed, so every call holds out the same images.
        limit: Keep only this many of the remaining training images, for a quick experiment.
        input_shape: (height, width, channels) to scale the pictures of a folder to. Default: that
            of the pictures, if they all share one. Other images keep theirs.
        skip_broken: Whether to leave out pictures of a folder that cannot be read, and say which.
            Otherwise an error names them.
        test_only: Whether to read only the test images, to measure a network. The others of a
            folder stay on disk, and none of them is missed if it cannot be read.

    Returns:
        A `Dataset`. Its training images are in a fixed shuffled order; those of a `Dataset` keep
        theirs unless there is a `limit`.

    Raises:
        ValueError: If an argument is out of range, or the name is unknown.
        FileNotFoundError: If the `.npz` file does not exist.
        DataError: If the data can be neither read nor downloaded, or is unusable.

    Examples:
        >>> from highway_keras.data import load
        >>> load("digits", limit=500).x_train.shape
        (500, 8, 8, 1)
    """
    checks.number("validation", validation, least=0, below=1)
    limit = checks.positive_integer("limit", limit, or_none="all of them")
    if isinstance(dataset, Dataset):
        images = check_dataset(dataset)
        if limit is None:
            return images
        kept = shuffled(images.y_train)[:limit]
        return dataclasses.replace(
            images, x_train=images.x_train[kept], y_train=images.y_train[kept]
        )
    title, parts, class_names = _read(dataset, data_dir, skip_broken)
    if len(parts) == 1:
        ((x, y),) = parts
        train, test = hold_out(y, TEST_FRACTION)
        parts = [(x[train], y[train]), (x[test], y[test])]
    (x, y), (x_test, y_test) = parts
    kept, held_out = hold_out(y, validation)
    for part, left in (("training", kept), ("validation", held_out), ("test", y_test)):
        if not len(left) and (part != "validation" or validation):
            raise DataError(
                f"'{title}' must hold enough images that one is left for {part}. Received: "
                f"{len(y)} to train on, {len(y_test)} to test on, validation={validation}."
            )
    lost = [class_names[label] for label in np.setdiff1d(np.append(y, y_test), y[kept])]
    if lost:
        notice(f"{title}: no image of {', '.join(lost)} is left to train on.")
    kept = kept[:limit]
    images = [x[kept], x[held_out], x_test]
    if is_folder(dataset):
        unread, read = (images[:2], images[2:]) if test_only else ([], images)
        images = read_pictures(read, input_shape, dataset, checked=skip_broken)
        images = [PictureArray(paths, images[0].shape[1:]) for paths in unread] + images
    x_train, x_val, x_test = images
    return Dataset(title, x_train, y[kept], x_val, y[held_out], x_test, y_test, class_names)


def is_folder(name):
    """Return whether `load` reads `name` as a folder; a `pathlib.Path` never names a data set."""
    is_path = isinstance(name, os.PathLike) or (isinstance(name, str) and name not in NAMES)
    if not is_path or os.fspath(name).endswith(".npz"):
        return False
    return os.path.isdir(os.path.expanduser(name))


def check_outside(dataset, out, name="out"):
    """Raise a `ValueError` if a folder for results is in one of pictures, where it is a class."""
    if is_folder(dataset):
        folder = checks.path(name, out).resolve()
        pictures = checks.path("dataset", dataset).resolve()
        is_in = folder.is_relative_to(pictures)
        if is_in and not any(part.startswith(".") for part in folder.relative_to(pictures).parts):
            raise ValueError(
                f"`{name}` must not be in the folder of the pictures, whose folders are classes. "
                f"Received: {name}={out}, dataset={dataset}."
            )


def _read(name, data_dir, skip_broken):
    """Return the title of a data set, its parts `(images, labels)`, and its class names."""
    if not isinstance(name, str | os.PathLike):
        return "arrays", *read_memory(name)
    if name == "digits":
        return name, *read_digits()
    if name in NAMES:
        return name, *read_public(name, data_dir)
    path = checks.path("dataset", name)
    if path.suffix == ".npz":
        return path.stem, *read_npz(path)
    if is_folder(name):
        return path.resolve().name, *read_folder(path, skip_broken)
    raise ValueError(
        f"`dataset` must be one of {', '.join(NAMES)}, a folder of pictures, or a path that ends "
        f"in .npz. Received: dataset={str(name)!r}.{did_you_mean(name, NAMES)}"
    )
