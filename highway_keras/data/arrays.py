"""A user's own images as arrays: in memory, in a `.npz` file or in a `tf.data.Dataset`.

Each reader returns a list of one or two pairs `(images, labels)`, to train on and to test on, and
the class names.
"""

import dataclasses
import hashlib

import numpy as np

from highway_keras.data.dataset import DataError, Dataset
from highway_keras.util import checks
from highway_keras.util.files import is_transient
from highway_keras.util.messages import notice

KEYS = ("x_train", "y_train", "x_test", "y_test")
DARK = 64  # Float images whose maximum is below this are taken to be scaled already.
# Integer ones get a notice.


def read_npz(path):
    """Read a `.npz` file with the arrays `KEYS` and, if they have names, `class_names`."""
    path = checks.existing_file("dataset", path)
    try:
        with path.open("rb") as file:
            # Never allow_pickle: a pickle runs whatever code its writer chose.
            content = dict(np.load(file, allow_pickle=False))
    except Exception as error:  # zip, zlib and NumPy's header parser raise errors of many kinds
        if is_transient(error):
            raise
        raise DataError(
            f"Cannot read {path}: it is damaged, cut short, or not a .npz of plain arrays. Write "
            "it with numpy.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)."
        ) from error
    missing = [key for key in KEYS if key not in content]
    if missing:
        raise DataError(
            f"{path} must hold the arrays {', '.join(KEYS)}. Missing: {', '.join(missing)}. "
            f"Received: {', '.join(content) or 'no arrays'}."
        )
    others = content.keys() - {*KEYS, "class_names"}
    if others:
        notice(f"{path}: {', '.join(sorted(others))} are left out.")
    parts = {part: (content[f"x_{part}"], content[f"y_{part}"]) for part in ("train", "test")}
    return check_parts(parts, content.get("class_names"), path)


def read_memory(source):
    """Read `(images, labels)`, a `tf.data.Dataset` of them, or a pair of either."""
    parts = [source] if _is_part(source) else source
    are_parts = isinstance(parts, tuple | list) and all(map(_is_part, parts))
    if not are_parts or len(parts) not in (1, 2):
        raise TypeError(
            "`dataset` must be a name, a path, a `data.Dataset`, a `tf.data.Dataset`, arrays "
            "(images, labels), or a pair of either, to train on and to test on; images to choose "
            f"by are held out of the first. {checks.received('dataset', source)}"
        )
    # `image_dataset_from_directory` sets this attribute.
    stated = [getattr(part, "class_names", None) for part in parts]
    if None not in stated and list(stated[0]) != list(stated[-1]):
        both = " and ".join(", ".join(map(str, names)) for names in stated)
        raise DataError(
            "`dataset` must hold the same classes to train on and to test on, in the same order: "
            f"give both the same folders. Received: {both}."
        )
    arrays = [_of_tf_data(p) if _is_tf_data(p) else _of_arrays(*p) for p in parts]
    return check_parts(dict(zip(("train", "test"), arrays, strict=False)), stated[0], "the images")


def _is_part(source):
    is_pair = isinstance(source, tuple | list) and len(source) == 2
    return _is_tf_data(source) or (is_pair and all(hasattr(a, "__array__") for a in source))


def _is_tf_data(source):
    return hasattr(source, "as_numpy_iterator") and hasattr(source, "element_spec")


def _of_tf_data(dataset):
    """Return the images and labels of a `tf.data.Dataset`."""
    spec, count = dataset.element_spec, int(dataset.cardinality())
    is_pair = isinstance(spec, tuple) and len(spec) == 2 and hasattr(spec[1], "shape")
    rank = getattr(getattr(spec[0], "shape", None), "rank", None) if is_pair else None
    if rank is None or count == -1:
        raise DataError(
            "`dataset` must be a finite `tf.data.Dataset` of pairs (image, label) or batches of "
            f"them. Received: {checks.short_repr(spec)}, {count} elements (-1: without end). "
            "Images of unknown shape get one by `image.set_shape`."
        )
    # A batch of gray images without a channel axis has the same rank as one image with it.
    of_labels = spec[1].shape
    gray = rank == 3 and spec[0].shape[-1] not in (1, 3)  # else one image with its channels
    batched = rank == 4 or (gray and of_labels.rank and of_labels[0] == spec[0].shape[0])
    batches = list((dataset if batched else dataset.batch(100)).as_numpy_iterator())
    if not batches:
        raise DataError("`dataset` must hold at least one image. Received: an empty one.")
    images, labels = map(np.concatenate, zip(*batches, strict=True))
    images = _as_bytes(images)
    # Sort by content, because the data set may shuffle.
    pairs = zip(images, labels, strict=True)
    keys = [(hashlib.sha256(x.tobytes()).digest(), np.asarray(y).tobytes()) for x, y in pairs]
    order = sorted(range(len(images)), key=keys.__getitem__)
    return images[order], labels[order]


def _of_arrays(images, labels):
    return _as_bytes(np.asarray(images)), np.asarray(labels)


def _as_bytes(images):
    """Return images as they are, but floats from 0 to 255, such as Keras reads, as uint8."""
    if images.dtype.kind != "f" or not images.size:
        return images
    low, high = images.min(), images.max()
    if not (low >= 0 and DARK <= high <= 255):
        raise DataError(
            "`dataset` must hold images with pixel values from 0 to 255: leave out a Rescaling. "
            f"Floats whose brightest is below {DARK} are taken for scaled ones; convert gray "
            f"levels to uint8. Received: {low:.3g} to {high:.3g}."
        )
    return images.round().astype("uint8")


def check_dataset(images):
    """Return a `Dataset` in the form that training takes, or raise a `ValueError`."""
    if not isinstance(images, Dataset):
        raise TypeError(
            "`images` must be a `data.Dataset`, such as `data.load` returns. "
            f"{checks.received('images', images)}"
        )
    if not all(isinstance(x, np.ndarray) for x in (images.x_train, images.x_val, images.x_test)):
        return images  # pictures, which `load` has checked
    names = [part for part in ("train", "val", "test") if part != "val" or len(images.x_val)]
    parts = {part: (getattr(images, f"x_{part}"), getattr(images, f"y_{part}")) for part in names}
    arrays, class_names = check_parts(parts, images.class_names, f"the data set {images.name!r}")
    named = {}
    for part, (x, y) in zip(names, arrays, strict=True):
        named |= {f"x_{part}": x, f"y_{part}": y}
    return dataclasses.replace(images, **named, class_names=class_names)


def check_parts(parts, class_names, source):
    """Return a list of the pairs in `parts`, in the form of a `Dataset`, and the class names.

    `parts` maps "train", which comes first, "val" and "test" to `(images, labels)`. Without
    `class_names`, the class numbers are the names. Raise a `DataError` if training on the images
    would fail or learn something that is not intended.
    """
    checked = [_check_part(part, *pair, source) for part, pair in parts.items()]
    labels = checked[0][1]
    if labels.min() == labels.max():
        raise DataError(
            f"`y_train` in {source} must have two classes or more. Received: {labels[0]} for all "
            f"{len(labels)} images."
        )
    most = max(int(labels.max()) for _, labels in checked)
    shapes = sorted({images.shape[1:] for images, _ in checked})
    if len(shapes) > 1:
        raise DataError(
            f"The images of {source} must all be of the same shape. Received: "
            f"{' and '.join(map(str, shapes))}."
        )
    if class_names is not None:
        names = np.asarray(class_names)
        if names.ndim != 1 or names.dtype.kind != "U" or most >= len(names):
            raise DataError(
                f"`class_names` in {source} must be strings, one for each class. Received: "
                f"shape={names.shape}, dtype={names.dtype}, and label {most}."
            )
        class_names = tuple(map(str, names))
        checks.class_names("class_names", class_names, len(names))
        return checked, class_names
    if labels.min() > 0 or not labels.max() == most < len(labels):
        raise DataError(
            f"`y_train` in {source} must number its classes from 0 without large gaps, and have "
            f"all of them. Received: label {most}, and {labels.min()} to {labels.max()} in "
            f"`y_train` among {len(labels)} images."
        )
    empty = np.flatnonzero(np.bincount(labels, minlength=most + 1) == 0)
    if len(empty):
        notice(
            f"`y_train` in {source} has labels from 0 to {most}, but no image of {len(empty)} of "
            f"these {most + 1} classes, such as {empty[0]}."
        )
    return checked, tuple(map(str, range(most + 1)))


def _check_part(part, images, labels, source):
    """Return the images and the labels of a part as a `Dataset` holds them."""
    x, y = f"x_{part}", f"y_{part}"
    images = images[..., None] if images.ndim == 3 else images
    if labels.ndim == 2 and labels.shape[1] == 1:  # as keras.datasets.cifar10 has them
        labels = labels[:, 0]
    if images.dtype.kind in "iu" and images.size and 0 <= images.min() <= images.max() <= 255:
        images = images.astype("uint8", copy=False)
    received = "Received: shape={0.shape}, dtype={0.dtype}.".format
    usable = images.dtype == np.uint8 and images.ndim == 4 and images.size
    if not usable or (images.shape[1] in (1, 3) and images.shape[3] not in (1, 3)):
        raise DataError(
            f"`{x}` in {source} must be images of integers, 0 to 255, at least one, of shape (n, "
            f"height, width) or (n, height, width, channels). {received(images)} For floats in "
            f"[0, 1], save (255 * {x}).round().astype('uint8'); for channels first, "
            f"numpy.moveaxis({x}, 1, -1)."
        )
    if part == "train" and images.max() < DARK:
        notice(
            f"`{x}` in {source} is dark: its brightest value is {images.max()}, while `predict` "
            "and exported networks take 255 for white."
        )
    integers = labels.dtype.kind in "iu" and labels.shape == (len(images),)
    if not integers or labels.astype("int64").min() < 0:  # also of unsigned ones that wrapped
        raise DataError(
            f"`{y}` in {source} must be the class numbers of its {len(images)} images, integers "
            f"from 0 of shape (n,). {received(labels)} For one-hot rows, save {y}.argmax(axis=1); "
            f"for names, numpy.unique({y}, return_inverse=True)[1]."
        )
    return images, labels.astype("int64")
