"""What the zoo knows of a network: exact size, the paper's claims, default recipe.

Measurements are in `results/`, joined to a card by its name. Neither this module nor those of the
families import Keras before a network is built, so listing the zoo takes no time.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass

from highway_keras.models import shipped
from highway_keras.util import checks


@dataclass(frozen=True)
class Card:
    """What the zoo knows of a network.

    Attributes:
        name: Registered name.
        factory: Function that builds the network.
        arguments: Arguments of the factory, a dictionary.
        dataset: The data set it is trained on by default; the paper's for the paper's networks.
        input_shape: Shape of one image.
        classes: Number of classes.
        recipe: Name of the default training recipe.
        layers: Depth as the paper counts it; `None` if not stated.
        parameters: Exact number of parameters; `None` if not stated.
        multiplications: Exact number of multiplications by a weight in one forward pass of one
            image, including those with padding zeros: the paper's measure of operations.
        paper: The paper's test accuracy, "best (mean ± std)" in percent; empty if not given.
        table: Where the paper reports it.
        origin: Where the network comes from, if not from the paper as it is.
        weights: Data sets for which trained weights come with the package.
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
    def weights(self):
        return tuple(shipped.entries(self.name))

    def weights_file(self, weights):
        """Return the path of the `.keras` file that `create(name, weights)` reads.

        It holds the preprocessing too: `keras.models.load_model` returns a model of raw images.

        Raises:
            ValueError: If there are no such weights, or the file is damaged.
            FileNotFoundError: If the file is missing.
        """
        return shipped.find_file(self.name, weights)

    def preprocessor(self, weights):
        """Return the model from raw images to what `create(name, weights)` takes.

        Args:
            weights: As for `models.create`.

        Raises:
            ValueError: If the network in the file has no preprocessing, as `fit` saves it.
            FileNotFoundError: If `weights` is neither a name nor a file.
        """
        import keras

        from highway_keras.data.preprocessing import PREPROCESSOR

        path = shipped.resolve(self.name, weights)
        whole = keras.models.load_model(path, compile=False) if path else None
        if PREPROCESSOR not in [layer.name for layer in getattr(whole, "layers", ())]:
            raise ValueError(
                "`weights` must be those of a network with its preprocessing, as `fit` saves it. "
                f"{checks.received('weights', weights)}"
            )
        return whole.get_layer(PREPROCESSOR)

    def takes(self, argument):
        """Return whether the factory has an argument."""
        known = inspect.signature(self.factory).parameters.values()
        return any(p.name == argument or p.kind is p.VAR_KEYWORD for p in known)

    def build(self, weights=None, features_at=None, **overrides):
        """Return an uncompiled `keras.Model`; `overrides` are arguments of the factory."""
        import keras

        from highway_keras.models.weight_files import load_features, load_weights

        path = shipped.resolve(self.name, weights)
        model = self._make(**overrides)
        start = overrides.get("input_tensor")
        network = model if start is None else keras.Model(start, model.output, name=model.name)
        if overrides.get("include_top", True):
            load_weights(network, path, new_classifier="classes" in overrides)
        elif path is not None:
            top = ("include_top", "pooling", "classifier_activation", "input_tensor")
            below = {key: value for key, value in overrides.items() if key not in top}
            load_features(network, path, functools.partial(self._make, **below))
        if features_at is None:
            return model
        outputs = keras.tree.map_structure(lambda name: model.get_layer(name).output, features_at)
        return keras.Model(model.input, outputs, name=model.name)

    def _make(self, **overrides):
        model = self.factory(**{"name": self.name, **self.arguments, **overrides})
        if not getattr(model, "inputs", None):  # as a functional or Sequential model has them
            raise TypeError(
                "`factory` must return a functional or Sequential `keras.Model`. "
                f"Received: {model!r} from {self.factory!r}."
            )
        return model
