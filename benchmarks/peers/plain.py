"""A plain Keras network of equal parameters: 71 units, no gates."""

import keras

from benchmarks.peers import keras_turns


def build(depth):
    hidden = [keras.layers.Dense(71, "tanh") for _ in range(depth)]
    top = keras.layers.Dense(10, "softmax")
    return keras.Sequential([keras.Input((28, 28, 1)), keras.layers.Flatten(), *hidden, top])


def run(case, turns):
    keras_turns.run(lambda: build(case.depth), case, turns, jit_compile=False)
