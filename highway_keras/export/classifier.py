"""What is exported, the same for all formats: raw images to probabilities and class numbers.

Keras's own `model.export` writes it. It could also write a trained network unchanged, but not as
other runtimes need it: each change made here says why.
"""

import keras
import tensorflow as tf
from keras import ops

from highway_keras.layers import HighwayStack


def classifier(network):
    """Return a Keras model from raw `images` to `probabilities` and `class_id`.

    Args:
        network: A Sequential or functional model: raw images in, class probabilities out.
    """
    images = keras.Input(network.input_shape[1:], dtype="uint8", name="images")
    return keras.Model(images, Classifier(_unrolled(network))(images), name="serving")


class Classifier(keras.Layer):
    """A network as one layer without variables.

    Every runtime can fold and pack constants. With variables, a SavedModel takes 1.7 to 1.8 times
    the bytes, and a call with one image 1.2 to 1.4 times the time.
    """

    def __init__(self, network):
        super().__init__()
        variables = network.trainable_variables, network.non_trainable_variables
        weights = [[ops.convert_to_numpy(v) for v in part] for part in variables]
        # A function, not an attribute: Keras would take the network's variables for the layer's.
        self._run = lambda x: network.stateless_call(*weights, x, training=False)[0]

    def call(self, images):
        probabilities = tf.cast(self._run(tf.cast(images, tf.float32)), tf.float32)
        # Keras's own `argmax` tells -0.0 from 0.0 by operations that other runtimes do not know.
        return {"probabilities": probabilities, "class_id": tf.argmax(probabilities, axis=-1)}


def _unrolled(model):
    """Return the network with every `HighwayStack` as the chain of layers that it replaces.

    The loop is for training. In a server, XLA would compile it again for each batch size, and no
    runtime packs or quantizes weights that a counter selects.
    """

    def copy(layer):
        if isinstance(layer, HighwayStack):
            return keras.Sequential(layer.unstack(), name=layer.name)
        return layer

    return keras.models.clone_model(model, clone_function=copy, recursive=True)
