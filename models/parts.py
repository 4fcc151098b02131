"""Parts that factories share: initializers, the first tensor, the end of a network."""

import keras

from highway_keras.models import shipped
from highway_keras.models.weight_files import load_weights
from highway_keras.optimizers import CLASSIFIER
from highway_keras.util import checks

# "xavier" in the Caffe that the authors released: N(0, 2 / fan-in), with its tails, which Keras's
# "he_normal" cuts off. Caffe's own "xavier" is Keras's "lecun_uniform".
AUTHORS_KERNEL = {
    "class_name": "VarianceScaling",
    "config": {"scale": 2.0, "mode": "fan_in", "distribution": "untruncated_normal"},
}
_POOLS = {"avg": "GlobalAveragePooling2D", "max": "GlobalMaxPooling2D"}


def or_default(value, default):
    """Return `value`, or for `None` what the factory takes by default."""
    return default if value is None else value


def unshared(kernel_initializer):
    """Return an initializer's configuration, or a function: one object would draw all alike.

    An object that Keras cannot load by name, and that has no seed of its own, stays as it is, and
    so does one with a generator of seeds, which draws anew each time.
    """
    start = keras.initializers.get(kernel_initializer)
    if not isinstance(start, keras.initializers.Initializer):
        return start
    seed, registered = getattr(start, "seed", None), keras.saving.get_registered_name(type(start))
    if isinstance(seed, keras.random.SeedGenerator):
        return start
    is_known = type(start).__module__.startswith("keras.") or ">" in registered
    return keras.initializers.serialize(start) if is_known or seed is not None else start


def dropout(x, rate, name):
    """Return `x` after dropout, or `x` itself for a rate of 0."""
    return keras.layers.Dropout(rate, name=name)(x) if rate else x


def first_tensor(input_shape, input_tensor):
    """Return what a network starts from: `input_tensor`, or a new input of `input_shape`."""
    if input_tensor is None:
        return keras.Input(input_shape, name="images")
    if not keras.backend.is_float_dtype(keras.backend.standardize_dtype(input_tensor.dtype)):
        raise TypeError(
            "`input_tensor` must be a floating-point tensor of a Keras model, such as "
            f"keras.Input((32, 32, 3)). Received: input_tensor={checks.short_repr(input_tensor)}."
        )
    return input_tensor


def first_images(input_shape, input_tensor, least, any_size):
    """Return what a convolutional network starts from; see `check_image_shape`."""
    if keras.config.image_data_format() != "channels_last":
        raise ValueError(
            "The networks of the zoo take images with channels last. "
            "Call keras.config.set_image_data_format('channels_last'), or set image_data_format "
            "so in ~/.keras/keras.json."
        )
    shape = input_shape if input_tensor is None else tuple(input_tensor.shape[1:])
    return first_tensor(check_image_shape(shape, least, any_size), input_tensor)


def check_image_shape(input_shape, least, any_size=False):
    """Return the shape as a tuple of three positive integers, each side at least `least`.

    With `any_size`, a side may be `None`, because no layer of the network needs a fixed size.
    """
    shape = tuple(input_shape) if isinstance(input_shape, tuple | list) else ()
    numbers = [n for i, n in enumerate(shape) if n is not None or i == 2 or not any_size]
    valid = len(shape) == 3 and all(map(checks.is_positive_integer, numbers))
    if not valid or min([*numbers[:-1], least]) < least:
        open_sides = ", or None for any size" if any_size else ""
        remedy = " None needs include_top=False." if None in shape[:2] and not any_size else ""
        raise ValueError(
            f"`input_shape` must be (height, width, channels) with sides of at least {least}"
            f"{open_sides}. Received: input_shape={input_shape}.{remedy}"
        )
    return shape


def predictions(x, classes, activation, kernel_initializer):
    """Return the classifier's output; the optimizers know the layer by its name, `predictions`."""
    is_softmax = keras.activations.get(activation) is keras.activations.softmax
    is_double = keras.config.dtype_policy().compute_dtype == "float64"
    return keras.layers.Dense(
        checks.positive_integer("classes", classes),
        activation=activation,
        kernel_initializer=kernel_initializer,
        name=CLASSIFIER,
        dtype="float32" if is_softmax and not is_double else None,
    )(x)


def pool_features(x, pooling):
    """Return the output of a network without its top, pooled as in `keras.applications`."""
    checks.one_of("pooling", pooling, (None, *_POOLS))
    if pooling is None:
        return x
    return getattr(keras.layers, _POOLS[pooling])(name=f"{pooling}_pool")(x)


def network(inputs, outputs, name, weights):
    """Return the model that computes `outputs`; load `weights` into its part after `inputs`."""
    if isinstance(weights, str) and weights in shipped.entries(name):
        raise ValueError(
            f"`weights` of a factory must be a file: models.create({name!r}, weights={weights!r}) "
            f"knows those of the zoo. {checks.received('weights', weights)}"
        )
    if weights is not None:
        load_weights(keras.Model(inputs, outputs, name=name), weights)
    sources = keras.utils.get_source_inputs(inputs)
    return keras.Model(sources[0] if len(sources) == 1 else sources, outputs, name=name)
