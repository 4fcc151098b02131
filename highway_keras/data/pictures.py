"""Picture files: found in folders, and read as pixels."""

import math
import os
import pathlib

import numpy as np

from highway_keras.data.dataset import DataError
from highway_keras.util.cores import on_every_core
from highway_keras.util.extras import extra
from highway_keras.util.messages import reason

FORMATS = ("PNG", "JPEG")  # Pillow's other readers run programs or are seldom tested
SUFFIXES = (".png", ".jpg", ".jpeg")
MODES = {1: "L", 3: "RGB"}  # channels: what Pillow calls gray levels and colors
MAX_NAMED = 50  # broken pictures in a message


def find_pictures(names):
    """Return the paths of picture files, where a folder stands for the PNG and JPEG files below it.

    Args:
        names: Paths of files and folders.

    Returns:
        A list of strings: the files as given; those of a folder sorted, without hidden ones.

    Raises:
        ValueError: If a folder holds no picture.
    """
    paths = []
    for name in names:
        path = pathlib.Path(name).expanduser()
        if not path.is_dir():
            paths.append(str(path))
            continue
        below = [
            str(file)
            for file in sorted(path.rglob("*"))
            if file.suffix.lower() in SUFFIXES
            and not any(part.startswith(".") for part in file.relative_to(path).parts)
        ]
        if not below:
            raise ValueError(f"{path} must hold PNG or JPEG files, and holds none.")
        paths += below
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
        ValueError: If `input_shape` does not end in 1 or 3 channels.
    """
    with extra("train"):
        from PIL import Image, ImageOps

    height, width, channels = _picture_shape(input_shape)
    try:
        with Image.open(path, formats=FORMATS) as picture:
            if picture.format != "PNG":  # exported networks rotate JPEG files only, too
                picture = ImageOps.exif_transpose(picture)
            if picture.mode.startswith("I"):  # 16 bits of gray: Pillow cuts them off at 255
                picture = Image.fromarray((np.asarray(picture) >> 8).astype("uint8"))
            elif picture.has_transparency_data:
                layer = picture.convert("RGBA")
                picture = Image.new("RGB", layer.size, "white")
                picture.paste(layer, mask=layer)
            picture = picture.convert("RGB").convert(MODES[channels])
    except Exception as error:  # Pillow's readers raise errors of many kinds
        if getattr(error, "errno", None):  # of the file system
            raise
        raise DataError(f"{path} is not a PNG or JPEG picture: {reason(error)}.") from error
    picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(picture).reshape(input_shape)


def _picture_shape(shape):
    """Return `shape` if pictures can be read as images of this shape."""
    if shape is None or len(shape) != 3 or shape[2] not in MODES:
        raise ValueError(
            "`input_shape` must be the (height, width, channels) that pictures are scaled to, with "
            f"1 or 3 channels. Received: input_shape={shape}."
        )
    return tuple(shape)


class PictureArray:
    """Picture files as images uint8 `(n, height, width, channels)`, read on indexing.

    `pictures[3]` is an image, `pictures[:100]` and `pictures[[5, 2]]` are arrays of images.
    `read_image` reads them on every core, as in `predict`.

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
            try:
                images[index] = read_image(paths[index], self.shape[1:])
            except (OSError, DataError) as error:
                return str(error)

        errors = [error for error in on_every_core(read, range(len(paths))) if error]
        if errors:
            listed = " ".join(errors[:MAX_NAMED])
            raise DataError(f"Remove or repair {len(errors)} of the pictures: {listed}")
        return images

    def __array__(self, dtype=None, copy=None):
        return self[:].astype(dtype or self.dtype, copy=False)

    @property
    def size(self):
        """Number of values."""
        return math.prod(self.shape)
