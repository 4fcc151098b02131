"""The options of the highway layers that make H themselves."""

from __future__ import annotations

import keras

from highway_keras import initializers
from highway_keras.layers.gated import GatedLayer


class HighwayBase(GatedLayer):
    """Base of `Highway`, `ConvHighway2D` and `HighwayStack`; see `Highway` for the arguments."""

    kernel = property(lambda self: self.block.kernel)
    bias = property(lambda self: self.block.bias)

    def __init__(
        self,
        activation,
        use_bias,
        kernel_initializer,
        bias_initializer,
        kernel_regularizer,
        bias_regularizer,
        kernel_constraint,
        bias_constraint,
        transform_kernel_initializer,
        **kwargs,
    ):
        kernel_initializer = initializers.get(kernel_initializer)
        if transform_kernel_initializer is None:
            # The offset is beyond the seeds that a stack derives for its layers by counting up.
            transform_kernel_initializer = initializers.redrawn(kernel_initializer, offset=2**20)
        super().__init__(transform_kernel_initializer=transform_kernel_initializer, **kwargs)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)

    def build(self, input_shape):
        self.build_activations(input_shape)
        h = self.kernel_initializer, self.bias_initializer
        self.block = self.built_part("block", input_shape, *h, use_bias=self.use_bias)
        super().build(input_shape)

    def build_activations(self, input_shape):
        """Build activations that are layers, such as `keras.layers.PReLU`."""
        for function in (self.activation, self.transform_activation):
            if isinstance(function, keras.Layer):
                function.build(input_shape)

    def built_part(self, name, input_shape, *initializers, **options):
        return super().built_part(
            name,
            input_shape,
            *initializers,
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            kernel_constraint=self.kernel_constraint,
            bias_constraint=self.bias_constraint,
            **options,
        )

    def block_state(self, inputs):
        return self.activation(self.block(inputs))

    def input_width(self, argument, input_shape, axis=-1):
        """Return the size of the input's channel axis, which `units` or `filters` must equal."""
        width, asked = input_shape[axis], getattr(self, argument)
        if width is None or asked not in (None, width):
            remedy = "change the size before, by a plain layer or `highway_keras.MatchSize`"
            remedy = "give the input a size there" if width is None else remedy
            raise ValueError(
                f"`{argument}` must equal the {'last' if axis == -1 else 'channel'} axis of the "
                f"input, which is blended with the block state: {remedy}. Received: "
                f"{argument}={asked}, input_shape={tuple(input_shape)}."
            )
        return width

    def get_config(self):
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": initializers.serialize(self.kernel_initializer),
            "bias_initializer": initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "kernel_constraint": keras.constraints.serialize(self.kernel_constraint),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
        }
