"""The registry: networks by name, built and given their weights."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from highway_keras.models import cifar, deep_cifar, fitnet, mnist, saved, thin
from highway_keras.models.cards import Card
from highway_keras.util import checks
from highway_keras.util.messages import did_you_mean, notice

if TYPE_CHECKING:
    import os

    import keras

FAMILIES = (thin, mnist, cifar, fitnet, deep_cifar)
BUILT_IN = {card.name: card for family in FAMILIES for card in family.CARDS}
CARDS = dict(BUILT_IN)  # with the networks that a user registers


def list_models() -> list[str]:
    """Return the registered names, the paper's first, in its order.

    Examples:
        >>> from highway_keras import models
        >>> models.list_models()[:2]
        ['thin-highway-10', 'thin-highway-20']
    """
    return list(CARDS)


def get(name: str) -> Card:
    """Return the card of a registered network.

    Raises:
        ValueError: If no network has that name; the message lists near matches.

    Examples:
        >>> from highway_keras import models
        >>> models.get("mnist-highway-16").parameters
        38986
    """
    if name not in CARDS:
        hint = did_you_mean(name, CARDS) or f" Registered: {', '.join(CARDS)}."
        raise ValueError(f"There is no registered network {checks.short_repr(name)}.{hint}")
    return CARDS[name]


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

    It is then listed, created and trained under its name, like the paper's. A network of yours that
    has the name already is replaced.

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
        >>> def small(name, input_shape, classes, activation="relu"):
        ...     images = keras.Input(input_shape)
        ...     x = Highway(activation=activation)(keras.layers.Flatten()(images))
        ...     return keras.Model(images, keras.layers.Dense(classes, "softmax")(x), name=name)
        >>> card = models.register("small", small, "digits", (8, 8, 1), 10, activation="tanh")
        >>> models.create("small").count_params()
        8970
    """
    if name in BUILT_IN:
        raise ValueError(
            f"`name` must not be that of a built-in network. {checks.received('name', name)}"
        )
    size = {"input_shape": tuple(input_shape), "classes": classes}
    CARDS[name] = Card(name, factory, {**size, **arguments}, dataset, recipe=recipe, **size)
    return CARDS[name]


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
            `None` leaves the network as initialized. If the classifier does not fit the number of
            `classes` or the size of the images, it is newly initialized, and a warning says so.
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
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype or policy)
    try:
        model = card.factory(**{"name": name, **card.arguments, **options})
    finally:
        keras.config.set_dtype_policy(policy)
    for layer in model.layers:
        if isinstance(layer, keras.layers.Dropout):
            layer.rate *= dropout
    if file is not None:
        _copy_weights(saved.load(file).network, model, file)
    return model


def _weights_path(card: Card, weights) -> pathlib.Path:
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


def _copy_weights(source, model, path):
    """Copy the weights of a trained network, layer by layer in their order."""
    import keras

    sources = [layer for layer in source.layers if layer.weights]
    layers = [layer for layer in model.layers if layer.weights]
    if len(sources) != len(layers):
        raise ValueError(
            f"`weights` must be those of a network like {model.name!r}, which has {len(layers)} "
            f"layers with weights. Received: weights={path} with {len(sources)}."
        )
    for old, new in zip(sources, layers, strict=True):
        expected, received = _describe(new), _describe(old)
        if expected == received:
            new.set_weights(old.get_weights())
            if isinstance(new, keras.layers.Normalization):
                new.finalize_state()
        elif new is layers[-1]:
            notice(f"{new.name} of {model.name!r} is newly initialized; other layers are loaded.")
        else:
            raise ValueError(
                f"`weights` must be those of a network like {model.name!r}, whose {new.name!r} has "
                f"{expected}. Received: weights={path} with {received}."
            )


def _describe(layer):
    """Return the shapes of a layer's weights and its activation, as text."""
    shapes = [tuple(weight.shape) for weight in layer.weights]
    return f"shapes {shapes} and activation {layer.get_config().get('activation')!r}"
