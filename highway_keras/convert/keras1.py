"""The `Highway` layer of Keras 1 and of Keras 2's legacy layers.

In its HDF5 files, each layer has a group whose attribute `weight_names` lists its arrays in order.
The groups lie at the root (`save_weights`), or under `model_weights` in the file of a whole model
(`save`), which also notes the model's configuration and the version of Keras. Keras 2 notes its
version in both.
"""

import json
import os
import re

import h5py
import keras
import numpy as np

from highway_keras.convert.conventions import KERAS, to_highway
from highway_keras.convert.reading import finite_array, opened, read_array
from highway_keras.util import checks

# highway_1_W_carry (Theano), highway_1_W_carry:0 (TensorFlow), highway_1_W_carry_1:0 (loaded into a
# session where the name was taken), highway_1/W_carry:0 (Keras 2).
_NAME = re.compile(r"(?:.*[/_])?(W_carry|b_carry|W|b)(?:_[0-9]+)?(?::0)?")
_NO_NAME = re.compile("(param_)?[0-9]+")  # Keras numbers arrays that have no names


def from_keras1(weights, activation, version, layer=None, *, check_biases=True):
    """Convert a `Highway` layer of Keras 1, or of Keras 2's legacy layers, to a `Highway`.

    ```
    t = sigmoid(x @ W_carry + b_carry)
    y = t * activation(x @ W + b) + (1 - t) * x
    ```

    Despite its name, `W_carry` is the transform gate.

    Args:
        weights: A list of arrays in the order of `get_weights()` there: four, or two for a layer
            with `bias=False`. Or the path of an HDF5 file that `save_weights` or `save` wrote.
        activation: Activation of H. The layer's default was `"linear"`.
        version: The Keras that wrote the weights: `"1.0"` (also 0.3 and 1.1) stores W, b, W_carry,
            b_carry; `"1.2"` and `"2.0"` (all of Keras 2) store W, W_carry, b, b_carry.
        layer: The layer's name, if `weights` is a path.
        check_biases: Whether to refuse unnamed arrays whose biases look as if H and gate were
            swapped.

    Returns:
        A built `Highway`. `HighwayStack.from_layers` turns several into one layer.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the order of the weights, the file's version of Keras or its activation
            contradicts the arguments; if the file is damaged or has no such layer; if the number or
            the shapes of the arrays are wrong, a number is not finite, or the biases look swapped.
        TypeError: If `weights` is neither a path nor a list of arrays of real numbers.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import convert
        >>> weights = [np.ones((3, 3)), np.zeros(3), np.ones((3, 3)), np.full(3, -2.0)]
        >>> convert.from_keras1(weights, activation="linear", version="1.0").units
        3

    Reference:
        `keras/layers/core.py` of Keras 0.3.3 to 1.2.2, `keras/legacy/layers.py` of Keras 2.0.0 to
        2.2.4.
    """
    checks.one_of("version", version, KERAS)
    if isinstance(weights, str | os.PathLike):
        arrays = _read_layer(weights, layer, version, activation)
    elif isinstance(weights, list | tuple) and layer is None:
        arrays = {str(index): array for index, array in enumerate(weights)}
    else:
        raise TypeError(
            "`weights` must be the path of an HDF5 file, or a list of arrays, which are those of "
            f"one layer, with layer=None. Received: a {type(weights).__name__}, layer={layer!r}."
        )
    names = list(arrays)
    named = not all(map(_NO_NAME.fullmatch, names))
    labels = [f"`weights[{name if name.isdecimal() else repr(name)}]`" for name in names]
    arrays = [finite_array(*pair) for pair in zip(labels, arrays.values(), strict=True)]

    # What an array is shows in its name, or, without names, in its rank.
    orders = {one: list(convention.order) for one, convention in KERAS.items()}
    if len(arrays) == 2:
        orders = {one: ["W", "W_carry"] for one in KERAS}
    if named:
        found = [match and match[1] for match in map(_NAME.fullmatch, names)]
        right = [one for one, order in orders.items() if order == found]
    else:
        ranks = {one: [2 if w.startswith("W") else 1 for w in orders[one]] for one in KERAS}
        right = [one for one in KERAS if ranks[one] == [array.ndim for array in arrays]]
    if right and version not in right:
        raise ValueError(
            f"`version` must be {right[0]!r} for weights in the order "
            f"{', '.join(orders[right[0]])}. Received: version={version!r}, whose order is "
            f"{', '.join(orders[version])}."
        )
    if not right:
        raise ValueError(
            f"`{'layer' if named else 'weights'}` must be one Highway layer with the arrays "
            f"{', '.join(KERAS[version].order)}, or W and W_carry without biases. Received: "
            f"layer={layer!r} with {', '.join(labels) or 'none'}. If it is a model, pass the "
            "arrays of its layer as a list."
        )
    parts = dict(zip(orders[version], zip(labels, arrays, strict=True), strict=True))
    return to_highway(
        KERAS[version], activation, parts, "weights" if check_biases and not named else None
    )


def _read_layer(path, layer, version, activation):
    """Return a layer's arrays by name, if the file notes no other version or activation."""
    with opened(path) as file:
        whole = isinstance(file.get("model_weights"), h5py.Group)
        root, place = (file["model_weights"], "model_weights/") if whole else (file, "")
        group = root.get(layer) if isinstance(layer, str) and layer else None
        names = group.attrs.get("weight_names", ()) if isinstance(group, h5py.Group) else ()
        names = [_text(name) for name in np.atleast_1d(names)]
        arrays = {name: read_array(file, f"{place}{layer}/{name}") for name in names}
        written = _text(root.attrs.get("keras_version", file.attrs.get("keras_version", "")))
        config = json.loads(_text(file.attrs.get("model_config", "null")))
        noted = [
            inner["config"].get("activation")
            for outer in _configs(config)
            if outer["config"].get("name") == layer
            for inner in _configs(outer)
            if inner["class_name"] == "Highway"
        ]
        layers = ", ".join(map(repr, root))
    if not arrays:
        raise ValueError(
            f"`layer` must be the name of a Highway layer in {str(path)!r}, which has {layers}. "
            f"Received: layer={layer!r}."
        )
    numbers = re.match(r"([0-9]+)\.([0-9]+)", written)  # Keras 1 notes it for whole models only
    if numbers:
        major, minor = int(numbers[1]), int(numbers[2])
        right = "1.0" if (major, minor) < (1, 2) else "1.2" if major == 1 else "2.0"
        if right != version:
            raise ValueError(
                f"`version` must be {right!r} for a file of Keras {written}. "
                f"Received: version={version!r}."
            )
    said = keras.activations.get(activation)
    name = getattr(said, "__name__", "")
    # Compare only functions of Keras: the name of a user's function says nothing.
    known = getattr(keras.activations, name, None) is said
    if known and len(noted) == 1 and isinstance(noted[0], str) and noted[0] != name:
        raise ValueError(
            f"`activation` must be {noted[0]!r}, which the file notes for this layer. "
            f"{checks.received('activation', activation)}"
        )
    return arrays


def _text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _configs(node):
    """Yield all configurations of a model, layer or wrapper in `node` and below."""
    if isinstance(node, dict):
        if "class_name" in node and isinstance(node.get("config"), dict):
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _configs(child)
