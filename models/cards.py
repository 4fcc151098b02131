"""The card of a network, and the index of the trained weights that come with the package."""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Callable
from dataclasses import dataclass

from highway_keras.util import checks

WEIGHTS = pathlib.Path(__file__).with_name("weights")
INDEX = "index.json"  # `tools/pack.py` writes an entry for each file of weights


@dataclass(frozen=True)
class Card:
    """What the zoo knows of a network. Measurements are in `results/`, joined by the name.

    Attributes:
        name: Registered name.
        factory: Function that builds the network.
        arguments: Arguments of the factory, a dictionary.
        dataset: The data set it is trained on by default.
        input_shape: Shape of one image.
        classes: Number of classes.
        recipe: Name of the default training recipe.
        layers: Depth as the paper counts it.
        parameters: Exact number of trainable parameters.
        multiplications: Exact number of multiplications by a weight in one forward pass of one
            image, including those with padding zeros: the paper's measure of operations.
        paper: The paper's test accuracy, "best (mean ± std)" in percent; empty if not given.
        table: Where the paper reports it.
        origin: Where the network comes from, if not from the paper as it is.
    """

    name: str
    factory: Callable
    arguments: dict
    dataset: str
    input_shape: tuple
    classes: int
    recipe: str
    layers: int | None = None
    parameters: int | None = None
    multiplications: int | None = None
    paper: str = ""
    table: str = ""
    origin: str = ""

    @property
    def weights(self) -> tuple[str, ...]:
        """Data sets for which trained weights come with the package."""
        return tuple(entry["dataset"] for entry in read_index() if entry["name"] == self.name)

    def weights_entry(self, dataset: str) -> dict:
        """Return what the index says of trained weights: accuracy, seeds, recipe, hardware.

        Raises:
            ValueError: If there are no such weights.
        """
        for entry in read_index():
            if (entry["name"], entry["dataset"]) == (self.name, dataset):
                return entry
        raise ValueError(
            f"`dataset` must be one that {self.name!r} has trained weights for: "
            f"{', '.join(self.weights) or 'there are none yet'}. "
            f"{checks.received('dataset', dataset)}"
        )

    def weights_file(self, dataset: str) -> pathlib.Path:
        """Return the path of trained weights: a `.keras` file that takes raw images.

        Raises:
            ValueError: If there are no such weights, or the file is damaged.
        """
        entry = self.weights_entry(dataset)
        path = WEIGHTS / entry["file"]
        if hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
            raise ValueError(f"The weights {path} are damaged: reinstall highway-keras.")
        return path


def cifar_card(name, factory, arguments, classes=10, recipe="cifar", **claims) -> Card:
    """Return the card of a network for CIFAR-10 or CIFAR-100."""
    return Card(
        name,
        factory,
        arguments,
        dataset=f"cifar{classes}",
        input_shape=(32, 32, 3),
        classes=classes,
        recipe=recipe,
        **claims,
    )


def read_index() -> list[dict]:
    """Return the entries of the index of weights."""
    return json.loads((WEIGHTS / INDEX).read_text(encoding="utf-8"))
