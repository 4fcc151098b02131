"""`load`: from a name or a `.npz` path to a `Dataset` in one call."""

import difflib
import os
from pathlib import Path

from highway_keras import checks
from highway_keras.data.dataset import DataError, Dataset, hold_out
from highway_keras.data.digits import read_digits
from highway_keras.data.npz import read_npz
from highway_keras.data.public import PUBLIC_URLS, read_public

NAMES = ("digits", *PUBLIC_URLS)


def load(name, data_dir=None, validation=0.1, limit=None):
    """Load labelled images as NumPy arrays.

    Args:
        name: One of `NAMES`, or the path of a `.npz` file.
            `"digits"`: scikit-learn's embedded 8x8 handwritten digits, grey levels 0..16 scaled to
            0..255, a fixed fifth of each class as the test set; needs no download.
            `"mnist"`, `"fashion_mnist"`, `"cifar10"`, `"cifar100"`: from TensorFlow Datasets, the
            prepared copy if there is one, else a download.
            A `.npz` file: arrays `x_train`, `y_train`, `x_test`, `y_test`; images uint8 of shape
            `(n, height, width, channels)` or `(n, height, width)`, labels integers from 0 of shape
            `(n,)` or `(n, 1)`.
        data_dir: Directory of TensorFlow Datasets. Default: the environment variable
            `TFDS_DATA_DIR`, else TensorFlow Datasets' own default.
        validation: Fraction of the training images, in [0, 1), held out for validation: drawn
            evenly over the classes with a fixed seed, so every call holds out the same images.
        limit: Keep only this many of the remaining training images, for a quick experiment.

    Returns:
        A `Dataset`. Its training images are in a fixed shuffled order.

    Raises:
        ValueError: If an argument is out of range, or the name is unknown.
        FileNotFoundError: If the `.npz` file does not exist.
        DataError: If the data can be neither read nor downloaded, or is unusable.

    Example:

    >>> from highway_keras.data import load
    >>> load("digits", limit=500).x_train.shape
    (500, 8, 8, 1)
    """
    if not isinstance(name, str | os.PathLike):
        raise TypeError(
            f"`name` must be the name of a data set or a path. Received: name={checks.shown(name)}."
        )
    name = os.fspath(name)
    checks.number("validation", validation, least=0, below=1)
    limit = checks.positive_integer("limit", limit, none="all of them")
    x_train, y_train, x_test, y_test, class_names = _read(name, data_dir)
    kept, held_out = hold_out(y_train, validation)
    for part, indices in (("training", kept), ("validation", held_out)):
        if not len(indices) and (validation or part == "training"):
            raise DataError(
                f"`validation` must leave at least one {part} image of the {len(y_train)} in "
                f"'{name}'. Received: validation={validation}."
            )
    kept = kept[:limit]
    return Dataset(
        name=Path(name).stem,
        x_train=x_train[kept],
        y_train=y_train[kept],
        x_val=x_train[held_out],
        y_val=y_train[held_out],
        x_test=x_test,
        y_test=y_test,
        class_names=class_names,
    )


def _read(name, data_dir):
    if name.endswith(".npz"):
        return read_npz(name)
    if name == "digits":
        return read_digits()
    if name in PUBLIC_URLS:
        return read_public(name, data_dir)
    near = difflib.get_close_matches(name.lower(), NAMES, n=3)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(
        f"`name` must be one of {', '.join(NAMES)}, or a path that ends in .npz. "
        f"Received: {name=}.{hint}"
    )
