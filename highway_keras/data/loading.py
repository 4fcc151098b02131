"""`load`: from a name, a path or arrays to a `Dataset` in one call."""

import pathlib

import numpy as np

from highway_keras.data import dataset
from highway_keras.data.dataset import DataError, Dataset, hold_out
from highway_keras.data.folder import read_folder
from highway_keras.data.pictures import PictureArray
from highway_keras.data.public import NAMES, read_digits, read_public
from highway_keras.util import checks
from highway_keras.util.messages import did_you_mean, reason

TEST_FRACTION = 0.2  # of each class, where no images are to be tested on


def load(
    source,
    *,
    data_dir=None,
    validation=0.1,
    limit=None,
    input_shape=None,
    test_only=False,
) -> Dataset:
    """Load labeled images.

    Args:
        source: What to read:

            - `"digits"`: scikit-learn's bundled 8x8 handwritten digits, gray levels 0..16 scaled
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

            Without images to test on, a fixed fifth of each class becomes the test set.
        data_dir: Directory of TensorFlow Datasets. Default: the environment variable
            `TFDS_DATA_DIR`, else TensorFlow Datasets' own default.
        validation: Fraction of the training images, in [0, 1), held out for validation, drawn
            evenly over the classes. Every call holds out the same images.
        limit: Keep only this many of the remaining training images, for a quick experiment.
        input_shape: (height, width, channels) that the pictures of a folder are scaled to. Other
            images keep their shape.
        test_only: Whether only the test images are needed: other pictures of a folder are not read.

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
    name, parts, class_names = _read(source, data_dir)
    if len(parts) == 1:
        ((x, y),) = parts
        train, test = hold_out(y, TEST_FRACTION)
        parts = [(x[train], y[train]), (x[test], y[test])]
    (x, y), (x_test, y_test) = parts
    train, held_out = hold_out(y, validation)
    train = train[:limit]
    images = [x[train], x[held_out], x_test]
    if x.dtype == object:  # paths of pictures
        images = [PictureArray(paths, input_shape) for paths in images]
        first = 2 if test_only else 0
        if sum(pictures.size for pictures in images[first:]) <= dataset.MAX_IN_MEMORY:
            images[first:] = [pictures[:] for pictures in images[first:]]
    x_train, x_val, x_test = images
    class_names = tuple(map(str, class_names))
    checks.class_names("class_names", class_names, len(class_names))
    source = None if isinstance(source, tuple | list) else str(source)
    return Dataset(name, x_train, y[train], x_val, y[held_out], x_test, y_test, class_names, source)


def _read(source, data_dir):
    """Return the name of a data set, its parts `(images, labels)` and its class names."""
    if isinstance(source, tuple | list):
        parts = [source] if hasattr(source[0], "__array__") else source
        if len(parts) > 2:
            raise DataError(
                "`source` must be a pair (images, labels), or two pairs, to train on and to test "
                f"on; `validation` holds out images of the first. Received: {len(parts)} pairs."
            )
        return "arrays", *_prepare(parts)
    if source == "digits":
        return source, *_prepare(*read_digits())
    if source in NAMES:
        return source, *_prepare(*read_public(source, data_dir))
    path = pathlib.Path(str(source)).expanduser()
    if path.suffix == ".npz":
        return path.stem, *_prepare(*_read_npz(path))
    if path.is_dir():
        return path.resolve().name, *read_folder(path)
    raise ValueError(
        f"No such data set or folder: `source` is one of {', '.join(NAMES)}, a folder of "
        "pictures, or a path that ends in .npz. "
        f"{checks.received('source', source)}{did_you_mean(source, NAMES)}"
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
    return parts, content.get("class_names")


def _prepare(parts, class_names=None):
    """Return `parts` as a `Dataset` holds them, and the class names: by default the numbers."""
    pairs = zip(("train", "test"), parts, strict=False)
    parts = {part: _prepare_part(part, *pair) for part, pair in pairs}
    x_train, y_train = parts["train"]
    if class_names is None:
        class_names = range(y_train.max() + 1)
    for part, (x, y) in parts.items():
        if x.shape[1:] != x_train.shape[1:]:
            raise DataError(
                f"`x_{part}` must hold images of shape {x_train.shape[1:]}, as `x_train` does. "
                f"Received: {x.shape[1:]}."
            )
        checks.class_numbers(f"y_{part}", y, len(class_names), DataError)
    return list(parts.values()), class_names


def _prepare_part(part, images, labels):
    """Return images with an axis of channels, and their labels as int64 of shape `(n,)`."""
    images, labels = np.asarray(images), np.asarray(labels)
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or not len(images):
        raise DataError(
            f"`x_{part}` must be images of dtype uint8 and shape (n, height, width, channels). "
            f"Received: dtype={images.dtype}, shape={images.shape}. For floats in [0, 1], write "
            f"(255 * x_{part}).round().astype('uint8')."
        )
    if labels.dtype.kind not in "iu" or labels.size != len(images):
        raise DataError(
            f"`y_{part}` must be the class numbers of its {len(images)} images, integers of shape "
            f"(n,). Received: dtype={labels.dtype}, shape={labels.shape}. For one-hot rows, write "
            f"y_{part}.argmax(axis=1)."
        )
    if images.ndim == 3:
        images = images[..., None]
    return images, labels.reshape(-1).astype("int64")  # keras.datasets.cifar10 has (n, 1)
