"""Highway layers of allennlp and fairseq: one affine map for H and the carry gate."""

import numpy as np

from highway_keras import checks
from highway_keras.convert import biases
from highway_keras.convert.arrays import check_activation, check_shapes, highway_layer
from highway_keras.convert.names import NUMBER, Scheme, check_state, numbered_layers

_SCHEME = Scheme(rf"_?layers\.{NUMBER}\.", ("weight", "bias"), "_layers.0.weight")
_GATE_START = 1.0  # of the carry gate
_REDEFINED = {"leaky_relu": "keras.ops.leaky_relu(z, 0.01)"}  # the slope of PyTorch's default


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
        TypeError: If `state` is not a dictionary of arrays of real numbers.

    Example:

    >>> import numpy as np
    >>> from highway_keras import HighwayStack, convert
    >>> state = {"_layers.0.weight": np.ones((6, 3)), "_layers.0.bias": np.ones(6)}
    >>> layers = convert.from_allennlp(state, activation="relu")
    >>> HighwayStack.from_layers(layers).depth
    1

    Reference:
        `allennlp/modules/highway.py` of allennlp 0.4.0 and 2.10.1.
    """
    check_activation(activation, _REDEFINED)
    checks.flag("check_biases", check_biases)
    check_state("state", state, prefix)
    layers = numbered_layers("state", state, _SCHEME, prefix)
    shapes = [(2, 1), (2,)] * len(layers)
    check_shapes(dict(layer[name] for layer in layers for name in _SCHEME.weights), shapes)
    return [_convert(layer, activation, check_biases) for layer in layers]


def _convert(layer, activation, check_biases):
    kernel, carry_kernel = np.split(layer["weight"][1].T, 2, axis=1)
    bias, carry_bias = np.split(layer["bias"][1], 2)
    if check_biases:
        biases.check_order("state", bias, carry_bias, _GATE_START)
        biases.check_sign("state", carry_bias, _GATE_START)
    return highway_layer(activation, kernel, -carry_kernel, bias, -carry_bias)
