"""Images in: named data sets, a user's own, and preprocessing as Keras layers."""

# ruff: noqa: F401 (what is not in `__all__` is for the other rooms of this package)

from highway_keras.data.arrays import check_dataset
from highway_keras.data.augmentation import Mirror, PadAndCrop
from highway_keras.data.dataset import DataError, Dataset, fits_training, images_at_once
from highway_keras.data.loading import NAMES, check_outside, is_folder, load
from highway_keras.data.normalization import GlobalContrastNormalization, MeanImage
from highway_keras.data.picture_files import (
    PictureArray,
    check_channels,
    edge_brightness,
    find_pictures,
    read_image,
)
from highway_keras.data.preprocessing import augmenter, preprocessor

__all__ = [
    "NAMES",
    "DataError",
    "Dataset",
    "GlobalContrastNormalization",
    "MeanImage",
    "Mirror",
    "PadAndCrop",
    "PictureArray",
    "augmenter",
    "find_pictures",
    "load",
    "preprocessor",
    "read_image",
]
