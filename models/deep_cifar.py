"""Networks of 110 layers with batch normalization: gated, and residual as in He et al."""

import functools

from highway_keras.models import parts
from highway_keras.models.cards import cifar_card

WIDTHS = (16, 32, 64)
HIGHWAY_WIDTHS = (14, 28, 56)  # 0.875 of them: a gated block has twice the convolutions
COMPARISON = (
    "from the first author's [comparison of January 2025]"
    "(https://github.com/flukeskywalker/highway-resnet-comparison)"
)


def deep_highway(
    *,
    blocks=18,
    input_shape=(32, 32, 3),
    classes=10,
    activation="relu",
    transform_bias=-6.0,
    kernel_initializer=parts.AUTHORS_KERNEL,
    name="highway110",
):
    """Build Highway110, whose H and T are two normalized convolutions each.

    ```
    H(x) = relu(BN(conv(relu(BN(conv(x))))))
    T(x) = sigmoid(BN(conv(relu(BN(conv(x))))))
    y = H(x) T(x) + x (1 - T(x))
    ```

    The first block of each stage changes the size. There x is carried by a normalized 1x1
    convolution, and the block is made of plain layers, so analyses leave it out: of 54 blocks, they
    see 51. A gate starts at the beta of its last normalization. As in PyTorch, normalization keeps
    0.9 of its moving averages in a step; its variances are of the batch as it is, while PyTorch's
    moving ones correct for one degree of freedom.

    Args:
        blocks: Blocks of each of the three stages: `6 * blocks + 2` layers.
        activation: Activation of all layers but gates and classifier.
        transform_bias: Initial beta of the gates.
        input_shape, classes, kernel_initializer, name: As for `cifar_highway`.

    Returns:
        An uncompiled `keras.Model`.

    Examples:
        >>> from highway_keras.models import deep_highway
        >>> deep_highway(blocks=2, classes=3).output_shape
        (None, 3)

    Reference:
        The [comparison](https://github.com/flukeskywalker/highway-resnet-comparison) of the
        paper's first author.
    """
    import keras

    from highway_keras.layers import HighwayWrapper

    kernel = parts.unshared(kernel_initializer)
    images = parts.images(input_shape)
    x = _stem(images, activation, kernel)
    for stage, maps in enumerate(HIGHWAY_WIDTHS, start=1):
        strides = 1 if stage == 1 else 2
        prefix = f"stage{stage}_change"
        h = functools.partial(_convolutions, maps, activation, activation, kernel)
        t = functools.partial(_convolutions, maps, activation, "sigmoid", kernel, transform_bias)
        state = h(strides=strides, name=f"{prefix}_block")(x)
        gate = t(strides=strides, name=f"{prefix}_transform")(x)
        x = keras.Sequential(
            [_convolution(maps, 1, strides, kernel), _normalization()], name=f"{prefix}_carry"
        )(x)
        difference = keras.layers.Subtract(name=f"{prefix}_difference")([state, x])
        product = keras.layers.Multiply(name=f"{prefix}_product")([gate, difference])
        x = keras.layers.Add(name=prefix)([x, product])
        for index in range(1, blocks):
            x = HighwayWrapper(
                h(name="block"), transform=t(name="transform"), name=f"stage{stage}_highway{index}"
            )(x)
    x = keras.layers.GlobalAveragePooling2D(name="head_pool")(x)
    x = parts.predictions(x, classes, kernel)
    return keras.Model(images, x, name=name)


def deep_resnet(
    *,
    blocks=18,
    input_shape=(32, 32, 3),
    classes=10,
    activation="relu",
    kernel_initializer=parts.AUTHORS_KERNEL,
    name="resnet110",
):
    """Build ResNet110 of He et al.; arguments as for `deep_highway`.

    Where the size changes, every second pixel is carried, and the new maps are zero. In the
    original, half of the new maps come before the old maps; here all new maps come after them. So
    the two networks differ only in the order of their maps.

    Reference:
        [He et al., 2015](https://arxiv.org/abs/1512.03385), section 4.2.
    """
    import keras

    from highway_keras.layers import MatchSize

    kernel = parts.unshared(kernel_initializer)
    images = parts.images(input_shape)
    x = _stem(images, activation, kernel)
    for stage, maps in enumerate(WIDTHS, start=1):
        for index in range(blocks):
            block = f"stage{stage}_block{index}"
            strides = 2 if stage > 1 and index == 0 else 1
            h = _convolutions(
                maps, activation, None, kernel, strides=strides, name=f"{block}_residual"
            )
            residual = h(x)
            if strides > 1:
                x = MatchSize(maps, strides, name=f"{block}_carry")(x)
            x = keras.layers.Add(name=f"{block}_sum")([x, residual])
            x = keras.layers.Activation(activation, name=block)(x)
    x = keras.layers.GlobalAveragePooling2D(name="head_pool")(x)
    x = parts.predictions(x, classes, kernel)
    return keras.Model(images, x, name=name)


def _stem(images, activation, kernel):
    import keras

    x = _convolution(WIDTHS[0], 3, 1, kernel, name="stem")(images)
    x = _normalization(name="stem_normalization")(x)
    return keras.layers.Activation(activation, name="stem_activation")(x)


def _convolutions(maps, activation, last_activation, kernel, beta=0.0, *, strides=1, name):
    """Return two 3x3 convolutions, both normalized, as one layer."""
    import keras

    # Keras's "same" would center the first window of an even size at the second pixel.
    layers = [keras.layers.ZeroPadding2D(1)] if strides > 1 else []
    layers += [
        _convolution(maps, 3, strides, kernel, "same" if strides == 1 else "valid"),
        _normalization(),
        keras.layers.Activation(activation),
        _convolution(maps, 3, 1, kernel),
        _normalization(beta),
    ]
    if last_activation == "sigmoid":  # in bfloat16 it takes three times as long on a CPU
        layers.append(keras.layers.Activation("sigmoid", dtype="float32"))
    elif last_activation is not None:
        layers.append(keras.layers.Activation(last_activation))
    return keras.Sequential(layers, name=name)


def _convolution(maps, size, strides, kernel, padding="same", name=None):
    import keras

    options = {"padding": padding, "use_bias": False, "kernel_initializer": kernel}
    return keras.layers.Conv2D(maps, size, strides, **options, name=name)


def _normalization(beta=0.0, name=None):
    """Return a batch normalization with PyTorch's momentum and epsilon."""
    import keras

    from highway_keras import initializers

    return keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-5, beta_initializer=initializers.get(beta), name=name
    )


CARDS = [
    cifar_card(
        "highway110",
        deep_highway,
        {},
        recipe="skip-2025",
        layers=110,
        parameters=2_649_918,
        multiplications=387_945_008,
        origin=COMPARISON,
    ),
    cifar_card(
        "resnet110",
        deep_resnet,
        {},
        recipe="skip-2025-resnet",
        layers=110,
        parameters=1_727_962,
        multiplications=252_887_680,
        origin="by [He et al., 2015](https://arxiv.org/abs/1512.03385), " + COMPARISON,
    ),
]
