"""Section 3.3: the highway networks of Table 2, and that of Table 3."""

from highway_keras.models import parts, registry


def highway_a(
    *,
    input_shape=(32, 32, 3),
    classes=10,
    activation="relu",
    transform_bias=-1.0,
    kernel_initializer=parts.AUTHORS_KERNEL,
    dropout_rate=0.2,
    name="highway-a",
):
    """Build Highway A of Table 2, 11 layers; arguments as for `highway_b`.

    A reconstruction: the paper gives only the depth, the parameter count (~236 K), and Fitnet A as
    its model.
    """
    import keras

    kernel = parts.unshared(kernel_initializer)
    images = parts.images(input_shape)
    stages = ((3, 16), (3, 32), (3, 64))  # layers and maps; the first layer is plain
    x = _highway_stages(images, stages, activation, transform_bias, kernel, dropout_rate)
    x = _connected_head(x, 250, activation, kernel, dropout_rate)
    x = parts.predictions(x, classes, kernel)
    return keras.Model(images, x, name=name)


registry.add(
    registry.Card(
        "highway-a",
        highway_a,
        {},
        dataset="cifar10",
        input_shape=(32, 32, 3),
        classes=10,
        recipe="cifar",
        layers=11,
        parameters=236_328,
        multiplications=31_131_716,
        paper="89.18",
        table="Table 2",
        origin="a reconstruction: the paper does not give the widths of its layers",
    )
)


def highway_b(
    *,
    input_shape=(32, 32, 3),
    classes=10,
    activation="relu",
    transform_bias=-2.0,
    kernel_initializer=parts.AUTHORS_KERNEL,
    dropout_rate=0.2,
    name="highway-b",
):
    """Build Highway B of Table 2, 19 layers.

    A reconstruction: the paper gives only the depth, the parameter count (~2.3 M), and Fitnet B as
    its model. The layers are those of `highway_gap`, which section 3.3.2 derives from it, below a
    layer of 500 as in Fitnet B.

    Args:
        input_shape: Shape of one image, (height, width, channels).
        classes: Number of classes.
        activation: Activation of all layers but the classifier.
        transform_bias: Initial bias of the transform gates.
        kernel_initializer: Initializer of all kernels that the authors do not start in a special
            way, gates included. Default: the authors', normal with variance 2 / fan-in. Without a
            seed, every kernel gets a new draw.
        dropout_rate: Dropout on the input, after each pooling and before the classifier. Default:
            the authors' for the network of Table 3, used for the others too.
        name: Name of the model.

    Returns:
        An uncompiled `keras.Model`.

    Examples:
        >>> from highway_keras.models import highway_b
        >>> highway_b(classes=3).output_shape
        (None, 3)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.3.
    """
    import keras

    kernel = parts.unshared(kernel_initializer)
    images = parts.images(input_shape)
    stages = ((5, 32), (6, 80), (6, 128))  # layers and maps; the first layer is plain
    x = _highway_stages(images, stages, activation, transform_bias, kernel, dropout_rate)
    x = _connected_head(x, 500, activation, kernel, dropout_rate)
    x = parts.predictions(x, classes, kernel)
    return keras.Model(images, x, name=name)


registry.add(
    registry.Card(
        "highway-b",
        highway_b,
        {},
        dataset="cifar10",
        input_shape=(32, 32, 3),
        classes=10,
        recipe="cifar",
        layers=19,
        parameters=2_312_438,
        multiplications=330_075_528,
        paper="92.46 (92.28 ± 0.16)",
        table="Table 2",
        origin="a reconstruction: the layers of Table 3's network below the head of Fitnet B",
    )
)


def highway_c(
    *,
    input_shape=(32, 32, 3),
    classes=10,
    activation="relu",
    transform_bias=-3.0,
    kernel_initializer=parts.AUTHORS_KERNEL,
    dropout_rate=0.2,
    name="highway-c",
):
    """Build Highway C of Table 2, 32 alternating 1x1 and 3x3 layers; arguments as for `highway_b`.

    A reconstruction: the paper gives only the depth, kernels and parameter count (~1.25 M).
    """
    import keras

    kernel = parts.unshared(kernel_initializer)
    images = parts.images(input_shape)
    stages = ((10, 32), (10, 64), (10, 96))  # layers and maps; the first layer is plain
    arguments = (activation, transform_bias, kernel, dropout_rate)
    x = _highway_stages(images, stages, *arguments, kernel_sizes=(1, 3))
    x = _connected_head(x, 100, activation, kernel, dropout_rate)
    x = parts.predictions(x, classes, kernel)
    return keras.Model(images, x, name=name)


registry.add(
    registry.Card(
        "highway-c",
        highway_c,
        {},
        dataset="cifar10",
        input_shape=(32, 32, 3),
        classes=10,
        recipe="cifar",
        layers=32,
        parameters=1_264_502,
        multiplications=229_484_904,
        paper="91.20",
        table="Table 2",
        origin="a reconstruction: the paper does not give the widths of its layers",
    )
)


def highway_gap(
    classes=10,
    *,
    input_shape=(32, 32, 3),
    activation="relu",
    transform_bias=-2.0,
    kernel_initializer=parts.AUTHORS_KERNEL,
    dropout_rate=0.2,
    name=None,
):
    """Build the 19-layer network of Table 3, with average pooling; arguments as for `highway_b`.

    The first kernel starts with standard deviation 1: "gaussian" without a `std`, which Caffe takes
    as 1. The classifier's starts with 0.05 as in the authors' network for CIFAR-10; with 100
    classes, by `kernel_initializer`. An image may have any size: `input_shape=(None, None, 3)`.
    """
    import keras

    kernel = parts.unshared(kernel_initializer)
    images = parts.images(input_shape)
    stages = ((5, 32), (6, 80), (6, 128))  # layers and maps; the first layer is plain
    arguments = (activation, transform_bias, kernel, dropout_rate)
    x = _highway_stages(images, stages, *arguments, first_kernel=parts.normal(1.0))
    x = keras.layers.Conv2D(
        100, 1, padding="same", activation=activation, kernel_initializer=kernel, name="head"
    )(x)
    x = keras.layers.GlobalAveragePooling2D(name="head_pool")(x)
    x = parts.dropout(x, dropout_rate, "head_dropout")
    x = parts.predictions(x, classes, kernel if classes == 100 else parts.normal(0.05))
    return keras.Model(images, x, name=name or f"highway-gap-{classes}")


def _gap_card(classes, **claims):
    return registry.Card(
        f"highway-gap-{classes}",
        highway_gap,
        {"classes": classes},
        dataset=f"cifar{classes}",
        input_shape=(32, 32, 3),
        classes=classes,
        recipe="cifar",
        layers=19,
        table="Table 3",
        **claims,
    )


registry.add(
    _gap_card(10, parameters=2_256_838, multiplications=330_826_728, paper="92.40 (92.31 ± 0.12)")
)
registry.add(
    _gap_card(100, parameters=2_265_928, multiplications=330_835_728, paper="67.76 (67.61 ± 0.15)")
)


def _highway_stages(
    images,
    stages,
    activation,
    transform_bias,
    kernel_initializer,
    dropout_rate,
    kernel_sizes=(3,),
    first_kernel=None,
):
    """Return the last maps of three stages with max-pooling between them.

    `stages` are pairs (layers, maps). The first layer of a stage is a plain convolution that
    changes the width, the others are highway layers whose sizes cycle through `kernel_sizes`.
    """
    import keras

    from highway_keras.layers import ConvHighway2D

    x = parts.dropout(images, dropout_rate, "input_dropout")
    plain_kernel = first_kernel or kernel_initializer
    for number, (layers, maps) in enumerate(stages, start=1):
        stage = f"stage{number}"
        x = keras.layers.Conv2D(
            maps,
            3,
            padding="same",
            activation=activation,
            kernel_initializer=plain_kernel,
            name=f"{stage}_plain",
        )(x)
        plain_kernel = kernel_initializer
        for index in range(1, layers):
            x = ConvHighway2D(
                maps,
                kernel_sizes[(index - 1) % len(kernel_sizes)],
                activation=activation,
                kernel_initializer=kernel_initializer,
                transform_bias_initializer=transform_bias,
                name=f"{stage}_highway{index}",
            )(x)
        if number < len(stages):
            x = keras.layers.MaxPooling2D(2, name=f"{stage}_pool")(x)
            x = parts.dropout(x, dropout_rate, f"{stage}_dropout")
    return x


def _connected_head(x, units, activation, kernel_initializer, dropout_rate):
    """Return the features of a fully connected layer after 8x8 max-pooling."""
    import keras

    x = keras.layers.MaxPooling2D(8, name="head_pool")(x)
    x = keras.layers.Flatten(name="flatten")(x)
    x = keras.layers.Dense(
        units, activation=activation, kernel_initializer=kernel_initializer, name="head"
    )(x)
    return parts.dropout(x, dropout_rate, "head_dropout")
