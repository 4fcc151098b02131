"""The start of the transform gate's bias."""

from __future__ import annotations

import copy
import inspect
import numbers
from collections.abc import Callable
from typing import Any

import keras

from highway_keras.util import checks

__all__ = ["TransformBias"]


@keras.saving.register_keras_serializable(package="highway_keras")
class TransformBias(keras.initializers.Constant):
    """A negative constant: the transform gate starts nearly closed, the layer nearly an identity.

    With a zero-mean gate kernel the gate starts around `T = sigmoid(value)`: 0.269, 0.119 and
    0.047 for -1, -2 and -3. Gradients then flow along the carry path from the first step on; the
    deeper the network, the more negative the value has to be.

    Args:
        value: A negative number. The paper searches -1 to -10 (section 3.1).

    Raises:
        ValueError: If `value` is not a negative number.

    Examples:
        >>> from highway_keras import Highway, TransformBias
        >>> layer = Highway(transform_bias_initializer=TransformBias(-3.0))

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2.2.
    """

    def __init__(self, value: float = -2.0):
        # A gate that starts open hides the input from the layers above.
        super().__init__(float(checks.number("value", value, below=0)))

    @classmethod
    def for_depth(cls, depth: int) -> TransformBias:
        """Return the start that the paper advises for convolutional networks of this depth.

        It gives -1, -2 and -3 for about 10, 20 and 30 layers; other depths are on that line.

        Args:
            depth: Number of layers of the network, a positive integer.

        Returns:
            `TransformBias(-depth / 10)`.
        """
        return cls(-checks.positive_integer("depth", depth) / 10)


def get(
    identifier: float | str | Callable[..., Any] | dict[str, Any] | None,
) -> keras.initializers.Initializer | Callable[..., Any] | None:
    """Return an initializer as `keras.initializers.get` does, also for a number.

    A negative number becomes a `TransformBias`, any other a `keras.initializers.Constant`.
    """
    if isinstance(identifier, numbers.Real) and not isinstance(identifier, bool):
        value = float(checks.number("value", identifier))  # no NaN
        return TransformBias(value) if value < 0 else keras.initializers.Constant(value)
    return keras.initializers.get(identifier)


serialize = keras.initializers.serialize


def reseeded(
    initializer: keras.initializers.Initializer | Callable[..., Any] | None, offset: int
) -> keras.initializers.Initializer | Callable[..., Any] | None:
    """Return an initializer of the same kind that draws other numbers, for another weight.

    A Keras initializer whose seed is an integer, chosen by the user or by Keras, draws the same
    numbers on every call. Functions and initializers with a `SeedGenerator` are returned unchanged.

    Args:
        initializer: What `get` returns.
        offset: What is added to a seed that the user chose.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config, own = initializer.get_config(), getattr(initializer, "seed", None)
    chosen = config.get("seed", own)  # `None`: by Keras
    if "seed" in config and isinstance(chosen, int | None) and _makes(initializer, config):
        config["seed"] = None if chosen is None else chosen + offset
        return type(initializer).from_config(config)
    if not isinstance(own, int):
        return initializer
    again = copy.copy(initializer)
    again.seed = keras.initializers.RandomNormal().seed if chosen is None else own + offset
    again._init_seed = None if chosen is None else again.seed  # what Keras saves
    return again


def _makes(initializer, config):
    """Return whether a configuration has all arguments, which that of a user's own may lack."""
    signature = inspect.signature(type(initializer))
    try:
        given = signature.bind(**config).arguments
    except TypeError:  # or has those of a base class
        return False
    return {p.name for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD} <= {*given}
