"""Section 3.3: the highway networks of Table 2, and that of Table 3."""

from highway_keras.models import parts
from highway_keras.models.cards import cifar_card

STAGES_B = ((5, 32), (6, 80), (6, 128))  # layers and maps of each stage


def cifar_highway(
    stages,
    units,
    kernel_sizes=(3,),
    *,
    input_shape=(32, 32, 3),
    classes=10,
    activation="relu",
    transform_bias=-2.0,
    kernel_initializer=parts.AUTHORS_KERNEL,
    name=None,
):
    """Build Highway A, B or C of Table 2: three stages, a fully connected layer and a softmax.

    Reconstructions: the paper gives the depths, the parameter counts (~236 K, ~2.3 M, ~1.25 M), and
    Fitnets as models of A and B. The stages of B are those of `highway_gap`, which section 3.3.2
    derives from it, below a layer of 500 as in Fitnet B. Dropout is the authors' for Table 3.

    Args:
        stages: Pairs (layers, maps). The first layer of a stage is a plain convolution of 3x3 that
            changes the width, the others are highway layers. Max-pooling ends a stage.
        units: Width of the fully connected layer.
        kernel_sizes: Sizes of the highway layers of a stage, in turn; `(1, 3)` in Highway C.
        input_shape: Shape of one image, (height, width, channels).
        classes: Number of classes.
        activation: Activation of all layers but the classifier.
        transform_bias: Initial bias of the transform gates.
        kernel_initializer: Initializer of all kernels, gates included. Default: the authors',
            normal with variance 2 / fan-in. Without a seed, every kernel gets a new draw.
        name: Name of the model.

    Returns:
        An uncompiled `keras.Model`.

    Examples:
        >>> from highway_keras.models import cifar_highway
        >>> cifar_highway(stages=((3, 16), (3, 32), (3, 64)), units=250).count_params()
        236328

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.3.
    """
    import keras

    kernel = parts.unshared(kernel_initializer)
    images = parts.images(input_shape)
    x = _stages(images, stages, kernel_sizes, kernel, kernel, activation, transform_bias)
    x = keras.layers.MaxPooling2D(8, name="head_pool")(x)
    x = keras.layers.Flatten(name="flatten")(x)
    x = keras.layers.Dense(units, activation=activation, kernel_initializer=kernel, name="head")(x)
    x = keras.layers.Dropout(parts.DROPOUT, name="head_dropout")(x)
    x = parts.predictions(x, classes, kernel)
    return keras.Model(images, x, name=name)


def highway_gap(
    classes=10,
    *,
    input_shape=(32, 32, 3),
    activation="relu",
    transform_bias=-2.0,
    kernel_initializer=parts.AUTHORS_KERNEL,
    name=None,
):
    """Build the 19-layer network of Table 3, with average pooling.

    The first kernel starts with standard deviation 1: the authors' file says "gaussian" without a
    `std`, which Caffe takes as 1. The classifier's kernel starts with standard deviation 0.05, as
    in the authors' network for CIFAR-10; with 100 classes, it starts from `kernel_initializer`.
    With `input_shape=(None, None, 3)`, an image may have any size. See `cifar_highway` for the
    arguments.
    """
    import keras

    kernel = parts.unshared(kernel_initializer)
    images = parts.images(input_shape)
    x = _stages(images, STAGES_B, (3,), parts.normal(1.0), kernel, activation, transform_bias)
    x = keras.layers.Conv2D(
        100, 1, padding="same", activation=activation, kernel_initializer=kernel, name="head"
    )(x)
    x = keras.layers.GlobalAveragePooling2D(name="head_pool")(x)
    x = keras.layers.Dropout(parts.DROPOUT, name="head_dropout")(x)
    x = parts.predictions(x, classes, kernel if classes == 100 else parts.normal(0.05))
    return keras.Model(images, x, name=name)


def _stages(images, stages, kernel_sizes, first_kernel, kernel, activation, transform_bias):
    """Return the last maps of the stages, with max-pooling and dropout between them."""
    import keras

    from highway_keras.layers import ConvHighway2D

    x = keras.layers.Dropout(parts.DROPOUT, name="input_dropout")(images)
    for number, (layers, maps) in enumerate(stages, start=1):
        stage = f"stage{number}"
        if number > 1:
            x = keras.layers.MaxPooling2D(2, name=f"stage{number - 1}_pool")(x)
            x = keras.layers.Dropout(parts.DROPOUT, name=f"stage{number - 1}_dropout")(x)
        x = keras.layers.Conv2D(
            maps,
            3,
            padding="same",
            activation=activation,
            kernel_initializer=first_kernel if number == 1 else kernel,
            name=f"{stage}_plain",
        )(x)
        for index in range(1, layers):
            x = ConvHighway2D(
                maps,
                kernel_sizes[(index - 1) % len(kernel_sizes)],
                activation=activation,
                kernel_initializer=kernel,
                transform_bias_initializer=transform_bias,
                name=f"{stage}_highway{index}",
            )(x)
    return x


CARDS = [
    cifar_card(
        "highway-a",
        cifar_highway,
        {"stages": ((3, 16), (3, 32), (3, 64)), "units": 250, "transform_bias": -1.0},
        layers=11,
        parameters=236_328,
        multiplications=31_131_716,
        paper="89.18",
        table="Table 2",
        origin="a reconstruction: the paper does not give the widths of its layers",
    ),
    cifar_card(
        "highway-b",
        cifar_highway,
        {"stages": STAGES_B, "units": 500, "transform_bias": -2.0},
        layers=19,
        parameters=2_312_438,
        multiplications=330_075_528,
        paper="92.46 (92.28 ± 0.16)",
        table="Table 2",
        origin="a reconstruction: the layers of Table 3's network below the head of Fitnet B",
    ),
    cifar_card(
        "highway-c",
        cifar_highway,
        {
            "stages": ((10, 32), (10, 64), (10, 96)),
            "units": 100,
            "kernel_sizes": (1, 3),
            "transform_bias": -3.0,
        },
        layers=32,
        parameters=1_264_502,
        multiplications=229_484_904,
        paper="91.20",
        table="Table 2",
        origin="a reconstruction: the paper does not give the widths of its layers",
    ),
    cifar_card(
        "highway-gap-10",
        highway_gap,
        {"classes": 10},
        layers=19,
        parameters=2_256_838,
        multiplications=330_826_728,
        paper="92.40 (92.31 ± 0.12)",
        table="Table 3",
    ),
    cifar_card(
        "highway-gap-100",
        highway_gap,
        {"classes": 100},
        classes=100,
        layers=19,
        parameters=2_265_928,
        multiplications=330_835_728,
        paper="67.76 (67.61 ± 0.15)",
        table="Table 3",
    ),
]
