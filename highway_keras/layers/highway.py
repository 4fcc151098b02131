"""The fully connected highway layer."""

from __future__ import annotations

import keras
from keras import ops

from highway_keras import checks
from highway_keras.layers import types
from highway_keras.layers.gated import GatedLayer


@keras.saving.register_keras_serializable(package="highway_keras")
class Highway(GatedLayer):
    """Densely connected highway layer.

    ```
    H = activation(x @ kernel + bias)
    T = transform_activation(x @ transform_kernel + transform_bias)
    y = H * T + x * (1 - T)                  # carry="coupled", Eq. 3
    y = H * T + x * C                        # carry="learned", Eq. 2
    ```

    The transform gate starts nearly closed (`transform_bias_initializer`), so a deep chain of these
    layers starts as a near-identity and trains by plain gradient descent. The deeper the chain, the
    lower the start has to be: -2 suits about 20 layers, `-math.log(depth)` any number.
    `HighwayStack` uses about that by default.

    Args:
        units: Width of the layer; must equal the input's. `None` takes the input's.
        activation: Activation of the block state H.
        use_bias: Whether H has a bias. The gates always have one.
        kernel_initializer, bias_initializer: Start of the weights of H. Here and for the gates, a
            number stands for a constant and `None` for the default.
        kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint: For the weights of
            H, as in `keras.layers.Dense`.
        activity_regularizer: Regularizer of the output.
        carry: `"coupled"`: C = 1 - T. `"learned"`: C is a gate with its own weights.
        transform_activation: Activation of the transform gate T, with values in [0, 1].
        transform_kernel_initializer: Start of the kernel of T. Default: uniform in half of Glorot's
            range, so the mean gate starts close to sigmoid(bias). (The paper's networks use the
            same initializer for H and T; those of the zoo do too.)
        transform_bias_initializer: Start of the bias of T. Negative: T starts nearly closed.
        transform_kernel_regularizer, transform_bias_regularizer, transform_kernel_constraint,
            transform_bias_constraint: For the weights of T.
        carry_activation: Activation of the carry gate C. All `carry_…` options need a learned C.
        carry_kernel_initializer, carry_bias_initializer: Start of the weights of C. Default: the
            negated ones of T, so C starts at 1 - T.
        carry_kernel_regularizer, carry_bias_regularizer, carry_kernel_constraint,
            carry_bias_constraint: For the weights of C.
        **kwargs: `name`, `dtype` and the other arguments of `keras.Layer`.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gate)` instead of outputs. The gate is T(x).

    Input shape:
        `(batch_size, ..., units)`, any rank from 2 on. A Keras mask is passed on.

    Output shape:
        That of the input.

    Raises:
        ValueError: If `units` differs from the width of the input.
        TypeError: If the input is not floating point.

    Example:

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

    width_argument = "units"

    def __init__(
        self,
        units: int | None = None,
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
        self.units = checks.positive_integer("units", units, or_none="the width of the input")

    def kernel_shape(self, prefix, input_shape):
        return (input_shape[-1], input_shape[-1])

    def project(self, inputs, kernel):
        return ops.matmul(inputs, kernel)

    def project_all(self, inputs, kernels):
        # One product of all kernels takes less time than one of each. For convolutions it is the
        # other way around: splitting the result costs more than the product saves.
        joint = self.project(inputs, ops.concatenate(kernels, axis=-1))
        return ops.split(joint, len(kernels), axis=-1)

    def get_config(self):
        return {**super().get_config(), "units": self.units}
