"""Highway networks in Keras, after *Training Very Deep Networks* (Srivastava et al., 2015).

Layers, initializer, optimizer and preprocessing are imported at once, so `import highway_keras` is
all that `keras.models.load_model` needs to find them. The other rooms are imported when first used.
"""

from typing import TYPE_CHECKING

from highway_keras import data, initializers, layers, ops, optimizers
from highway_keras.initializers import TransformBias
from highway_keras.layers import (
    ConvHighway,
    ConvHighway1D,
    ConvHighway2D,
    ConvHighway3D,
    Highway,
    HighwayStack,
    HighwayWrapper,
    MatchSize,
)
from highway_keras.util.lazy_imports import lazy
from highway_keras.version import __version__

if TYPE_CHECKING:
    from highway_keras import (
        analysis,
        convert,
        export,
        live,
        models,
        paper,
        results,
        training,
        tuning,
    )
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "ConvHighway",
    "ConvHighway1D",
    "ConvHighway2D",
    "ConvHighway3D",
    "Highway",
    "HighwayStack",
    "HighwayWrapper",
    "MatchSize",
    "TransformBias",
    "__version__",
    "analysis",
    "convert",
    "data",
    "export",
    "initializers",
    "layers",
    "live",
    "models",
    "ops",
    "optimizers",
    "paper",
    "results",
    "training",
    "tuning",
]
