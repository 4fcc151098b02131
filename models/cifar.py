"""Section 3.3: the networks of Tables 2 and 3, and the Fitnets they are compared with."""

import keras

from highway_keras import checks
from highway_keras.layers import ConvHighway2D, Maxout
from highway_keras.models.cards import name_of
from highway_keras.models.memory import check_memory
from highway_keras.models.parts import (
    AUTHORS_KERNEL,
    check_image_shape,
    dropout,
    fresh,
    normal,
    pool_features,
    predictions,
)
from highway_keras.models.weight_files import load_weights

# The widths of the layers, stage by stage; 2x2 max-pooling stands between the stages.
HIGHWAY_A = ((16,) * 3, (32,) * 3, (64,) * 3)
HIGHWAY_B = ((32,) * 5, (80,) * 6, (128,) * 6)
HIGHWAY_C = ((32,) * 10, (64,) * 10, (96,) * 10)
FITNET_A = ((16, 16, 16), (32, 32, 32), (48, 48, 64))
FITNET_B = ((32, 32, 32, 48, 48), (80,) * 6, (128,) * 6)
MAXOUT_KERNEL = "lecun_uniform"


def highway_a(transform_bias=-1.0, **options):
    """Highway A of Table 2, 11 layers; options as in `cifar_network`.

    A reconstruction: the paper gives depth and parameter count (~236 K) only.
    """
    stages = highway_stages(HIGHWAY_A, transform_bias)
    return cifar_network(stages, dense_head(250), **{"name": name_of("highway_a"), **options})


def highway_b(transform_bias=-2.0, **options):
    """Highway B of Table 2, 19 layers; options as in `cifar_network`."""
    stages = highway_stages(HIGHWAY_B, transform_bias)
    return cifar_network(stages, dense_head(500), **{"name": name_of("highway_b"), **options})


def highway_c(transform_bias=-3.0, **options):
    """Highway C of Table 2, 32 layers of alternating 1x1 and 3x3; options as in `cifar_network`.

    A reconstruction: the paper gives depth, kernels and parameter count (~1.25 M) only.
    """
    stages = highway_stages(HIGHWAY_C, transform_bias, kernel_sizes=(1, 3))
    return cifar_network(stages, dense_head(100), **{"name": name_of("highway_c"), **options})


def highway_gap(classes=10, transform_bias=-2.0, **options):
    """The 19-layer network of Table 3, ended by global average pooling; options as in
    `cifar_network`.
    """
    # Their first kernel is "gaussian" without a `std`, which Caffe takes as 1; and only their
    # CIFAR-10 classifier is normal.
    stages = highway_stages(HIGHWAY_B, transform_bias, first_kernel=normal(1.0))
    top = None if classes == 100 else normal(0.05)
    name = name_of("highway_gap", classes=classes)
    options = {"name": name, "classifier_kernel": top, **options}
    return cifar_network(stages, average_head, classes=classes, **options)


def fitnet_a(kernel_initializer=None, **options):
    """Fitnet A of Table 2, 11 maxout layers, without hints; options as in `cifar_network`.

    Not the authors' network, so not their start: kernels are uniform with variance 1 / fan-in by
    default. The larger of two such units has the second moment of one, so that a signal keeps its
    size; with 2 / fan-in it doubles in every layer.
    """
    return _fitnet(FITNET_A, kernel_initializer, **{"name": name_of("fitnet_a"), **options})


def fitnet_b(kernel_initializer=None, **options):
    """Fitnet B of Table 2, 19 maxout layers, without hints; start and options as in `fitnet_a`."""
    return _fitnet(FITNET_B, kernel_initializer, **{"name": name_of("fitnet_b"), **options})


def _fitnet(widths, kernel_initializer, **options):
    kernel = kernel_initializer or MAXOUT_KERNEL
    return cifar_network(maxout_stages(widths), maxout_head, kernel_initializer=kernel, **options)


def cifar_network(
    stages,
    head,
    dropout_rate=0.2,
    input_shape=(32, 32, 3),
    classes=10,
    classifier_activation="softmax",
    kernel_initializer=None,
    classifier_kernel=None,
    include_top=True,
    pooling=None,
    weights=None,
    name=None,
):
    """The frame of all CIFAR networks: stages with max-pooling between them, a head, a softmax.

    Args:
        stages: Functions from a tensor, a name and the start of kernels to a tensor.
        head: Function from the last stage's maps and the start of kernels to the features that are
            classified.
        dropout_rate: Dropout on the input, behind each pooling and before the classifier: the
            authors' 0.2 for the network of Table 3, taken over for the others.
        input_shape: (height, width, channels), sides of at least 32.
        classes: Number of classes.
        classifier_activation: Activation of the top; `None` returns logits.
        kernel_initializer: Start of all kernels that the network does not start in a way of its
            own, gates included. Default: the authors', normal with variance 2 / fan-in. Without a
            seed every kernel has its own draw.
        classifier_kernel: Start of the top's kernel; default: as the others.
        include_top: Whether the network ends in head and classifier.
        pooling: Without the top: `"avg"`, `"max"` or `None`, as in `keras.applications`.
        weights: `None`, or the path of a weights file.
        name: Name of the model.

    Returns:
        An uncompiled `keras.Model`.

    Raises:
        ValueError: If an argument is out of its range.

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.3.
    """
    dropout_rate = checks.number("dropout_rate", dropout_rate, least=0, below=1)
    inputs = keras.Input(check_image_shape(input_shape, least=32), name="images")
    kernel = fresh(kernel_initializer or AUTHORS_KERNEL)
    x = dropout(inputs, dropout_rate, "input_dropout")
    for index, stage in enumerate(stages, start=1):
        if index > 1:
            x = keras.layers.MaxPooling2D(2, name=f"stage{index - 1}_pool")(x)
            x = dropout(x, dropout_rate, f"stage{index - 1}_dropout")
        x = stage(x, f"stage{index}", kernel)
    if include_top:
        x = dropout(head(x, kernel), dropout_rate, "head_dropout")
        x = predictions(x, classes, classifier_activation, classifier_kernel or kernel)
    else:
        x = pool_features(x, pooling)
    return load_weights(keras.Model(inputs, x, name=name), weights)


def convolution(filters, size, name, kernel_initializer, activation="relu"):
    return keras.layers.Conv2D(
        filters,
        size,
        padding="same",
        activation=activation,
        kernel_initializer=kernel_initializer,
        name=name,
    )


def highway_stages(widths, transform_bias, kernel_sizes=(3,), first_kernel=None):
    """The first layer of a stage is plain and changes the width, the others are highway layers.

    Args:
        widths: Width of every layer, a sequence a stage.
        transform_bias: Start of the transform gates' biases.
        kernel_sizes: Sizes that the highway layers of a stage take in turn.
        first_kernel: Start of the network's first kernel; default: as the others.
    """

    def stage(x, name, kernel, width, layers, first):
        x = convolution(width, 3, f"{name}_plain", first or kernel)(x)
        for index in range(1, layers):
            x = ConvHighway2D(
                width,
                kernel_sizes[(index - 1) % len(kernel_sizes)],
                kernel_initializer=kernel,
                transform_kernel_initializer=kernel,
                transform_bias_initializer=transform_bias,
                name=f"{name}_highway{index}",
            )(x)
        return x

    def bind(index, widths):
        first = None if index else first_kernel
        return lambda x, name, kernel: stage(x, name, kernel, widths[0], len(widths), first)

    return [bind(index, stage_widths) for index, stage_widths in enumerate(widths)]


def maxout_stages(widths):
    def bind(stage_widths):
        def stage(x, name, kernel):
            for index, width in enumerate(stage_widths, start=1):
                x = convolution(2 * width, 3, f"{name}_conv{index}", kernel, activation=None)(x)
                x = Maxout(2, name=f"{name}_maxout{index}")(x)
            return x

        return stage

    return [bind(stage_widths) for stage_widths in widths]


def dense_head(units):
    def head(x, kernel):
        x = _flat_pool(x)
        check_memory(x.shape[-1] * units, features=x.shape[-1])
        return keras.layers.Dense(units, activation="relu", kernel_initializer=kernel, name="head")(
            x
        )

    return head


def maxout_head(x, kernel):
    x = keras.layers.Dense(1000, kernel_initializer=kernel, name="head")(_flat_pool(x))
    return Maxout(2, name="head_maxout")(x)


def _flat_pool(x):
    x = keras.layers.MaxPooling2D(8, name="head_pool")(x)
    return keras.layers.Flatten(name="flatten")(x)


def average_head(x, kernel):
    x = convolution(100, 1, "head", kernel)(x)
    return keras.layers.GlobalAveragePooling2D(name="head_pool")(x)
