"""Picture files: which ones a user means, and their pixels as a data set has them."""

import contextlib
import math
import os

import numpy as np

from highway_keras.data.dataset import DataError
from highway_keras.util.cores import on_every_core
from highway_keras.util.extras import extra
from highway_keras.util.messages import reason

FORMATS = ("PNG", "JPEG")  # Pillow's other readers run programs or are seldom tested
SUFFIXES = (".png", ".jpg", ".jpeg")
MODES = {1: "L", 3: "RGB"}  # channels: what Pillow calls gray levels and colors


def find_pictures(names):
    """Return the paths of the picture files that names stand for, in their order.

    A folder stands for the PNG and JPEG files in it and below, sorted, hidden ones left out. Any
    other name stands for itself, whether or not there is such a file.

    Args:
        names: Paths of files and folders.

    Returns:
        A list of strings, no path twice.

    Raises:
        ValueError: If a folder holds no picture.
        OSError: If a folder cannot be read.

    Examples:
        >>> from highway_keras import data
        >>> data.find_pictures(["seven.png", "scans/"])  # doctest: +SKIP
    """
    paths = []
    for name in names:
        name = os.path.expanduser(os.fspath(name))
        if not os.path.isdir(name):
            paths.append(name)
            continue
        below = [path for path in files_below(name) if is_picture(path)]
        if not below:
            raise ValueError(
                f"`names` must be pictures or folders of PNG or JPEG files. Received: {name}, a "
                "folder without any."
            )
        paths += below
    return list(dict.fromkeys(paths))


def is_picture(path):
    """Return whether a file is named like a PNG or JPEG file."""
    return path.lower().endswith(SUFFIXES)


def files_below(folder):
    """Return the paths of all files in a folder and below, in a fixed order, no hidden ones."""

    def fail(error):
        raise error

    paths = []
    for parent, folders, files in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files = sorted(name for name in files if not name.startswith("."))
        paths += [os.path.join(parent, name) for name in files]
    return paths


def read_image(path, input_shape):
    """Read a PNG or JPEG file, scaled to the size and channels that a network expects.

    The picture is read as a viewer shows it: rotated as its EXIF data say (JPEG), transparent
    parts white, 16-bit channels as their upper 8 bits. The signature `encoded` of an exported
    network does the same, up to one gray level where it scales.

    Args:
        path: Path of the file.
        input_shape: (height, width, channels) with one channel (gray levels) or three (RGB).

    Returns:
        A uint8 array of shape `input_shape`.

    Raises:
        FileNotFoundError: If there is no such file.
        DataError: If it is not a PNG or JPEG picture.
        ValueError: If `channels` is neither 1 nor 3.
    """
    with extra("train"):
        from PIL import Image, ImageOps

    height, width, channels = _picture_shape(input_shape)
    with _opened(path) as picture:
        if picture.format != "PNG":  # exported networks rotate JPEG files only, too
            picture = ImageOps.exif_transpose(picture)
        picture = _on_white(picture).convert("RGB").convert(MODES[channels])
    if picture.size != (width, height):
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(picture).reshape(input_shape)


def _on_white(picture):
    """Return a picture without transparency and with 8 bits per channel."""
    with extra("train"):
        from PIL import Image

    if picture.mode.startswith("I"):  # 16 bits of gray: Pillow would make all from 255 on white
        return Image.fromarray((np.asarray(picture) >> 8).astype("uint8"))
    if not picture.has_transparency_data:
        return picture
    picture = picture.convert("RGBA")
    white = Image.new("RGB", picture.size, "white")
    white.paste(picture, mask=picture)
    return white


@contextlib.contextmanager
def _opened(path):
    """Yield a picture as Pillow opens it. Errors in the content of the file are `DataError`s."""
    with extra("train"):
        from PIL import Image

    try:
        with Image.open(path, formats=FORMATS) as picture:
            yield picture
    except Exception as error:  # Pillow's readers raise errors of many kinds
        if getattr(error, "errno", None):  # of the file system
            raise
        raise DataError(f"{path} is not a PNG or JPEG picture: {reason(error)}.") from error


def _picture_shape(shape):
    """Return `shape` if pictures can be read as images of this shape."""
    if len(shape) != 3 or shape[2] not in MODES:
        raise ValueError(
            "`input_shape` must be (height, width, channels) with 1 or 3 channels, as pictures "
            f"have. Received: input_shape={tuple(shape)}."
        )
    return shape


def common_shape(paths):
    """Return (height, width, channels) of pictures that are all of one size, from their headers.

    Raise a `ValueError` if their sizes differ.
    """

    def shape_as_seen(path):
        with _opened(path) as picture:
            width, height = picture.size
            if (
                picture.format != "PNG" and picture.getexif().get(0x0112, 1) >= 5
            ):  # rotated by 90 degrees
                width, height = height, width
            is_gray = picture.mode in ("1", "L", "LA") or picture.mode.startswith("I")
            return height, width, 1 if is_gray else 3

    shapes = on_every_core(shape_as_seen, paths)
    sizes = sorted({shape[:2] for shape in shapes})
    if len(sizes) > 1:
        raise ValueError(
            "`input_shape` must give the size that pictures are scaled to, (height, width, "
            f"channels), where they differ. Received: input_shape=None for {len(sizes)} sizes, "
            f"such as {sizes[0]} and {sizes[1]}."
        )
    return *sizes[0], max(shape[2] for shape in shapes)


class PictureArray:
    """Picture files as images uint8 `(n, height, width, channels)`, read on indexing.

    `pictures[3]` is an image, `pictures[:100]` and `pictures[[5, 2]]` are arrays of images.
    `read_image` reads them, as in `predict`, but on every core.

    Args:
        paths: Paths of PNG or JPEG files.
        input_shape: (height, width, channels) to scale each to.
    """

    dtype, ndim = np.dtype("uint8"), 4

    def __init__(self, paths, input_shape):
        self.paths = np.array([os.fspath(path) for path in paths], dtype=object)
        self.shape = (len(self.paths), *_picture_shape(input_shape))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, chosen):
        paths = self.paths[chosen]
        if isinstance(paths, str):
            return read_image(paths, self.shape[1:])
        images = np.empty((len(paths), *self.shape[1:]), self.dtype)

        def read(index):
            images[index] = read_image(paths[index], self.shape[1:])

        on_every_core(read, range(len(paths)))
        return images

    def __array__(self, dtype=None, copy=None):
        return self[:].astype(dtype or self.dtype, copy=False)

    @property
    def size(self):
        """Number of values."""
        return math.prod(self.shape)
