"""A maxout network with the same convolutions: two maps per unit, the larger one wins, no gate."""

import keras

from benchmarks.peers import keras_turns, two_convolutions
from highway_keras.layers import Maxout


def block(x, width):
    return Maxout(2)(keras.layers.Conv2D(2 * width, 3, padding="same")(x))


def run(case, turns):
    keras_turns.run(lambda: two_convolutions.build(case, block), case, turns, jit_compile=False)
