"""Images in: named data sets, a user's own `.npz`, and preprocessing as Keras layers.

`load` needs no Keras and is quick to import; the names of `preprocessing` import Keras when used.
"""

from importlib import import_module

from highway_keras.data.dataset import DataError, Dataset
from highway_keras.data.images import read_image
from highway_keras.data.loading import NAMES, load

_PREPROCESSING = (
    "GlobalContrastNormalization",
    "MeanImage",
    "Mirror",
    "PadAndCrop",
    "augmenter",
    "preprocessor",
)

__all__ = ["NAMES", "DataError", "Dataset", "load", "read_image", *_PREPROCESSING]


def __getattr__(name):
    if name in _PREPROCESSING:
        return getattr(import_module("highway_keras.data.preprocessing"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
