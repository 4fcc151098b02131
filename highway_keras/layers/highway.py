"""The fully connected highway layer."""

import keras
from keras import ops

from highway_keras import checks
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

    The transform gate starts nearly closed (`transform_bias_initializer`), so that a deep chain of
    these layers starts as a near-identity and trains by plain gradient descent at any depth.

    Args:
        units: Width of the layer; must equal the input's. `None` takes the input's.
        activation: Activation of the block state H. Default `"relu"`.
        use_bias: Whether H has a bias. Default `True`; the gates always have one.
        transform_activation: Activation of the transform gate, into [0, 1]. Default `"sigmoid"`.
        transform_kernel_initializer: Start of the gate's kernel. Default: uniform in half of
            Glorot's range, so that the mean gate starts close to sigmoid(bias). (The paper's
            networks use the same initializer for H and T; those of the zoo do too.)
        transform_bias_initializer: Start of the gate's bias: an initializer, or a number.
            Default `TransformBias(-2.0)`.
        carry: `"coupled"` (default): C = 1 - T. `"learned"`: C is a gate of its own, with the
            options `carry_activation` and so on; by default it starts at C = 1 - T.
        **kwargs: For H `kernel_initializer`, `bias_initializer`, `kernel_regularizer`,
            `bias_regularizer`, `kernel_constraint`, `bias_constraint`, as in
            `keras.layers.Dense`; the same with the prefix `transform_` for T and `carry_` for C;
            then `activity_regularizer`, `dtype`, `name`.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gate)`, the gate being T(x), instead of outputs.

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

    def __init__(self, units=None, **kwargs):
        super().__init__(**kwargs)
        self.units = checks.positive_integer("units", units, none="the width of the input")

    @property
    def width_argument(self):
        return "units", self.units

    def build(self, input_shape):
        if len(input_shape) < 2:
            raise ValueError(
                "`Highway` expects inputs of shape (batch_size, ..., units). "
                f"Received: input_shape={tuple(input_shape)}."
            )
        super().build(input_shape)
        self.input_spec = keras.InputSpec(min_ndim=2, axes={-1: input_shape[-1]})

    def kernel_shape(self, prefix, input_shape):
        return (input_shape[-1], input_shape[-1])

    def project(self, inputs, kernel):
        return ops.matmul(inputs, kernel)

    def project_all(self, inputs, kernels):
        # One product of all kernels takes less time than one of each. For convolutions it is the
        # other way round: what it saves is less than taking its result apart costs.
        joint = self.project(inputs, ops.concatenate(kernels, axis=-1))
        return ops.split(joint, len(kernels), axis=-1)

    def get_config(self):
        return {**super().get_config(), "units": self.units}
