"""Images in: named data sets, a user's own `.npz`, and preprocessing as Keras layers."""

from highway_keras.data.augmentation import Mirror, PadAndCrop
from highway_keras.data.dataset import DataError, Dataset
from highway_keras.data.images import check_channels, read_image
from highway_keras.data.loading import NAMES, load
from highway_keras.data.normalization import GlobalContrastNormalization, MeanImage
from highway_keras.data.picture_files import find_pictures
from highway_keras.data.preprocessing import augmenter, preprocessor

__all__ = [
    "NAMES",
    "DataError",
    "Dataset",
    "GlobalContrastNormalization",
    "MeanImage",
    "Mirror",
    "PadAndCrop",
    "augmenter",
    "check_channels",
    "find_pictures",
    "load",
    "preprocessor",
    "read_image",
]
