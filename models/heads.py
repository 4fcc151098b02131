"""What all factories share: the ends of a network, and checking and loading what a user passes."""

import contextlib
import pathlib
import tempfile
import zipfile

import h5py
import keras

from highway_keras.layers.options import check_positive_integer, is_positive_integer

# "xavier" in the Caffe that the authors released: N(0, 2 / fan-in), with its tails, which Keras's
# "he_normal" cuts off. Caffe's own "xavier" is Keras's "lecun_uniform".
AUTHORS_KERNEL = {
    "class_name": "VarianceScaling",
    "config": {"scale": 2.0, "mode": "fan_in", "distribution": "untruncated_normal"},
}
PREPROCESSOR = "preprocessor"  # the model in front of the network in what `fit` saves
_POOLS = {"avg": "GlobalAveragePooling2D", "max": "GlobalMaxPooling2D"}


def normal(stddev):
    return {"class_name": "RandomNormal", "config": {"mean": 0.0, "stddev": stddev}}


def fresh(kernel_initializer):
    """The configuration of an initializer: one object would give every kernel the same draw."""
    try:
        return keras.initializers.serialize(keras.initializers.get(kernel_initializer))
    except ValueError as error:
        raise ValueError(
            "`kernel_initializer` must be an initializer of Keras, such as 'he_normal'. "
            f"Received: kernel_initializer={kernel_initializer!r}."
        ) from error


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
    """Loads a `.weights.h5` or `.keras` file into `model`; `None` leaves it as initialized.

    Of a network behind its preprocessing, as `fit` saves it, only the network is loaded.
    """
    if weights is None:
        return model
    path = pathlib.Path(weights)
    if not path.is_file():
        raise ValueError(f"`weights` must be None or an existing file. Received: weights={path}.")
    misfit = f"`weights` does not fit the model {model.name!r}. Received: weights={path}."
    try:
        with _network_weights(path) as (file, stored):
            # Keras alone would leave out what the file has in excess, and load a deeper network's.
            foreign = stored ^ {layer.name for layer in model.layers}
            if not foreign:
                model.load_weights(file)
    except Exception as error:  # damaged files raise errors of many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{misfit} {reason:.300}") from error
    if foreign:
        names = ", ".join(sorted(map(str, foreign)))
        raise ValueError(f"{misfit} Layers that only one of them has: {names:.200}.")
    return model


@contextlib.contextmanager
def _network_weights(path):
    """A `.weights.h5` file with the network's weights alone, and the names of its layers."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        file = path
        if path.suffix == ".keras":
            archive = opened.enter_context(zipfile.ZipFile(path))
            file = opened.enter_context(archive.open("model.weights.h5"))
        content = opened.enter_context(h5py.File(file))
        names = _layer_names(content)
        if PREPROCESSOR in names.values() and len(names) == 2:
            (network,) = (key for key, name in names.items() if name != PREPROCESSOR)
            content = content["layers"][network]
            names = _layer_names(content)
        extracted = pathlib.Path(folder) / "network.weights.h5"
        with h5py.File(extracted, "w") as alone:
            for part in ("layers", "vars"):
                content.copy(part, alone)
        yield extracted, set(names.values())


def _layer_names(content):
    return {key: layer["vars"].attrs.get("name") for key, layer in content["layers"].items()}
