"""Section 3.2: the convolutional highway networks of Table 1."""

from highway_keras.models import parts
from highway_keras.models.cards import Card


def mnist_highway(
    width=16,
    *,
    input_shape=(28, 28, 1),
    classes=10,
    activation="relu",
    transform_bias=-1.0,
    kernel_initializer=parts.AUTHORS_KERNEL,
    name=None,
):
    """Build the 10-layer highway network of Table 1: nine convolutional layers and a softmax.

    A plain 5x5 convolution without padding, then 2 + 3 + 3 highway layers of 3x3. Each group ends
    with overlapping max-pooling of stride 2 and dropout.

    Args:
        width: Feature maps of every layer; 16 or 32 in the paper.
        input_shape: Shape of one image, (height, width, channels).
        classes: Number of classes.
        activation: Activation of all layers but the classifier.
        transform_bias: Initial bias of the transform gates.
        kernel_initializer: Initializer of all kernels but the classifier's, gates included.
            Default: the authors', normal with variance 2 / fan-in.
        name: Name of the model.

    Returns:
        An uncompiled `keras.Model`.

    Examples:
        >>> from highway_keras.models import mnist_highway
        >>> mnist_highway(width=16).count_params()
        38986

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.2, and the authors'
        Caffe definition.
    """
    import keras

    from highway_keras.layers import ConvHighway2D

    kernel = parts.unshared(kernel_initializer)
    images = parts.images(input_shape)
    x = keras.layers.Dropout(0.2, name="input_dropout")(images)
    x = keras.layers.Conv2D(
        width, 5, activation=activation, kernel_initializer=kernel, name="plain"
    )(x)
    for stage, layers, pool, rate in (
        ("stage1", 2, 3, 0.3),
        ("stage2", 3, 3, 0.4),
        ("stage3", 3, 2, 0.5),
    ):
        for index in range(1, layers + 1):
            x = ConvHighway2D(
                width,
                3,
                activation=activation,
                kernel_initializer=kernel,
                transform_bias_initializer=transform_bias,
                name=f"{stage}_highway{index}",
            )(x)
        # "same" rounds odd sizes up, as Caffe's pooling does.
        x = keras.layers.MaxPooling2D(pool, 2, padding="same", name=f"{stage}_pool")(x)
        x = keras.layers.Dropout(rate, name=f"{stage}_dropout")(x)
    x = keras.layers.Flatten(name="flatten")(x)
    x = parts.predictions(x, classes, parts.normal(0.1))
    return keras.Model(images, x, name=name)


def _card(width, **claims):
    return Card(
        f"mnist-highway-{width}",
        mnist_highway,
        {"width": width},
        dataset="mnist",
        input_shape=(28, 28, 1),
        classes=10,
        recipe="mnist",
        layers=10,
        table="Table 1",
        **claims,
    )


CARDS = [
    _card(16, parameters=38_986, multiplications=8_028_576, paper="99.43 (99.40 ± 0.03)"),
    _card(32, parameters=151_690, multiplications=31_650_624, paper="99.55 (99.54 ± 0.02)"),
]
