"""Run an exported file with its own runtime: no Keras, nothing from this package.

Only a `.keras` file needs both.

As a script it is the new process of the verification: `runtimes.py FORMAT FILE FOLDER SIZE` runs
FILE on `images.npz` and the PNG files in FOLDER, in batches of SIZE, and leaves `results.npz`
there.
"""

import os
import pathlib
import sys

import numpy as np


def load_saved_model(path):
    """Return two functions from a batch to its outputs by name, as each of these loaders does.

    The first takes raw images, the second encoded ones; it is `None` if the export lacks it.
    """
    import tensorflow as tf

    signatures = tf.saved_model.load(str(path)).signatures

    def run(name):
        def call(value):
            outputs = signatures[name](tf.constant(value))
            return {key: tensor.numpy() for key, tensor in outputs.items()}

        return call if name in signatures else None

    return run("serving_default"), run("encoded")


def load_onnx(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run(images):
        return dict(zip(names, session.run(names, {"images": images}), strict=True))

    return run, None


def load_litert(path):
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(str(path), num_threads=os.cpu_count()).get_signature_runner()
    return lambda images: runner(images=images), None


def load_openvino(path):
    import openvino

    # By default, OpenVINO computes in bfloat16 where the processor multiplies it faster.
    precision = {"INFERENCE_PRECISION_HINT": "f32"}
    model = openvino.Core().compile_model(str(path), "CPU", precision)

    def run(images):
        outputs = model({"images": images})
        return {name: outputs[name] for name in ("probabilities", "class_id")}

    return run, None


def load_keras(path):
    import keras

    import highway_keras  # noqa: F401 (registers the layers)

    model = keras.models.load_model(path)

    def run(images):
        (probabilities,) = keras.tree.flatten(model.predict(images, verbose=0))
        return {"probabilities": probabilities, "class_id": probabilities.argmax(-1)}

    return run, None


RUNTIMES = {
    "saved_model": load_saved_model,
    "onnx": load_onnx,
    "litert": load_litert,
    "openvino": load_openvino,
    "keras": load_keras,
}

TRAINED_WITH = {"highway_keras", "keras", "tensorflow"}
PACKAGES = {"saved_model": "tensorflow", "onnx": "onnxruntime", "litert": "ai_edge_litert"}


def main(format, path, folder, size):
    package = PACKAGES.get(format, format)
    absent = set() if format == "keras" else TRAINED_WITH - {package}
    sys.modules.update(dict.fromkeys(absent))  # an import of them now fails
    folder, size = pathlib.Path(folder), int(size)
    run, run_encoded = RUNTIMES[format](path)
    images = np.load(folder / "images.npz")["images"]

    def in_batches(run, inputs):
        parts = [run(inputs[first : first + size]) for first in range(0, len(inputs), size)]
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    results = in_batches(run, images)
    # A single image fails if the export is fixed to one batch size.
    results["single_probabilities"] = run(images[:1])["probabilities"]
    if run_encoded:
        files = [file.read_bytes() for file in sorted(folder.glob("*.png"))]
        results |= {f"encoded_{key}": v for key, v in in_batches(run_encoded, files).items()}
    for key, value in results.items():
        if value.dtype == object:  # text, which would have to be pickled
            results[key] = np.char.decode(value.astype("S"), "utf-8")
    runtime = f"{package} {getattr(sys.modules[package], '__version__', '')}".strip()
    np.savez(folder / "results.npz", runtime=runtime, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
