"""Maxout, the activation of the Fitnet baselines."""

from __future__ import annotations

import keras
from keras import ops

from highway_keras.layers import arguments
from highway_keras.util import checks


@keras.saving.register_keras_serializable(package="highway_keras")
class Maxout(keras.Layer):
    """Maximum over pieces of the channels: `y[j] = max_i x[i * units + j]`.

    Put it after a linear `Dense` or `Conv2D` layer with `pieces` times as many channels, `units`
    for each piece. A piece is a block of channels, not every second or third one: maximum and
    gradient then work on whole blocks, which takes a quarter of the time on a CPU.

    Args:
        pieces: Number of channels that compete for an output.
        axis: The channel axis.
        **kwargs: The arguments of `keras.Layer`.

    Input shape:
        Any; the channel axis a multiple of `pieces`.

    Output shape:
        The channel axis divided by `pieces`.

    Raises:
        ValueError: In a model, if `pieces` does not divide the channels of the input.

    Examples:
        >>> import keras
        >>> from highway_keras.layers import Maxout
        >>> x = keras.layers.Conv2D(2 * 16, 3)(keras.Input((32, 32, 3)))
        >>> Maxout(2)(x).shape
        (None, 30, 30, 16)

    Reference:
        [Goodfellow et al., 2013](https://arxiv.org/abs/1302.4389).
    """

    def __init__(
        self, pieces: int = 2, axis: int = -1, **kwargs: arguments.Unpack[arguments.LayerArguments]
    ):
        super().__init__(**kwargs)
        self.pieces = checks.positive_integer("pieces", pieces)
        self.axis = axis
        self.supports_masking = True

    def call(self, inputs):
        axis = self.axis % len(inputs.shape)
        shape = list(ops.shape(inputs))
        shape[axis : axis + 1] = [self.pieces, inputs.shape[axis] // self.pieces]
        return ops.max(ops.reshape(inputs, shape), axis=axis)

    def compute_output_shape(self, input_shape):
        shape = list(input_shape)
        if shape[self.axis] % self.pieces:
            raise ValueError(
                "`pieces` must divide the channels of the input. "
                f"Received: pieces={self.pieces}, input_shape={tuple(input_shape)}."
            )
        shape[self.axis] //= self.pieces
        return tuple(shape)

    def get_config(self):
        return {**super().get_config(), "pieces": self.pieces, "axis": self.axis}
