"""Picture files as an array that is read on indexing, for more than memory holds."""

import concurrent.futures
import functools
import math
import os

import numpy as np

from highway_keras.data.dataset import DataError
from highway_keras.data.images import read_image
from highway_keras.data.memory import check_fits
from highway_keras.memory import free, gib


class PictureArray:
    """Picture files as images uint8 `(n, height, width, channels)`, read on indexing.

    `pictures[3]` is an image, `pictures[:100]` and `pictures[[5, 2]]` are arrays of images.
    `read_image` reads them, as it does for `predict`, on every core.

    Args:
        paths: Paths of PNG or JPEG files.
        input_shape: (height, width, channels) to scale each to.
    """

    dtype, ndim = np.dtype("uint8"), 4

    def __init__(self, paths, input_shape):
        self.paths = np.array([os.fspath(path) for path in paths], dtype=object)
        self.shape = (len(self.paths), *input_shape)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, chosen):
        paths = self.paths[chosen]
        if isinstance(paths, str):
            return read_image(paths, self.shape[1:])
        self._check_batch_fits(len(paths))
        images = np.empty((len(paths), *self.shape[1:]), self.dtype)
        for index, image in enumerate(_readers().map(self._read, paths)):
            images[index] = image
        return images

    def __array__(self, dtype=None, copy=None):
        check_fits(self.nbytes, f"{len(self)} pictures")
        return self[:].astype(dtype or self.dtype, copy=False)

    @property
    def size(self):
        """Number of values."""
        return math.prod(self.shape)

    @property
    def nbytes(self):
        """Bytes in memory if all were read."""
        return self.size * self.dtype.itemsize

    def _check_batch_fits(self, pictures):
        size = pictures * math.prod(self.shape[1:])
        if size > free():
            raise DataError(
                f"`input_shape` must be so small that {pictures} pictures fit into memory: they "
                f"would need {gib(size)} where {gib(free())} are free. "
                f"Received: input_shape={self.shape[1:]}."
            )

    def _read(self, path):
        return read_image(path, self.shape[1:])


@functools.cache
def _readers():
    return concurrent.futures.ThreadPoolExecutor(os.cpu_count())
