"""The formats of an export: how each is written, and how its own runtime runs it.

The verification runs this file as a script in a new process: `formats.py FORMAT FILE FOLDER SIZE`
runs FILE on `images.npy` and the PNG files in FOLDER, in batches of SIZE, and writes the outputs to
`results.npz` there. Therefore Keras and this package are imported only where a function needs them.
"""

import os
import pathlib
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

CALIBRATION_IMAGES = 500
ONNX_OPSET = 17


def write_saved_model(model, path, quantize, class_names, images):
    import keras
    import tensorflow as tf

    from highway_keras.export.decoding import decode_all

    # `model.export` writes one signature, without class names.
    archive = keras.export.ExportArchive()
    names, shape = tf.constant(class_names), model.input_shape[1:]

    def classify(images):
        outputs = model(images)
        return {**outputs, "class_name": tf.gather(names, outputs["class_id"])}

    pixels = tf.TensorSpec((None, *shape), tf.uint8, name="images")
    classify = archive.add_endpoint("serving_default", classify, [pixels])
    if shape[-1] in (1, 3):  # gray or RGB
        encoded = tf.TensorSpec((None,), tf.string, name="encoded")
        # Both signatures share one copy of the weights, because this one calls the other.
        archive.add_endpoint("encoded", lambda files: classify(decode_all(files, shape)), [encoded])
    archive.write_out(str(path), verbose=False)


def run_saved_model(path, signature="serving_default"):
    import tensorflow as tf

    call = tf.saved_model.load(str(path)).signatures[signature]
    return lambda value: {name: tensor.numpy() for name, tensor in call(tf.constant(value)).items()}


def write_onnx(model, path, quantize, class_names, images):
    # Keras knows the signature of a model only after a call.
    options = {"input_signature": model.inputs, "opset_version": ONNX_OPSET}
    model.export(str(path), "onnx", verbose=False, **options)


def run_onnx(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda images: dict(zip(names, session.run(names, {"images": images}), strict=True))


def write_litert(model, path, quantize, class_names, images):
    import tensorflow as tf

    options = {"optimizations": [tf.lite.Optimize.DEFAULT]} if quantize else {}
    if quantize == "float16":
        options["target_spec"] = {"supported_types": [tf.float16]}
    if quantize == "int8":
        examples = sample(images.x_train, CALIBRATION_IMAGES)
        options["representative_dataset"] = lambda: ({"images": image[None]} for image in examples)
    model.export(str(path), "litert", verbose=False, **options)


def run_litert(path):
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(str(path), num_threads=os.cpu_count()).get_signature_runner()
    return lambda images: runner(images=images)


def write_openvino(model, path, quantize, class_names, images):
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        single = pathlib.Path(folder) / path.name
        model.export(str(single), "openvino", verbose=False)
        # Keras has no option for half precision.
        half = quantize == "float16"
        openvino.save_model(openvino.Core().read_model(single), path, compress_to_fp16=half)


def run_openvino(path):
    import openvino

    # By default, OpenVINO computes in bfloat16 where that is faster.
    precision = {"INFERENCE_PRECISION_HINT": "f32"}
    model = openvino.Core().compile_model(str(path), "CPU", precision)

    def run(images):
        outputs = model({"images": images})
        return {name: outputs[name] for name in ("probabilities", "class_id")}

    return run


def write_keras(model, path, quantize, class_names, images):
    import keras

    from highway_keras import models
    from highway_keras.export.serving_model import unrolled
    from highway_keras.util.files import compress

    model = keras.Model(model.inputs, model.outputs, name=model.name)  # without an optimizer
    if quantize:
        layers = unrolled(model)
        model = keras.models.clone_model(layers)
        model.set_weights(layers.get_weights())
        with warnings.catch_warnings():
            # Keras warns of each layer that it leaves as it is: pooling, dropout, scaling.
            warnings.filterwarnings("ignore", ".* does not have a `quantize` method")
            model.quantize(quantize)
    models.save(path, model, class_names=class_names)
    compress(path)


def run_keras(path):
    import keras

    import highway_keras  # noqa: F401 (registers the layers)

    model = keras.models.load_model(path, compile=False)

    def run(images):
        probabilities = model.predict(images, verbose=0)
        return {"probabilities": probabilities, "class_id": probabilities.argmax(-1)}

    return run


@dataclass(frozen=True)
class Format:
    """How a format is written and run. The extra that installs `packages` has the format's name."""

    suffix: str  # of the file; empty for a folder
    write: Callable
    run: Callable  # of the path; returns a function from raw images to outputs by name
    runtime: str
    packages: tuple = ()
    quantizations: tuple = ()  # besides None
    more_suffixes: tuple = ()  # of the files beside the first


FORMATS = {
    "saved_model": Format("", write_saved_model, run_saved_model, "tensorflow"),
    "keras": Format(".keras", write_keras, run_keras, "keras", quantizations=("int8",)),
    "onnx": Format(".onnx", write_onnx, run_onnx, "onnxruntime", ("tf2onnx", "onnxruntime")),
    "litert": Format(
        ".tflite",
        write_litert,
        run_litert,
        "ai_edge_litert",
        ("ai_edge_litert",),
        quantizations=("float16", "int8"),
    ),
    "openvino": Format(
        ".xml",
        write_openvino,
        run_openvino,
        "openvino",
        ("openvino", "scipy"),
        quantizations=("float16",),
        more_suffixes=(".bin",),
    ),
}


def sample(images, count):
    """Return up to `count` images, always the same; their source may be sorted by class."""
    return images[np.random.default_rng(0).permutation(len(images))[:count]]


def run_in_batches(run, inputs, size):
    """Return the outputs for all inputs, arrays by name."""
    # The first batch has one image, which fails if the export has a fixed batch size.
    ends = [0, 1, *range(1 + size, len(inputs), size), len(inputs)]
    parts = [run(inputs[ends[i] : ends[i + 1]]) for i in range(len(ends) - 1)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def main(name, path, folder, size):
    format, folder, size = FORMATS[name], pathlib.Path(folder), int(size)
    if name != "keras":
        for package in {"highway_keras", "keras", "tensorflow"} - {format.runtime}:
            sys.modules[package] = None  # an import of it now fails
    results = run_in_batches(format.run(path), np.load(folder / "images.npy"), size)
    if "class_name" in results:  # bytes as objects, which would have to be pickled
        results["class_name"] = np.char.decode(results["class_name"].astype("S"), "utf-8")
    pictures = [file.read_bytes() for file in sorted(folder.glob("*.png"))]
    if pictures:
        encoded = run_in_batches(run_saved_model(path, "encoded"), pictures, size)
        results["probabilities of PNG files"] = encoded["probabilities"]
    version = getattr(sys.modules[format.runtime], "__version__", "")
    np.savez(folder / "results.npz", runtime=f"{format.runtime} {version}".strip(), **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
