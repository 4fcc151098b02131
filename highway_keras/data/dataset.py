"""The data set that `load` returns, and how images are held out."""

import hashlib
import math
from dataclasses import dataclass

import numpy as np

# The most pixel values to train on in memory, where each takes 9 bytes: as uint8, as preprocessed
# float32, and as float32 on the device. Pictures of more values stay on disk.
MAX_IN_MEMORY = 2**29


class DataError(ValueError):
    """Data that cannot be loaded or used; the message is one line and names a remedy."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Labeled images in three parts: train, validation, test.

    Args:
        name: A name of `NAMES`, the stem of a `.npz` file, or the name of a folder.
        x_train, x_val, x_test: Images, uint8 of shape `(n, height, width, channels)`; for a folder
            too large for memory, a `PictureArray`, which reads the images it is asked for.
        y_train, y_val, y_test: Class numbers from 0, integers of shape `(n,)`.
        class_names: One name per class, in the order of the class numbers.
        source: What `load` read: a name of `NAMES` or a path as text. None for arrays.

    Examples:
        >>> from highway_keras.data import load
        >>> load("digits")
        Dataset(name='digits', train=1294, validation=144, test=359, input_shape=(8, 8, 1),
                classes=10)
    """

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_val: np.ndarray
    y_val: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    class_names: tuple
    source: str | None = None

    @property
    def input_shape(self):
        """`(height, width, channels)` of one image."""
        return tuple(self.x_train.shape[1:])

    @property
    def classes(self):
        """Number of classes."""
        return len(self.class_names)

    def fingerprint(self):
        """Return 16 hexadecimal digits that identify the images and labels."""
        digest = hashlib.sha256(repr(self.input_shape).encode())
        for part in ("train", "val", "test"):
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            digest.update(f"{part} {len(x)}".encode())
            digest.update(y.astype("int64").tobytes())
            size = inference_batch_size(x.shape[1:])
            for start in range(0, len(x), size):
                digest.update(x[start : start + size].tobytes())
        return digest.hexdigest()[:16]

    def __repr__(self):
        return (
            f"Dataset(name={self.name!r}, train={len(self.x_train)}, validation={len(self.x_val)}, "
            f"test={len(self.x_test)}, input_shape={self.input_shape}, classes={self.classes})"
        )


def inference_batch_size(shape):
    """Return how many images of a shape a network takes in one call outside of training."""
    return max(1, min(500, 500 * 32 * 32 * 3 // math.prod(shape)))  # fewer of larger ones


def hold_out(labels, fraction, seed=0):
    """Split the indices of `labels` into `(train, held_out)`, both shuffled, always in one way.

    `round(fraction * n)` indices are held out, spread evenly over the classes: of m images of a
    class, `fraction * m` to within 1.5. The indices are shuffled so that the first N to train on
    are a fair sample even if the source is sorted by class.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    count = round(fraction * len(labels))
    evenly_spaced = ((np.arange(count) + 0.5) * len(labels) / max(count, 1)).astype(int)
    is_held_out = np.zeros(len(labels), bool)
    is_held_out[by_class[evenly_spaced]] = True
    return order[~is_held_out[order]], order[is_held_out[order]]
