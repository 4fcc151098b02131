"""The options of the highway layers that make H themselves."""

from __future__ import annotations

from typing import ClassVar

import keras

from highway_keras import initializers
from highway_keras.layers.gated import GatedLayer

# The options of the weights of H, T and C alike
OF_WEIGHTS = {
    "kernel_regularizer": keras.regularizers,
    "bias_regularizer": keras.regularizers,
    "kernel_constraint": keras.constraints,
    "bias_constraint": keras.constraints,
}


class HighwayBase(GatedLayer):
    """Base of `Highway`, `ConvHighway2D` and `HighwayStack`; see `Highway` for the arguments."""

    options: ClassVar[dict] = {
        **GatedLayer.options,
        **OF_WEIGHTS,
        "activation": keras.activations,
        "kernel_initializer": initializers,
        "bias_initializer": initializers,
    }
    kernel = property(lambda self: self.block.kernel)
    bias = property(lambda self: self.block.bias)

    def __init__(self, use_bias, kernel_initializer, transform_kernel_initializer, **kwargs):
        kernel_initializer = initializers.get(kernel_initializer)
        if transform_kernel_initializer is None:
            # The offset is beyond the seeds that a stack derives for its layers by counting up.
            transform_kernel_initializer = initializers.redrawn(kernel_initializer, offset=2**20)
        super().__init__(
            kernel_initializer=kernel_initializer,
            transform_kernel_initializer=transform_kernel_initializer,
            **kwargs,
        )
        self.use_bias = use_bias

    def build(self, input_shape):
        self.block = self.built_part(
            "block",
            input_shape,
            kernel_initializer=self.kernel_initializer,
            bias_initializer=self.bias_initializer,
            use_bias=self.use_bias,
        )
        super().build(input_shape)

    def built_part(self, name, input_shape, **options):
        of_weights = {option: getattr(self, option) for option in OF_WEIGHTS}
        return super().built_part(name, input_shape, **of_weights, **options)

    def block_state(self, inputs):
        return self.activation(self.block(inputs))

    def input_width(self, argument, input_shape, axis=-1):
        """Return the size of the input's channel axis, which `units` or `filters` must equal."""
        width, asked = input_shape[axis], getattr(self, argument)
        if width is None or asked not in (None, width):
            raise ValueError(
                f"`{argument}` must equal the size of the input's channel axis, which must be "
                "known; change the size before, by a plain layer or `highway_keras.MatchSize`. "
                f"Received: {argument}={asked}, input_shape={tuple(input_shape)}."
            )
        return width

    def get_config(self):
        return {**super().get_config(), "use_bias": self.use_bias}
