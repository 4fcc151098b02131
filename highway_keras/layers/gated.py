"""What the highway layers share: the weights of H, T and C, and the forward pass."""

import keras
from keras import ops

from highway_keras.layers.options import (
    PREFIXES,
    check_carry,
    check_floating,
    negated,
    option_config,
    set_options,
    split_options,
)
from highway_keras.layers.quantized import Int8Kernels, kernel_property
from highway_keras.ops import highway


class GatedLayer(Int8Kernels):
    """Base of the highway layers: `y = H(x) * T(x) + x * C(x)`.

    A subclass says what shape its kernels have and how one is applied (`project`). H, T and a
    learned C then run as one product over their kernels side by side, where the shapes allow it.

    Args:
        use_bias: Whether H has a bias. The gates always have one.
        carry: `"coupled"` for C = 1 - T, or `"learned"` for a carry gate with weights of its own,
            which start as the transform gate's negated ones: with the sigmoid, C starts at 1 - T.
        **kwargs: The options of H, T and C (see `Highway`), then the arguments of `keras.Layer`.
    """

    kernel = kernel_property("kernel")
    transform_kernel = kernel_property("transform_kernel")
    carry_kernel = kernel_property("carry_kernel")

    def __init__(self, use_bias=True, carry="coupled", **kwargs):
        options, kwargs = split_options(kwargs)
        super().__init__(**kwargs)
        set_options(self, options)
        self.use_bias = bool(use_bias)
        self.carry = check_carry(carry)
        self.supports_masking = True

    @property
    def kernel_names(self):
        return [f"{prefix}kernel" for prefix in self.transforms]

    def kernel_shape(self, prefix, input_shape):
        """The shape of the kernel of H (`""`), T (`"transform_"`) or C (`"carry_"`)."""
        raise NotImplementedError

    def bias_shape(self, kernel_shape):
        """The shape of the bias that belongs to a kernel."""
        return kernel_shape[-1:]

    def weight_options(self, name):
        """What `add_weight` needs for the weight of that name, besides its shape."""
        kinds = ("initializer", "regularizer", "constraint")
        return {kind: getattr(self, f"{name}_{kind}") for kind in kinds}

    def project(self, inputs, kernel):
        """Applies a kernel to the input, without bias."""
        raise NotImplementedError

    def project_all(self, inputs, kernels):
        """Applies the kernels of H, T and C, each to the same input."""
        return [self.project(inputs, kernel) for kernel in kernels]

    @property
    def channel_axis(self):
        return -1

    @property
    def transforms(self):
        """The prefixes of the transforms that this layer has: H and T, and C if it is learned."""
        return PREFIXES if self.carry == "learned" else PREFIXES[:2]

    def build(self, input_shape):
        self.check_width(input_shape)
        for prefix in self.transforms:
            shape = self.kernel_shape(prefix, input_shape)
            self._add(prefix, "kernel", shape)
            self._add(prefix, "bias", self.bias_shape(shape))
        self.built = True

    def call(self, inputs, return_gate=False):
        check_floating(inputs)
        h, *gates = (
            getattr(self, f"{prefix}activation")(z)
            for prefix, z in zip(self.transforms, self._preactivations(inputs), strict=True)
        )
        outputs = highway(inputs, h, *gates)
        return (outputs, gates[0]) if return_gate else outputs

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def compute_output_spec(self, inputs, return_gate=False, **kwargs):
        check_floating(inputs)
        outputs, gate = (keras.KerasTensor(inputs.shape, self.compute_dtype) for _ in range(2))
        return (outputs, gate) if return_gate else outputs

    def check_width(self, input_shape):
        """Raises unless input and output have one, known width."""
        width = input_shape[self.channel_axis]
        name, wanted = self.width_argument
        if width is None:
            raise ValueError(
                "The channel axis of the input must have a known size. "
                f"Received: input_shape={tuple(input_shape)}."
            )
        if wanted not in (None, width):
            raise ValueError(
                f"`{name}` must equal the width of the input, because the carry path adds the "
                f"input to the block state. Received: {name}={wanted}, "
                f"input_shape={tuple(input_shape)}. Put a plain layer of that width before this "
                f"one (the paper's way) or `highway_keras.layers.MatchSize({wanted})`; "
                f"{name}=None takes the input's width."
            )

    def _add(self, prefix, weight, shape):
        name = prefix + weight
        if name == "bias" and not self.use_bias:
            self.bias = None
            return
        options = self.weight_options(name)
        options["initializer"] = options["initializer"] or negated(
            getattr(self, f"transform_{weight}")
        )
        if weight == "kernel":
            self.add_kernel(name, shape, **options)
        else:
            setattr(self, name, self.add_weight(name=name, shape=shape, **options))

    def _preactivations(self, inputs):
        kernels = [getattr(self, f"{prefix}kernel") for prefix in self.transforms]
        biases = [getattr(self, f"{prefix}bias") for prefix in self.transforms]
        parts = self.project_all(inputs, kernels)
        return [self._add_bias(z, b) for z, b in zip(parts, biases, strict=True)]

    def _add_bias(self, z, bias):
        if bias is None:
            return z
        if self.channel_axis == 1:
            bias = ops.reshape(bias, (1, -1) + (1,) * (len(z.shape) - 2))
        return ops.add(z, bias)

    def get_config(self):
        config = {"use_bias": self.use_bias, "carry": self.carry}
        activity_regularizer = keras.regularizers.serialize(self.activity_regularizer)
        return {
            **super().get_config(),
            **config,
            **option_config(self),
            "activity_regularizer": activity_regularizer,
        }
