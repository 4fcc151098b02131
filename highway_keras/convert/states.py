"""Highway layers of allennlp, fairseq, ELMo and Tacotron: chains of layers, with numbered names."""

import os
from collections.abc import Mapping

from highway_keras.convert import conventions
from highway_keras.convert.reading import layers_of_state, opened, prefixes_in, read_array
from highway_keras.util import checks


def from_allennlp(state, activation, prefix="", *, check_biases=True):
    """Convert a `Highway` module of allennlp, or fairseq's copy of it, to `Highway` layers.

    ```
    h, g = the halves of x @ weight.T + bias
    y = sigmoid(g) * x + (1 - sigmoid(g)) * activation(h)
    ```

    The gate there is the carry gate, so its half is negated: 1 - sigmoid(g) = sigmoid(-g).

    Args:
        state: The state of the module, a dictionary from names such as `"_layers.0.weight"`
            (fairseq: `"layers.0.weight"`) to arrays or CPU tensors.
        activation: Activation of H that the module was made with. allennlp's default is `"relu"`.
        prefix: What comes before `_layers` in the names of a larger model, whose other weights are
            then left out. Default: `state` holds nothing else.
        check_biases: Whether to refuse biases that look like swapped halves or an opposite gate.

    Returns:
        A list of built `Highway` layers. `HighwayStack.from_layers` turns them into one layer.

    Raises:
        ValueError: If names or shapes are not those of the module, a number is not finite, or
            the biases look wrong.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import HighwayStack, convert
        >>> state = {"_layers.0.weight": np.ones((6, 3)), "_layers.0.bias": np.ones(6)}
        >>> layers = convert.from_allennlp(state, activation="relu")
        >>> HighwayStack.from_layers(layers).depth
        1

    Reference:
        `allennlp/modules/highway.py` of allennlp 0.4.0 and 2.10.1.
    """
    checked = "state" if check_biases else None
    return _convert("state", state, [conventions.ALLENNLP], activation, prefix, checked)


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

    Examples:
        >>> import numpy as np
        >>> from highway_keras import convert
        >>> arrays = {f"CNN_high_0/W_{gate}": np.ones((3, 3)) for gate in ("carry", "transform")}
        >>> arrays |= {f"CNN_high_0/b_{gate}": np.zeros(3) for gate in ("carry", "transform")}
        >>> [layer.units for layer in convert.from_elmo(arrays, activation="relu")]
        [3]

    Reference:
        `bilm/model.py` and `bilm/training.py` of allenai/bilm-tf.
    """
    if not isinstance(weights, str | os.PathLike):
        return _convert("weights", weights, [conventions.ELMO], activation, prefix)
    with opened(weights) as file:  # whose other weights are large, and not read
        groups = [name for name in file if name.startswith("CNN_high_")]
        names = [f"{group}/{weight}" for group in groups for weight in file[group].keys()]
        state = {name: read_array(file, name) for name in names}
    return _convert("weights", state, [conventions.ELMO], activation, prefix)


def from_tacotron(state, activation, prefix=""):
    """Convert the highway layers of a Tacotron to `Highway` layers.

    ```
    t = sigmoid(x @ T + b_T)
    y = activation(x @ H + b_H) * t + x * (1 - t)
    ```

    TensorFlow's kernels are used as is, PyTorch's weights transposed. The names tell which.

    Args:
        state: A dictionary from names to arrays or CPU tensors: of keithito/tacotron, such as
            `"highway_1/H/kernel"`, or of r9y9/tacotron_pytorch, such as `"highways.0.H.weight"`.
        activation: Activation of H. Both use `"relu"`.
        prefix: What comes before these names in a whole model, whose other weights are then
            left out: `"model/inference/encoder_cbhg/"` or `"encoder.cbhg."`. Default:
            `state` holds nothing else.

    Returns:
        A list of built `Highway` layers. `HighwayStack.from_layers` turns them into one layer.

    Raises:
        ValueError: If names or shapes are not those of either, or a number is not finite.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import convert
        >>> state = {f"highways.0.{gate}.weight": np.ones((3, 3)) for gate in "HT"}
        >>> state |= {f"highways.0.{gate}.bias": np.zeros(3) for gate in "HT"}
        >>> [layer.units for layer in convert.from_tacotron(state, activation="relu")]
        [3]

    Reference:
        `models/modules.py` of keithito/tacotron, `tacotron_pytorch/tacotron.py` of
        r9y9/tacotron_pytorch.
    """

    return _convert("state", state, conventions.TACOTRON, activation, prefix)


def _convert(argument, state, candidates, activation, prefix, check_biases=None):
    if not isinstance(state, Mapping):
        raise TypeError(
            f"`{argument}` must be a dictionary from names to arrays. "
            f"{checks.received(argument, state)}"
        )

    def fits(convention):  # by this prefix, or else by another, which the error names
        found = prefixes_in(state, convention)
        return prefix in found, bool(found)

    convention = max(candidates, key=fits)
    return [
        conventions.to_highway(convention, activation, arrays, check_biases)
        for arrays in layers_of_state(argument, state, convention, prefix)
    ]
