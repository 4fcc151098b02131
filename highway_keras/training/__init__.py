"""Training: recipes as data, and the one trainer that reads them."""

import importlib

from highway_keras.training.recipes import RECIPES, Recipe, get_recipe

_NAMES = {
    "CaffeSGD": "optimizer",
    "Result": "run",
    "RunFolder": "run_folder",
    "SavedNetwork": "saved_network",
    "TrainingDiverged": "run",
    "choose_recipe": "trainer",
    "evaluate": "evaluation",
    "fit": "trainer",
    "fit_runs": "trainer",
    "read_table": "tables",
    "reproduce_table": "tables",
    "summary": "evaluation",
}
__all__ = ["RECIPES", "Recipe", "get_recipe", *_NAMES]


def __getattr__(name):
    if name in _NAMES:
        module = importlib.import_module(f"highway_keras.training.{_NAMES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
