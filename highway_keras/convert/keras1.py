"""The `Highway` layer of Keras 1 and of Keras 2's legacy layers."""

import re

import keras

from highway_keras import checks
from highway_keras.convert import biases
from highway_keras.convert.arrays import (
    MATRIX,
    VECTOR,
    check_activation,
    check_shapes,
    finite_array,
    highway_layer,
)
from highway_keras.convert.hdf5 import is_path
from highway_keras.convert.keras1_file import read_layer, role

# The order of the weights, by the version that began with it. Keras 0.3 and 1.1 have that of 1.0.
_LATE = ("W", "W_carry", "b", "b_carry")
_ORDERS = {"1.0": ("W", "b", "W_carry", "b_carry"), "1.2": _LATE, "2.0": _LATE}
_SHAPES = {"W": MATRIX, "b": VECTOR, "W_carry": MATRIX, "b_carry": VECTOR}
_GATE_STARTS = {"1.0": -2.0, "1.2": 1.0, "2.0": 1.0}
_REDEFINED = {"hard_sigmoid": "keras.ops.clip(0.2 * z + 0.5, 0, 1)"}
_UNNAMED = re.compile(r"param_[0-9]+")  # what Keras calls an array that has no name


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

    Example:

    >>> import numpy as np
    >>> from highway_keras import convert
    >>> weights = [np.ones((3, 3)), np.zeros(3), np.ones((3, 3)), np.full(3, -2.0)]
    >>> convert.from_keras1(weights, activation="linear", version="1.0").units
    3

    Reference:
        `keras/layers/core.py` of Keras 0.3.3 to 1.2.2, `keras/legacy/layers.py` of Keras 2.0.0 to
        2.2.4.
    """
    check_activation(activation, _REDEFINED)
    checks.flag("check_biases", check_biases)
    if not isinstance(version, str) or version not in _ORDERS:
        raise ValueError(
            "`version` must be '1.0' (for Keras 0.3 to 1.1), '1.2' or '2.0' (for all of Keras 2). "
            f"Received: version={checks.short_repr(version)}."
        )
    if is_path(weights):
        arrays, named = _read(weights, layer, activation, version)
    else:
        arrays, named = _listed(weights, layer), False
    parts = _sorted_by_part(arrays, version)
    if check_biases and not named and "b" in parts:
        biases.check_order("weights", parts["b"], parts["b_carry"], _GATE_STARTS[version])
    return highway_layer(activation, *map(parts.get, _LATE))


def _listed(weights, layer):
    """Return the arrays of a list, by the label that errors give them."""
    if not isinstance(weights, list | tuple):
        raise TypeError(
            "`weights` must be a list of arrays or the path of an HDF5 file. "
            f"Received: a {type(weights).__name__}."
        )
    if layer is not None:
        raise ValueError(
            "`layer` must be None for a list of arrays, which are those of one layer. "
            f"Received: layer={layer!r}."
        )
    return {f"`weights[{index}]`": array for index, array in enumerate(weights)}


def _read(path, layer, activation, version):
    """Return the arrays of a layer by label, and whether their names say what they are."""
    stored = read_layer(path, layer)
    _check_writer(stored.version, version)
    _check_noted_activation(stored.activation, activation)
    named = not all(map(_UNNAMED.fullmatch, stored.arrays))
    if named:
        _check_names(list(stored.arrays), layer, version)
    return {f"`weights[{name!r}]`": array for name, array in stored.arrays.items()}, named


def _check_names(names, layer, version):
    roles = tuple(map(role, names))
    if roles == _order(version, len(roles)):
        return
    for other in _ORDERS:
        if roles == _order(other, len(roles)):
            raise ValueError(
                f"`version` must be {other!r} for weights in the order {', '.join(roles)}. "
                f"Received: version={version!r}, whose order is {', '.join(_ORDERS[version])}."
            )
    raise ValueError(
        f"`layer` must be one Highway layer with the weights {', '.join(_ORDERS[version])}. "
        f"Received: layer={layer!r} with {', '.join(map(repr, names))}. If it is a model, pass the "
        "arrays of its layer as a list."
    )


def _check_writer(written, version):
    """Raise if the Keras that the file names has a different order than `version`."""
    numbers = re.match(r"([0-9]+)\.([0-9]+)", written or "")
    if not numbers:
        return  # Keras 1 noted its version in files of whole models only.
    major, minor = int(numbers[1]), int(numbers[2])
    right = "1.0" if (major, minor) < (1, 2) else "1.2" if major == 1 else "2.0"
    if right != version:
        raise ValueError(
            f"`version` must be {right!r} for a file of Keras {written}. "
            f"Received: version={version!r}."
        )


def _check_noted_activation(noted, activation):
    """Raise if the file contradicts the activation, one of Keras's own, that the caller names."""
    said = keras.activations.get(activation)
    name = getattr(said, "__name__", None)
    if getattr(keras.activations, name or "", None) is said and noted not in (None, name):
        raise ValueError(
            f"`activation` must be {noted!r}, which the file notes for this layer. "
            f"Received: activation={activation!r}."
        )


def _order(version, count):
    """Return the names of a layer's weights in order: all four, or only the two matrices."""
    order = _ORDERS[version]
    return order if count != 2 else tuple(name for name in order if _SHAPES[name] == MATRIX)


def _sorted_by_part(arrays, version):
    """Return the arrays by the names W, b, W_carry and b_carry, checked."""
    order = _order(version, len(arrays))
    if len(arrays) != len(order):
        raise ValueError(
            f"`weights` must be the four arrays {', '.join(order)}, or W and W_carry of a layer "
            f"without biases. Received: {len(arrays)} arrays."
        )
    arrays = {label: finite_array(label, array) for label, array in arrays.items()}
    _check_ranks([array.ndim for array in arrays.values()], version)
    check_shapes(arrays, [_SHAPES[name] for name in order])
    return dict(zip(order, arrays.values(), strict=True))


def _check_ranks(ranks, version):
    """Raise if matrices and vectors follow each other in the order of another version."""
    for other in _ORDERS:
        order = _order(other, len(ranks))
        if order != _order(version, len(ranks)) and ranks == [len(_SHAPES[name]) for name in order]:
            raise ValueError(
                f"`version` must be {other!r} for weights in the order {', '.join(order)}. "
                f"Received: version={version!r}, whose order is {', '.join(_ORDERS[version])}."
            )
