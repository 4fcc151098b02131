"""Write each format with Keras's own exporters, plus what they lack.

Keras's `model.export` could write a trained network as it is, but other runtimes need it changed;
each change below says why.
"""

import pathlib
import tempfile
import warnings

import keras
from keras import ops

from highway_keras.layers import HighwayStack
from highway_keras.models.weight_files import copy_weights
from highway_keras.util.files import compress
from highway_keras.util.messages import notice

ONNX_OPSET = 17


def write(network, path, format, quantize, class_names, calibration):
    """Write a network; `calibration` are the images that int8 activations need."""
    if format == "keras":
        write_keras(network, path, quantize)
        return
    model = classifier(network)
    if format == "saved_model":
        write_saved_model(model, path, class_names)
    elif format == "onnx":
        # With a signature, because Keras infers that of a model only after a call.
        options = {"input_signature": model.inputs, "opset_version": ONNX_OPSET}
        model.export(str(path), "onnx", verbose=False, **options)
    elif format == "litert":
        import tensorflow as tf

        options = {"optimizations": [tf.lite.Optimize.DEFAULT]} if quantize else {}
        if quantize == "float16":
            options["target_spec"] = {"supported_types": [tf.float16]}
        if quantize == "int8":
            options["representative_dataset"] = lambda: ({"images": x[None]} for x in calibration)
        model.export(str(path), "litert", verbose=False, **options)
    elif format == "openvino":
        import openvino

        with tempfile.TemporaryDirectory() as folder:
            # Keras has no option for half precision.
            whole = pathlib.Path(folder) / path.name
            model.export(str(whole), "openvino", verbose=False)
            half = quantize == "float16"
            openvino.save_model(openvino.Core().read_model(whole), path, compress_to_fp16=half)


def write_keras(model, path, quantize):
    """Write a Keras model that was loaded without its optimizer, optionally in int8."""
    model = unrolled(model) if quantize else model
    copy = keras.models.clone_model(model)  # without the optimizers of the models inside
    copy_weights(model, copy)
    if quantize:
        with warnings.catch_warnings():
            # Keras warns about each layer that it leaves unchanged: pooling, dropout, scaling ...
            warnings.filterwarnings("ignore", ".* does not have a `quantize` method")
            copy.quantize(quantize)
    copy.save(path)
    compress(path)


def write_saved_model(model, path, class_names):
    """Write a classifier with class names and, for images, a second signature for their files."""
    import tensorflow as tf

    from highway_keras.export.decoding import decode_all

    # `model.export` has one signature, `serve`, and no strings.
    archive = keras.export.ExportArchive()
    names, shape = tf.constant(class_names), model.input_shape[1:]

    def classify(images):
        outputs = model(images)
        return {**outputs, "class_name": tf.gather(names, outputs["class_id"])}

    images = tf.TensorSpec((None, *shape), tf.uint8, name="images")
    classify = archive.add_endpoint("serving_default", classify, [images])
    if shape[-1] in (1, 3):  # gray levels or RGB
        # A call of the other endpoint: both share one copy of the weights.
        encoded = tf.TensorSpec((None,), tf.string, name="encoded")
        archive.add_endpoint(
            "encoded", lambda encoded: classify(decode_all(encoded, shape)), [encoded]
        )
    archive.write_out(str(path), verbose=False)


def classifier(network):
    """Return a Keras model from raw `images` to the `probabilities` of `network` and `class_id`."""
    images = keras.Input(network.input_shape[1:], dtype="uint8", name="images")
    return keras.Model(images, Classifier(unrolled(network))(images), name="serving")


class Classifier(keras.Layer):
    """A network as one layer without variables.

    Every runtime can fold and pack constants. With variables, a SavedModel takes 1.7 to 1.8 times
    the bytes, and a call with one image 1.2 to 1.4 times the time.
    """

    def __init__(self, network):
        super().__init__()
        variables = network.trainable_variables, network.non_trainable_variables
        weights = [[ops.convert_to_numpy(v) for v in part] for part in variables]
        # A closure: if the network were an attribute, this layer would own its variables.
        self._run = lambda x: network.stateless_call(*weights, x, training=False)[0]

    def call(self, images):
        import tensorflow as tf

        (outputs,) = keras.tree.flatten(self._run(tf.cast(images, tf.float32)))  # by name, perhaps
        probabilities = tf.cast(outputs, tf.float32)
        # Keras's own `argmax` tells -0.0 from 0.0 by operations that other runtimes do not know.
        return {"probabilities": probabilities, "class_id": tf.argmax(probabilities, axis=-1)}


def unrolled(model):
    """Return the network with each `HighwayStack` of it and its nested models as a chain of layers.

    The loop of a stack is for training. In a server, XLA would recompile it for each batch size,
    and no runtime packs or quantizes weights that a loop counter selects. A notice names the stacks
    inside other layers, which stay.
    """

    def copy(layer):
        if isinstance(layer, HighwayStack):
            return keras.Sequential(layer.unstack(), name=layer.name)
        return layer

    found = keras.models.clone_model(model, clone_function=copy, recursive=True)
    left = [layer.name for layer in found._flatten_layers() if isinstance(layer, HighwayStack)]
    if left:
        notice(
            f"Inside other layers, {', '.join(left)} stay loops, which are not quantized and which "
            "a server compiles for each batch size: use the layers of their `unstack()` there."
        )
    return found
