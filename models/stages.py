"""Stages and heads of the CIFAR networks: functions that `cifar_network` chains together."""

import keras

from highway_keras.layers import Maxout
from highway_keras.models.memory import check_memory
from highway_keras.models.parts import convolutional_highway


def convolution(filters, size, name, kernel_initializer, activation="relu"):
    """Return a plain convolution that keeps the size."""
    return keras.layers.Conv2D(
        filters,
        size,
        padding="same",
        activation=activation,
        kernel_initializer=kernel_initializer,
        name=name,
    )


def highway_stages(widths, transform_bias, kernel_sizes=(3,), first_kernel=None):
    """Return stages with a plain first layer that changes the width; the others are highway layers.

    Args:
        widths: The widths of a stage's layers, a sequence for each stage.
        transform_bias: Initial bias of the transform gates.
        kernel_sizes: Sizes that the highway layers of a stage cycle through.
        first_kernel: Initializer of the network's first kernel; default: as the others.
    """

    def stage(x, name, kernel, width, layers, first):
        x = convolution(width, 3, f"{name}_plain", first or kernel)(x)
        for index in range(1, layers):
            size = kernel_sizes[(index - 1) % len(kernel_sizes)]
            layer = f"{name}_highway{index}"
            x = convolutional_highway(width, size, kernel, transform_bias, layer)(x)
        return x

    def bind(index, widths):
        first = None if index else first_kernel
        return lambda x, name, kernel: stage(x, name, kernel, widths[0], len(widths), first)

    return [bind(index, stage_widths) for index, stage_widths in enumerate(widths)]


def maxout_stages(widths):
    """Return stages of maxout layers; `widths` are those of a stage's layers, for each stage."""

    def bind(stage_widths):
        def stage(x, name, kernel):
            for index, width in enumerate(stage_widths, start=1):
                x = convolution(2 * width, 3, f"{name}_conv{index}", kernel, activation=None)(x)
                x = Maxout(2, name=f"{name}_maxout{index}")(x)
            return x

        return stage

    return [bind(stage_widths) for stage_widths in widths]


def dense_head(units):
    """Return a head of 8x8 max-pooling and one fully connected layer."""

    def head(x, kernel):
        layer = keras.layers.Dense(units, "relu", kernel_initializer=kernel, name="head")
        return layer(_flat_pool(x, units))

    return head


def maxout_head(x, kernel):
    """Return the features after 8x8 max-pooling and one fully connected maxout layer."""
    x = keras.layers.Dense(1000, kernel_initializer=kernel, name="head")(_flat_pool(x, 1000))
    return Maxout(2, name="head_maxout")(x)


def _flat_pool(x, units):
    """Return the input of a head of `units` units."""
    x = keras.layers.MaxPooling2D(8, name="head_pool")(x)
    x = keras.layers.Flatten(name="flatten")(x)
    check_memory(x.shape[-1] * units, features=x.shape[-1])
    return x


def average_head(x, kernel):
    """Return the features after a 1x1 convolution and global average pooling."""
    x = convolution(100, 1, "head", kernel)(x)
    return keras.layers.GlobalAveragePooling2D(name="head_pool")(x)
