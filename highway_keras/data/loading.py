"""`load`: from a name, a path or arrays to a `Dataset` in one call."""

import dataclasses
import difflib
import os

from highway_keras import checks
from highway_keras.data.dataset import DataError, Dataset, hold_out, shuffled
from highway_keras.data.digits import read_digits
from highway_keras.data.folder import read_folder, read_pictures
from highway_keras.data.in_memory import check_dataset, is_in_memory, read_memory
from highway_keras.data.npz import read_npz
from highway_keras.data.public import PUBLIC_URLS, read_public

NAMES = ("digits", *PUBLIC_URLS)


def load(name, data_dir=None, validation=0.1, limit=None, input_shape=None):
    """Load labeled images.

    Args:
        name: One of `NAMES`, the path of a folder or of a `.npz` file, arrays, or a data set.
            `"digits"`: scikit-learn's embedded 8x8 handwritten digits, gray levels 0..16 scaled to
            0..255, a fixed fifth of each class as the test set; needs no download.
            `"mnist"`, `"fashion_mnist"`, `"cifar10"`, `"cifar100"`: from TensorFlow Datasets, the
            prepared copy if there is one, else a download.
            A folder: PNG and JPEG files in one folder per class, either in `train/` and `test/`
            or in the folder itself, where a fixed fifth of each class becomes the test set. Other
            files are left out. Images too large for memory stay on disk.
            A `.npz` file: arrays `x_train`, `y_train`, `x_test`, `y_test`; images uint8 of shape
            `(n, height, width, channels)` or `(n, height, width)`, labels integers from 0 of shape
            `(n,)` or `(n, 1)`; and `class_names`, strings, if they have names.
            Arrays `(images, labels)` like those, a finite `tf.data.Dataset` of them, or a pair of
            either to train on and to test on, as `keras.datasets.mnist.load_data()` returns. If
            there is only one, a fixed fifth of each class becomes the test set.
            A `Dataset` of images and labels like those; what it holds out stays held out.
        data_dir: Directory of TensorFlow Datasets. Default: the environment variable
            `TFDS_DATA_DIR`, else TensorFlow Datasets' own default.
        validation: Fraction of the training images, in [0, 1), held out for validation: drawn
            evenly over the classes with a fixed seed, so every call holds out the same images.
        limit: Keep only this many of the remaining training images, for a quick experiment.
        input_shape: (height, width, channels) to scale the pictures of a folder to. Default: that
            of the pictures, if they all share one. Other images keep theirs.

    Returns:
        A `Dataset`. Its training images are in a fixed shuffled order; those of a `Dataset` keep
        theirs unless there is a `limit`.

    Raises:
        ValueError: If an argument is out of range, or the name is unknown.
        FileNotFoundError: If the `.npz` file does not exist.
        DataError: If the data can be neither read nor downloaded, or is unusable.

    Example:

    >>> from highway_keras.data import load
    >>> load("digits", limit=500).x_train.shape
    (500, 8, 8, 1)
    """
    checks.number("validation", validation, least=0, below=1)
    limit = checks.positive_integer("limit", limit, or_none="all of them")
    if isinstance(name, Dataset):
        images = check_dataset(name)
        if limit is None:
            return images
        kept = shuffled(images.y_train)[:limit]
        return dataclasses.replace(
            images, x_train=images.x_train[kept], y_train=images.y_train[kept]
        )
    x_train, y_train, x_test, y_test, class_names = _read(name, data_dir)
    title = _title(name)
    kept, held_out = _split(y_train, validation, title)
    kept = kept[:limit]
    images = [x_train[kept], x_train[held_out], x_test]
    if is_folder(name):
        images = read_pictures(images, input_shape, name)
    return Dataset(
        name=title,
        x_train=images[0],
        y_train=y_train[kept],
        x_val=images[1],
        y_val=y_train[held_out],
        x_test=images[2],
        y_test=y_test,
        class_names=class_names,
    )


def is_folder(name):
    """Return whether `load` treats `name` as a folder of pictures."""
    if not isinstance(name, str | os.PathLike):
        return False
    text = os.fspath(name)
    is_path = text not in NAMES and not text.endswith(".npz")
    return is_path and os.path.isdir(os.path.expanduser(text))


def _split(labels, validation, title):
    """Return the indices of the images that are kept for training and of those held out."""
    kept, held_out = hold_out(labels, validation)
    for part, indices in (("training", kept), ("validation", held_out)):
        if not len(indices) and (validation or part == "training"):
            raise DataError(
                f"`validation` must leave at least one {part} image of the {len(labels)} in "
                f"'{title}'. Received: validation={validation}."
            )
    return kept, held_out


def _title(name):
    """Return what a data set is called."""
    if is_in_memory(name):
        return "arrays"
    path = checks.path("dataset", name)
    return path.resolve().name if is_folder(name) else path.stem


def _read(name, data_dir):
    """Return `x_train, y_train, x_test, y_test, class_names`; for a folder, paths, not images."""
    if is_in_memory(name):
        return read_memory(name)
    if not isinstance(name, str | os.PathLike):
        raise TypeError(
            "`dataset` must be the name of a data set, a path, arrays or a data set. "
            f"Received: dataset={checks.short_repr(name)}."
        )
    name = os.fspath(name)
    if name.endswith(".npz"):
        return read_npz(name)
    if name == "digits":
        return read_digits()
    if name in PUBLIC_URLS:
        return read_public(name, data_dir)
    if is_folder(name):
        return read_folder(name)
    near = difflib.get_close_matches(name.lower(), NAMES, n=3)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(
        f"`dataset` must be one of {', '.join(NAMES)}, a folder of pictures, or a path that ends "
        f"in .npz. Received: dataset={name!r}.{hint}"
    )
