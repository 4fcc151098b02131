"""What all factories share: the ends of a network, and checking and loading what a user passes."""

import pathlib
import zipfile

import h5py
import keras

from highway_keras.layers.options import check_positive_integer, is_positive_integer

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
    """The classifier. Recipes know it by its name, `predictions`, and decay it harder."""
    return keras.layers.Dense(
        check_positive_integer("classes", classes),
        activation=activation,
        kernel_initializer=kernel_initializer,
        name="predictions",
        dtype=keras.DTypePolicy("float32") if activation == "softmax" else None,
    )(x)


def pool_features(x, pooling):
    """The end of a convolutional network without its top, as in `keras.applications`."""
    if pooling is None:
        return x
    if pooling not in _POOLS:
        raise ValueError(f"`pooling` must be 'avg', 'max' or None. Received: pooling={pooling!r}.")
    return getattr(keras.layers, _POOLS[pooling])(name=f"{pooling}_pool")(x)


def check_image_shape(input_shape, least):
    """Returns the shape as a tuple of three positive integers, each side at least `least`."""
    shape = tuple(input_shape)
    valid = len(shape) == 3 and all(map(is_positive_integer, shape))
    if not valid or min(shape[:2]) < least:
        raise ValueError(
            f"`input_shape` must be (height, width, channels) with sides of at least {least}. "
            f"Received: input_shape={input_shape}."
        )
    return shape


def load_weights(model, weights):
    """Loads a `.weights.h5` or `.keras` file into `model`; `None` leaves it as initialized."""
    if weights is None:
        return model
    path = pathlib.Path(weights)
    if not path.is_file():
        raise ValueError(f"`weights` must be None or an existing file. Received: weights={path}.")
    misfit = f"`weights` does not fit the model {model.name!r}. Received: weights={path}."
    try:
        # Keras alone would leave out what the file has in excess, and load a deeper network's.
        foreign = _stored_layers(path) ^ {layer.name for layer in model.layers}
        if not foreign:
            model.load_weights(path)
    except Exception as error:  # damaged files raise errors of many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{misfit} {reason:.300}") from error
    if foreign:
        names = ", ".join(sorted(map(str, foreign)))
        raise ValueError(f"{misfit} Layers that only one of them has: {names:.200}.")
    return model


def _stored_layers(path):
    """Names of the layers in a `.weights.h5` or `.keras` file."""
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as archive, archive.open("model.weights.h5") as file:
            return _layer_names(file)
    return _layer_names(path)


def _layer_names(file):
    with h5py.File(file) as content:
        return {layer["vars"].attrs.get("name") for layer in content["layers"].values()}
