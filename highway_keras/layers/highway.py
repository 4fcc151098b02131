"""The fully connected highway layer."""

from __future__ import annotations

import keras

from highway_keras.layers import arguments
from highway_keras.layers.highway_base import HighwayBase
from highway_keras.util import checks


@keras.saving.register_keras_serializable(package="highway_keras")
class Highway(HighwayBase):
    """Densely connected highway layer.

    ```
    H = activation(x @ kernel + bias)
    T = transform_activation(x @ transform_kernel + transform_bias)
    C = transform_activation(x @ carry_kernel + carry_bias)
    y = H * T + x * (1 - T)                  # carry="coupled", Eq. 3
    y = H * T + x * C                        # carry="learned", Eq. 2
    ```

    The transform gate starts nearly closed (`transform_bias_initializer`), so a deep chain of these
    layers starts as a near-identity and trains by plain gradient descent. The deeper the chain, the
    lower the initial bias must be: -2 suits about 20 layers. For deeper chains, `-math.log(depth)`,
    which is close to the default of `HighwayStack`, suits tanh; relu needs a lower bias, about -6.

    Args:
        units: Width of the layer; must equal the input's. `None` takes the input's.
        activation: Activation of the block state H.
        use_bias: Whether H has a bias. The gates always have one.
        kernel_initializer, bias_initializer: Initializers of the weights of H. A number stands for
            a constant.
        kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint: For the weights of
            H, T and C, as in `keras.layers.GRU`.
        activity_regularizer: Regularizer of what the layer returns; with `return_gate=True`, of the
            gate, too.
        carry: `"coupled"`: C = 1 - T. `"learned"`: C is a gate with its own weights, which start as
            the negated ones of T, so C starts at 1 - T.
        transform_activation: Activation of the gates T and C, with values in [0, 1]. For other
            options of a gate, pass a layer to `highway_keras.HighwayWrapper`.
        transform_kernel_initializer: Initializer of the kernel of T. Default: like that of H, as in
            the paper.
        transform_bias_initializer: Initializer of the bias of T. If negative, T starts nearly
            closed.
        **kwargs: `name`, `dtype` and the other arguments of `keras.Layer`.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gate)` instead of outputs. The gate is T(x).

    Input shape:
        `(batch_size, ..., units)`, any rank from 2 on. A Keras mask is passed on.

    Output shape:
        The shape of the input.

    H, T and C are the linear `keras.layers.Dense` layers `block`, `transform` and `carry`. Their
    weights are `kernel`, `bias`, `transform_kernel`, `transform_bias`, `carry_kernel` and
    `carry_bias`. `gate(x)` returns T(x) alone.

    Raises:
        ValueError: If `units` differs from the width of the input.

    Examples:
        >>> import keras
        >>> from highway_keras import Highway
        >>> model = keras.Sequential(
        ...     [keras.Input((20,)), keras.layers.Dense(8), Highway(), Highway(), Highway()]
        ... )
        >>> model.output_shape
        (None, 8)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2.
    """

    def __init__(
        self,
        units: int | None = None,
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
        self.units = checks.positive_integer("units", units, or_none=True)

    def make_part(self, input_shape, name, **options):
        return keras.layers.Dense(self.input_width("units", input_shape), name=name, **options)

    def get_config(self):
        return {**super().get_config(), "units": self.units}
