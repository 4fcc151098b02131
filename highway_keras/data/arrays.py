"""Check a user's own images and labels as arrays."""

import numpy as np

from highway_keras import checks
from highway_keras.data.dataset import DataError

KEYS = ("x_train", "y_train", "x_test", "y_test")
CLASS_NAMES = "class_names"


def check_arrays(arrays, source):
    """Return `x_train, y_train, x_test, y_test, class_names` as a `Dataset` holds them.

    Args:
        arrays: Dictionary of the arrays `KEYS` and, if there are names, `class_names`.
        source: Where they are from, for messages.

    Raises:
        DataError: If they are not images and class numbers that belong together.
    """
    checked = check_parts(arrays, ("train", "test"), source)
    return tuple(checked[key] for key in (*KEYS, CLASS_NAMES))


def check_parts(arrays, parts, source):
    """Return images, labels and class names as a `Dataset` holds them, a dictionary.

    Args:
        arrays: Dictionary of the `x_` and `y_` of each part and, if there are names, `class_names`.
        parts: `"train"`, then those whose images must be of the same shape and classes.
        source: Where they are from, for messages.

    Raises:
        DataError: If they are not images and class numbers that belong together.
    """
    checked, labels = {}, {}
    for part in parts:
        x, y = f"x_{part}", f"y_{part}"
        checked[x] = _check_images(x, arrays[x], source)
        labels[y] = _check_labels(y, arrays[y], source)
        if len(checked[x]) != len(labels[y]):
            raise DataError(
                f"`{x}` and `{y}` in {source} must be of the same length. "
                f"Received: {len(checked[x])} images and {len(labels[y])} labels."
            )
        shapes = [checked[key].shape[1:] for key in ("x_train", x)]
        if shapes[0] != shapes[1]:
            raise DataError(
                f"`x_train` and `{x}` in {source} must hold images of the same shape. "
                f"Received: {shapes[0]} and {shapes[1]}."
            )
    if arrays.get(CLASS_NAMES) is None:
        class_names = tuple(map(str, range(_count_classes(labels, source))))
    else:
        class_names = _check_names(arrays[CLASS_NAMES], labels, source)
    labels = {key: array.astype("int64") for key, array in labels.items()}
    return {**checked, **labels, CLASS_NAMES: class_names}


def _check_names(names, labels, source):
    names = np.asarray(names)
    if names.ndim != 1 or names.dtype.kind != "U" or not len(names):
        raise DataError(
            f"`class_names` in {source} must be an array of strings, one for each class. "
            f"Received: shape={names.shape}, dtype={names.dtype}."
        )
    most = max(int(array.max()) for array in labels.values())
    if most >= len(names):
        raise DataError(
            f"`class_names` in {source} must name every class. Received: {len(names)} names, and "
            f"label {most}."
        )
    names = tuple(map(str, names))
    checks.class_names(CLASS_NAMES, names, len(names))
    return names


def _check_images(key, images, source):
    if images.dtype != np.uint8:
        raise DataError(
            f"`{key}` in {source} must be uint8, pixel values 0 to 255; for floats in [0, 1] save "
            f"(255 * {key}).round().astype('uint8'). Received: dtype={images.dtype}."
        )
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4:
        raise DataError(
            f"`{key}` in {source} must be of shape (n, height, width) or (n, height, width, "
            f"channels). Received: shape={images.shape}."
        )
    if not images.size:
        raise DataError(f"`{key}` in {source} must not be empty. Received: shape={images.shape}.")
    if images.shape[1] in (1, 3) and images.shape[3] not in (1, 3):
        raise DataError(
            f"`{key}` in {source} must have its channels last; save numpy.moveaxis({key}, 1, -1). "
            f"Received: shape={images.shape}."
        )
    return images


def _check_labels(key, labels, source):
    if labels.ndim == 2 and labels.shape[1] == 1:  # as keras.datasets.cifar10 has them
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(
            f"`{key}` in {source} must be class numbers of shape (n,); for one-hot rows save "
            f"{key}.argmax(axis=1). Received: shape={labels.shape}."
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise DataError(
            f"`{key}` in {source} must not be NaN: remove those images or label them. "
            f"Received: NaN for {np.isnan(labels).sum()} of {len(labels)} labels."
        )
    if labels.dtype.kind not in "iu":
        raise DataError(
            f"`{key}` in {source} must be integers, the class numbers from 0; save "
            f"{key}.astype('int64'). Received: dtype={labels.dtype}."
        )
    if len(labels) and labels.min() < 0:
        raise DataError(
            f"`{key}` in {source} must not be negative: number the classes from 0. "
            f"Received: {labels.min()}."
        )
    return labels


def _count_classes(labels, source):
    y_train = labels["y_train"]
    classes = int(y_train.max()) + 1
    if classes > len(y_train):
        raise DataError(
            f"`y_train` in {source} must number its classes from 0 without large gaps. "
            f"Received: label {classes - 1} among {len(y_train)} images."
        )
    for key, array in labels.items():
        if array.max() >= classes:
            raise DataError(
                f"`{key}` in {source} must hold only classes that `y_train` has, 0 to "
                f"{classes - 1}. Received: label {array.max()}."
            )
    return classes
