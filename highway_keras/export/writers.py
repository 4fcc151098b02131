"""How each format that TensorFlow traces is written: by Keras's `export`, plus what it lacks.

A writer takes the network as `classifier` returns it, the path, the model card, and images that
calibrate a quantization.
"""

import pathlib
import tempfile

import keras
import tensorflow as tf

from highway_keras.export.card import CARD, write_card, write_card_beside
from highway_keras.export.decoding import decode_all

ONNX_OPSET = 17


def write_saved_model(model, path, card, calibration):
    # `model.export` has one signature, `serve`, and no strings.
    archive = keras.export.ExportArchive()
    names, shape = tf.constant(card["class_names"]), model.input_shape[1:]

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
    assets = path / "assets"
    assets.mkdir(exist_ok=True)
    write_card(card, assets / CARD, assets / "class_names.txt")


def write_onnx(model, path, card, calibration):
    # With a signature, because Keras infers that of a model only after a call.
    options = {"input_signature": model.inputs, "opset_version": ONNX_OPSET}
    model.export(str(path), "onnx", verbose=False, **options)
    write_card_beside(path, card)


def write_litert(model, path, card, calibration):
    quantize = card["quantize"]
    options = {"optimizations": [tf.lite.Optimize.DEFAULT]} if quantize else {}
    if quantize == "float16":
        options["target_spec"] = {"supported_types": [tf.float16]}
    if quantize == "int8":
        options["representative_dataset"] = lambda: ({"images": x[None]} for x in calibration)
    model.export(str(path), "litert", verbose=False, **options)
    write_card_beside(path, card)


def write_openvino(model, path, card, calibration):
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        # Keras has no option for half precision.
        whole = pathlib.Path(folder) / path.name
        model.export(str(whole), "openvino", verbose=False)
        half = card["quantize"] == "float16"
        openvino.save_model(openvino.Core().read_model(whole), path, compress_to_fp16=half)
    write_card_beside(path, card)


WRITERS = {
    "saved_model": write_saved_model,
    "onnx": write_onnx,
    "litert": write_litert,
    "openvino": write_openvino,
}
