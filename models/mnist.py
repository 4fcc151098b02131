"""Section 3.2: the convolutional highway networks of Table 1."""

from highway_keras.models.card import Card
from highway_keras.util import checks

NAME = "mnist-highway-{width}"
# Highway layers of a stage, size of the max-pooling after them, dropout after that.
STAGES = ((2, 3, 0.3), (3, 3, 0.4), (3, 2, 0.5))


def mnist_highway(
    width=16,
    *,
    activation="relu",
    transform_bias=-1.0,
    kernel_initializer=None,
    input_shape=(28, 28, 1),
    classes=10,
    classifier_activation="softmax",
    include_top=True,
    pooling=None,
    weights=None,
    name=None,
    input_tensor=None,
):
    """Build the 10-layer highway network of Table 1: nine convolutional layers and a softmax.

    A plain 5x5 convolution without padding, then 2 + 3 + 3 highway layers of 3x3. Each group ends
    with overlapping max-pooling of stride 2 and dropout.

    Args:
        width: Feature maps of every layer; 16 or 32 in the paper.
        activation: Activation of all layers but the classifier.
        transform_bias: Initial bias of the transform gates.
        input_shape: (height, width, channels), sides of at least 12; without the top, also `None`.
        kernel_initializer, pooling: As for every convolutional factory; see
            `highway_keras.models.types.ConvolutionalArguments`.
        classes, classifier_activation, include_top, weights, name, input_tensor: As for every
            factory; see `highway_keras.models.types.NetworkArguments`.

    Returns:
        An uncompiled `keras.Model`.

    Raises:
        ValueError: If an argument is out of its range.

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
    from highway_keras.models import parts

    checks.positive_integer("width", width)
    checks.flag("include_top", include_top)
    inputs = parts.first_images(input_shape, input_tensor, least=12, any_size=not include_top)
    kernel = parts.unshared(parts.or_default(kernel_initializer, parts.AUTHORS_KERNEL))
    x = parts.dropout(inputs, 0.2, "input_dropout")
    of_block = {"activation": activation, "kernel_initializer": kernel}
    x = keras.layers.Conv2D(width, 5, **of_block, name="plain")(x)
    for number, (layers, pool, rate) in enumerate(STAGES, start=1):
        for index in range(1, layers + 1):
            x = ConvHighway2D(
                width,
                3,
                **of_block,
                transform_bias_initializer=transform_bias,
                name=f"stage{number}_highway{index}",
            )(x)
        # "same" rounds odd sizes up, as Caffe's pooling does.
        x = keras.layers.MaxPooling2D(pool, 2, padding="same", name=f"stage{number}_pool")(x)
        x = parts.dropout(x, rate, f"stage{number}_dropout")
    if include_top:
        x = keras.layers.Flatten(name="flatten")(x)
        start = keras.initializers.RandomNormal(stddev=0.1)
        x = parts.predictions(x, classes, classifier_activation, start)
    else:
        x = parts.pool_features(x, pooling)
    return parts.network(inputs, x, name or NAME.format(width=width), weights)


def _card(width, **claims):
    return Card(
        NAME.format(width=width),
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
