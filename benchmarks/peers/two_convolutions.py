"""What a Keras user writes: two Conv2D layers per block, `fit` on arrays."""

import keras

from benchmarks.peers import keras_turns
from highway_keras.models import cifar


def block(x, width):
    closed = keras.initializers.Constant(-2.0)
    h = keras.layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    t = keras.layers.Conv2D(
        width, 3, padding="same", activation="sigmoid", bias_initializer=closed
    )(x)
    return h * t + x * (1.0 - t)


def build(case, block=block):
    """The case's network with `block` in place of its highway layers."""

    def bind(widths):
        def stage(x, name, kernel):
            x = keras.layers.Conv2D(widths[0], 3, padding="same", activation="relu")(x)
            for width in widths[1:]:
                x = block(x, width)
            return x

        return stage

    head = cifar.dense_head(500) if case.model == "highway-b" else cifar.average_head
    return cifar.cifar_network([bind(widths) for widths in cifar.HIGHWAY_B], head)


def run(case, turns):
    keras_turns.run(lambda: build(case), case, turns, jit_compile=False)
