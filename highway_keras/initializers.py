"""The start of the transform gate's bias."""

from __future__ import annotations

import numbers

import keras

from highway_keras.util import checks

__all__ = ["TransformBias"]


@keras.saving.register_keras_serializable(package="highway_keras")
class TransformBias(keras.initializers.Constant):
    """A negative constant: the transform gate starts nearly closed, the layer nearly an identity.

    With a zero-mean gate kernel the gate starts around `T = sigmoid(value)`: 0.269, 0.119 and
    0.047 for -1, -2 and -3. Gradients then flow along the carry path from the first step on; the
    deeper the network, the more negative the value has to be: the paper advises -1, -2 and -3 for
    convolutional networks of about 10, 20 and 30 layers.

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


def get(identifier):
    """Return an initializer as `keras.initializers.get` does, also for a number.

    A negative number becomes a `TransformBias`, any other a `keras.initializers.Constant`.
    """
    if isinstance(identifier, numbers.Real) and not isinstance(identifier, bool):
        value = float(checks.number("value", identifier))  # no NaN
        return TransformBias(value) if value < 0 else keras.initializers.Constant(value)
    return keras.initializers.get(identifier)


serialize = keras.initializers.serialize


def redrawn(initializer, offset: int):
    """Return an initializer of the same kind for another weight.

    One of Keras's own draws the same numbers at every call. A seed that the user chose is raised by
    `offset`. Functions, and initializers whose seed is a `SeedGenerator`, draw anew each time and
    are returned unchanged.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    seed = config.get("seed")
    if seed is not None and not isinstance(seed, numbers.Integral):
        return initializer
    if seed is not None:
        config["seed"] = int(seed) + offset
    return type(initializer).from_config(config)
