"""The convolutional highway layers, in one, two and three dimensions."""

from __future__ import annotations

import keras

from highway_keras.layers import arguments
from highway_keras.layers.highway_base import HighwayBase
from highway_keras.util import checks


class BaseConvHighway(HighwayBase):
    """Base of the convolutional highway layers; see `ConvHighway2D` for the arguments."""

    convolution: type[keras.Layer]
    paddings = ("same",)  # which keep the size

    def __init__(
        self,
        filters: int | None,
        kernel_size: arguments.Size,
        *,  # `Conv2D` goes on with strides
        padding: str = "same",
        data_format: str | None = None,
        dilation_rate: arguments.Size = 1,
        groups: int = 1,
        transform_kernel_size: arguments.Size | None = None,
        activation: arguments.Activation = "relu",
        use_bias: bool = True,
        kernel_initializer: arguments.Initializer = "glorot_uniform",
        bias_initializer: arguments.Initializer = "zeros",
        kernel_regularizer: arguments.Regularizer = None,
        bias_regularizer: arguments.Regularizer = None,
        activity_regularizer: arguments.Regularizer = None,
        kernel_constraint: arguments.Constraint = None,
        bias_constraint: arguments.Constraint = None,
        carry: arguments.Carry = "coupled",
        transform_activation: arguments.Activation = "sigmoid",
        transform_kernel_initializer: arguments.Initializer = None,
        transform_bias_initializer: arguments.Initializer = -2.0,
        **kwargs: arguments.Unpack[arguments.LayerArguments],
    ):
        super().__init__(
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            carry=carry,
            transform_activation=transform_activation,
            transform_kernel_initializer=transform_kernel_initializer,
            transform_bias_initializer=transform_bias_initializer,
            **kwargs,
        )
        self.filters = checks.positive_integer("filters", filters, or_none=True)
        self.kernel_size = kernel_size
        self.padding = checks.one_of("padding", padding, self.paddings)
        self.data_format = data_format or keras.config.image_data_format()
        self.dilation_rate = dilation_rate
        self.groups = groups
        self.transform_kernel_size = transform_kernel_size

    def make_part(self, input_shape, name, **options):
        channels = 1 if self.data_format == "channels_first" else -1
        is_gate = name != "block" and self.transform_kernel_size is not None
        return self.convolution(
            self.input_width("filters", input_shape, channels),
            self.transform_kernel_size if is_gate else self.kernel_size,
            padding=self.padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
            groups=self.groups,
            name=name,
            **options,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "padding": self.padding,
            "data_format": self.data_format,
            "dilation_rate": self.dilation_rate,
            "groups": self.groups,
            "transform_kernel_size": self.transform_kernel_size,
        }


@keras.saving.register_keras_serializable(package="highway_keras")
class ConvHighway1D(BaseConvHighway):
    """One-dimensional `ConvHighway2D`: inputs `(batch_size, steps, channels)`.

    `padding="causal"` is allowed here: an output then depends on no later input.
    The arguments, equation and errors are those of `ConvHighway2D`.

    Examples:
        >>> import keras
        >>> from highway_keras import ConvHighway1D
        >>> ConvHighway1D(8, 3, padding="causal", dilation_rate=2)(keras.Input((100, 8))).shape
        (None, 100, 8)
    """

    convolution = keras.layers.Conv1D
    paddings = ("same", "causal")


@keras.saving.register_keras_serializable(package="highway_keras")
class ConvHighway2D(BaseConvHighway):
    """Two-dimensional convolutional highway layer.

    ```
    H = activation(conv(x, kernel) + bias)
    T = transform_activation(conv(x, transform_kernel) + transform_bias)
    C = transform_activation(conv(x, carry_kernel) + carry_bias)
    y = H * T + x * (1 - T)                  # carry="coupled", Eq. 3
    y = H * T + x * C                        # carry="learned", Eq. 2
    ```

    H, T and C are the linear `keras.layers.Conv2D` layers `block`, `transform` and `carry`. They
    use zero padding, so their maps match the input (section 2.1).

    Args:
        filters: Number of maps; must equal the input's. `None` takes the input's.
        kernel_size: Size of the receptive field, an integer or one for each spatial axis.
        padding: `"same"`, which keeps the size.
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
        The shape of the input. A layer that changes the size comes before: a plain convolution, a
        pooling layer or `highway_keras.MatchSize`.

    Raises:
        ValueError: If `filters` differs from the channels of the input, or `padding` changes the
            size.

    Examples:
        >>> import keras
        >>> from highway_keras import ConvHighway2D
        >>> inputs = keras.Input((32, 32, 3))
        >>> x = keras.layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
        >>> ConvHighway2D(16, 3, transform_bias_initializer=-1.0)(x).shape
        (None, 32, 32, 16)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2.1.
    """

    convolution = keras.layers.Conv2D


@keras.saving.register_keras_serializable(package="highway_keras")
class ConvHighway3D(BaseConvHighway):
    """Three-dimensional `ConvHighway2D`: inputs `(batch_size, depth, height, width, channels)`.

    The arguments, equation and errors are those of `ConvHighway2D`.

    Examples:
        >>> import keras
        >>> from highway_keras import ConvHighway3D
        >>> ConvHighway3D(4, 3)(keras.Input((8, 16, 16, 4))).shape
        (None, 8, 16, 16, 4)
    """

    convolution = keras.layers.Conv3D


ConvHighway = ConvHighway2D
