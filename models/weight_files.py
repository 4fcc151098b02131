"""Weights of a network from what Keras or `fit` saved, and from nothing else."""

import collections
import contextlib
import json
import pathlib
import re
import tempfile
import zipfile

import h5py
import keras

from highway_keras import checks
from highway_keras.messages import notice
from highway_keras.optimizers import CLASSIFIER

REMEDY = "Give the weights of this very network, or build the one that they are of."
PREPROCESSOR = "preprocessor"  # name of the model before the network in what `fit` saves
VARIABLES = "model.weights.h5"  # Keras's name for them in a `.keras` archive


def load_weights(model, weights):
    """Load a `.weights.h5` or `.keras` file into `model`; `None` leaves it as initialized.

    If the file holds a network with its preprocessing, as `fit` saves it, only the network is
    loaded. What the input is called does not matter.
    """
    if weights is None:
        return model
    path = checks.existing_file("weights", weights)
    misfit = f"`weights` does not fit the model {model.name!r}. Received: weights={path}."
    try:
        with _variables_of(path) as file:
            with _layers_in(file) as (found, has_preprocessing):
                stored = set(found)
            # Keras would skip anything extra in the file, and so load a deeper network's weights.
            layers = [x for x in model.layers if not isinstance(x, keras.layers.InputLayer)]
            expected = {layer.name for layer in layers}
            fits = _families(stored) == _families(expected)
            if fits:
                _check_activations(model, path)
                complete = _with_preprocessing(model) if has_preprocessing else model
                complete.load_weights(file)
    except Exception as error:  # damaged files raise errors of many kinds
        reason = (" ".join(str(error).split()) or type(error).__name__)[:300].rstrip(".")
        raise ValueError(f"{misfit} {reason}. {REMEDY}") from error
    if not fits:
        names = ", ".join(sorted(map(str, stored ^ expected)))
        raise ValueError(f"{misfit} Layers that only one of them has: {names:.200}. {REMEDY}")
    return model


def after(inputs, model):
    """Return the part of `model` that comes after the tensor `inputs`; all of it if that is `None`.

    It has the same layers.
    """
    return model if inputs is None else keras.Model(inputs, model.output, name=model.name)


def copy_below_top(source, model):
    """Copy the weights of a network to one that differs from it only in its top.

    The classifier of `model`, the last layer with weights, keeps its start if it has a different
    number of classes; a warning says so.

    Raises:
        ValueError: If another layer differs.
    """
    classifier = [layer for layer in source.layers if layer.weights][-1]
    for old, new in zip(source.layers, model.layers, strict=False):
        if not new.weights:
            continue
        if _alike(old, new):
            new.set_weights(old.get_weights())
        elif old is classifier:
            also = f"{new.name} of {model.name!r} starts anew"
            notice(f"{also}; all other layers have the weights.")
        else:
            raise ValueError(
                f"`weights` does not fit the model {model.name!r}: its layer {new.name!r} has "
                f"other shapes. Received: input_shape={model.input_shape[1:]}."
            )


def _alike(old, new):
    shapes = [[tuple(weight.shape) for weight in layer.weights] for layer in (old, new)]
    return type(old) is type(new) and shapes[0] == shapes[1]


def classes_in(path):
    """Return the number of classes of the classifier in a file; `None` without one of the zoo's."""
    try:
        with _variables_of(path) as file, _layers_in(file) as (layers, _):
            return int(layers[CLASSIFIER]["vars"]["1"].shape[0])
    except Exception:  # no such layer, or a damaged file, which `load_weights` names
        return None


@contextlib.contextmanager
def _variables_of(path):
    """Yield the `.weights.h5` file of `path`, taken out of a `.keras` archive once.

    Inside the archive each step back would decompress it from the start, which took seconds.
    """
    if path.suffix != ".keras":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(path) as archive:
            yield pathlib.Path(archive.extract(VARIABLES, folder))


@contextlib.contextmanager
def _layers_in(file):
    """Yield the layers of the network in a file by their names, and if it has preprocessing."""
    with h5py.File(file) as opened:
        layers = _by_name(opened)
        has_preprocessing = len(layers) == 2 and layers.pop(PREPROCESSOR, None) is not None
        if has_preprocessing:
            (network,) = layers.values()
            layers = _by_name(network)
        yield layers, has_preprocessing


def _check_activations(model, path):
    """Raise if a `.keras` file is of a network with other activations: their shapes are alike."""
    if path.suffix != ".keras":
        return
    with zipfile.ZipFile(path) as archive:
        stored = set(_activations(json.loads(archive.read("config.json"))))
    own = set(_activations(model.get_config()))
    if stored != own:
        was, now = (", ".join(sorted(names)) or "none" for names in (stored - own, own - stored))
        raise ValueError(f"Activations that only it has: {was}; only the model: {now}")


def _activations(config):
    """Yield the names of activations below the classifier, whose own may be left out.

    Those of gates are like "transform_sigmoid": two gates may swap theirs.
    """
    if isinstance(config, dict):
        if config.get("name") == CLASSIFIER:
            return
        for key, found in config.items():
            unused = key == "carry_activation" and config.get("carry") == "coupled"
            if key.endswith("activation") and found is not None and not unused:
                name = found["config"] if isinstance(found, dict) else found
                yield f"{key.removesuffix('activation')}{name}"
    parts = config.values() if isinstance(config, dict) else config
    for part in parts if isinstance(config, dict | list | tuple) else ():
        yield from _activations(part)


def _families(names):
    """Count names without their numbers: those that Keras makes up get new numbers each time.

    The depth in the name of a stack, "_x50", does not count either: the weight shapes show it.
    """
    return collections.Counter(re.sub(r"(_x?\d+)+$", "", str(name)) for name in names)


def _by_name(model):
    layers = [v for k, v in model["layers"].items() if not re.fullmatch(r"input_layer(_\d+)?", k)]
    return {layer["vars"].attrs.get("name"): layer for layer in layers}


def _with_preprocessing(model):
    """Return `model` after a stand-in for the preprocessing, for which Keras loads no weights."""
    stand_in = keras.Sequential([keras.Input(model.input_shape[1:]), keras.layers.Identity()])
    return keras.Sequential([stand_in, model])
