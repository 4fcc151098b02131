"""The one table of layers. Every public layer has rows here; every layer test iterates them."""

from types import FunctionType
from typing import NamedTuple

import keras
from keras import layers as kl
from selection import all_but

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

    @property
    def channel_axis(self):
        layer = self.arguments.get("layer", dict)()
        data_format = self.arguments.get("data_format") or getattr(layer, "data_format", None)
        return 1 if data_format == "channels_first" else -1


# Every option with its default.
GATE_OPTIONS = {
    "activity_regularizer": None,
    "carry": "coupled",
    "transform_activation": "sigmoid",
    "transform_kernel_initializer": None,
    "transform_bias_initializer": -2.0,
}
OPTIONS = {
    "activation": "relu",
    "use_bias": True,
    "kernel_initializer": "glorot_uniform",
    "bias_initializer": "zeros",
    "kernel_regularizer": None,
    "bias_regularizer": None,
    "kernel_constraint": None,
    "bias_constraint": None,
    **GATE_OPTIONS,
}
SIZES = {"padding": "same", "data_format": None, "dilation_rate": 1, "groups": 1}
SIZES |= {"transform_kernel_size": None, **OPTIONS}
DEFAULTS = {
    Highway: {"units": None, **OPTIONS},
    HighwayWrapper: {**GATE_OPTIONS, "transform_kernel_initializer": "glorot_uniform"},
    HighwayStack: {
        "units": None,
        "rematerialize": False,
        **OPTIONS,
        "transform_bias_initializer": None,
    },
    **dict.fromkeys((ConvHighway1D, ConvHighway2D, ConvHighway3D), SIZES),
}
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


def wrapped(make_layer, **arguments):
    return {"layer": make_layer, **arguments}


def recurrent(cls, units):
    return lambda: cls(units, return_sequences=True)


# A width w gives H and T w * w + w parameters each; a kernel of k positions k * w * w + w.
CASES = [
    Case("dense", Highway, {}, (4, 6), 2 * (36 + 6)),
    Case("dense-units", Highway, {"units": 6, "activation": "tanh"}, (4, 6), 84),
    Case("dense-rank3", Highway, {}, (4, 5, 6), 84),
    Case("dense-rank4", Highway, {"activation": "elu"}, (4, 3, 2, 6), 84),
    Case("dense-learned", Highway, LEARNED, (4, 6), 3 * (36 + 6)),
    Case("dense-gate-options", Highway, TANH, (4, 5, 6), 126),
    Case("dense-no-bias", Highway, {"use_bias": False}, (4, 6), 84 - 6),
    Case("dense-penalized", Highway, PENALIZED, (4, 6), 84),
    Case("dense-bias-number", Highway, {"transform_bias_initializer": -4}, (4, 6), 84),
    Case("stack", HighwayStack, {"depth": 5}, (4, 6), 5 * 84),
    Case("stack-one", HighwayStack, {"depth": 1, "units": 6}, (4, 6), 84),
    Case("stack-rank3", HighwayStack, {"depth": 3, "activation": "elu"}, (4, 5, 6), 3 * 84),
    Case("stack-learned", HighwayStack, {"depth": 3, **LEARNED}, (4, 6), 3 * 126),
    Case("stack-gate-options", HighwayStack, {"depth": 3, **TANH}, (4, 5, 6), 3 * 126),
    Case("stack-no-bias", HighwayStack, {"depth": 3, "use_bias": False}, (4, 6), 3 * 78),
    Case("stack-penalized", HighwayStack, {"depth": 3, **PENALIZED}, (4, 6), 3 * 84),
    Case("stack-rematerialize", HighwayStack, {"depth": 3, "rematerialize": True}, (4, 6), 252),
    Case("1d", ConvHighway1D, {"filters": 4, "kernel_size": 3}, (4, 7, 4), 2 * (3 * 16 + 4)),
    Case(
        "1d-causal",
        ConvHighway1D,
        {"filters": 4, "kernel_size": 3, "padding": "causal", "dilation_rate": 2},
        (4, 7, 4),
        104,
    ),
    Case(
        "1d-causal-first-groups",
        ConvHighway1D,
        {"filters": 4, "kernel_size": 2, "padding": "causal", "groups": 2, **FIRST},
        (4, 4, 7),
        2 * (2 * 2 * 4 + 4),
    ),
    Case(
        "1d-gate-size-learned",
        ConvHighway1D,
        {"filters": None, "kernel_size": 4, "transform_kernel_size": 1, **LEARNED},
        (4, 7, 4),
        (4 * 16 + 4) + 2 * (16 + 4),
    ),
    Case("2d", ConvHighway2D, {"filters": 4, "kernel_size": 3}, (4, 5, 6, 4), 2 * (9 * 16 + 4)),
    Case(
        "2d-even-kernel",
        ConvHighway2D,
        {"filters": 4, "kernel_size": (2, 3), "activation": "tanh"},
        (4, 5, 6, 4),
        2 * (6 * 16 + 4),
    ),
    Case(
        "2d-first",
        ConvHighway2D,
        {"filters": 4, "kernel_size": 3, **FIRST},
        (4, 4, 5, 6),
        296,
    ),
    Case(
        "2d-dilation",
        ConvHighway2D,
        {"filters": 4, "kernel_size": 3, "dilation_rate": (2, 1)},
        (4, 5, 6, 4),
        296,
    ),
    Case(
        "2d-groups",
        ConvHighway2D,
        {"filters": 4, "kernel_size": 3, "groups": 2},
        (4, 5, 6, 4),
        2 * (9 * 2 * 4 + 4),
    ),
    Case(
        "2d-groups-first-dilation-learned",
        ConvHighway2D,
        {"filters": 4, "kernel_size": 3, "groups": 2, "dilation_rate": 2, **FIRST, **LEARNED},
        (4, 4, 5, 6),
        3 * (9 * 2 * 4 + 4),
    ),
    Case(
        "2d-gate-size",
        ConvHighway2D,
        {"filters": 4, "kernel_size": 3, "transform_kernel_size": (1, 2), **FIRST},
        (4, 4, 5, 6),
        (9 * 16 + 4) + (2 * 16 + 4),
    ),
    Case(
        "2d-learned",
        ConvHighway2D,
        {"filters": 4, "kernel_size": 3, **LEARNED},
        (4, 5, 6, 4),
        3 * (9 * 16 + 4),
    ),
    Case(
        "2d-no-bias-penalized",
        ConvHighway2D,
        {"filters": 4, "kernel_size": 3, "use_bias": False, **PENALIZED},
        (4, 5, 6, 4),
        296 - 4,
    ),
    Case(
        "3d",
        ConvHighway3D,
        {"filters": 2, "kernel_size": 3},
        (4, 4, 3, 5, 2),
        2 * (27 * 4 + 2),
    ),
    Case(
        "3d-gate-options-first",
        ConvHighway3D,
        {"filters": 2, "kernel_size": (1, 2, 3), **FIRST, **TANH},
        (4, 2, 4, 3, 5),
        3 * (6 * 4 + 2),
    ),
    Case(
        "3d-groups-dilation",
        ConvHighway3D,
        {"filters": 2, "kernel_size": 2, "groups": 2, "dilation_rate": (1, 2, 1)},
        (4, 4, 3, 5, 2),
        2 * (8 * 1 * 2 + 2),
    ),
    Case("wrapped-dense", HighwayWrapper, wrapped(lambda: kl.Dense(6, "relu")), (4, 6), 84),
    Case(
        "wrapped-dense-learned",
        HighwayWrapper,
        wrapped(lambda: kl.Dense(6, "tanh"), **LEARNED),
        (4, 5, 6),
        126,
    ),
    Case(
        "wrapped-dense-gate-options",
        HighwayWrapper,
        wrapped(
            lambda: kl.Dense(6, "relu", kernel_regularizer="l2"),
            **GATES,
        ),
        (4, 6),
        126,
    ),
    Case(
        "wrapped-own-gates",
        HighwayWrapper,
        wrapped(
            lambda: kl.Dense(6, "relu"),
            transform=lambda: kl.Dense(6, "hard_sigmoid", kernel_regularizer="l1"),
            carry=lambda: kl.Dense(6, "sigmoid", bias_initializer="ones"),
        ),
        (4, 6),
        126,
    ),
    Case(
        "wrapped-causal-conv1d",
        HighwayWrapper,
        wrapped(lambda: kl.Conv1D(4, 3, padding="causal", dilation_rate=2)),
        (4, 7, 4),
        104,
    ),
    Case(
        "wrapped-conv2d",
        HighwayWrapper,
        wrapped(lambda: kl.Conv2D(4, 3, padding="same", activation="relu"), **LEARNED),
        (4, 5, 6, 4),
        3 * (9 * 16 + 4),
    ),
    Case(
        "wrapped-conv2d-first",
        HighwayWrapper,
        wrapped(lambda: kl.Conv2D(4, 3, padding="same", data_format="channels_first")),
        (4, 4, 5, 6),
        296,
    ),
    Case(
        "wrapped-depthwise",
        HighwayWrapper,
        wrapped(lambda: kl.DepthwiseConv2D(3, padding="same")),
        (4, 5, 6, 4),
        (9 * 4 + 4) + (9 * 16 + 4),
    ),
    Case(
        "wrapped-lstm",
        HighwayWrapper,
        wrapped(recurrent(kl.LSTM, 5)),
        (4, 3, 5),
        4 * (25 + 25 + 5) + (25 + 5),
    ),
    Case(
        "wrapped-gru-learned",
        HighwayWrapper,
        wrapped(recurrent(kl.GRU, 5), **LEARNED),
        (4, 3, 5),
        3 * (25 + 25 + 2 * 5) + 2 * (25 + 5),
    ),
    Case(
        "wrapped-bidirectional",
        HighwayWrapper,
        wrapped(lambda: kl.Bidirectional(kl.GRU(3, return_sequences=True))),
        (4, 3, 6),
        2 * 3 * (18 + 9 + 2 * 3) + (36 + 6),
    ),
    Case(
        "wrapped-attention",
        HighwayWrapper,
        # Without biases: the gradient of a key's bias is zero, as softmax ignores a shift.
        wrapped(lambda: kl.MultiHeadAttention(2, key_dim=3, use_bias=False)),
        (4, 3, 6),
        4 * 36 + (36 + 6),
    ),
    Case(
        "wrapped-sequential",
        HighwayWrapper,
        wrapped(lambda: keras.Sequential([kl.Dense(9, "elu"), kl.Dropout(0.1), kl.Dense(6)])),
        (4, 6),
        (54 + 9) + (54 + 6) + (36 + 6),
    ),
    Case("match-size-pad", MatchSize, {"channels": 5}, (4, 3), 0, (4, 5)),
    Case("match-size-cut", MatchSize, {"channels": 2}, (4, 7, 3), 0, (4, 7, 2)),
    Case("match-size-stride", MatchSize, {"strides": 2}, (4, 5, 6, 3), 0, (4, 3, 3, 3)),
    Case(
        "match-size-first",
        MatchSize,
        {"channels": 5, "strides": 2, **FIRST},
        (4, 3, 5, 6, 7),
        0,
        (4, 5, 3, 3, 4),
    ),
    Case("maxout", Maxout, {}, (4, 6), 0, (4, 3)),
    Case("maxout-pieces", Maxout, {"pieces": 3}, (4, 7, 6), 0, (4, 7, 2)),
    Case("maxout-axis", Maxout, {"pieces": 4, "axis": 1}, (4, 8, 3, 5), 0, (4, 2, 3, 5)),
]
GATED = [case for case in CASES if case.layer not in (MatchSize, Maxout)]


def named(cases, slow=()):
    """The arguments of `pytest.mark.parametrize` that run a test over cases; `slow` names some."""
    names = [case.name for case in cases]
    quick = [case for case in cases if case.name not in slow]
    return {"argnames": "case", "argvalues": all_but(quick, cases), "ids": names}
