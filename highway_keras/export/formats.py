"""The formats, and what can be asked of each. `writers.py` writes them."""

import dataclasses
import importlib.util

import keras

from highway_keras import checks
from highway_keras.extras import missing


@dataclasses.dataclass(frozen=True)
class Format:
    """What a format requires.

    Attributes:
        suffix: Of its file; empty for a folder.
        beside: Suffixes of the files next to it.
        quantizations: What `quantize` may be, besides `None`.
        packages: What must be installed.
        traced: Whether TensorFlow traces it.
        runs_int8: Whether it can hold a network that Keras has quantized.
    """

    suffix: str
    beside: tuple = (".json", ".txt")
    quantizations: tuple = ()
    packages: tuple = ()
    traced: bool = True
    runs_int8: bool = False


# The name of a format with packages is also the name of the extra that installs them.
FORMATS = {
    "saved_model": Format("", beside=(), runs_int8=True),
    "onnx": Format(".onnx", packages=("tf2onnx", "onnxruntime")),
    "litert": Format(".tflite", quantizations=("float16", "int8"), packages=("ai_edge_litert",)),
    "openvino": Format(".xml", (".bin", ".json", ".txt"), ("float16",), ("openvino", "scipy")),
    "keras": Format(".keras", quantizations=("int8",), traced=False, runs_int8=True),
}


def check_request(path, format, quantize):
    """Raise what `export` raises for a request that cannot be met."""
    wanted = FORMATS[checks.one_of("format", format, FORMATS)]
    if quantize not in (None, *wanted.quantizations):
        known = ", ".join(map(repr, (None, *wanted.quantizations)))
        raise ValueError(
            f"`quantize` for format={format!r} must be one of {known}. "
            f"Received: quantize={quantize!r}."
        )
    if path.suffix != wanted.suffix and wanted.suffix:
        raise ValueError(
            f"`path` must end in {wanted.suffix} for format={format!r}. Received: path={path}."
        )
    of_a_file = [name for name, known in FORMATS.items() if known.suffix == path.suffix]
    if not wanted.suffix and path.suffix and of_a_file:
        raise ValueError(
            f"`path` must be a folder for format={format!r}. Received: path={path}, as for "
            f"format={of_a_file[0]!r}."
        )
    _check_installation(format, wanted)


def _check_installation(name, format):
    if format.traced and keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"`format={name!r}` is traced by TensorFlow. Received: the backend "
            f"{keras.backend.backend()!r}. Save the model as a .keras file and export that with "
            "KERAS_BACKEND=tensorflow: such a file loads under any backend."
        )
    absent = [package for package in format.packages if importlib.util.find_spec(package) is None]
    if absent:
        raise ImportError(f"`format={name!r}`: {missing(' and '.join(absent), name)}")


def needs_images(format, quantize):
    """Return whether images must calibrate the quantization."""
    return format == "litert" and quantize == "int8"


def is_int8(model):
    """Return whether Keras has quantized the model."""
    return any(weight.dtype == "int8" for weight in model.weights)


def check_weights(model, name):
    """Raise a `ValueError` if the model is quantized and the format cannot compute that."""
    if not FORMATS[name].runs_int8 and is_int8(model):
        raise ValueError(
            f"`format={name!r}` cannot compute what Keras's int8 layers do. Received: a network "
            "quantized to int8. Export the one that it was made from, with `quantize` where the "
            "format has it."
        )
