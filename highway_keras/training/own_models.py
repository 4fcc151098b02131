"""What the trainer asks of a user's own model: that it loads as it is saved, and its identity."""

import hashlib
import json
import pathlib
import tempfile

import keras
import numpy as np

from highway_keras.messages import reason


def check_is_saved(model, image_shape):
    """Raise unless Keras loads what it saves of a model: after the training it is too late."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "model.keras"
        try:
            model.save(file)
            loaded = keras.models.load_model(file, compile=False)
        except Exception as error:  # of many kinds
            raise ValueError(
                f"`model` must be one that Keras can save and load again. Received: {model.name!r}"
                f" ({reason(error):.200}). Layers of your own need the decorator "
                "`@keras.saving.register_keras_serializable()`; they also replace a `Lambda`."
            ) from error
    _check_same_outputs(model, loaded, image_shape)


def _check_same_outputs(model, loaded, image_shape):
    """Raise if what Keras loads computes something else than what was saved.

    Keras saves a function by its name, and takes one of its own of that name for it; a layer's
    `get_config` may leave something out.
    """
    given = model.inputs[0]
    if len(given.shape) != 1 + len(image_shape):
        return  # the images do not fit, which is said elsewhere
    # Some samples of either sign: functions may differ for one sign alone.
    shape = (8, *(n or m for n, m in zip(given.shape[1:], image_shape, strict=True)))
    x = keras.ops.cast(np.random.default_rng(0).standard_normal(shape), given.dtype)
    first = _outputs(model, x)
    # A model may draw at each call: then it differs from itself, too.
    if not _close(first, _outputs(loaded, x)) and _close(first, _outputs(model, x)):
        raise ValueError(
            f"`model` must be one that Keras can save and load again. Received: {model.name!r}, "
            "which computes something else when loaded. Functions of your own need a name that "
            "Keras does not use and the decorator `@keras.saving.register_keras_serializable()`; "
            "a layer's `get_config` must return all of its arguments."
        )


def _outputs(network, x):
    outputs = keras.tree.flatten(network(x, training=False))
    return [keras.ops.convert_to_numpy(keras.ops.cast(y, "float32")) for y in outputs]


def _close(first, second):
    pairs = zip(first, second, strict=True)
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True) for a, b in pairs)


def architecture(model):
    """Return 16 digits that identify how a model is built, whatever numbers its layers have.

    Seeds are left out: a run sets those of layers, and some layers draw one when they are made.
    """
    config = _without_seeds(model.get_config())
    text = json.dumps(config, sort_keys=True, default=repr)
    for number, name in enumerate(dict.fromkeys(_names(config))):
        text = text.replace(f'"{name}"', f'"#{number}"')
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without_seeds(config):
    if isinstance(config, dict):
        return {k: None if k == "seed" else _without_seeds(v) for k, v in config.items()}
    if isinstance(config, list | tuple):
        return [_without_seeds(part) for part in config]
    return config


def _names(config):
    """Yield the names of a model and of its layers, at any depth, in their order."""
    if isinstance(config, dict):
        if isinstance(config.get("name"), str):
            yield config["name"]
        for part in config.values():
            yield from _names(part)
    elif isinstance(config, list | tuple):
        for part in config:
            yield from _names(part)
