"""Training: recipes as data, and `fit`, which reads them."""

from typing import TYPE_CHECKING

from highway_keras.util.lazy_imports import lazy

if TYPE_CHECKING:
    from highway_keras.training.evaluation import (
        Evaluation,
        TestCurve,
        evaluate,
        probabilities,
        summary,
    )
    from highway_keras.training.recipes import RECIPES, Recipe, get_recipe
    from highway_keras.training.run import Result, TrainingDiverged, fit
    from highway_keras.util.files import BusyError
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "RECIPES",
    "BusyError",
    "Evaluation",
    "Recipe",
    "Result",
    "TestCurve",
    "TrainingDiverged",
    "evaluate",
    "fit",
    "get_recipe",
    "probabilities",
    "summary",
]
