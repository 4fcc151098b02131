"""The zoo: factories for the networks of the paper, a registry of their cards, and weights."""

from typing import TYPE_CHECKING

from highway_keras.util.lazy_imports import lazy

if TYPE_CHECKING:
    from highway_keras.models.card import Card
    from highway_keras.models.cifar import (
        fitnet_a,
        fitnet_b,
        highway_a,
        highway_b,
        highway_c,
        highway_gap,
    )
    from highway_keras.models.mnist import mnist_highway
    from highway_keras.models.model_cards import card_text
    from highway_keras.models.registry import create, get, list_models, register
    from highway_keras.models.thin import thin_mlp
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "Card",
    "card_text",
    "create",
    "fitnet_a",
    "fitnet_b",
    "get",
    "highway_a",
    "highway_b",
    "highway_c",
    "highway_gap",
    "list_models",
    "mnist_highway",
    "register",
    "thin_mlp",
]
