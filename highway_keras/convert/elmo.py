"""Highway layers of ELMo's character encoder, as bilm-tf writes them to HDF5."""

from highway_keras.convert.arrays import (
    MATRIX,
    VECTOR,
    check_activation,
    check_shapes,
    highway_layer,
)
from highway_keras.convert.hdf5 import get_group, is_path, opened, read_array
from highway_keras.convert.names import NUMBER, Scheme, check_state, numbered_layers

_SCHEME = Scheme(
    f"CNN_high_{NUMBER}/",
    ("W_transform", "W_carry", "b_transform", "b_carry"),
    "CNN_high_0/W_carry",
)


def from_elmo(weights, activation, prefix=""):
    """Convert the highway layers of an ELMo file to `Highway` layers.

    ```
    g = sigmoid(x @ W_carry + b_carry)
    y = g * activation(x @ W_transform + b_transform) + (1 - g) * x
    ```

    Despite its name, `W_carry` is the transform gate and `W_transform` the block state H.

    Args:
        weights: Path of the HDF5 file, or a dictionary from names such as `"CNN_high_0/W_carry"`
            to arrays.
        activation: Activation of H. bilm-tf always uses `"relu"`; `activation` in its options is
            that of the convolutions.
        prefix: What comes before these names in a dictionary that also holds other weights:
            `"lm/"` in bilm-tf's checkpoints, whose optimizer slots are left out, too.

    Returns:
        A list of built `Highway` layers. `HighwayStack.from_layers` turns them into one layer.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not an HDF5 file, names or shapes are not ELMo's, or a number is not
            finite.
        TypeError: If `weights` is neither a path nor a dictionary of arrays of real numbers.

    Example:

    >>> import numpy as np
    >>> from highway_keras import convert
    >>> arrays = {f"CNN_high_0/W_{gate}": np.ones((3, 3)) for gate in ("carry", "transform")}
    >>> arrays |= {f"CNN_high_0/b_{gate}": np.zeros(3) for gate in ("carry", "transform")}
    >>> [layer.units for layer in convert.from_elmo(arrays, activation="relu")]
    [3]

    Reference:
        `bilm/model.py` and `bilm/training.py` of allenai/bilm-tf.
    """
    check_activation(activation)
    state = _read(weights) if is_path(weights) else weights
    check_state("weights", state, prefix)
    layers = numbered_layers("weights", state, _SCHEME, prefix)
    named = [layer[name] for layer in layers for name in _SCHEME.weights]
    check_shapes(dict(named), [MATRIX, MATRIX, VECTOR, VECTOR] * len(layers))
    order = _SCHEME.weights
    return [highway_layer(activation, *(layer[name][1] for name in order)) for layer in layers]


def _read(path):
    """Return the highway layers in the file; its other weights are large and not read."""
    with opened("weights", path) as file:
        found = list(file)
        groups = [name for name in found if name.startswith("CNN_high_")]
        names = [f"{group}/{weight}" for group in groups for weight in get_group(file, group)]
        arrays = {name: read_array(file, name) for name in names}
    if not arrays:
        raise ValueError(
            f"`weights` must be an ELMo file with highway layers, such as {_SCHEME.example!r}. "
            f"Received: {str(path)!r} with {', '.join(map(repr, found)) or 'nothing'}."
        )
    return arrays
