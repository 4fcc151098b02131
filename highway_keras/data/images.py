"""Picture files, read as images of a data set's shape."""

import contextlib
import io

import numpy as np

from highway_keras import checks
from highway_keras.data.dataset import DataError
from highway_keras.data.headers import exif_orientation
from highway_keras.extras import extra
from highway_keras.messages import reason

FORMATS = ("PNG", "JPEG")  # Pillow's other readers run programs or are seldom tested
JPEG = b"\xff\xd8\xff"  # how its files begin


def read_image(path, input_shape):
    """Read a PNG or JPEG file, scaled to the size and channels that a network expects.

    It is read as a viewer shows it: rotated as its EXIF data say (JPEG), transparent parts white,
    16-bit channels as their upper 8 bits. The signature `encoded` of an exported network does the
    same, up to one gray level where it scales.

    Args:
        path: Path of the file.
        input_shape: (height, width, channels) with one channel (gray levels) or three (RGB).

    Returns:
        A uint8 array of shape `input_shape`.

    Raises:
        FileNotFoundError: If there is no such file.
        DataError: If it is not a picture, or `channels` is neither 1 nor 3.
    """
    with extra("train"):
        from PIL import Image

    check_channels(input_shape)
    height, width, channels = input_shape
    with _opened(path) as (picture, data):
        pixels = _upright(_on_white(_rgba(picture, bits=data[24])), _turn(data))
    picture = Image.fromarray(pixels).convert("L" if channels == 1 else "RGB")
    if picture.size != (width, height):
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(picture, "uint8").reshape(input_shape)


def picture_shape(path):
    """Return (height, width, channels) of a PNG or JPEG file as displayed, from its header.

    It raises as `read_image` does, except for what only the pixels show.
    """
    with _opened(path) as (picture, data):
        width, height = picture.size
        size = (width, height) if _turn(data) >= 5 else (height, width)
        is_grey = picture.mode in ("1", "L", "LA", "La") or picture.mode.startswith("I")
        return *size, 1 if is_grey else 3


@contextlib.contextmanager
def _opened(path):
    """Yield a picture as Pillow opens it and the bytes of its file; errors are one line."""
    with extra("train"):
        from PIL import Image

    path = checks.existing_file("path", path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}.") from error
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            yield picture, data
    except Image.DecompressionBombError as error:
        raise DataError(f"{path} has too many pixels. Scale it down. {error}") from error
    except Exception as error:  # Pillow's readers raise errors of many kinds
        raise DataError(f"{path} is not a PNG or JPEG picture that can be read.") from error


def _turn(data):
    return exif_orientation(data) if data.startswith(JPEG) else 1


def check_channels(input_shape):
    """Raise a `DataError` unless images of a shape have the channels of pictures."""
    if input_shape[-1] not in (1, 3):
        raise DataError(
            "`input_shape` must have 1 or 3 channels, as pictures do. "
            f"Received: input_shape={tuple(input_shape)}."
        )


def _rgba(picture, bits):
    """Return a picture of any mode as an array `(height, width, 4)`.

    Args:
        picture: A picture as Pillow opens it.
        bits: Bits of a channel, where the file is a PNG.
    """
    transparent = picture.info.get("transparency")
    if picture.mode.startswith("I"):  # 16 bits of gray: Pillow would make all from 255 on white
        values = np.asarray(picture)
        return np.stack([*3 * [values >> 8], 255 * (values != transparent)], axis=-1)
    if transparent is not None and picture.mode == "L":  # Pillow scales the pixels, but not this
        picture.info["transparency"] = transparent * 255 // (2**bits - 1)
    if bits == 16 and picture.mode == "RGB":  # Pillow has cut the pixels to 8 bits, but not this
        picture.info.pop("transparency", None)
    return np.asarray(picture.convert("RGBA"))


def _on_white(rgba):
    """Return RGB pixels as they look on white paper."""
    colours, alpha = rgba[..., :3].astype("int32"), rgba[..., 3:].astype("int32")
    return ((colours * alpha + 255 * (255 - alpha) + 127) // 255).astype("uint8")


def _upright(pixels, turn):
    """Return pixels `(height, width, channels)` rotated by an EXIF orientation."""
    if turn >= 5:
        pixels = pixels.swapaxes(0, 1)
    if turn in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if turn in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)
