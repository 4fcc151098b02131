"""Weights of a network from what Keras or `fit` saved, and from nothing else."""

import contextlib
import itertools
import re

import h5py
import keras

from highway_keras.data.preprocessing import PREPROCESSOR
from highway_keras.layers import HighwayStack
from highway_keras.models import shipped
from highway_keras.util import checks
from highway_keras.util.files import is_transient
from highway_keras.util.messages import notice, reason

# What a layer's configuration says that does not change what it computes once it has its weights.
_COMPUTES_NOTHING = re.compile(
    r".*(initializer|regularizer|constraint|config)|((batch|input)_)?shape|name|trainable|dtype|seed|rate"
    r"|inbound_nodes|(in|out)put_layers|lora_.*|rematerialize|units"
)


def load_weights(model, weights, new_classifier=False):
    """Load a `.keras` or `.weights.h5` file into `model`; `None` leaves it as initialized.

    A `.keras` file tells what it computes: its layers must match the model's in kind, shapes and
    settings. A preprocessor in it, as `fit` saves one, is left out. A `.weights.h5` file has only
    shapes and the activations of highway layers, so other activations of plain layers go unnoticed.
    With `new_classifier`, a classifier of another size stays as initialized; a notice says so.
    """
    if weights is None:
        return
    on_hub = shipped.is_on_hub(weights)
    path = weights if on_hub else checks.existing_file("weights", weights)
    with _one_error(model, path):
        if on_hub or path.suffix == ".keras":
            _copy(_read_network(path), model, new_classifier)
            return
        model.load_weights(path)
        stored = []

        def note(name, item):  # a highway layer keeps the names of its activations beside weights
            if isinstance(item, h5py.Dataset) and not name.endswith("/activations"):
                stored.append(name)

        with h5py.File(path) as file:
            file["layers"].visititems(note)
        if len(stored) != len(model.weights):  # Keras skips those of a deeper network
            raise ValueError(f"It has {len(stored)} arrays, the model {len(model.weights)}")


def load_features(model, path, whole):
    """Load the `.keras` file of a network into `model`, the network without its top.

    `whole(input_shape=..., classes=...)` returns the network with its top. The file must match all
    of it, because a deeper network begins with the same layers.
    """
    with _one_error(model, path):
        source = _read_network(path)
        if len(_layers(source, model)) == len(_layers(model)):  # saved without its top, too
            return _copy(source, model, has_top=False)
        size = {"input_shape": source.input_shape[1:], "classes": source.output_shape[-1]}
        _copy(source, whole(**size))
        for old, new in zip(_layers(source, model), _layers(model), strict=False):
            if new.weights:
                _check_shapes(old, new)
                copy_weights(old, new)


def copy_weights(source, target):
    """Give a layer or model the weights of another, and what Keras derives from them."""
    weights = source.weights
    if len(weights) != len(target.weights):  # adapters, which a file holds merged into the kernels
        weights = _without_adapters(source)
    target.set_weights([keras.ops.convert_to_numpy(weight) for weight in weights])
    for layer in target._flatten_layers():
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()


@contextlib.contextmanager
def _one_error(model, path):
    """Turn the errors that damaged and foreign files raise, of many kinds, into one."""
    try:
        yield
    except Exception as error:
        of_hub = isinstance(error, ImportError) or "huggingface_hub" in type(error).__module__
        if is_transient(error) or of_hub:
            raise
        raise ValueError(
            f"`weights` cannot be loaded into {model.name!r}. Received: weights={path}. "
            f"{reason(error)[:300]}. Pass weights of this very network, or build the network that "
            "they belong to."
        ) from error


def _read_network(path):
    if not shipped.is_on_hub(path) and path.suffix != ".keras":  # a model of Keras 2, say
        raise ValueError("It is not a .keras file")
    return without_preprocessor(keras.models.load_model(path, compile=False))


def without_preprocessor(source):
    """Return the network in what `fit` saved, or a model without a preprocessor as it is."""
    first, *others = _layers(source)
    return others[0] if first.name == PREPROCESSOR and len(others) == 1 else source


def _copy(source, network, new_classifier=False, has_top=True):
    """Copy all weights of a network to one that computes the same.

    Settings of the classifier, `has_top`, and of what follows it are not compared.
    """
    old_layers, new_layers = _layers(source, network), _layers(network)
    if [type(old) for old in old_layers] != [type(new) for new in new_layers]:
        raise ValueError("Its layers differ in kind or number")
    weighted = [number for number, layer in enumerate(new_layers) if layer.weights]
    classifier = weighted[-1] if weighted and has_top else len(new_layers)
    for number, (old, new) in enumerate(zip(old_layers, new_layers, strict=True)):
        is_top = number >= classifier  # whose activation may be left out
        if number == classifier and new_classifier and _shapes(old) != _shapes(new):
            notice(
                f"{new.name} of {network.name!r} is newly initialized; all other layers are loaded."
            )
            continue
        _check_shapes(old, new)
        if not is_top and _computes(old.get_config()) != _computes(new.get_config()):
            raise ValueError(f"Its layer {old.name!r} has other settings than {new.name!r}")
        copy_weights(old, new)


def _check_shapes(old, new):
    if type(old) is not type(new) or _shapes(old) != _shapes(new):
        raise ValueError(
            f"Its layer {old.name!r} has weights of shapes {_shapes(old)}, not the {_shapes(new)} "
            f"of {new.name!r}"
        )


def _layers(model, like=None):
    """Return the layers that compute something when the network is used.

    If the network `like` has no `HighwayStack`, each stack is replaced by the chain that computes
    the same.
    """
    unused = keras.layers.InputLayer | keras.layers.Dropout
    layers = [layer for layer in model.layers if not isinstance(layer, unused)]
    if like is None or any(isinstance(layer, HighwayStack) for layer in like.layers):
        return layers
    chains = [layer.unstack() if isinstance(layer, HighwayStack) else [layer] for layer in layers]
    return list(itertools.chain(*chains))


def _shapes(layer):
    return [tuple(weight.shape) for weight in _without_adapters(layer)]


def _without_adapters(layer):
    return [weight for weight in layer.weights if not weight.name.startswith("lora_")]


def _computes(config):
    """Return the part of a configuration, at every level, that says what a layer computes."""
    if isinstance(config, list | tuple):
        return [_computes(one) for one in config]
    if not isinstance(config, dict):
        return config
    computes = {
        key: _computes(value)
        for key, value in config.items()
        if key == "config" or not _COMPUTES_NOTHING.fullmatch(key)
    }
    return {key: value for key, value in computes.items() if value != {}}
