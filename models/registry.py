"""The registry: what the zoo knows of each network, and a network with its weights by name.

Neither this module nor those of the families import Keras before a network is built.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from highway_keras.models import saved
from highway_keras.util import checks
from highway_keras.util.messages import did_you_mean, notice

if TYPE_CHECKING:
    import os

    import keras

WEIGHTS = pathlib.Path(__file__).with_name("weights")
INDEX = "index.json"  # an entry for each file of weights, written by `tools/pack.py`
# Settings of a layer that decide what it computes with its weights
COMPARED = ("activation", "transform_activation", "carry")

_CARDS = {}
BUILT_IN = set()  # names of the networks that come with the package


@dataclass(frozen=True)
class Card:
    """What the zoo knows of a network. Measurements are in `results/`, joined by the name.

    Attributes:
        name: Registered name.
        factory: Function that builds the network.
        arguments: Arguments of the factory, a dictionary.
        dataset: The data set it is trained on by default; the paper's for the paper's networks.
        input_shape: Shape of one image.
        classes: Number of classes.
        recipe: Name of the default training recipe.
        layers: Depth as the paper counts it; `None` if not stated.
        parameters: Exact number of trainable parameters; `None` if not stated.
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
        """Return what the index of weights says of one file: accuracy, seeds, recipe, hardware.

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
        """Return the path of trained weights: a `.keras` file with raw images in.

        Raises:
            ValueError: If there are no such weights, or the file is damaged.
            FileNotFoundError: If the file is missing.
        """
        entry = self.weights_entry(dataset)
        path = WEIGHTS / entry["file"]
        if hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
            raise ValueError(f"The weights {path} are damaged: reinstall highway-keras.")
        return path


def read_index() -> list[dict]:
    """Return the entries of the index of weights."""
    return json.loads((WEIGHTS / INDEX).read_text(encoding="utf-8"))


def add(card: Card) -> None:
    """Add the card of a network that comes with the package."""
    _CARDS[card.name] = card
    BUILT_IN.add(card.name)


def list_models() -> list[str]:
    """Return the registered names, the paper's first, in its order.

    Examples:
        >>> from highway_keras import models
        >>> models.list_models()[:2]
        ['thin-highway-10', 'thin-highway-20']
    """
    return list(_CARDS)


def get(name: str) -> Card:
    """Return the card of a registered network.

    Raises:
        ValueError: If no network has that name; the message lists near matches.

    Examples:
        >>> from highway_keras import models
        >>> models.get("mnist-highway-16").parameters
        38986
    """
    if name not in _CARDS:
        hint = did_you_mean(name, _CARDS) or f" Registered: {', '.join(_CARDS)}."
        raise ValueError(f"There is no registered network {checks.short_repr(name)}.{hint}")
    return _CARDS[name]


def register(
    name: str,
    factory: Callable,
    dataset: str,
    input_shape: tuple,
    classes: int,
    recipe: str = "quick",
    **arguments,
) -> Card:
    """Add a network of your own to the zoo, for this process.

    It is then listed, created and trained under its name, like the paper's.
    Registering the same name again replaces your network.

    Args:
        name: A name that no built-in network has.
        factory: Function that returns an uncompiled functional or Sequential `keras.Model` from
            images to class probabilities. It is called with `name`, `input_shape`, `classes` and
            `arguments`.
        dataset: The data set it is trained on by default; see `highway_keras.data.load`.
        input_shape: Default shape of one image, (height, width, channels).
        classes: Default number of classes.
        recipe: Name of its default training recipe.
        **arguments: Further arguments of the factory.

    Returns:
        Its `Card`.

    Raises:
        ValueError: If the name is that of a built-in network.

    Examples:
        >>> import keras
        >>> from highway_keras import Highway, models
        >>> def small(name, input_shape, classes, layers=3):
        ...     images = keras.Input(input_shape)
        ...     x = keras.layers.Dense(20)(keras.layers.Flatten()(images))
        ...     for _ in range(layers):
        ...         x = Highway()(x)
        ...     top = keras.layers.Dense(classes, "softmax", name="predictions")
        ...     return keras.Model(images, top(x), name=name)
        >>> card = models.register("small", small, "digits", (8, 8, 1), 10, "digits", layers=5)
        >>> len(models.create("small").layers)
        9
    """
    if name in BUILT_IN:
        raise ValueError(
            f"`name` must not be that of a built-in network. {checks.received('name', name)}"
        )
    size = {"input_shape": tuple(input_shape), "classes": classes}
    _CARDS[name] = Card(name, factory, {**size, **arguments}, dataset, recipe=recipe, **size)
    return _CARDS[name]


def create(
    name: str,
    /,
    *,
    weights: str | os.PathLike | None = None,
    dtype: str | keras.DTypePolicy | None = None,
    dropout: float = 1.0,
    **options,
) -> keras.Model:
    """Build a registered network.

    It takes preprocessed images; `models.load` also returns the preprocessing of trained weights.

    Args:
        name: Registered name; see `list_models()`.
        weights: A data set of `get(name).weights`, such as `"mnist"`, for weights that come with
            the package; or a `.keras` file or the folder of a run, for weights of the same network.
            `None` leaves the network as initialized. For another number of `classes`, the
            classifier is new, as a warning says.
        dtype: Keras dtype policy to build it under, such as `"mixed_bfloat16"`. Default: Keras's.
        dropout: Factor, 0 to 1, on the rates of the network's `Dropout` layers.
        **options: Arguments of the factory, such as `input_shape`, `classes` or the model's `name`.

    Returns:
        An uncompiled `keras.Model`.

    Raises:
        ValueError: If an argument is out of its range, or the weights are damaged or do not fit.
        FileNotFoundError: If `weights` is neither a data set with weights nor a file.

    Examples:
        >>> import keras
        >>> from highway_keras import models
        >>> models.create("thin-highway-10", input_shape=(8, 8, 1)).count_params()
        49660
        >>> network = models.create("highway-a", weights="cifar10")
        >>> features = keras.Model(network.input, network.get_layer("stage2_pool").output)
        >>> features.output_shape
        (None, 8, 8, 32)
    """
    import keras

    card = get(name)
    checks.number("dropout", dropout, least=0, most=1)
    file = None if weights is None else _weights_path(card, weights)
    with _dtype_policy(dtype):
        model = card.factory(**{"name": name, **card.arguments, **options})
    for layer in model.layers:
        if isinstance(layer, keras.layers.Dropout):
            layer.rate *= dropout
    if file is not None:
        _copy_weights(saved.load(file).model, model, file)
    return model


def _weights_path(card, weights):
    if weights in card.weights:
        return card.weights_file(weights)
    path = saved.resolve_network_path(weights)
    if not path.is_file():
        raise FileNotFoundError(
            "`weights` must be None, a .keras file, the folder of a run, or a data set with "
            f"trained weights: {', '.join(card.weights) or 'there are none yet'}. "
            f"{checks.received('weights', weights)}"
        )
    return path


@contextlib.contextmanager
def _dtype_policy(dtype):
    import keras

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype or before)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _copy_weights(source, model, path):
    """Copy the weights of a network to one that computes the same, layer by layer."""
    import keras

    sources, layers = _computing_layers(source), _computing_layers(model)
    if [type(layer) for layer in sources] != [type(layer) for layer in layers]:
        raise ValueError(
            f"`weights` must be those of a network with the layers of {model.name!r}. "
            f"Received: weights={path} with layers of other kinds or another number."
        )
    classifier = [layer for layer in layers if layer.weights][-1]
    for old, new in zip(sources, layers, strict=True):
        if new is classifier and source.output_shape != model.output_shape:
            notice(f"{new.name} of {model.name!r} is newly initialized; other layers are loaded.")
            continue
        of_old, of_new = _compared(old), _compared(new)
        differences = [key for key in of_new if of_old.get(key) != of_new[key]]
        if differences:
            key = differences[0]
            raise ValueError(
                f"`weights` must be those of a network with the layers of {model.name!r}, "
                f"whose {new.name!r} has {key}={of_new[key]}. "
                f"Received: weights={path} with {key}={of_old.get(key)}."
            )
        new.set_weights([keras.ops.convert_to_numpy(weight) for weight in _weights(old)])
        if isinstance(new, keras.layers.Normalization):
            new.finalize_state()


def _computing_layers(model):
    import keras

    unused = keras.layers.InputLayer | keras.layers.Dropout
    return [layer for layer in model.layers if not isinstance(layer, unused)]


def _compared(layer):
    """Return shapes and activations of a layer and of its parts, by their path in its settings."""
    import keras

    compared = {"shapes": [tuple(weight.shape) for weight in _weights(layer)]}
    for path, value in keras.tree.flatten_with_path(layer.get_config()):
        *outer, key = path
        if key in ("class_name", "registered_name"):  # of an object
            key = outer[-1] if outer else key
        if key in COMPARED:
            compared[".".join(map(str, path))] = value
    return compared


def _weights(layer):
    """Return the weights without adapters, which a file holds merged into the kernels."""
    return [weight for weight in layer.weights if not weight.name.startswith("lora_")]
