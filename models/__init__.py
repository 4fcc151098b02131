"""The zoo: factories for every network of the paper, the registry of what they claim, weights."""

import importlib

from highway_keras.models.registry import Card, create, get, list_models

# Factories import Keras, which takes seconds; they are loaded when first used.
_NAMES = {
    "card_text": "model_cards",
    "thin_mlp": "thin",
    "mnist_highway": "mnist",
    "highway_a": "cifar",
    "highway_b": "cifar",
    "highway_c": "cifar",
    "highway_gap": "cifar",
    "fitnet_a": "cifar",
    "fitnet_b": "cifar",
}
__all__ = ["Card", "create", "get", "list_models", *_NAMES]


def __getattr__(name):
    if name in _NAMES:
        module = importlib.import_module(f"highway_keras.models.{_NAMES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
