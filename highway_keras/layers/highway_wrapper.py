"""Any shape-preserving layer as a highway layer."""

from __future__ import annotations

import keras
from keras import layers, ops

from highway_keras.layers import arguments
from highway_keras.layers.gated import GatedLayer
from highway_keras.ops import agree
from highway_keras.util import checks

GATE_OF_CONVOLUTION = (layers.Conv1D, layers.Conv2D, layers.Conv3D)
CONVOLUTIONS = (
    *GATE_OF_CONVOLUTION,
    layers.DepthwiseConv1D,
    layers.DepthwiseConv2D,
    layers.SeparableConv1D,
    layers.SeparableConv2D,
)
ATTENTION_TO_A_LIST = (layers.Attention, layers.AdditiveAttention)
ATTENTION = (layers.MultiHeadAttention, layers.GroupQueryAttention)
# Of the default gate. The signature has `None`, which tells whether an option was given.
DEFAULTS = {
    "transform_activation": "sigmoid",
    "transform_kernel_initializer": "glorot_uniform",
    "transform_bias_initializer": -2.0,
}


@keras.saving.register_keras_serializable(package="highway_keras")
class HighwayWrapper(GatedLayer):
    """Highway layer around any layer that preserves the shape of its input.

    ```
    y = layer(x) * T(x) + x * (1 - T(x))     # carry="coupled", Eq. 3
    y = layer(x) * T(x) + x * C(x)           # carry="learned", Eq. 2
    ```

    H may be convolutional, recurrent, attention, which attends to its input, or a whole
    `keras.Sequential`. The gates of a convolution are convolutions with its receptive field; the
    gates of any other layer are dense layers on the last axis.

    Args:
        layer: The layer H, `block`.
        transform: The layer T with its own activation, whose output is in [0, 1]; it may be a
            `keras.Sequential`. Default: a convolution or dense layer with the options below.
        carry: `"coupled"`: C = 1 - T. `"learned"`: C is a layer like T, with the negated weights of
            T as its start, so C starts at 1 - T. Or the layer C with its own activation.
        activity_regularizer: Regularizer of what the layer returns.
        transform_activation: Activation of the default gates. Default: `"sigmoid"`.
        transform_kernel_initializer, transform_bias_initializer: Initializers of the weights of
            the default T. Default: `"glorot_uniform"` and -2, with which T starts nearly closed;
            give a gate of your own negative biases, too.
        **kwargs: The arguments of `keras.Layer`.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gate)` instead of outputs. The gate is T(x).
        **block_arguments: Optional arguments of H, such as `use_causal_mask=True` of attention.

    Input shape:
        `(batch_size, ..., units)`, as H takes it.

    Output shape:
        The shape of the input.

    Raises:
        ValueError: If a layer changes the shape of its input, or options of the default gates are
            given beside `transform`.

    Examples:
        >>> import keras
        >>> from highway_keras import HighwayWrapper, TransformBias
        >>> x = keras.Input((None, 64))
        >>> HighwayWrapper(keras.layers.LSTM(64, return_sequences=True))(x).shape
        (None, None, 64)
        >>> gate = keras.layers.Dense(64, "sigmoid", bias_initializer=TransformBias(-2.0))
        >>> HighwayWrapper(keras.layers.Dense(64, "relu"), transform=gate)(x).shape
        (None, None, 64)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2.
    """

    def __init__(
        self,
        layer: keras.Layer,
        transform: keras.Layer | None = None,
        carry: arguments.Carry | keras.Layer = "coupled",
        activity_regularizer: arguments.Regularizer = None,
        transform_activation: arguments.Activation = None,
        transform_kernel_initializer: arguments.Initializer = None,
        transform_bias_initializer: arguments.Initializer = None,
        **kwargs: arguments.Unpack[arguments.LayerArguments],
    ):
        options = checks.given(
            transform_activation=transform_activation,
            transform_kernel_initializer=transform_kernel_initializer,
            transform_bias_initializer=transform_bias_initializer,
        )
        refused = options | ({"carry": carry} if carry == "learned" else {})
        if transform is not None and refused:
            name, value = next(iter(refused.items()))
            raise ValueError(
                f"`{name}` is an option of the default gates: with `transform`, set the options on "
                f"that layer; a learned `carry` must be a layer. {checks.received(name, value)}"
            )
        has_own_carry = isinstance(carry, keras.Layer)
        mode = "learned" if has_own_carry else carry
        super().__init__(
            mode, activity_regularizer=activity_regularizer, **{**DEFAULTS, **options}, **kwargs
        )
        self.block, self.transform = layer, transform
        self.carry = carry if has_own_carry else None
        self.given_gates = tuple(checks.given(transform=self.transform, carry=self.carry))

    @property
    def layer(self) -> keras.Layer:
        """The layer H."""
        return self.block

    def build(self, input_shape):
        for name in ("block", *self.given_gates):
            part = getattr(self, name)
            if not part.built:
                part.build(*_inputs_of(part, input_shape))
            try:
                shape = part.compute_output_shape(*_inputs_of(part, input_shape))
            except NotImplementedError:
                continue  # the formula checks what comes out
            if not agree(shape, input_shape):
                raise ValueError(
                    f"`{name.replace('block', 'layer')}` must keep the shape of its input: give it "
                    'padding="same", return_sequences=True or return_state=False, or change the '
                    f"size before it. Received: {part!r}, from {input_shape} to {shape}."
                )
        super().build(input_shape)

    def make_part(self, input_shape, name, **options):
        h = self.block
        if not isinstance(h, CONVOLUTIONS):
            return layers.Dense(input_shape[-1], name=name, **options)
        return GATE_OF_CONVOLUTION[len(h.kernel_size) - 1](
            input_shape[1 if h.data_format == "channels_first" else -1],
            h.kernel_size,
            padding=h.padding,
            data_format=h.data_format,
            dilation_rate=h.dilation_rate,
            name=name,
            **options,
        )

    def compute_output_spec(self, inputs, return_gate=False, **block_arguments):
        if block_arguments:
            self.block_state(inputs, **block_arguments)  # refuses arguments that H does not have
        return super().compute_output_spec(inputs, return_gate)

    def block_state(self, inputs, **block_arguments):
        return self.block(*_inputs_of(self.block, inputs), **block_arguments)

    def activated_gate(self, part, inputs):
        if any(part is getattr(self, name) for name in self.given_gates):
            return ops.cast(part(inputs), self.compute_dtype)
        return super().activated_gate(part, inputs)

    def get_config(self):
        config = super().get_config()
        if "transform" in self.given_gates:
            config |= dict.fromkeys(DEFAULTS)
        config["layer"] = keras.saving.serialize_keras_object(self.block)
        for name in self.given_gates:
            config[name] = keras.saving.serialize_keras_object(getattr(self, name))
        return config

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for name in ("layer", "transform", "carry"):
            if isinstance(config.get(name), dict):
                config[name] = keras.saving.deserialize_keras_object(config[name])
        return super().from_config(config)


def _inputs_of(layer, x):
    """Return the positional arguments of a layer: attention attends to its input."""
    if isinstance(layer, ATTENTION_TO_A_LIST):
        return ([x, x],)
    return (x, x) if isinstance(layer, ATTENTION) else (x,)
