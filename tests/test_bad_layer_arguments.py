"""What a user may pass wrongly to a layer: each row a mistake and the text of its error."""

import re

import keras
import numpy as np
import pytest
from keras.layers import GRU, LSTM, Conv2D, Dense

from highway_keras import (
    ConvHighway1D,
    ConvHighway2D,
    ConvHighway3D,
    Highway,
    HighwayStack,
    HighwayWrapper,
    TransformBias,
)
from highway_keras.layers import MatchSize, Maxout


def image(*sizes, dtype=None):
    return keras.Input(sizes, dtype=dtype)


# Arguments: each is caught where the layer is made.
ARGUMENTS = {
    "units negative": (
        lambda: Highway(-3),
        ValueError,
        "`units` must be a positive integer, or None for the width of the input. "
        "Received: units=-3.",
    ),
    "units a float": (lambda: Highway(3.0), ValueError, "Received: units=3.0."),
    "units a string": (lambda: Highway("50"), ValueError, "Received: units='50'."),
    "units True": (lambda: Highway(True), ValueError, "Received: units=True."),
    "misspelt option": (
        lambda: Highway(transform_kernal_initializer="zeros"),
        ValueError,
        "Unrecognized keyword arguments passed to Highway: {'transform_kernal_initializer'",
    ),
    "carry unknown": (
        lambda: Highway(carry="free"),
        ValueError,
        "`carry` must be 'coupled' (C = 1 - T) or 'learned' (C has its own gate). "
        "Received: carry='free'.",
    ),
    "carry None": (lambda: ConvHighway2D(4, 3, carry=None), ValueError, "Received: carry=None."),
    "wrapper carry": (
        lambda: HighwayWrapper(Dense(4), carry=0.5),
        ValueError,
        "Received: carry=0.5.",
    ),
    "positive TransformBias": (
        lambda: Highway(transform_bias_initializer=TransformBias(1.0)),
        ValueError,
        "`value` must be negative and finite: a transform gate that starts open hides the input "
        "from the layers above, which is what highway layers are there to prevent. "
        "Received: value=1.0. For any other constant use `keras.initializers.Constant`.",
    ),
    "transform bias NaN": (
        lambda: Highway(transform_bias_initializer=float("nan")),
        ValueError,
        "An initial value must be finite. Received: nan.",
    ),
    "initializer unknown": (
        lambda: Highway(transform_kernel_initializer="zeroes"),
        ValueError,
        "Could not interpret initializer identifier: zeroes",
    ),
    "activation unknown": (
        lambda: Highway(activation="reluu"),
        ValueError,
        "Could not interpret activation function identifier: reluu",
    ),
    "filters zero": (
        lambda: ConvHighway2D(0, 3),
        ValueError,
        "`filters` must be a positive integer, or None for the channels of the input. "
        "Received: filters=0.",
    ),
    "kernel size zero": (
        lambda: ConvHighway2D(4, 0),
        ValueError,
        "`kernel_size` must be a positive integer or 2 of them. Received: kernel_size=0.",
    ),
    "kernel size of another rank": (
        lambda: ConvHighway3D(4, (3, 3)),
        ValueError,
        "`kernel_size` must be a positive integer or 3 of them. Received: kernel_size=(3, 3).",
    ),
    "gate kernel size zero": (
        lambda: ConvHighway2D(4, 3, transform_kernel_size=0),
        ValueError,
        "`transform_kernel_size` must be a positive integer or 2 of them. "
        "Received: transform_kernel_size=0.",
    ),
    "dilation a float": (
        lambda: ConvHighway1D(4, 3, dilation_rate=1.5),
        ValueError,
        "`dilation_rate` must be a positive integer or 1 of them. Received: dilation_rate=1.5.",
    ),
    "groups zero": (
        lambda: ConvHighway1D(4, 3, groups=0),
        ValueError,
        "`groups` must be a positive integer. Received: groups=0.",
    ),
    "strides": (
        lambda: ConvHighway2D(4, 3, strides=2),
        ValueError,
        "`strides` must be 1: the carry path adds the input to the block state, so both need one "
        "size. Received: strides=2. Sub-sample with a plain layer, a pooling layer or "
        "`highway_keras.layers.MatchSize` before this one.",
    ),
    "strides of one axis": (
        lambda: ConvHighway2D(4, 3, strides=(1, 2)),
        ValueError,
        "`strides` must be 1: ",
    ),
    "padding valid": (
        lambda: ConvHighway2D(4, 3, padding="valid"),
        ValueError,
        "`padding` must be 'same'. padding='valid' shrinks the block state below the input that is "
        "carried past it. Received: padding='valid'.",
    ),
    "padding causal in two dimensions": (
        lambda: ConvHighway2D(4, 3, padding="causal"),
        ValueError,
        "`padding` must be 'same'. Received: padding='causal'.",
    ),
    "padding unknown in one dimension": (
        lambda: ConvHighway1D(4, 3, padding="reflect"),
        ValueError,
        "`padding` must be 'same' or 'causal'. Received: padding='reflect'.",
    ),
    "data format": (
        lambda: ConvHighway2D(4, 3, data_format="NCHW"),
        ValueError,
        "`data_format` must be 'channels_last', 'channels_first' or None. "
        "Received: data_format='NCHW'.",
    ),
    "wrapped name": (
        lambda: HighwayWrapper("dense"),
        TypeError,
        "`layer` must be a Keras layer. Received: layer='dense' (of type str).",
    ),
    "wrapped class": (
        lambda: HighwayWrapper(Dense),
        TypeError,
        "`layer` must be a Keras layer. Received: layer=<class",
    ),
    "match size channels": (
        lambda: MatchSize(0),
        ValueError,
        "`channels` must be a positive integer, or None for the channels of the input. "
        "Received: channels=0.",
    ),
    "match size strides": (
        lambda: MatchSize(4, strides=(2, 2)),
        ValueError,
        "`strides` must be a positive integer. Received: strides=(2, 2).",
    ),
    "maxout pieces": (
        lambda: Maxout(2.0),
        ValueError,
        "`pieces` must be a positive integer. Received: pieces=2.0.",
    ),
    "maxout axis": (
        lambda: Maxout(2, axis="channels"),
        ValueError,
        "`axis` must be an integer. Received: axis='channels'.",
    ),
}
# Shapes: each is caught where the layer meets its input.
SHAPES = {
    "width of a dense layer": (
        lambda: Highway(50)(image(64)),
        ValueError,
        "`units` must equal the width of the input, because the carry path adds the input to the "
        "block state. Received: units=50, input_shape=(None, 64). Put a plain layer of that width "
        "before this one (the paper's way) or `highway_keras.layers.MatchSize(50)`; units=None "
        "takes the input's width.",
    ),
    "channels of a convolution": (
        lambda: ConvHighway2D(16, 3)(image(8, 8, 3)),
        ValueError,
        "`filters` must equal the width of the input",
    ),
    "channels first of a convolution": (
        lambda: ConvHighway2D(8, 3, data_format="channels_first")(image(3, 8, 8)),
        ValueError,
        "Received: filters=8, input_shape=(None, 3, 8, 8).",
    ),
    "unknown width": (
        lambda: Highway()(image(None)),
        ValueError,
        "The channel axis of the input must have a known size. Received: input_shape=(None, None).",
    ),
    "no batch axis of a stack": (
        lambda: HighwayStack(2)(np.ones(3, "float32")),
        ValueError,
        "`HighwayStack` expects inputs of shape (batch_size, ..., units). "
        "Received: input_shape=(3,).",
    ),
    "no batch axis": (
        lambda: Highway()(np.ones(3, "float32")),
        ValueError,
        "`Highway` expects inputs of shape (batch_size, ..., units). Received: input_shape=(3,).",
    ),
    "rank of a convolution": (
        lambda: ConvHighway2D(3, 3)(image(8, 3)),
        ValueError,
        "`ConvHighway2D` expects inputs of rank 4: batch, 2 spatial axes and channels. "
        "Received: input_shape=(None, 8, 3).",
    ),
    "groups that do not divide": (
        lambda: ConvHighway2D(4, 3, groups=3)(image(8, 8, 4)),
        ValueError,
        "`groups` must divide the channels of the input. "
        "Received: groups=3, input_shape=(None, 8, 8, 4).",
    ),
    "wrapper of a number": (
        lambda: HighwayWrapper(Dense(3))(np.float32(3)),
        ValueError,
        "`HighwayWrapper` expects inputs of shape (batch_size, ..., units). "
        "Received: input_shape=().",
    ),
    "wrapped layer of another width": (
        lambda: HighwayWrapper(Dense(5, name="h"))(image(4)),
        ValueError,
        "`layer` must preserve the shape of its input. Received: layer='h', which turns (None, 4) "
        "into (None, 5). Set its units, filters, padding or return_sequences so that both agree, "
        "or change the size with a plain layer before it.",
    ),
    "wrapped convolution that shrinks": (
        lambda: HighwayWrapper(Conv2D(4, 3, name="h"))(image(8, 8, 4)),
        ValueError,
        "layer='h', which turns (None, 8, 8, 4) into (None, 6, 6, 4).",
    ),
    "wrapped recurrence without its sequence": (
        lambda: HighwayWrapper(GRU(4, name="h"))(image(7, 4)),
        ValueError,
        "layer='h', which turns (None, 7, 4) into (None, 4).",
    ),
    "wrapped recurrence with its state": (
        lambda: HighwayWrapper(LSTM(4, return_sequences=True, return_state=True))(image(7, 4)),
        ValueError,
        "`layer` must preserve the shape of its input.",
    ),
    "match size without channels": (
        lambda: MatchSize(4)(image(None)),
        ValueError,
        "`MatchSize` expects inputs of rank 2 or more with a known number of channels. "
        "Received: input_shape=(None, None).",
    ),
    "maxout of channels that do not divide": (
        lambda: Maxout(2)(image(3)),
        ValueError,
        "`pieces` must divide the channels of the input. "
        "Received: pieces=2, input_shape=(None, 3).",
    ),
    "maxout of another axis": (
        lambda: Maxout(2, axis=4)(image(8, 8)),
        ValueError,
        "`axis` must be an axis of the input. Received: axis=4, input_shape=(None, 8, 8).",
    ),
}
# Types: Keras adds to the text of what is raised while a layer runs.
INTEGERS = "`inputs` must be floating point, because gates blend input and block state. "
TYPES = {
    "integers": (lambda: Highway()(np.ones((2, 3), "int32")), TypeError, INTEGERS),
    "symbolic integers": (lambda: Highway()(image(3, dtype="int32")), TypeError, INTEGERS),
    "pixels": (
        lambda: ConvHighway2D(3, 3)(np.ones((2, 8, 8, 3), "uint8")),
        TypeError,
        INTEGERS + "Received: dtype=uint8. Cast first: `keras.ops.cast(x, 'float32')`.",
    ),
    "wrapped integers": (
        lambda: HighwayWrapper(Dense(3))(np.ones((2, 3), "int32")),
        TypeError,
        INTEGERS,
    ),
    "wrapped symbolic integers": (
        lambda: HighwayWrapper(Dense(3))(image(3, dtype="int32")),
        TypeError,
        INTEGERS,
    ),
}
ROWS = {**ARGUMENTS, **SHAPES, **TYPES}


@pytest.mark.parametrize("name", ROWS)
def test_mistake(name):
    mistake, error, text = ROWS[name]
    with pytest.raises(error, match=re.escape(text)) as caught:
        mistake()
    if name not in TYPES:
        assert "\n" not in str(caught.value)
