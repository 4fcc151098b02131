"""Section 3.2: the convolutional highway networks of Table 1."""

import keras

from highway_keras import checks
from highway_keras.models.cards import name_of
from highway_keras.models.memory import check_memory
from highway_keras.models.parts import (
    AUTHORS_KERNEL,
    check_pooling,
    convolutional_highway,
    dropout,
    first_images,
    fresh,
    given,
    network,
    normal,
    pool_features,
    predictions,
)

# Highway layers of a stage, size of the max-pooling after them, dropout after that.
STAGES = ((2, 3, 0.3), (3, 3, 0.4), (3, 2, 0.5))
LAYERS = sum(layers for layers, *_ in STAGES)
INPUT_DROPOUT = 0.2


def mnist_highway(
    width=16,
    transform_bias=None,
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
    with overlapping max-pooling of stride 2 and dropout. ReLU throughout.

    Args:
        width: Feature maps of every layer; 16 or 32 in the paper.
        transform_bias: Initial bias of the transform gates. Default: -1.
        input_shape: (height, width, channels), sides of at least 12; without the top, also `None`.
        kernel_initializer, pooling: As for every convolutional factory; see
            `highway_keras.models.types.ConvolutionalArguments`.
        classes, classifier_activation, include_top, weights, name, input_tensor: As for every
            factory; see `highway_keras.models.types.NetworkArguments`.

    Returns:
        An uncompiled `keras.Model`.

    Raises:
        ValueError: If an argument is out of its range.

    Example:

    >>> from highway_keras.models import mnist_highway
    >>> mnist_highway(width=16).count_params()
    38986

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.2, and the authors'
        Caffe definition.
    """
    width = checks.positive_integer("width", width)
    check_memory(2 * LAYERS * 9 * width**2, width=width)
    inputs = first_images(input_shape, input_tensor, least=12, any_size=not include_top)
    kernel = fresh(given(kernel_initializer, AUTHORS_KERNEL))
    bias = given(transform_bias, -1.0)
    x = dropout(inputs, INPUT_DROPOUT, "input_dropout")
    x = keras.layers.Conv2D(width, 5, activation="relu", kernel_initializer=kernel, name="plain")(x)
    for number, (layers, pool, rate) in enumerate(STAGES, start=1):
        for index in range(1, layers + 1):
            layer = f"stage{number}_highway{index}"
            x = convolutional_highway(width, 3, kernel, bias, layer)(x)
        # "same" rounds odd sizes up, as Caffe's pooling does.
        x = keras.layers.MaxPooling2D(pool, 2, padding="same", name=f"stage{number}_pool")(x)
        x = dropout(x, rate, f"stage{number}_dropout")
    check_pooling(pooling)
    if checks.flag("include_top", include_top):
        x = keras.layers.Flatten(name="flatten")(x)
        x = predictions(x, classes, classifier_activation, normal(0.1))
    else:
        x = pool_features(x, pooling)
    return network(inputs, x, name or name_of("mnist_highway", width=width), weights)
