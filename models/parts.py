"""Parts that factories share: initializers, dropout, the classifier, and the check of the input."""

import keras

from highway_keras import checks

FAN_IN = {  # Caffe's "xavier" filler: uniform, variance 1 / fan_in
    "class_name": "VarianceScaling",
    "config": {"scale": 1.0, "mode": "fan_in", "distribution": "uniform"},
}
_POOLS = {"avg": "GlobalAveragePooling2D", "max": "GlobalMaxPooling2D"}


def normal(stddev):
    return {"class_name": "RandomNormal", "config": {"mean": 0.0, "stddev": stddev}}


def dropout(x, rate, name):
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
