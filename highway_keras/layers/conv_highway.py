"""The convolutional highway layers, in one, two and three dimensions."""

from __future__ import annotations

import keras
from keras import ops

from highway_keras import checks
from highway_keras.layers import types
from highway_keras.layers.gated import GatedLayer
from highway_keras.layers.options import check_data_format


class BaseConvHighway(GatedLayer):
    """Base of the convolutional highway layers; see `ConvHighway2D` for the arguments."""

    width_argument = "filters"
    rank: int  # the number of spatial axes
    paddings: tuple[str, ...] = ("same",)

    def __init__(
        self,
        filters: int | None,
        kernel_size: types.Size,
        strides: types.Size = 1,
        padding: str = "same",
        data_format: str | None = None,
        dilation_rate: types.Size = 1,
        groups: int = 1,
        transform_kernel_size: types.Size | None = None,
        activation: types.Activation = "relu",
        use_bias: bool = True,
        kernel_initializer: types.Initializer = "glorot_uniform",
        bias_initializer: types.Initializer = "zeros",
        kernel_regularizer: types.Regularizer = None,
        bias_regularizer: types.Regularizer = None,
        activity_regularizer: types.Regularizer = None,
        kernel_constraint: types.Constraint = None,
        bias_constraint: types.Constraint = None,
        carry: types.Carry = "coupled",
        transform_activation: types.Activation = "sigmoid",
        transform_kernel_initializer: types.Initializer = None,
        transform_bias_initializer: types.Initializer = -2.0,
        transform_kernel_regularizer: types.Regularizer = None,
        transform_bias_regularizer: types.Regularizer = None,
        transform_kernel_constraint: types.Constraint = None,
        transform_bias_constraint: types.Constraint = None,
        carry_activation: types.Activation = "sigmoid",
        carry_kernel_initializer: types.Initializer = None,
        carry_bias_initializer: types.Initializer = None,
        carry_kernel_regularizer: types.Regularizer = None,
        carry_bias_regularizer: types.Regularizer = None,
        carry_kernel_constraint: types.Constraint = None,
        carry_bias_constraint: types.Constraint = None,
        **kwargs: types.Unpack[types.LayerArguments],
    ):
        super().__init__(locals())
        self._set_channels(filters, groups, data_format)
        self._set_window(kernel_size, transform_kernel_size, strides, padding, dilation_rate)

    def _set_channels(self, filters, groups, data_format):
        self.filters = checks.positive_integer("filters", filters, "the channels of the input")
        self.groups = checks.positive_integer("groups", groups)
        self.data_format = check_data_format(data_format)
        self.channel_axis = 1 if self.data_format == "channels_first" else -1
        self.input_rank = self.rank + 2

    def _set_window(self, kernel_size, transform_kernel_size, strides, padding, dilation_rate):
        gates = kernel_size if transform_kernel_size is None else transform_kernel_size
        self.kernel_size = self._sizes("kernel_size", kernel_size)
        self.transform_kernel_size = self._sizes("transform_kernel_size", gates)
        self.dilation_rate = self._sizes("dilation_rate", dilation_rate)
        self.padding = self._check_padding(padding)
        self.strides = self._sizes("strides", strides)
        if set(self.strides) != {1}:
            raise ValueError(
                "`strides` must be 1: the carry path adds the input to the block state, so both "
                f"need one size. Received: strides={strides}. Sub-sample with a plain layer, a "
                "pooling layer or `highway_keras.layers.MatchSize` before this one."
            )

    def check_input(self, input_shape):
        if len(input_shape) != self.input_rank:
            raise ValueError(
                f"`{type(self).__name__}` expects inputs of rank {self.input_rank}: batch, "
                f"{self.rank} spatial axes and channels. Received: "
                f"input_shape={tuple(input_shape)}."
            )
        super().check_input(input_shape)
        if input_shape[self.channel_axis] % self.groups:
            raise ValueError(
                "`groups` must divide the channels of the input. "
                f"Received: groups={self.groups}, input_shape={tuple(input_shape)}."
            )

    def kernel_shape(self, prefix, input_shape):
        channels = input_shape[self.channel_axis]
        size = self.transform_kernel_size if prefix else self.kernel_size
        return (*size, channels // self.groups, channels)

    def project(self, inputs, kernel):
        causal = self.padding == "causal"
        if causal:
            reach = (int(kernel.shape[0]) - 1) * self.dilation_rate[0]
            steps = 2 if self.channel_axis == 1 else 1
            pads = [[reach, 0] if axis == steps else [0, 0] for axis in range(3)]
            inputs = ops.pad(inputs, pads)
        return ops.conv(
            inputs,
            kernel,
            padding="valid" if causal else self.padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )

    def get_config(self):
        names = ("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate")
        names += ("groups", "transform_kernel_size")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}

    def _sizes(self, name, value):
        sizes = tuple(value) if isinstance(value, list | tuple) else (value,) * self.rank
        if len(sizes) != self.rank or not all(map(checks.is_positive, sizes)):
            raise ValueError(
                f"`{name}` must be a positive integer or {self.rank} of them. "
                f"Received: {name}={value!r}."
            )
        return tuple(map(int, sizes))

    def _check_padding(self, padding):
        if padding in self.paddings:
            return padding
        why = "padding='valid' shrinks the block state below the input that is carried past it. "
        raise ValueError(
            f"`padding` must be {' or '.join(map(repr, self.paddings))}. "
            f"{why if padding == 'valid' else ''}Received: padding={padding!r}."
        )


@keras.saving.register_keras_serializable(package="highway_keras")
class ConvHighway1D(BaseConvHighway):
    """One-dimensional `ConvHighway2D`: inputs `(batch_size, steps, channels)`.

    `padding="causal"` is allowed here: an output then depends on no later input.
    The arguments, equation and errors are those of `ConvHighway2D`.

    Example:

    >>> import keras
    >>> from highway_keras import ConvHighway1D
    >>> ConvHighway1D(8, 3, padding="causal", dilation_rate=2)(keras.Input((100, 8))).shape
    (None, 100, 8)
    """

    rank = 1
    paddings = ("same", "causal")


@keras.saving.register_keras_serializable(package="highway_keras")
class ConvHighway2D(BaseConvHighway):
    """Two-dimensional convolutional highway layer.

    ```
    H = activation(conv(x, kernel) + bias)
    T = transform_activation(conv(x, transform_kernel) + transform_bias)
    y = H * T + x * (1 - T)                  # carry="coupled", Eq. 3
    y = H * T + x * C                        # carry="learned", Eq. 2
    ```

    H and T share one receptive field, unless `transform_kernel_size` says otherwise, and use zero
    padding, so their maps match the input (section 2.1).

    Args:
        filters: Number of maps; must equal the input's. `None` takes the input's.
        kernel_size: Size of the receptive field, an integer or one for each spatial axis.
        strides: Must be 1.
        padding: Must keep the size: `"same"`.
        data_format: `"channels_last"`, `"channels_first"`, or `None` for Keras's setting.
        dilation_rate: Dilation, an integer or one for each spatial axis.
        groups: Number of groups that the channels of H, T and C are split into.
        transform_kernel_size: Receptive field of the gates. Default: `kernel_size`.
        **kwargs: The arguments of `keras.Layer`.

    The other arguments are those of `highway_keras.Highway`.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gate)` instead of outputs. The gate is T(x).

    Input shape:
        `(batch_size, height, width, filters)`, or `(batch_size, filters, height, width)` with
        `data_format="channels_first"`.

    Output shape:
        That of the input.

    Raises:
        ValueError: If strides or padding change the size, or `filters` differs from the channels
            of the input.
        TypeError: If the input is not floating point.

    Example:

    >>> import keras
    >>> from highway_keras import ConvHighway2D
    >>> inputs = keras.Input((32, 32, 3))
    >>> x = keras.layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
    >>> ConvHighway2D(16, 3, transform_bias_initializer=-1.0)(x).shape
    (None, 32, 32, 16)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2.1.
    """

    rank = 2


@keras.saving.register_keras_serializable(package="highway_keras")
class ConvHighway3D(BaseConvHighway):
    """Three-dimensional `ConvHighway2D`: inputs `(batch_size, depth, height, width, channels)`.

    The arguments, equation and errors are those of `ConvHighway2D`.

    Example:

    >>> import keras
    >>> from highway_keras import ConvHighway3D
    >>> ConvHighway3D(4, 3)(keras.Input((8, 16, 16, 4))).shape
    (None, 8, 16, 16, 4)
    """

    rank = 3


ConvHighway = ConvHighway2D
