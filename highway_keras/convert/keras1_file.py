"""What an HDF5 file of Keras 1 or 2 says about one layer: its arrays, version and activation.

Each layer has a group whose attribute `weight_names` lists its arrays in order. The groups lie at
the root (`save_weights`), or under `model_weights` in the file of a whole model (`save`), which
also notes the model's configuration and the version of Keras. Keras 2 notes its version in both.
"""

import json
import re
from typing import NamedTuple

import h5py
import numpy as np

from highway_keras.convert.hdf5 import opened, read_array, text

# highway_1_W_carry (Theano), highway_1_W_carry:0 (TensorFlow), highway_1_W_carry_1:0 (loaded into a
# session where the name was taken), highway_1/W_carry:0 (Keras 2).
_NAME = re.compile(r"(?:.*[/_])?(W_carry|b_carry|W|b)(?:_[0-9]+)?(?::0)?")


class StoredLayer(NamedTuple):
    """A layer as stored in its file.

    Attributes:
        arrays: A dictionary from names to arrays, in the file's order.
        version: The Keras that wrote the file, such as `"1.2.2"`; `None` if it does not say.
        activation: The activation that the model's configuration notes, or `None`.
    """

    arrays: dict
    version: str | None
    activation: str | None


def read_layer(path, layer):
    """Return the `StoredLayer` of that name in the file at `path`."""
    with opened("weights", path) as file:
        root = file.get("model_weights")
        root = root if isinstance(root, h5py.Group) else file
        group = root.get(layer) if isinstance(layer, str) and layer else None
        arrays = {name: read_array(group, name) for name in _weight_names(group)}
        version = root.attrs.get("keras_version", file.attrs.get("keras_version"))
        config = json.loads(text(file.attrs.get("model_config", "null")))
        activation = _noted_activation(config, layer)
        highways = _highways(root)
    if not arrays:
        raise ValueError(
            f"`layer` must be the name of a Highway layer in {str(path)!r}, which has "
            f"{', '.join(map(repr, highways)) or 'none'}. Received: layer={layer!r}."
        )
    version = None if version is None else text(version)
    return StoredLayer(arrays, version, activation)


def role(name):
    """Return which of W, b, W_carry and b_carry an array is by its name, or `None`."""
    found = _NAME.fullmatch(name)
    return found and found[1]


def _highways(root):
    """Return the names of the groups that hold a Highway layer."""
    found = []

    def note(name, item):
        if "W_carry" in map(role, _weight_names(item)):
            found.append(name)

    root.visititems(note)
    return found


def _weight_names(item):
    names = item.attrs.get("weight_names", ()) if isinstance(item, h5py.Group) else ()
    return [text(name) for name in np.atleast_1d(names)]


def _noted_activation(config, layer):
    """Return the activation of the one Highway that is, or is in, the layer of that name."""
    noted = [
        inner["config"].get("activation")
        for outer in _configs(config)
        if outer["config"].get("name") == layer
        for inner in _configs(outer)
        if inner["class_name"] == "Highway"
    ]
    # A custom function may be stored as a dictionary, which cannot be compared with anything.
    return noted[0] if len(noted) == 1 and isinstance(noted[0], str) else None


def _configs(node):
    """Yield all configurations of a model, layer or wrapper in `node` and below."""
    if isinstance(node, dict):
        if "class_name" in node and isinstance(node.get("config"), dict):
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _configs(child)
