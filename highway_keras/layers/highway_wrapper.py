"""Any shape-preserving layer as a highway layer."""

from __future__ import annotations

import keras
from keras import ops

from highway_keras.layers import types
from highway_keras.layers.activity import PenalizedOutput
from highway_keras.layers.options import (
    CARRY,
    TRANSFORM,
    check_carry,
    check_floating,
    negated,
    option_config,
    options_of,
    set_options,
)
from highway_keras.ops import highway

_GATES = (TRANSFORM, CARRY)
_CONVOLUTIONS = (keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D)
_ATTENTION = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
_ATTENTION_TO_A_LIST = (keras.layers.Attention, keras.layers.AdditiveAttention)


@keras.saving.register_keras_serializable(package="highway_keras")
class HighwayWrapper(PenalizedOutput, keras.layers.Wrapper):
    """Highway layer around any layer that preserves the shape of its input.

    ```
    y = layer(x) * T(x) + x * (1 - T(x))     # carry="coupled", Eq. 3
    y = layer(x) * T(x) + x * C(x)           # carry="learned", Eq. 2
    ```

    The paper allows any H (section 2): dense, convolutional, recurrent, attention, or a whole
    `keras.Sequential`. The gates of a convolution are convolutions with its receptive field; those
    of any other layer are dense layers on the last axis. Attention layers attend to their input.

    For a plain dense or convolutional H use `Highway`, which computes H and T in one product, or
    `ConvHighway2D`. Several such layers in a row run as one loop in `HighwayStack`.

    Args:
        layer: The layer H.
        gate_dtype: Dtype policy of the gates. Default: that of this layer. It is part of the saved
            configuration, so gates quantized by `keras.Model.quantize` load as quantized.
        **kwargs: The arguments of `keras.Layer`.

    The other arguments are those of `highway_keras.Highway`; the options of H are those of `layer`.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gate)` instead of outputs. The gate is T(x).

    Output shape:
        That of the input.

    Raises:
        TypeError: If `layer` is not a Keras layer.
        ValueError: If the layer changes the shape of its input.

    Example:

    >>> import keras
    >>> from highway_keras import HighwayWrapper
    >>> x = keras.Input((None, 64))
    >>> HighwayWrapper(keras.layers.LSTM(64, return_sequences=True))(x).shape
    (None, None, 64)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2.
    """

    def __init__(
        self,
        layer: keras.Layer,
        carry: types.Carry = "coupled",
        gate_dtype: str | keras.DTypePolicy | None = None,
        activity_regularizer: types.Regularizer = None,
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
        if not isinstance(layer, keras.Layer):
            raise TypeError(
                f"`layer` must be a Keras layer. Received: layer={layer!r} "
                f"(of type {type(layer).__name__})."
            )
        super().__init__(layer, activity_regularizer=activity_regularizer, **kwargs)
        if not self.trainable:
            layer.trainable = False
        set_options(self, locals(), _GATES)
        self.carry = check_carry(carry)
        self.gate_dtype = gate_dtype and keras.dtype_policies.get(gate_dtype)
        self.supports_masking = True

    @property
    def transform_kernel(self):
        return self.transform_gate.kernel

    @property
    def transform_bias(self):
        return self.transform_gate.bias

    def build(self, input_shape):
        self._check_shape(input_shape)
        if not self.layer.built:
            self.layer.build(*self._arguments(input_shape))
        self.transform_gate = self._gate(TRANSFORM, input_shape)
        self.carry_gate = self._gate(CARRY, input_shape) if self.carry == "learned" else None
        self.built = True

    def call(self, inputs, return_gate=False):
        check_floating(inputs)
        h = self.layer(*self._arguments(inputs))
        gates = [g(inputs) for g in (self.transform_gate, self.carry_gate) if g is not None]
        # The wrapped layer and the gates may have other dtype policies.
        h, *gates = (ops.cast(z, self.compute_dtype) for z in (h, *gates))
        outputs = highway(inputs, h, *gates)
        return (outputs, gates[0]) if return_gate else outputs

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def compute_output_spec(self, inputs, **kwargs):
        check_floating(inputs)
        # Traces `call`: a wrapped layer may make its weights only when it is called.
        return keras.Operation.compute_output_spec(self, inputs, **kwargs)

    def _arguments(self, inputs):
        if isinstance(self.layer, _ATTENTION_TO_A_LIST):
            return ([inputs, inputs],)
        return (inputs, inputs) if isinstance(self.layer, _ATTENTION) else (inputs,)

    def _check_shape(self, input_shape):
        if len(input_shape) < 2:
            raise ValueError(
                "`HighwayWrapper` expects inputs of shape (batch_size, ..., units). "
                f"Received: input_shape={tuple(input_shape)}."
            )
        shape = self._shape_of_h(input_shape)
        if shape != tuple(input_shape):
            raise ValueError(
                f"`layer` must preserve the shape of its input. Received: "
                f"layer={self.layer.name!r}, which turns {tuple(input_shape)} into {shape}. "
                "Set its units, filters, padding or return_sequences so that both agree, or "
                "change the size with a plain layer before it."
            )

    def _shape_of_h(self, input_shape):
        try:
            return tuple(self.layer.compute_output_shape(*self._arguments(input_shape)))
        except NotImplementedError:  # a layer of a user's own that has only `build` and `call`
            outputs = self.layer(keras.KerasTensor(input_shape, self.compute_dtype))
            return keras.tree.map_structure(lambda y: tuple(y.shape), outputs)

    def _gate(self, prefix, input_shape):
        options = options_of(self, prefix)
        for weight in ("kernel", "bias"):
            if options[f"{weight}_initializer"] is None:
                options[f"{weight}_initializer"] = negated(getattr(self.transform_gate, weight))
        dtype = self.gate_dtype or self.dtype_policy
        options.update(name=f"{prefix}gate", dtype=dtype, trainable=self.trainable)
        rank = len(input_shape) - 2
        if _is_convolution(self.layer, rank):
            gate = self._convolution(rank, input_shape, options)
        else:
            gate = keras.layers.Dense(input_shape[-1], **options)
        gate.supports_masking = True  # The wrapper passes the mask on.
        gate.build(input_shape)
        return gate

    def _convolution(self, rank, input_shape, options):
        h = self.layer
        axis = 1 if h.data_format == "channels_first" else -1
        return _CONVOLUTIONS[rank - 1](
            input_shape[axis],
            h.kernel_size,
            padding=h.padding,
            data_format=h.data_format,
            dilation_rate=h.dilation_rate,
            **options,
        )

    def get_config(self):
        policy = self.transform_gate.dtype_policy if self.built else self.gate_dtype
        return {
            **super().get_config(),
            "carry": self.carry,
            "gate_dtype": policy and keras.dtype_policies.serialize(policy),
            **option_config(self, _GATES),
        }


def _is_convolution(layer, rank):
    """Return whether a layer has all that a convolution over `rank` axes has."""
    size = getattr(layer, "kernel_size", None)
    has_all = all(hasattr(layer, name) for name in ("padding", "data_format", "dilation_rate"))
    return isinstance(size, tuple) and len(size) == rank > 0 and has_all
