"""A user's own images that are in memory or come out of a `tf.data.Dataset`."""

import dataclasses
import hashlib

import numpy as np

from highway_keras import checks
from highway_keras.data.arrays import CLASS_NAMES, KEYS, check_arrays, check_parts
from highway_keras.data.dataset import DataError, hold_out
from highway_keras.data.folder import TEST_FRACTION
from highway_keras.data.memory import check_fits

SOURCE = "the images"  # what messages call them


def is_in_memory(source):
    """Return whether `read_memory` reads a source: pairs of arrays, or `tf.data.Dataset`s."""
    return _is_tf_data(source) or isinstance(source, tuple | list)


def read_memory(source):
    """Return `x_train, y_train, x_test, y_test, class_names` of images in memory.

    Args:
        source: `(images, labels)`, a `tf.data.Dataset` of them, or a pair of either: to train on
            and to test on. If there is only one, a fifth of each class becomes the test images.
    """
    parts = list(source) if _is_pair(source) else [source]
    if len(parts) not in (1, 2):
        raise _unknown(source)
    class_names = _common_names(parts)
    arrays = [array for part in parts for array in _arrays(part)]
    if len(parts) == 1:
        # Checked before they are split, and so under the names of the training images.
        x, y, _, _, class_names = _checked([*arrays, *arrays], class_names)
        train, test = hold_out(y, TEST_FRACTION)
        arrays = [x[train], y[train], x[test], y[test]]
    return _checked(arrays, class_names)


def _common_names(parts):
    """Return the class names of the training part, or `None`; raise if the test part's differ."""
    # `image_dataset_from_directory` states them.
    stated = [getattr(part, CLASS_NAMES, None) for part in parts]
    if all(names is not None for names in stated) and list(stated[0]) != list(stated[-1]):
        shown = " and ".join(", ".join(map(str, names)) for names in stated)
        raise DataError(
            "`dataset` must hold the same classes to train on and to test on, in the same order: "
            f"give both the same folders. Received: {shown}."
        )
    return stated[0]


def _checked(arrays, class_names):
    named = dict(zip(KEYS, arrays, strict=True))
    return check_arrays({**named, CLASS_NAMES: class_names}, SOURCE)


def check_dataset(images):
    """Return a `Dataset` whose images and labels are those that training takes, or raise."""
    if not isinstance(images.x_train, np.ndarray):
        return images
    parts = [part for part in ("train", "val", "test") if part != "val" or len(images.x_val)]
    source = f"the data set {images.name!r}"
    return dataclasses.replace(images, **check_parts(vars(images), parts, source))


def _is_pair(source):
    return isinstance(source, tuple | list) and all(
        _is_tf_data(part) or isinstance(part, tuple | list) for part in source
    )


def _is_tf_data(source):
    return hasattr(source, "as_numpy_iterator") and hasattr(source, "element_spec")


def _arrays(part):
    """Return images and labels of `(images, labels)` or of a `tf.data.Dataset`."""
    if _is_tf_data(part):
        return _from_tf_data(part)
    if len(part) != 2 or not all(hasattr(array, "__array__") for array in part):
        raise _unknown(part)
    return [np.asarray(array) for array in part]


def _unknown(source):
    return TypeError(
        "`dataset` must be a name, a path, a `data.Dataset`, a `tf.data.Dataset`, arrays "
        "(images, labels), or a pair of either, to train on and to test on; images to choose by "
        f"are held out of the first. Received: dataset={checks.short_repr(source)}."
    )


def _from_tf_data(dataset):
    spec = dataset.element_spec
    shapes = [getattr(part, "shape", None) for part in spec] if isinstance(spec, tuple) else []
    ranks = [getattr(shape, "rank", None) for shape in shapes]
    if len(ranks) != 2 or ranks[0] is None or int(dataset.cardinality()) == -1:
        raise DataError(
            "`dataset` must be a finite `tf.data.Dataset` of pairs (image, label) or batches of "
            f"them. Received: {checks.short_repr(spec)}, {int(dataset.cardinality())} elements "
            "(-1: without end). Images of unknown shape get one by `image.set_shape`."
        )
    batches = dataset if ranks[0] == 4 else dataset.batch(100)
    images, labels, size = [], [], 0
    for x, y in batches.as_numpy_iterator():
        images.append(_grey_levels(x))
        labels.append(y)
        size += images[-1].nbytes
        check_fits(size, "the `tf.data.Dataset`")
    if not images:
        raise DataError("`dataset` must hold at least one image. Received: an empty one.")
    return _in_fixed_order(np.concatenate(images), np.concatenate(labels))


def _grey_levels(x):
    """Return images as uint8; floats are as Keras reads them, from 0 to 255."""
    if x.dtype.kind != "f":
        return x
    if not (0 <= x.min() and 1 < x.max() <= 255):
        raise DataError(
            "`dataset` must hold images with pixel values from 0 to 255; leave out a Rescaling. "
            f"Received: {x.min():.3g} to {x.max():.3g}."
        )
    return x.round().astype("uint8")


def _in_fixed_order(images, labels):
    """Return both in an order that depends only on what they hold: a data set may shuffle."""
    pairs = zip(images, labels, strict=True)
    keys = [(hashlib.sha256(x.tobytes()).digest(), np.asarray(y).tobytes()) for x, y in pairs]
    order = sorted(range(len(images)), key=keys.__getitem__)
    return images[order], labels[order]
