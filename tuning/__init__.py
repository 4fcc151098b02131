"""The search of section 3.1: its space, a tuner that trains populations, and Figure 1."""

import importlib

_NAMES = {
    "DEPTHS": "searches",
    "HighwayHyperModel": "hypermodel",
    "KINDS": "searches",
    "PRESETS": "searches",
    "PopulationRandomSearch": "tuner",
    "draw_figure1": "figure1",
    "run_preset": "searches",
    "run_searches": "searches",
}
__all__ = [*_NAMES]


def __getattr__(name):
    if name in _NAMES:
        module = importlib.import_module(f"highway_keras.tuning.{_NAMES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
