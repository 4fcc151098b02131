"""Highway layers of Tacotron's CBHG modules, in TensorFlow and in PyTorch."""

from highway_keras.convert.arrays import (
    MATRIX,
    VECTOR,
    check_activation,
    check_shapes,
    highway_layer,
)
from highway_keras.convert.names import NUMBER, Scheme, check_state, numbered_layers

_TENSORFLOW = Scheme(
    f"highway_{NUMBER}/",
    ("H/kernel", "T/kernel", "H/bias", "T/bias"),
    "highway_1/H/kernel",
    first=1,
)
_PYTORCH = Scheme(
    rf"highways\.{NUMBER}\.",
    ("H.weight", "T.weight", "H.bias", "T.bias"),
    "highways.0.H.weight",
)


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
        TypeError: If `state` is not a dictionary of arrays of real numbers.

    Example:

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
    check_activation(activation)
    check_state("state", state, prefix)
    scheme = _scheme(state, prefix)
    layers = numbered_layers("state", state, scheme, prefix)
    named = [layer[name] for layer in layers for name in scheme.weights]
    check_shapes(dict(named), [MATRIX, MATRIX, VECTOR, VECTOR] * len(layers))
    return [_convert(layer, scheme, activation) for layer in layers]


def _scheme(state, prefix):
    """Return the scheme of the two whose names `state` has; TensorFlow's if it has neither."""
    found = [s for s in (_TENSORFLOW, _PYTORCH) if any(s.find(name, prefix) for name in state)]
    if len(found) == 2:
        raise ValueError(
            "`state` must be of one framework. Received: names of TensorFlow, such as "
            f"{_TENSORFLOW.example!r}, and of PyTorch, such as {_PYTORCH.example!r}. Convert them "
            "one after the other."
        )
    others = [s for s in (_TENSORFLOW, _PYTORCH) if s.prefixes(state)]
    return (found or others or [_TENSORFLOW])[0]


def _convert(layer, scheme, activation):
    kernel, transform_kernel, *rest = (layer[name][1] for name in scheme.weights)
    if scheme is _PYTORCH:
        kernel, transform_kernel = kernel.T, transform_kernel.T
    return highway_layer(activation, kernel, transform_kernel, *rest)
