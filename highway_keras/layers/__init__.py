"""The layers, one file each."""

from highway_keras.layers.conv_highway import (
    ConvHighway,
    ConvHighway1D,
    ConvHighway2D,
    ConvHighway3D,
)
from highway_keras.layers.highway import Highway
from highway_keras.layers.highway_stack import HighwayStack
from highway_keras.layers.highway_wrapper import HighwayWrapper
from highway_keras.layers.match_size import MatchSize
from highway_keras.layers.maxout import Maxout

__all__ = [
    "ConvHighway",
    "ConvHighway1D",
    "ConvHighway2D",
    "ConvHighway3D",
    "Highway",
    "HighwayStack",
    "HighwayWrapper",
    "MatchSize",
    "Maxout",
]
