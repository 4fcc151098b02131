"""The search of section 3.1: its space, and a tuner that trains populations of trials."""

from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.searches import read_searches, run_searches
from highway_keras.tuning.tuner import PopulationRandomSearch

__all__ = [
    "HighwayHyperModel",
    "PopulationRandomSearch",
    "read_searches",
    "run_searches",
]
