"""Images in: named data sets, a user's own `.npz`, and preprocessing as Keras layers.

`load` needs no Keras, and importing it stays quick; the names of `preprocessing` import Keras on first use.
"""

from importlib import import_module

from highway_keras.data.dataset import DataError, Dataset
from highway_keras.data.loading import NAMES, load

_PREPROCESSING = ("GlobalContrastNormalization", "MeanImage", "PadAndCrop", "augmenter", "preprocessor")

__all__ = [  # noqa: PLE0604
    "NAMES",
    "DataError",
    "Dataset",
    "load",
    *_PREPROCESSING,
]


def __getattr__(name):
    if name in _PREPROCESSING:
        return getattr(import_module("highway_keras.data.preprocessing"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
