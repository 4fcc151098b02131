"""`load`: from a name, a path or arrays to a `Dataset` in one call."""

import os
import pathlib

import numpy as np

from highway_keras.data.dataset import DataError, Dataset, check_part, hold_out
from highway_keras.data.folder import read_folder, read_pictures
from highway_keras.data.pictures import PictureArray
from highway_keras.data.public import NAMES, read_digits, read_public
from highway_keras.util import checks
from highway_keras.util.messages import did_you_mean, notice, reason

TEST_FRACTION = 0.2  # of each class, where no images are to be tested on


def load(
    source,
    *,
    data_dir=None,
    validation=0.1,
    limit=None,
    input_shape=None,
    skip_broken=False,
    test_only=False,
) -> Dataset:
    """Load labeled images.

    Args:
        source: What to read:

            - `"digits"`: scikit-learn's embedded 8x8 handwritten digits, gray levels 0..16 scaled
              to 0..255; needs no download.
            - Another name of `NAMES`, such as `"mnist"` or `"cifar10"`: from TensorFlow Datasets,
              the prepared copy if there is one, else a download.
            - The path of a folder with PNG and JPEG files in one folder per class, either in
              `train/` and `test/` or in the folder itself. Pictures of more than 2^29 values
              together stay on disk.
            - The path of a `.npz` file with `x_train`, `y_train`, `x_test`, `y_test` and perhaps
              `class_names`, strings. Images are uint8 of shape `(n, height, width, channels)` or
              `(n, height, width)`, labels integers from 0 of shape `(n,)` or `(n, 1)`.
            - Arrays `(images, labels)` like those, or a pair of them to train on and to test on, as
              `keras.datasets.mnist.load_data()` returns.

            Where nothing is to be tested on, a fixed fifth of each class becomes the test set.
        data_dir: Directory of TensorFlow Datasets. Default: the environment variable
            `TFDS_DATA_DIR`, else TensorFlow Datasets' own default.
        validation: Fraction of the training images, in [0, 1), held out for validation, drawn
            evenly over the classes. Every call holds out the same images.
        limit: Keep only this many of the remaining training images, for a quick experiment.
        input_shape: (height, width, channels) to scale the pictures of a folder to. Default: the
            shape that all pictures share. Other images keep theirs.
        skip_broken: Whether to leave out pictures of a folder that cannot be read, and say which.
            Otherwise an error names them.
        test_only: Whether to read only the test images of a folder, to measure a network.

    Returns:
        A `Dataset`. Its training images are in a fixed shuffled order.

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
    limit = checks.positive_integer("limit", limit, or_none=True)
    name, recorded, parts, class_names = _read(source, data_dir, skip_broken)
    if len(parts) == 1:
        ((x, y),) = parts
        train, test = hold_out(y, TEST_FRACTION)
        parts = [(x[train], y[train]), (x[test], y[test])]
    (x, y), (x_test, y_test) = parts
    train, held_out = hold_out(y, validation)
    if validation and not len(held_out):
        raise DataError(
            "`validation` must hold out at least one image, or be 0. "
            f"Received: validation={validation} of {len(y)} images of {name}."
        )
    train = train[:limit]
    images = [x[train], x[held_out], x_test]
    if x.dtype == object:  # paths of pictures
        unread, needed = (images[:2], images[2:]) if test_only else ([], images)
        pictures = read_pictures(needed, input_shape, are_checked=skip_broken)
        images = [PictureArray(paths, pictures[0].shape[1:]) for paths in unread] + pictures
    x_train, x_val, x_test = images
    names = tuple(map(str, class_names))
    return Dataset(
        name, x_train, y[train], x_val, y[held_out], x_test, y_test, names, source=recorded
    )


def _read(source, data_dir, skip_broken):
    """Return the name of a data set, its `source`, parts `(images, labels)` and class names."""
    if isinstance(source, tuple | list):
        parts = [source] if hasattr(source[0], "__array__") else source
        return "arrays", None, *_prepare(parts)
    if isinstance(source, str) and source in NAMES and os.path.exists(source):
        notice(f"{source} is the public data set here; ./{source} names what is in this folder.")
    if source == "digits":
        return source, source, *_prepare(*read_digits())
    if isinstance(source, str) and source in NAMES:
        return source, source, *_prepare(*read_public(source, data_dir))
    path = pathlib.Path(source).expanduser()
    text = str(pathlib.Path(source))
    recorded = os.path.join(os.curdir, text) if text in NAMES else text
    if path.suffix == ".npz":
        return path.stem, recorded, *_prepare(*_read_npz(path))
    if path.is_dir():
        return path.resolve().name, recorded, *read_folder(path, skip_broken)
    raise ValueError(
        f"`source` must be one of {', '.join(NAMES)}, a folder of pictures, or a path that ends "
        f"in .npz. Received: source={str(source)!r}.{did_you_mean(source, NAMES)}"
    )


def _read_npz(path):
    """Return the parts and the class names, if there are any, of a `.npz` file."""
    with path.open("rb") as file:
        try:
            # Never allow_pickle: a pickle runs whatever code its writer chose.
            content = dict(np.load(file, allow_pickle=False))
            parts = [(content[f"x_{part}"], content[f"y_{part}"]) for part in ("train", "test")]
        except Exception as error:  # zip, zlib and NumPy's header parser raise errors of many kinds
            raise DataError(
                f"{path} cannot be read as a .npz file of plain arrays: {reason(error)}. Write it "
                "with numpy.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)."
            ) from error
    others = content.keys() - {"x_train", "y_train", "x_test", "y_test", "class_names"}
    if others:
        notice(f"{path}: {', '.join(sorted(others))} are left out.")
    return parts, content.get("class_names")


def _prepare(parts, class_names=None):
    """Return `parts` with the dtypes and ranks of a `Dataset`, and the class names.

    Without `class_names`, the class numbers are the names.
    """
    parts = [(_prepare_images(x), _prepare_labels(y)) for x, y in parts]
    if class_names is None:
        labels = np.unique(parts[0][1])
        if not np.array_equal(labels, np.arange(len(labels))):
            raise DataError(
                "`y_train` must number its classes 0, 1, 2, … without gaps, or `class_names` must "
                f"name them in a .npz file. Received: {checks.short_repr(labels.tolist())}. Write "
                "numpy.unique(y_train, return_inverse=True)[1]."
            )
        class_names = range(len(labels))
    input_shape = parts[0][0].shape[1:]
    for part, (x, y) in zip(("train", "test"), parts, strict=False):
        check_part(part, x, y, input_shape, len(class_names))
    return parts, class_names


def _prepare_images(images):
    """Return images with an axis of channels, integers from 0 to 255 as uint8."""
    images = np.asarray(images)
    if images.dtype.kind in "iu" and images.size and 0 <= images.min() <= images.max() <= 255:
        images = images.astype("uint8", copy=False)
    return images[..., None] if images.ndim == 3 else images


def _prepare_labels(labels):
    """Return integer labels as int64 of shape `(n,)`, those of shape `(n, 1)`, too."""
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:  # as keras.datasets.cifar10 has them
        labels = labels[:, 0]
    return labels.astype("int64") if labels.dtype.kind in "iu" else labels
