"""Picture files, read as images of a data set's shape."""

import numpy as np

from highway_keras import checks
from highway_keras.data.dataset import DataError


def read_image(path, input_shape):
    """Read a PNG or JPEG file, scaled to the size and channels that a network expects.

    Args:
        path: Path of the file.
        input_shape: (height, width, channels) with one channel (grey levels) or three (RGB).

    Returns:
        A uint8 array of shape `input_shape`.

    Raises:
        FileNotFoundError: If there is no such file.
        DataError: If it is not a picture, or `channels` is neither 1 nor 3.
    """
    from PIL import Image

    height, width, channels = input_shape
    if channels not in (1, 3):
        raise DataError(
            "`input_shape` must have 1 or 3 channels, as pictures do. "
            f"Received: input_shape={tuple(input_shape)}."
        )
    path = checks.existing_file("path", path)
    try:
        with Image.open(path) as picture:
            picture = picture.convert("L" if channels == 1 else "RGB")
    except Exception as error:  # Pillow's readers raise errors of many kinds
        raise DataError(f"{path} is not a PNG or JPEG picture that can be read.") from error
    if picture.size != (width, height):
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(picture, "uint8").reshape(input_shape)
