"""A change of size without weights."""

from __future__ import annotations

import keras
from keras import ops

from highway_keras.layers import arguments
from highway_keras.util import checks


@keras.saving.register_keras_serializable(package="highway_keras")
class MatchSize(keras.Layer):
    """Zero-pad or cut channels and sub-sample spatial axes, without weights.

    It changes the size between two highway layers, as section 2.1 of the paper describes.

    Args:
        channels: Channels of the output: zeros are appended to the input's, or the last ones cut.
            `None` keeps them.
        strides: An integer: every `strides`-th position of each spatial axis is kept.
        data_format: `"channels_last"`, `"channels_first"`, or `None` for Keras's setting.
        **kwargs: The arguments of `keras.Layer`.

    Input shape:
        `(batch_size, ..., channels)` or `(batch_size, channels, ...)`.

    Output shape:
        The same rank; each spatial axis `ceil(size / strides)`. The mask of a sequence is
        sub-sampled the same way.

    Raises:
        ValueError: If `channels` or `strides` is not positive.

    Examples:
        >>> import keras
        >>> from highway_keras import MatchSize
        >>> MatchSize(32, strides=2)(keras.Input((28, 28, 16))).shape
        (None, 14, 14, 32)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2.1.
    """

    def __init__(
        self,
        channels: int | None = None,
        strides: int = 1,
        data_format: str | None = None,
        **kwargs: arguments.Unpack[arguments.LayerArguments],
    ):
        super().__init__(**kwargs)
        self.channels = checks.positive_integer("channels", channels, or_none=True)
        self.strides = checks.positive_integer("strides", strides)
        self.data_format = data_format or keras.config.image_data_format()
        self.channel_axis = 1 if self.data_format == "channels_first" else -1
        self.supports_masking = True

    def call(self, inputs):
        positions = [slice(None, None, self.strides)] * len(inputs.shape)
        positions[0], positions[self.channel_axis] = slice(None), slice(self.channels)
        outputs = inputs[tuple(positions)]
        missing = (self.channels or 0) - inputs.shape[self.channel_axis]
        if missing <= 0:
            return outputs
        zeros = [[0, 0]] * len(inputs.shape)
        zeros[self.channel_axis] = [0, missing]
        return ops.pad(outputs, zeros)

    def compute_output_shape(self, input_shape):
        shape = [n if n is None else -(-n // self.strides) for n in input_shape]
        shape[0] = input_shape[0]
        shape[self.channel_axis] = self.channels or input_shape[self.channel_axis]
        return tuple(shape)

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else mask[:, :: self.strides]

    def get_config(self):
        return {
            **super().get_config(),
            "channels": self.channels,
            "strides": self.strides,
            "data_format": self.data_format,
        }
