"""Any shape-preserving layer as a highway layer."""

from __future__ import annotations

import keras

from highway_keras.layers import arguments
from highway_keras.layers.gated import OPTIONS, GatedLayer
from highway_keras.util import checks

_CONVOLUTIONS = (keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D)
_OPTIONS_OF_H = {"use_bias", *(name for name in OPTIONS if not name.startswith("transform_"))}
_ATTENTION = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
_ATTENTION_TO_A_LIST = (keras.layers.Attention, keras.layers.AdditiveAttention)


@keras.saving.register_keras_serializable(package="highway_keras")
class HighwayWrapper(GatedLayer):
    """Highway layer around any layer that preserves the shape of its input.

    ```
    y = layer(x) * T(x) + x * (1 - T(x))     # carry="coupled", Eq. 3
    y = layer(x) * T(x) + x * C(x)           # carry="learned", Eq. 2
    ```

    The paper allows any H (section 2), such as convolutional or recurrent ones; here also attention
    or a whole `keras.Sequential`. The gates of a convolution are convolutions with its receptive
    field; those of any other layer are dense layers on the last axis. Attention layers attend to
    their input.

    Several dense layers in a row run as one loop in `highway_keras.HighwayStack`.

    Args:
        layer: The layer H, `block`.
        transform: The layer T, whose output has values in [0, 1]. Default: a convolution or dense
            layer with the options below.
        carry: `"coupled"`: C = 1 - T. `"learned"`: C is a layer like T, with the negated weights of
            T as its start, so C starts at 1 - T. Or the layer C.
        activity_regularizer: Regularizer of the output.
        transform_activation: Activation of the default gates.
        transform_kernel_initializer, transform_bias_initializer: Initializers of the weights of
            the default T. If the biases are negative, T starts nearly closed.
        **kwargs: The arguments of `keras.Layer`.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gate)` instead of outputs. The gate is T(x).
        **of_block: Optional arguments of the layer H, such as `use_causal_mask=True` of attention:
            tensors or settings, not both in one call.

    Output shape:
        That of the input.

    Raises:
        TypeError: If a layer is not a Keras layer.
        ValueError: If a layer changes the shape of its input, `carry` is `"learned"` where
            `transform` is a layer, or an argument is an option of the layer H.

    Examples:
        >>> import keras
        >>> from highway_keras import HighwayWrapper, TransformBias
        >>> x = keras.Input((None, 64))
        >>> HighwayWrapper(keras.layers.LSTM(64, return_sequences=True))(x).shape
        (None, None, 64)
        >>> options = {"bias_initializer": TransformBias(-2.0), "kernel_regularizer": "l2"}
        >>> gate = keras.layers.Dense(64, "sigmoid", **options)
        >>> HighwayWrapper(keras.layers.Dense(64, "relu"), transform=gate)(x).shape
        (None, None, 64)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2.
    """

    own_arguments = ("layer",)

    def __init__(
        self,
        layer: keras.Layer,
        transform: keras.Layer | None = None,
        carry: arguments.Carry | keras.Layer = "coupled",
        activity_regularizer: arguments.Regularizer = None,
        transform_activation: arguments.Activation = "sigmoid",
        transform_kernel_initializer: arguments.Initializer = "glorot_uniform",
        transform_bias_initializer: arguments.Initializer = -2.0,
        **kwargs: arguments.Unpack[arguments.LayerArguments],
    ):
        if refused := sorted(_OPTIONS_OF_H & kwargs.keys()):
            name = refused[0]
            raise ValueError(
                f"`{name}` is an option of the layers H, T and C: give it to those that you pass. "
                f"{checks.received(name, kwargs[name])}"
            )
        super().__init__(
            carry=carry if carry is None or isinstance(carry, str) else "learned",
            activity_regularizer=activity_regularizer,
            # Not used, but making it draws a seed; without it, all later seeds would change.
            kernel_initializer="glorot_uniform",
            transform_activation=transform_activation,
            transform_kernel_initializer=transform_kernel_initializer,
            transform_bias_initializer=transform_bias_initializer,
            **kwargs,
        )
        if transform is not None and carry == "learned":
            raise ValueError(
                '`carry` must be a layer, or "coupled", where `transform` is a layer. '
                "Received: carry='learned'."
            )
        self.block, self.transform = layer, transform
        self.carry = None if isinstance(carry, str) else carry
        self.passed = [name for name in ("transform", "carry") if getattr(self, name) is not None]
        for name, part in {"layer": layer, "transform": transform, "carry": self.carry}.items():
            if not isinstance(part, keras.Layer) and (name == "layer" or part is not None):
                raise TypeError(f"`{name}` must be a Keras layer. Received: {name}={part!r}.")
            if part is not None and not self.trainable:
                part.trainable = False

    @property
    def layer(self):
        """The layer H."""
        return self.block

    @property
    def activations(self):
        of_gate = self._activation("transform_activation", "transform")
        if "transform" in self.passed:
            of_gate = getattr(self.transform, "activation", None)
        return getattr(self.block, "activation", None), of_gate

    def make_sublayer(self, input_shape, **options):
        h = self.block
        size, shared = getattr(h, "kernel_size", None), ("padding", "data_format", "dilation_rate")
        is_convolution = isinstance(size, tuple) and all(hasattr(h, name) for name in shared)
        if not is_convolution or len(input_shape) != len(size) + 2:  # ConvLSTM has a time axis
            return keras.layers.Dense(input_shape[-1], **options)
        return _CONVOLUTIONS[len(size) - 1](
            input_shape[1 if h.data_format == "channels_first" else -1],
            size,
            **{name: getattr(h, name) for name in shared},
            **options,
        )

    def block_state(self, inputs, **arguments):
        if isinstance(self.block, _ATTENTION_TO_A_LIST):
            return self.block([inputs, inputs], **arguments)
        times = 2 if isinstance(self.block, _ATTENTION) else 1
        return self.block(*[inputs] * times, **arguments)

    def get_config(self):
        config = {k: v for k, v in super().get_config().items() if k not in _OPTIONS_OF_H}
        layers = {"layer": self.block, **{name: getattr(self, name) for name in self.passed}}
        for name, layer in layers.items():
            # Twice: where layers are shared, the first configuration comes to lack their number.
            keras.saving.serialize_keras_object(layer)
            config[name] = keras.saving.serialize_keras_object(layer)
            if getattr(layer, "lora_enabled", False):  # its adapters are saved merged
                for option in ("lora_rank", "lora_alpha"):
                    config[name]["config"].pop(option, None)
        return config

    @classmethod
    def from_config(cls, config):
        layers = ("layer", "transform", "carry")
        made = {k: keras.saving.deserialize_keras_object(config[k]) for k in layers if k in config}
        return super().from_config({**config, **made})
