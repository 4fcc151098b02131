"""A user's own images, read from a `.npz` file and checked."""

import numpy as np

from highway_keras import checks
from highway_keras.data.dataset import DataError

KEYS = ("x_train", "y_train", "x_test", "y_test")


def read_npz(path):
    """Return `x_train, y_train, x_test, y_test, class_names` of the file at `path`."""
    path = checks.existing_file("name", path)
    arrays = _read_arrays(path)
    for part in ("train", "test"):
        x, y = f"x_{part}", f"y_{part}"
        arrays[x] = _check_images(x, arrays[x], path)
        arrays[y] = _check_labels(y, arrays[y], path)
        if len(arrays[x]) != len(arrays[y]):
            raise DataError(
                f"`{x}` and `{y}` in {path} must be of the same length. "
                f"Received: {len(arrays[x])} images and {len(arrays[y])} labels."
            )
    shapes = [arrays[x].shape[1:] for x in ("x_train", "x_test")]
    if shapes[0] != shapes[1]:
        raise DataError(
            f"`x_train` and `x_test` in {path} must hold images of the same shape. "
            f"Received: {shapes[0]} and {shapes[1]}."
        )
    classes = _count_classes(arrays["y_train"], arrays["y_test"], path)
    return (
        arrays["x_train"],
        arrays["y_train"].astype("int64"),
        arrays["x_test"],
        arrays["y_test"].astype("int64"),
        tuple(map(str, range(classes))),
    )


def _read_arrays(path):
    with path.open("rb") as file:
        try:
            # Never allow_pickle: a pickle runs whatever code its writer chose.
            content = dict(np.load(file, allow_pickle=False))
        except Exception as error:  # zip, zlib and NumPy's header parser raise errors of many kinds
            raise DataError(
                f"Cannot read {path}: it is damaged, cut short, or not a .npz of plain arrays. "
                "Write it with numpy.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)."
            ) from error
    missing = [key for key in KEYS if key not in content]
    if missing:
        raise DataError(
            f"{path} must hold the arrays {', '.join(KEYS)}. Missing: {', '.join(missing)}. "
            f"Received: {', '.join(content) or 'no arrays'}."
        )
    return content


def _check_images(key, images, path):
    if images.dtype != np.uint8:
        raise DataError(
            f"`{key}` in {path} must be uint8, grey levels 0 to 255; for floats in [0, 1] save "
            f"(255 * {key}).round().astype('uint8'). Received: dtype={images.dtype}."
        )
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4:
        raise DataError(
            f"`{key}` in {path} must be of shape (n, height, width) or (n, height, width, "
            f"channels). Received: shape={images.shape}."
        )
    if not images.size:
        raise DataError(f"`{key}` in {path} must not be empty. Received: shape={images.shape}.")
    if images.shape[1] in (1, 3) and images.shape[3] not in (1, 3):
        raise DataError(
            f"`{key}` in {path} must have its channels last; save numpy.moveaxis({key}, 1, -1). "
            f"Received: shape={images.shape}."
        )
    return images


def _check_labels(key, labels, path):
    if labels.ndim == 2 and labels.shape[1] == 1:  # as keras.datasets.cifar10 has them
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(
            f"`{key}` in {path} must be class numbers of shape (n,); for one-hot rows save "
            f"{key}.argmax(axis=1). Received: shape={labels.shape}."
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise DataError(
            f"`{key}` in {path} must not be NaN: remove those images or label them. "
            f"Received: NaN for {np.isnan(labels).sum()} of {len(labels)} labels."
        )
    if labels.dtype.kind not in "iu":
        raise DataError(
            f"`{key}` in {path} must be integers, the class numbers from 0; save "
            f"{key}.astype('int64'). Received: dtype={labels.dtype}."
        )
    if len(labels) and labels.min() < 0:
        raise DataError(
            f"`{key}` in {path} must not be negative: number the classes from 0. "
            f"Received: {labels.min()}."
        )
    return labels


def _count_classes(y_train, y_test, path):
    classes = int(y_train.max()) + 1
    if classes > len(y_train):
        raise DataError(
            f"`y_train` in {path} must number its classes from 0 without large gaps. "
            f"Received: label {classes - 1} among {len(y_train)} images."
        )
    if y_test.max() >= classes:
        raise DataError(
            f"`y_test` in {path} must hold only classes that `y_train` has, 0 to {classes - 1}. "
            f"Received: label {y_test.max()}."
        )
    return classes
