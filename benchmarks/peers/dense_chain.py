"""What a Keras user writes: two Dense layers per block, `fit` on arrays, no XLA."""

import keras

from benchmarks.peers import keras_turns


def build(depth):
    inputs = keras.Input((28, 28, 1))
    x = keras.layers.Dense(50, "tanh")(keras.layers.Flatten()(inputs))
    closed = keras.initializers.Constant(-4.0)
    for _ in range(depth - 1):
        h = keras.layers.Dense(50, "tanh")(x)
        t = keras.layers.Dense(50, "sigmoid", bias_initializer=closed)(x)
        x = h * t + x * (1.0 - t)
    return keras.Model(inputs, keras.layers.Dense(10, "softmax")(x))


def run(case, turns):
    keras_turns.run(lambda: build(case.depth), case, turns, jit_compile=False)
