"""How each format that TensorFlow traces is written."""

import contextlib
import pathlib
import tempfile

import tensorflow as tf

from highway_keras.export.card import write_card, write_card_beside

ONNX_OPSET = 17


def write_saved_model(graph, path, card, quantize, calibration):
    signatures = {"serving_default": graph.images}
    if graph.encoded:
        signatures["encoded"] = graph.encoded
    module = tf.Module()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        files = write_card(card, folder / "model_card.json", folder / "class_names.txt")
        module.assets = [tf.saved_model.Asset(str(file)) for file in files]
        tf.saved_model.save(module, str(path), signatures=signatures)


def write_onnx(graph, path, card, quantize, calibration):
    import tf2onnx

    tf2onnx.convert.from_function(
        graph.numbers, graph.numbers.input_signature, opset=ONNX_OPSET, output_path=str(path)
    )
    write_card_beside(path, card)


def write_litert(graph, path, card, quantize, calibration):
    with _numbers(graph) as folder:
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=["serving_default"]
        )
        if quantize:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if quantize == "int8":
            converter.representative_dataset = lambda: ({"images": x[None]} for x in calibration)
        path.write_bytes(converter.convert())
    write_card_beside(path, card)


def write_openvino(graph, path, card, quantize, calibration):
    import openvino

    with _numbers(graph) as folder:
        model = openvino.convert_model(folder)
        openvino.save_model(model, path, compress_to_fp16=quantize == "float16")
    write_card_beside(path, card)


WRITERS = {
    "saved_model": write_saved_model,
    "onnx": write_onnx,
    "litert": write_litert,
    "openvino": write_openvino,
}


@contextlib.contextmanager
def _numbers(graph):
    """A SavedModel without strings, which LiteRT and OpenVINO convert."""
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(tf.Module(), folder, signatures=graph.numbers)
        yield folder
