"""The zoo: factories for every network of the paper, and the registry of what they claim."""

import importlib

from highway_keras.models.registry import Card, create, get, list_models

# Factories import Keras, which takes seconds; they are loaded when first used.
_FACTORIES = {
    "thin_mlp": "thin",
    "mnist_highway": "mnist",
    "highway_a": "cifar",
    "highway_b": "cifar",
    "highway_c": "cifar",
    "highway_gap": "cifar",
    "fitnet_a": "cifar",
    "fitnet_b": "cifar",
}
__all__ = ["Card", "create", "get", "list_models", *_FACTORIES]


def __getattr__(name):
    if name in _FACTORIES:
        module = importlib.import_module(f"highway_keras.models.{_FACTORIES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
