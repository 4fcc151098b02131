"""Training: recipes as data, and the one trainer that reads them."""

from typing import TYPE_CHECKING

from highway_keras.util.lazy_imports import lazy

if TYPE_CHECKING:
    from highway_keras.optimizers import CaffeSGD, ConvMuon
    from highway_keras.runs.folder import RunFolder
    from highway_keras.training.evaluation import Evaluation, NotProbabilities, evaluate, summary
    from highway_keras.training.recipes import RECIPES, Recipe, choose_recipe, get_recipe
    from highway_keras.training.saved_network import Classified, SavedNetwork
    from highway_keras.training.trainer import (
        Result,
        TrainingDiverged,
        fit,
        fit_runs,
        train_all,
    )
    from highway_keras.util.files import BusyError
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "RECIPES",
    "BusyError",
    "CaffeSGD",
    "Classified",
    "ConvMuon",
    "Evaluation",
    "NotProbabilities",
    "Recipe",
    "Result",
    "RunFolder",
    "SavedNetwork",
    "TrainingDiverged",
    "choose_recipe",
    "evaluate",
    "fit",
    "fit_runs",
    "get_recipe",
    "summary",
    "train_all",
]
