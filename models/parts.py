"""Parts that factories share: initializers, layers, the end of a network, a check of the input."""

import functools

import keras

from highway_keras import checks
from highway_keras.layers import ConvHighway2D
from highway_keras.models.memory import check_memory
from highway_keras.models.weight_files import load_weights
from highway_keras.optimizers import CLASSIFIER

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
    """Return what each kernel starts from: a function, or the configuration of an initializer.

    A function draws anew each time; one object would draw all kernels the same.
    """
    try:
        start = keras.initializers.get(kernel_initializer)
        if not isinstance(start, keras.initializers.Initializer):
            return start
        config = keras.initializers.serialize(start)
        if start is kernel_initializer:  # whose class may be one that cannot be read back
            keras.initializers.get(config)
        return config
    except Exception as error:  # configurations that are not Keras's raise errors of many kinds
        raise ValueError(
            "`kernel_initializer` must be an initializer of Keras, such as 'he_normal'. "
            f"{checks.received('kernel_initializer', kernel_initializer)} A class of your own "
            "needs the decorator `@keras.saving.register_keras_serializable()`."
        ) from error


def given(value, default):
    """Return `value`, or for `None` what the factory takes by default."""
    return default if value is None else value


def check_activation(name, activation):
    """Return `activation` if Keras reads it as one."""
    try:
        keras.activations.get(activation)
    except Exception as error:  # as for initializers
        raise ValueError(
            f"`{name}` must be an activation of Keras, such as 'tanh'. "
            f"Received: {name}={checks.short_repr(activation)}."
        ) from error
    return activation


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
    rate = checks.number("dropout_rate", rate, least=0, below=1)
    return keras.layers.Dropout(rate, name=name)(x) if rate else x


def predictions(x, classes, activation, kernel_initializer):
    """Return the classifier's output; recipes know it by its name, `predictions`."""
    classes = checks.positive_integer("classes", classes)
    check_memory(x.shape[-1] * classes, classes=classes)
    function = keras.activations.get(check_activation("classifier_activation", activation))
    return keras.layers.Dense(
        classes,
        activation=activation,
        kernel_initializer=kernel_initializer,
        name=CLASSIFIER,
        dtype=keras.DTypePolicy("float32") if function is keras.activations.softmax else None,
    )(x)


def check_pooling(pooling):
    """Raise unless `pooling` is one of those that `pool_features` takes."""
    if pooling not in [None, *_POOLS]:
        raise ValueError(
            f"`pooling` must be 'avg', 'max' or None. {checks.received('pooling', pooling)}"
        )


def pool_features(x, pooling):
    """Return the output of a network without its top, pooled as in `keras.applications`."""
    if pooling is None:
        return x
    return getattr(keras.layers, _POOLS[pooling])(name=f"{pooling}_pool")(x)


def check_shape(input_shape):
    """Return the shape of one input as a tuple of one or more positive integers."""
    shape = tuple(input_shape) if isinstance(input_shape, tuple | list) else ()
    if not shape or not all(map(checks.is_positive, shape)):
        raise ValueError(
            "`input_shape` must be a tuple of positive integers, such as (28, 28, 1). "
            f"Received: input_shape={checks.short_repr(input_shape)}."
        )
    return shape


def check_image_shape(input_shape, least, any_size=False):
    """Return the shape as a tuple of three positive integers, each side at least `least`.

    With `any_size`, a side may be `None`, since the network's top does not need a fixed one.
    """
    shape = tuple(input_shape) if isinstance(input_shape, tuple | list) else ()
    numbers = [n for i, n in enumerate(shape) if n is not None or i == 2 or not any_size]
    valid = len(shape) == 3 and all(map(checks.is_positive, numbers))
    if not valid or min([*numbers[:-1], least]) < least:
        open_sides = ", or None for any size" if any_size else ""
        remedy = " None needs include_top=False." if None in shape[:2] and not any_size else ""
        raise ValueError(
            f"`input_shape` must be (height, width, channels) with sides of at least {least}"
            f"{open_sides}. Received: input_shape={input_shape}.{remedy}"
        )
    return shape


def first_tensor(input_shape, input_tensor, check):
    """Return what a network starts from: `input_tensor`, or a new input of `input_shape`.

    Args:
        check: Function that returns a shape, or raises a `ValueError`.
    """
    if input_tensor is None:
        return keras.Input(check(input_shape), name="images")
    symbolic = isinstance(input_tensor, keras.KerasTensor)
    if not symbolic or not keras.backend.is_float_dtype(input_tensor.dtype):
        raise TypeError(
            "`input_tensor` must be a floating-point tensor of a Keras model, such as "
            f"keras.Input((32, 32, 3)). Received: input_tensor={checks.short_repr(input_tensor)}."
        )
    check(tuple(input_tensor.shape[1:]))
    return input_tensor


def first_images(input_shape, input_tensor, least, any_size):
    """Return what a convolutional network starts from; see `check_image_shape`."""
    if keras.config.image_data_format() != "channels_last":
        raise ValueError(
            "Networks of images need channels last: "
            "`keras.config.set_image_data_format('channels_last')`. "
            f"Received: {keras.config.image_data_format()!r}, Keras's setting."
        )
    check = functools.partial(check_image_shape, least=least, any_size=any_size)
    return first_tensor(input_shape, input_tensor, check)


def network(inputs, outputs, name, weights):
    """Return the model from what `inputs` is computed from; `weights` are for what comes after."""
    model = load_weights(keras.Model(inputs, outputs, name=name), weights)
    sources = keras.utils.get_source_inputs(inputs)
    if sources[0] is inputs:
        return model
    return keras.Model(sources[0] if len(sources) == 1 else sources, outputs, name=name)
