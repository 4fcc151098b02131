"""Images that are read and preprocessed batch by batch, for more than memory holds."""

import numpy as np

from highway_keras import data


def is_streamed(images):
    """Return whether an array of images is too large to be preprocessed as a whole."""
    return not isinstance(images, np.ndarray) or not data.fits_training(images.size)


class PreprocessedImages:
    """Images as a network takes them, read and preprocessed on indexing.

    Args:
        images: An array or a `data.PictureArray`, uint8 `(n, height, width, channels)`.
        preprocess: A preprocessor of `data.preprocessor`.

    Attributes:
        images, preprocess: The arguments, for engines that read ahead.
    """

    def __init__(self, images, preprocess):
        self.images, self.preprocess = images, preprocess
        self.shape = images.shape

    def __len__(self):
        return len(self.images)

    def __getitem__(self, chosen):
        return self.preprocess.predict_on_batch(self.images[chosen])
