"""Labeled images: public data sets, a user's own, and preprocessing as Keras layers."""

from highway_keras.data.augmentation import Mirror, PadAndCrop, augmenter
from highway_keras.data.dataset import DataError, Dataset, inference_batch_size
from highway_keras.data.loading import NAMES, load
from highway_keras.data.pictures import PictureArray, find_pictures, read_image
from highway_keras.data.preprocessing import GlobalContrastNormalization, MeanImage, preprocessor

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
    "inference_batch_size",
    "load",
    "preprocessor",
    "read_image",
]
