"""What the highway layers share: the weights of H, T and C, and the forward pass."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from highway_keras.layers.activity import PenalizedOutput
from highway_keras.layers.options import (
    PREFIXES,
    check_carry,
    check_floating,
    negated,
    option_config,
    set_options,
)
from highway_keras.layers.quantized import Int8Kernels, kernel_property
from highway_keras.ops import highway


class GatedLayer(PenalizedOutput, Int8Kernels):
    """Base of the highway layers: `y = H(x) * T(x) + x * C(x)`.

    A subclass says which of its arguments is its width, what shape its kernels have and how one is
    applied (`project`). It spells out the options of H, T and C, `use_bias`, `carry` and
    `activity_regularizer` in its signature, as `highway_keras.Highway` does.

    Args:
        arguments: The `locals()` of the subclass's `__init__`.
    """

    width_argument: str  # "units" or "filters"; its value None takes the input's width
    input_rank: int | None = None  # None: any from 2 on
    channel_axis: int = -1

    kernel = kernel_property("kernel")
    transform_kernel = kernel_property("transform_kernel")
    carry_kernel = kernel_property("carry_kernel")
    bias: keras.Variable | None
    transform_bias: keras.Variable
    carry_bias: keras.Variable

    def __init__(self, arguments: dict[str, Any]):
        activity_regularizer = arguments["activity_regularizer"]
        super().__init__(activity_regularizer=activity_regularizer, **arguments["kwargs"])
        set_options(self, arguments)
        self.use_bias = bool(arguments["use_bias"])
        self.carry = check_carry(arguments["carry"])
        self.supports_masking = True

    @property
    def kernel_names(self):
        return tuple(f"{prefix}kernel" for prefix in self.transforms)

    def kernel_shape(self, prefix, input_shape):
        """Return the shape of the kernel of H (`""`), T (`"transform_"`) or C (`"carry_"`)."""
        raise NotImplementedError

    def bias_shape(self, kernel_shape):
        """Return the shape of the bias that belongs to a kernel."""
        return kernel_shape[-1:]

    def weight_options(self, name):
        """Return what `add_weight` needs for the weight of that name, besides its shape."""
        kinds = ("initializer", "regularizer", "constraint")
        return {kind: getattr(self, f"{name}_{kind}") for kind in kinds}

    def project(self, inputs, kernel):
        """Apply a kernel to the input, without bias."""
        raise NotImplementedError

    def project_all(self, inputs, kernels):
        """Apply the kernels of H, T and C, each to the same input."""
        return [self.project(inputs, kernel) for kernel in kernels]

    @property
    def transforms(self):
        """The prefixes of the transforms that this layer has: H and T, and C if it is learned."""
        return PREFIXES if self.carry == "learned" else PREFIXES[:2]

    def build(self, input_shape):
        self.check_input(input_shape)
        for prefix in self.transforms:
            shape = self.kernel_shape(prefix, input_shape)
            self._add(prefix, "kernel", shape)
            self._add(prefix, "bias", self.bias_shape(shape))
        axes = {self.channel_axis: input_shape[self.channel_axis]}
        self.input_spec = keras.InputSpec(ndim=self.input_rank, min_ndim=2, axes=axes)
        self.built = True

    def call(self, inputs, return_gate=False):
        check_floating(inputs)
        h, *gates = (
            self._activate(prefix, z)
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

    def check_input(self, input_shape):
        """Raise unless input and output have one, known width."""
        if len(input_shape) < 2:
            raise ValueError(
                f"`{type(self).__name__}` expects inputs of shape (batch_size, ..., units). "
                f"Received: input_shape={tuple(input_shape)}."
            )
        width = input_shape[self.channel_axis]
        if width is None:
            raise ValueError(
                "The channel axis of the input must have a known size. "
                f"Received: input_shape={tuple(input_shape)}."
            )
        name = self.width_argument
        wanted = getattr(self, name)
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

    def _activate(self, prefix, z):
        activation = getattr(self, f"{prefix}activation")
        if not prefix or keras.backend.standardize_dtype(z.dtype) not in ("bfloat16", "float16"):
            return activation(z)
        # A gate is more exact in float32, and on a CPU a sigmoid in bfloat16 takes three times as
        # long: float32 gains 7 % in a training step of Highway B.
        return ops.cast(activation(ops.cast(z, "float32")), z.dtype)

    def _add_bias(self, z, bias):
        if bias is None:
            return z
        if self.channel_axis == 1:
            bias = ops.reshape(bias, (1, -1) + (1,) * (len(z.shape) - 2))
        return ops.add(z, bias)

    def get_config(self):
        return {
            **super().get_config(),
            "use_bias": self.use_bias,
            "carry": self.carry,
            **option_config(self),
        }
