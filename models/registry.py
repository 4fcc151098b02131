"""The registry: networks by name, the paper's and a user's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from highway_keras.models import cifar, mnist, thin
from highway_keras.models.card import Card
from highway_keras.util import checks
from highway_keras.util.messages import did_you_mean

if TYPE_CHECKING:
    import keras

BUILT_IN = {card.name: card for card in (*thin.CARDS, *mnist.CARDS, *cifar.CARDS)}
_CARDS = dict(BUILT_IN)


def list_models() -> list[str]:
    """Return the registered names, the paper's first, in its order.

    Examples:
        >>> from highway_keras import models
        >>> models.list_models()[:2]
        ['thin-highway-10', 'thin-highway-20']
    """
    return list(_CARDS)


def get(name) -> Card:
    """Return the card of a registered network.

    Raises:
        ValueError: If no network has that name; the message lists near matches.

    Examples:
        >>> from highway_keras import models
        >>> models.get("mnist-highway-16").parameters
        38986
    """
    if name not in list(_CARDS):  # a dictionary would raise if it has no hash
        hint = did_you_mean(name, _CARDS) or f" Known: {', '.join(_CARDS)}."
        raise ValueError(f"There is no registered network {checks.short_repr(name)}.{hint}")
    return _CARDS[name]


def create(name, /, weights=None, features_at=None, **overrides) -> keras.Model:
    """Build a registered network.

    Args:
        name: Registered name; see `list_models()`.
        weights: `None`; a name of `get(name).weights`, such as `"mnist"`, for weights that come
            with the package; the path of a weights file, of a `.keras` file that `fit` saved or of
            its run's folder; or `"hf://owner/name"`, for a `keras.Model` saved to the Hugging Face
            Hub under that name, which needs the package `huggingface_hub`. The package's and
            `fit`'s weights expect preprocessed images, such as `x / 256`: their files include the
            preprocessing, the network alone does not (`get(name).preprocessor`). With
            `include_top=False`, as in `keras.applications`, the network ends before its head, in a
            CIFAR network with the last stage; `features_at="head_dropout"` returns what the
            classifier sees. For another number of `classes` the classifier is new, as a warning
            says.
        features_at: A layer's name, or a list of them; the model returns their outputs instead of
            its own.
        **overrides: Arguments of the factory, such as `input_shape`, `classes` or the model's
            `name`; `highway_keras.models.types` describes those that all networks of the paper
            take.

    Returns:
        An uncompiled `keras.Model`.

    Raises:
        ValueError: If an argument is out of its range, or the weights are damaged or do not fit.
        FileNotFoundError: If `weights` is neither known nor a file.

    Examples:
        >>> from highway_keras import models
        >>> models.create("thin-highway-10", input_shape=(8, 8, 1)).count_params()
        49660
        >>> stages = ["stage1_pool", "stage2_pool", "stage3_pool"]
        >>> features = models.create("mnist-highway-16", weights="mnist", features_at=stages)
        >>> features.output_shape
        [(None, 12, 12, 16), (None, 6, 6, 16), (None, 3, 3, 16)]
    """
    return get(name).build(weights, features_at, **overrides)


def register(name, factory, dataset, input_shape, classes, recipe="quick", **arguments):
    """Add a network of your own to the zoo, for this process.

    It is then listed, created and trained under its name, like the paper's.
    Registering the same name again replaces your network.

    Args:
        name: A name that no built-in network has.
        factory: Function that returns an uncompiled functional or Sequential `keras.Model` that
            maps images to class probabilities. It is called with `name`, `input_shape`, `classes`
            and `arguments`.
        dataset: The data set it is trained on by default; see `highway_keras.data.load`.
        input_shape: Default shape of one image, (height, width, channels).
        classes: Default number of classes.
        recipe: Name of its default training recipe.
        **arguments: Further arguments of the factory.

    Returns:
        Its `Card`.

    Raises:
        ValueError: If the name is that of a built-in network, or is not a valid name of a model.

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
    if check_name(name) in BUILT_IN:
        raise ValueError(
            f"`name` must not be that of a built-in network. {checks.received('name', name)}"
        )
    size = {"input_shape": tuple(input_shape), "classes": classes}
    _CARDS[name] = Card(name, factory, {**size, **arguments}, dataset, recipe=recipe, **size)
    return _CARDS[name]


def check_name(name):
    """Return `name` if it can name a model on TensorFlow, and so on every backend."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.-]*", name):
        raise ValueError(
            "`name` must consist of letters without accents, digits, '_', '-' and '.', and begin "
            f"with a letter or digit. {checks.received('name', name)}"
        )
    return name
