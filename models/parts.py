"""Parts that factories share: initializers, layers, the end of a network, a check of the input."""

import keras

from highway_keras import checks
from highway_keras.layers import ConvHighway2D

# "xavier" in the Caffe that the authors released: N(0, 2 / fan-in), with its tails, which Keras's
# "he_normal" cuts off. Caffe's own "xavier" is Keras's "lecun_uniform".
AUTHORS_KERNEL = {
    "class_name": "VarianceScaling",
    "config": {"scale": 2.0, "mode": "fan_in", "distribution": "untruncated_normal"},
}
_POOLS = {"avg": "GlobalAveragePooling2D", "max": "GlobalMaxPooling2D"}


def normal(stddev):
    """Return the configuration of a normal initializer."""
    return {"class_name": "RandomNormal", "config": {"mean": 0.0, "stddev": stddev}}


def fresh(kernel_initializer):
    """Return the configuration of an initializer: one object would draw every kernel alike."""
    try:
        return keras.initializers.serialize(keras.initializers.get(kernel_initializer))
    except ValueError as error:
        raise ValueError(
            "`kernel_initializer` must be an initializer of Keras, such as 'he_normal'. "
            f"Received: kernel_initializer={kernel_initializer!r}."
        ) from error


def convolutional_highway(filters, size, kernel, transform_bias, name):
    """Return a highway layer whose gate kernel is initialized like that of H."""
    return ConvHighway2D(
        filters,
        size,
        kernel_initializer=kernel,
        transform_kernel_initializer=kernel,
        transform_bias_initializer=transform_bias,
        name=name,
    )


def dropout(x, rate, name):
    """Return `x` after dropout, or `x` itself for a rate of 0."""
    return keras.layers.Dropout(rate, name=name)(x) if rate else x


def predictions(x, classes, activation, kernel_initializer):
    """Return the classifier's output; recipes know it by its name, `predictions`."""
    return keras.layers.Dense(
        checks.positive_integer("classes", classes),
        activation=activation,
        kernel_initializer=kernel_initializer,
        name="predictions",
        dtype=keras.DTypePolicy("float32") if activation == "softmax" else None,
    )(x)


def pool_features(x, pooling):
    """Return the output of a network without its top, pooled as in `keras.applications`."""
    if pooling is None:
        return x
    if pooling not in _POOLS:
        raise ValueError(f"`pooling` must be 'avg', 'max' or None. Received: pooling={pooling!r}.")
    return getattr(keras.layers, _POOLS[pooling])(name=f"{pooling}_pool")(x)


def check_image_shape(input_shape, least):
    """Return the shape as a tuple of three positive integers, each side at least `least`."""
    shape = tuple(input_shape) if isinstance(input_shape, tuple | list) else ()
    valid = len(shape) == 3 and all(map(checks.is_positive, shape))
    if not valid or min(shape[:2]) < least:
        raise ValueError(
            f"`input_shape` must be (height, width, channels) with sides of at least {least}. "
            f"Received: input_shape={input_shape}."
        )
    return shape
