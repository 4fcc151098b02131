"""Check whether images fit into memory before they are read."""

from highway_keras.data.dataset import DataError
from highway_keras.memory import free, gib

SHARE = 0.5  # of the free memory that images may take; the rest is for training
# Bytes per value while a network is trained: as it was read, and as float32 once preprocessed and
# once more on the device.
BYTES_IN_TRAINING = 1 + 4 + 4


def fits_training(values):
    """Return whether so many values of images can be trained on in memory."""
    return BYTES_IN_TRAINING * values <= SHARE * free()


def check_fits(size, source):
    """Raise a `DataError` unless arrays of `size` bytes can be read."""
    if size > free():
        raise DataError(
            f"The images of {source} must fit into memory. They would need {gib(size)} where "
            f"{gib(free())} are free. A folder of pictures may be larger, or take fewer."
        )
