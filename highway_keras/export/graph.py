"""The graph that is exported: raw or encoded images to probabilities, for all formats one.

Its weights are constants, so that every runtime can fold and pack them.
"""

import keras
import tensorflow as tf
from keras import ops

from highway_keras.export.decoding import decode
from highway_keras.layers import HighwayStack


class ServingGraph:
    """The concrete TensorFlow functions of a classifier.

    Args:
        model: A Sequential or functional model: raw images in, class probabilities out.
        class_names: The names of its classes.

    Attributes:
        numbers: `images` to `probabilities` and `class_id`: what every runtime can run.
        images: The same, and `class_name`.
        encoded: PNG or JPEG files as bytes to the same; `None` for a network that takes neither
            grey levels nor RGB.
    """

    def __init__(self, model, class_names):
        self._network = _unrolled(model)
        # Read here: as arguments of a stateless call they are constants of the graph.
        variables = self._network.trainable_variables, self._network.non_trainable_variables
        self._weights = [[ops.convert_to_numpy(v) for v in part] for part in variables]
        self._names = tf.constant(class_names)
        self._shape = tuple(model.input_shape[1:])
        images = tf.TensorSpec((None, *self._shape), tf.uint8, name="images")
        encoded = tf.TensorSpec((None,), tf.string, name="encoded")
        self.numbers = _function(self._classify, images)
        self.images = _function(self._name, images)
        self.encoded = None
        if self._shape[-1] in (1, 3):
            self.encoded = _function(self._decode_and_name, encoded)

    def _classify(self, images):
        images = tf.cast(images, tf.float32)
        probabilities, _ = self._network.stateless_call(*self._weights, images, training=False)
        probabilities = tf.cast(probabilities, tf.float32)
        return {"probabilities": probabilities, "class_id": tf.argmax(probabilities, axis=-1)}

    def _name(self, images):
        outputs = self.numbers(images)  # a call: both signatures share one copy of the weights
        return {**outputs, "class_name": tf.gather(self._names, outputs["class_id"])}

    def _decode_and_name(self, encoded):
        spec = tf.TensorSpec(self._shape, tf.uint8)
        images = tf.map_fn(lambda p: decode(p, self._shape), encoded, fn_output_signature=spec)
        return self._name(images)


def _function(f, spec):
    return tf.function(f, input_signature=[spec], autograph=False)


def _unrolled(model):
    """The network with every `HighwayStack` as the chain of layers that it stands for.

    The loop is for training. Serving, its XLA would compile anew for each batch size, and no
    runtime packs or quantizes weights that are picked by a counter.
    """

    def copy(layer):
        if isinstance(layer, HighwayStack):
            return keras.Sequential(layer.unstack(), name=layer.name)
        return layer

    return keras.models.clone_model(model, clone_function=copy, recursive=True)
