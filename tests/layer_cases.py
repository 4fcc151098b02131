"""The one table of layers. Every public layer has rows here; every layer test iterates them."""

from types import FunctionType
from typing import NamedTuple

import keras
from helpers import all_but
from keras import layers as kl

from highway_keras.layers import (
    ConvHighway1D,
    ConvHighway2D,
    ConvHighway3D,
    Highway,
    HighwayStack,
    HighwayWrapper,
    MatchSize,
    Maxout,
)


class Case(NamedTuple):
    """A layer with its arguments, the shape of one batch, and its parameters counted by hand."""

    name: str
    layer: type
    arguments: dict  # A function stands for an argument that each layer needs anew.
    input_shape: tuple
    parameters: int
    output_shape: tuple | None = None  # None: that of the input.

    def make(self, **changes):
        arguments = {**self.arguments, **changes}
        return self.layer(
            **{k: v() if isinstance(v, FunctionType) else v for k, v in arguments.items()}
        )

    @property
    def expected_shape(self):
        return self.output_shape or self.input_shape

    @property
    def gate_shape(self):
        """A stack returns the gates of all its layers, depth first."""
        return tuple(n for n in (self.arguments.get("depth"),) if n) + self.input_shape


FIRST = {"data_format": "channels_first"}
LEARNED = {"carry": "learned"}
PENALIZED = {
    "kernel_regularizer": keras.regularizers.L2(0.01),
    "bias_regularizer": "l1",
    "kernel_constraint": keras.constraints.MaxNorm(0.5),
    "bias_constraint": keras.constraints.MaxNorm(1.0),
}
# Every option of the gates away from its default.
GATES = {
    **LEARNED,
    "transform_activation": "hard_sigmoid",
    "transform_kernel_initializer": keras.initializers.RandomNormal(stddev=0.1),
    "transform_bias_initializer": 0.5,
}
TANH = {"activation": "tanh", **GATES}
# Gates of a user's own need no kernel.
OWN_GATES = {
    "transform": lambda: keras.Sequential([kl.Dense(6, "hard_sigmoid", kernel_regularizer="l1")]),
    "carry": lambda: keras.Sequential([kl.Dense(6, "sigmoid", bias_initializer="ones")]),
}
HALVED = {"strides": 2, **FIRST}
SAME = {"padding": "same"}
DILATED = {"dilation_rate": 2, **SAME, **FIRST}


def perceptron():
    return keras.Sequential([kl.Dense(9, "elu"), kl.Dropout(0.1), kl.Dense(6)])


def row(name, layer, input_shape, parameters, output_shape=None, **arguments):
    return Case(name, layer, arguments, input_shape, parameters, output_shape)


def conv(name, layer, input_shape, parameters, filters=4, kernel_size=3, **arguments):
    sizes = {"filters": filters, "kernel_size": kernel_size}
    return row(name, layer, input_shape, parameters, **sizes, **arguments)


def wrap(name, layer, input_shape, parameters, **arguments):
    return Case(name, HighwayWrapper, {"layer": layer, **arguments}, input_shape, parameters)


# A width w gives H and T w * w + w parameters each; a kernel of k positions k * w * w + w.
CASES = [
    row("dense", Highway, (4, 6), 2 * (36 + 6)),
    row("dense-rank4", Highway, (4, 3, 2, 6), 84, units=6, activation="elu"),
    row("dense-learned", Highway, (4, 6), 3 * (36 + 6), **LEARNED),
    row("dense-gate-options", Highway, (4, 5, 6), 126, **TANH),
    row("dense-penalized", Highway, (4, 6), 84, **PENALIZED),
    row("stack", HighwayStack, (4, 5, 6), 5 * 84, depth=5),
    row("stack-learned", HighwayStack, (4, 6), 126, depth=1, **LEARNED),
    row("stack-gate-options", HighwayStack, (4, 6), 3 * 126, depth=3, **TANH),
    row("stack-penalized", HighwayStack, (4, 6), 3 * 78, depth=3, use_bias=False, **PENALIZED),
    conv("1d-causal", ConvHighway1D, (4, 7, 4), 104, padding="causal", dilation_rate=2),
    conv("2d", ConvHighway2D, (4, 5, 6, 4), 2 * (9 * 16 + 4), None, (3, 3)),
    conv("2d-groups", ConvHighway2D, (4, 5, 6, 4), 104, 4, (2, 3), groups=2, dilation_rate=2),
    conv("2d-gate-size", ConvHighway2D, (4, 4, 5, 6), 184, transform_kernel_size=(1, 2), **FIRST),
    conv("2d-learned", ConvHighway2D, (4, 5, 6, 4), 3 * (9 * 16 + 4), **LEARNED),
    conv("2d-penalized", ConvHighway2D, (4, 5, 6, 4), 296 - 4, use_bias=False, **PENALIZED),
    conv("3d", ConvHighway3D, (4, 4, 3, 5, 2), 2 * (27 * 4 + 2), 2),
    conv("3d-gate-options", ConvHighway3D, (4, 2, 4, 3, 5), 78, 2, (1, 2, 3), **FIRST, **TANH),
    wrap("wrapped-dense", lambda: kl.Dense(6, "relu"), (4, 6), 84),
    wrap("wrapped-dense-gate-options", lambda: kl.Dense(6, "relu"), (4, 5, 6), 126, **GATES),
    wrap("wrapped-dense-own-gates", lambda: kl.Dense(6, "relu"), (4, 6), 126, **OWN_GATES),
    wrap("wrapped-conv2d", lambda: kl.Conv2D(4, 3, **SAME), (4, 5, 6, 4), 3 * 148, **LEARNED),
    wrap("wrapped-first", lambda: kl.Conv2D(4, (3, 5), **DILATED), (4, 4, 5, 6), 488),
    wrap("wrapped-depthwise", lambda: kl.DepthwiseConv2D(3, **SAME), (4, 5, 6, 4), 40 + 148),
    # Without biases: the gradient of a key's bias is zero, as softmax ignores a shift.
    wrap("wrapped-attention", lambda: kl.MultiHeadAttention(2, 3, use_bias=False), (4, 3, 6), 186),
    wrap("wrapped-sequential", perceptron, (4, 6), (54 + 9) + (54 + 6) + (36 + 6)),
    row("match-size-cut", MatchSize, (4, 7, 3), 0, (4, 7, 2), channels=2),
    row("match-size", MatchSize, (4, 3, 5, 6, 7), 0, (4, 5, 3, 3, 4), channels=5, **HALVED),
    row("maxout", Maxout, (4, 7, 6), 0, (4, 7, 2), pieces=3),
    row("maxout-axis", Maxout, (4, 8, 3, 5), 0, (4, 2, 3, 5), pieces=4, axis=1),
]
GATED = [case for case in CASES if case.layer not in (MatchSize, Maxout)]


def named(cases, slow=()):
    """The arguments of `pytest.mark.parametrize` that run a test over cases; `slow` names some."""
    names = [case.name for case in cases]
    quick = [case for case in cases if case.name not in slow]
    return {"argnames": "case", "argvalues": all_but(quick, cases), "ids": names}
