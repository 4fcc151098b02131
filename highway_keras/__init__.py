"""Highway networks in Keras, after *Training Very Deep Networks* (Srivastava et al., 2015).

The layers are imported at once, so that `import highway_keras` is all that
`keras.models.load_model` needs to find them. The rooms around them (`models`, `data`,
`training`, `analysis`, `tuning`, `export`) are imported when first used.
"""

import importlib
import os
import sys

__version__ = "0.1.0"

_LAYERS = (
    "ConvHighway",
    "ConvHighway1D",
    "ConvHighway2D",
    "ConvHighway3D",
    "Highway",
    "HighwayStack",
    "HighwayWrapper",
)
_INITIALIZERS = ("TransformBias",)
_MODULES = (
    "analysis",
    "convert",
    "data",
    "depth_loop",
    "export",
    "initializers",
    "layers",
    "models",
    "ops",
    "results",
    "training",
    "tuning",
)
__all__ = [*_LAYERS, *_INITIALIZERS, *_MODULES]


def __getattr__(name):
    if name in _LAYERS:
        return getattr(importlib.import_module("highway_keras.layers"), name)
    if name in _INITIALIZERS:
        return getattr(importlib.import_module("highway_keras.initializers"), name)
    if name in _MODULES:
        return importlib.import_module(f"highway_keras.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})


def _register_with_keras():
    importlib.import_module("highway_keras.layers")
    importlib.import_module("highway_keras.data.preprocessing")
    importlib.import_module("highway_keras.training.optimizer")


# Keras takes seconds to import; `highway-keras --help` and `list` do without it.
if os.path.basename(sys.argv[0] if sys.argv else "") != "highway-keras":
    _register_with_keras()
