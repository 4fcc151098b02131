"""What layers refuse: the type of the error, and the name of the argument or the shapes in it."""

import keras
import numpy as np
import pytest
from keras.layers import LSTM, Dense

from highway_keras import (
    ConvHighway2D,
    Highway,
    HighwayStack,
    HighwayWrapper,
    TransformBias,
)
from highway_keras.layers import MatchSize, Maxout


def image(*sizes, dtype=None):
    return keras.Input(sizes, dtype=dtype)


def built(**options):
    layer = Highway(**options)
    layer.build((None, 6))
    return layer


# Each is caught where the layer is made.
ARGUMENTS = [
    (lambda: Highway(-3), "units=-3"),
    (lambda: Highway(transform_kernal_initializer="zeros"), "transform_kernal_initializer"),
    (lambda: Highway(carry="free"), "carry"),
    (lambda: Highway(transform_bias_initializer=TransformBias(1.0)), "value"),
    (lambda: Highway(transform_kernel_initializer="zeroes"), "zeroes"),
    (lambda: Highway(activation="reluu"), "reluu"),
    (lambda: ConvHighway2D(0, 3), "filters"),
    (lambda: ConvHighway2D(4, 3, strides=2), "strides"),
    (lambda: HighwayStack(0), "depth"),
    (lambda: HighwayStack(3, transform_bias_initializer=[-1.0, "low", -2.0]), "low"),
    (lambda: MatchSize(0), "channels"),
    (lambda: MatchSize(4, strides=(2, 2)), "strides"),
    (lambda: Maxout(2.0), "pieces"),
]
# Each is caught where the layer meets its input.
SHAPES = [
    (lambda: Highway(50)(image(64)), r"units=50, input_shape=\(None, 64\).*MatchSize"),
    (lambda: HighwayStack(2, transform_bias_initializer=[-1, -2, -3])(image(6)), "size 3"),
    (lambda: Highway()(image(None)), "units=None"),
    (lambda: ConvHighway2D(16, 3)(image(8, 8, 3)), "filters=16"),
    (lambda: ConvHighway2D(4, 3, padding="valid")(image(8, 8, 4)), "padding='valid'"),
    (lambda: ConvHighway2D(4, 3, groups=3)(image(8, 8, 4)), "groups"),
    (lambda: ConvHighway2D(4, 3, transform_kernel_size=0)(image(8, 8, 4)), "kernel_size"),
    (lambda: HighwayWrapper(Dense(5, name="h"))(image(4)), r"layer=.*h.*into \(None, 5\)"),
    (lambda: HighwayWrapper(LSTM(4, return_sequences=True, return_state=True))(image(7, 4)), "la"),
    (lambda: HighwayWrapper(Dense(4), transform=Dense(5))(image(4)), "`transform` turns into"),
    (lambda: Maxout(2)(image(3)), "pieces"),
    # What a layer can do only once it is built, or cannot do.
    (lambda: Highway().enable_lora(2), "not built"),
    (lambda: Highway().quantize("int8"), "not built|isn't yet built"),
    (lambda: built(kernel_constraint="unit_norm").enable_lora(2), "kernel_constraint"),
    (lambda: HighwayStack(3).unstack(), "built"),
    (lambda: HighwayStack.from_layers([]), "layers"),
    (lambda: HighwayStack.from_layers([Highway()]), "built"),
    (lambda: HighwayStack.from_layers([MatchSize()]), "Highway"),
    (lambda: HighwayStack.from_layers([built(), built(activation="tanh")]), "in activation"),
    (lambda: HighwayStack.from_layers(2 * [built(activity_regularizer="l2")]), "activity_regular"),
]
INTEGERS = [
    (lambda: Highway()(image(3, dtype="int32")), "inputs"),
    (lambda: ConvHighway2D(3, 3)(np.ones((2, 8, 8, 3), "uint8")), "inputs.*uint8"),
    (lambda: HighwayWrapper(Dense(3))(np.ones((2, 3), "int32")), "inputs"),
    (lambda: HighwayWrapper("dense"), "layer='dense'"),
    (lambda: HighwayWrapper(Dense(4), transform="sigmoid"), "transform"),
]


@pytest.mark.parametrize("mistake, match", ARGUMENTS + SHAPES)
def test_wrong_values(mistake, match):
    with pytest.raises(ValueError, match=match):
        mistake()


@pytest.mark.parametrize("mistake, match", INTEGERS)
def test_wrong_types(mistake, match):
    with pytest.raises(TypeError, match=match):
        mistake()


def test_a_stack_names_unstack():
    stack = HighwayStack(2)
    stack.build((None, 4))
    for mistake in (lambda: stack.enable_lora(2), lambda: stack.quantize("int8")):
        with pytest.raises(NotImplementedError, match="unstack"):
            mistake()
