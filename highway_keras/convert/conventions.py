"""What libraries mean by the weights of a highway layer: one table, and what it takes to convert.

Ours: y = H * T + x * (1 - T), with `kernel` and `bias` of H, `transform_kernel` and
`transform_bias` of T, and x @ kernel.
"""

import dataclasses

import keras
import numpy as np

from highway_keras.layers import Highway
from highway_keras.util import checks

FEWEST_UNITS = 4  # fewer biases lie close together by chance


@dataclasses.dataclass(frozen=True)
class Convention:
    """What a source calls the weights of a layer, and how they differ from ours.

    Attributes:
        weights: Names of the kernels of H and of the gate, then of their biases. If there are only
            two, each array holds H and the gate, in halves.
        order: The same names in the source's order, if its arrays may be unnamed.
        scope: Regular expression for what precedes these names, with the layer's `{number}`.
        first: Number of the first layer.
        example: A full name, for errors.
        transposed: Whether a kernel multiplies from the left.
        carries: Whether the gate multiplies the input, and so is 1 - T.
        gate_start: What the gate's biases start at.
        redefined: Activations that Keras 3 computes differently; what the source computes of z.
    """

    weights: tuple
    order: tuple = ()
    scope: str = ""
    first: int = 0
    example: str = ""
    transposed: bool = False
    carries: bool = False
    gate_start: float = -1.0
    redefined: dict = dataclasses.field(default_factory=dict)


# `W_carry` is the transform gate, in Keras as in ELMo.
_KERAS = Convention(
    weights=("W", "W_carry", "b", "b_carry"),
    order=("W", "W_carry", "b", "b_carry"),
    gate_start=1.0,
    redefined={"hard_sigmoid": "keras.ops.clip(0.2 * z + 0.5, 0, 1)"},
)
_EARLY = dataclasses.replace(_KERAS, order=("W", "b", "W_carry", "b_carry"), gate_start=-2.0)
# By version of Keras: 0.3 and 1.1 store what 1.0 does; in Keras 2 it is a legacy layer.
KERAS = {"1.0": _EARLY, "1.2": _KERAS, "2.0": _KERAS}
ALLENNLP = Convention(  # and fairseq, whose names begin without the "_"
    weights=("weight", "bias"),
    scope=r"_?layers\.{number}\.",
    example="_layers.0.weight",
    transposed=True,
    carries=True,
    gate_start=1.0,
    redefined={"leaky_relu": "keras.ops.leaky_relu(z, 0.01)"},  # the slope of PyTorch's default
)
ELMO = Convention(
    weights=("W_transform", "W_carry", "b_transform", "b_carry"),
    scope="CNN_high_{number}/",
    example="CNN_high_0/W_carry",
    gate_start=-2.0,
)
TACOTRON = (
    Convention(  # TensorFlow
        weights=("H/kernel", "T/kernel", "H/bias", "T/bias"),
        scope="highway_{number}/",
        first=1,
        example="highway_1/H/kernel",
    ),
    Convention(  # PyTorch
        weights=("H.weight", "T.weight", "H.bias", "T.bias"),
        scope=r"highways\.{number}\.",
        example="highways.0.H.weight",
        transposed=True,
    ),
)


def check_activation(activation, convention):
    """Raise unless an activation is given and Keras 3 computes it as the source did."""
    if activation is None:
        raise ValueError(
            "`activation` must be the one the layer was trained with, which its weights do not "
            "tell; 'linear' if it had none. Received: activation=None."
        )
    for name, computed in convention.redefined.items():
        if activation in (name, getattr(keras.activations, name)):
            raise ValueError(
                f"`activation` must be a function of your own here, because Keras 3 computes "
                f"{name!r} differently. {checks.received('activation', activation)} Pass one that "
                f"returns {computed} of its argument z."
            )


def to_highway(convention, activation, arrays, check_biases):
    """Return the built `Highway` layer that computes what the source's did.

    Args:
        arrays: A dictionary from the convention's names to pairs `(label, array)`; errors use the
            label. Without biases, H has none and those of T are 0.
        check_biases: The argument's name, for errors, if biases that look swapped are to be
            refused; `None` accepts any.
    """
    check_activation(activation, convention)
    kernels = convention.weights[: len(convention.weights) // 2]
    width = np.shape(np.atleast_1d(arrays[kernels[0]][1]))[-1]
    halves = len(convention.weights) == 2
    for name, (label, array) in arrays.items():
        long = 2 * width if halves else width
        expected = (long, width) if name in kernels else (long,)
        if array.shape != expected:
            raise ValueError(
                f"{label} must have shape {expected} in a highway layer of width {width}. "
                f"Received: shape={array.shape}."
            )
    parts = [arrays[name][1] for name in convention.weights if name in arrays]
    if halves:
        parts = [half for array in parts for half in np.split(array, 2)]
    kernel, gate_kernel, *rest = parts
    bias, gate_bias = rest or (None, np.zeros(width))
    if check_biases and bias is not None:
        check_start(check_biases, bias, gate_bias, convention)
    if convention.transposed:
        kernel, gate_kernel = kernel.T, gate_kernel.T
    sign = -1 if convention.carries else 1  # 1 - sigmoid(z) = sigmoid(-z)
    layer = Highway(
        width,
        activation=activation,
        use_bias=bias is not None,
        transform_bias_initializer=sign * convention.gate_start,
    )
    layer.build((None, width))
    layer.kernel.assign(kernel)
    layer.transform_kernel.assign(sign * gate_kernel)
    layer.transform_bias.assign(sign * gate_bias)
    if bias is not None:
        layer.bias.assign(bias)
    return layer


def check_start(argument, bias, gate_bias, convention):
    """Raise if the biases of H and the gate look swapped, or those of the gate negated.

    The weights of H and of the gate have the same shapes, so nothing else reveals a swap. Trained
    biases are often near their initial values, and only those of the gate differ from 0.
    """
    start = convention.gate_start
    swapped = _lie_about(start, bias) and not _lie_about(start, gate_bias)
    if swapped or (convention.carries and _lie_about(-start, gate_bias)):
        means = f"{np.mean(gate_bias):.2f} for the gate and {np.mean(bias):.2f} for H"
        raise ValueError(
            f"`{argument}` must not have H and gate swapped, or the gate negated: biases of the "
            f"gate start at {start:g}, those of H at 0. Received: means of {means}. Swap or negate "
            "them, or pass check_biases=False if they are right."
        )


def _lie_about(start, biases):
    """Return whether the biases cluster on the side of `start`, over half as far from 0."""
    mean = np.mean(biases)
    return len(biases) >= FEWEST_UNITS and mean / start > 0.5 and np.std(biases) < abs(mean) / 3
