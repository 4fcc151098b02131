"""`export`: check the request, write the file, verify it."""

import contextlib
import dataclasses
import importlib.util
import pathlib
import tempfile

import keras

from highway_keras import data
from highway_keras.export.card import model_card
from highway_keras.export.keras_file import write_keras
from highway_keras.export.verification import verify
from highway_keras.training import SavedNetwork

VERIFIED_IMAGES = 1000
INT8_FORMATS = ("saved_model", "keras")  # that can take a network quantized by Keras
CALIBRATION_IMAGES = 500


@dataclasses.dataclass(frozen=True)
class Format:
    """What a format asks of the user. `formats.WRITERS` writes it."""

    suffix: str
    quantizations: tuple = ()
    packages: tuple = ()
    traced: bool = True  # by TensorFlow


# The name of a format with packages is also the name of the extra that installs them.
FORMATS = {
    "saved_model": Format(""),
    "onnx": Format(".onnx", packages=("tf2onnx", "onnxruntime")),
    "litert": Format(".tflite", ("float16", "int8"), ("ai_edge_litert",)),
    "openvino": Format(".xml", ("float16",), ("openvino", "scipy")),
    "keras": Format(".keras", ("int8",), traced=False),
}


@dataclasses.dataclass(frozen=True)
class Exported:
    """An export that passed its verification.

    Attributes:
        path: The file; for a SavedModel its folder.
        size: Bytes on disk, without the model card.
        difference: Largest difference of a probability from Keras's.
        accuracy: Share of the images that the export classifies rightly.
        keras_accuracy: The same of the Keras model.
        images: Number of test images that were compared.
    """

    path: pathlib.Path
    size: int
    difference: float
    accuracy: float
    keras_accuracy: float
    images: int


def export(model_or_file, path, format="saved_model", quantize=None, dataset=None, data_dir=None):
    """Writes a classifier for another runtime, and verifies what it wrote.

    In every format the network takes raw `images`, uint8 of shape
    `(batch, height, width, channels)` with any batch size; its training's preprocessing is part of
    it. It returns `probabilities` `(batch, classes)`, float32, and `class_id` `(batch,)`, int64. A
    SavedModel also returns `class_name`, and has a second signature, `encoded`, that takes PNG or
    JPEG files as bytes. Class names and a model card are in the SavedModel's assets, and beside
    the file for other formats.

    The format `"keras"` stays with Keras and this package: a `.keras` file without the optimizer's
    state, and with `quantize="int8"` as `model.quantize("int8")` leaves it.

    The file is then loaded by its runtime in a new process, which for the other formats can import
    neither this package nor Keras, and run on real test images. Probabilities must equal the Keras
    model's to 1e-5; quantized to float16, to 0.02; to int8, accuracy may fall by 1 point.

    Args:
        model_or_file: A `.keras` file that `fit` saved, or a Sequential or functional model with
            raw images in and class probabilities out.
        path: Where to write: a folder for a SavedModel, else a file with the format's suffix,
            `.onnx`, `.tflite`, `.xml` or `.keras`. Nothing may be there yet.
        format: `"saved_model"`, `"onnx"`, `"litert"`, `"openvino"` or `"keras"`.
        quantize: `None`, `"float16"` (LiteRT and OpenVINO: weights in half precision) or `"int8"`
            (LiteRT: weights and activations, calibrated on training images; Keras: kernels, and
            the inputs of plain `Dense` layers).
        dataset: A `data.Dataset`, or a name or path as for `data.load`: its test images verify,
            its training images calibrate. Default: that of the training, for a file with its
            `run.json` beside it.
        data_dir: As for `data.load`.

    Returns:
        An `Exported`.

    Raises:
        ValueError: If an argument is out of its range, the file is missing, damaged or holds
            something else, or Keras's backend is not TensorFlow, which all formats but `"keras"`
            need; or if Keras has quantized the network, which only SavedModel and Keras can run.
        ImportError: If a package that the format needs is missing.
        ExportMismatch: If the export does not compute what the Keras model does. It is kept.

    Example:

    >>> from highway_keras.export import export
    >>> export("run/best.keras", "serving/mnist/1").difference  # doctest: +SKIP
    2.4e-07
    """
    path = pathlib.Path(path)
    _check(path, format, quantize)
    with _saved(model_or_file) as saved:
        _check_weights(saved.model, format)
        images = _test_images(saved, dataset, data_dir)
        count = None if quantize else VERIFIED_IMAGES
        x, y = images.x_test[:count], images.y_test[:count]
        names = _class_names(saved, images)
        expected = saved.model.predict(x, batch_size=500, verbose=0)
        card = model_card(saved, names, format, quantize)
        _write(saved, path, format, quantize, card, images.x_train[:CALIBRATION_IMAGES])
    difference, accuracy = verify(path, format, quantize, x, y, expected, names)
    return Exported(
        path, _size(path), difference, accuracy, float((expected.argmax(-1) == y).mean()), len(x)
    )


def _check(path, format, quantize):
    if format not in FORMATS:
        raise ValueError(
            f"`format` must be one of {', '.join(map(repr, FORMATS))}. Received: format={format!r}."
        )
    wanted = FORMATS[format]
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
    if path.exists():
        raise ValueError(f"`path` must not exist yet. Received: path={path}. Name another.")
    if wanted.traced and keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"`format={format!r}` is traced by TensorFlow. Received: the backend "
            f"{keras.backend.backend()!r}. Save the model as a .keras file and export that with "
            "KERAS_BACKEND=tensorflow: such a file loads under any backend."
        )
    absent = [name for name in wanted.packages if importlib.util.find_spec(name) is None]
    if absent:
        raise ImportError(
            f"`format={format!r}` needs {' and '.join(absent)}. Install what it needs: "
            f'pip install "highway-keras[{format}]"'
        )


def _check_weights(model, format):
    if format not in INT8_FORMATS and any(weight.dtype == "int8" for weight in model.weights):
        raise ValueError(
            f"`format={format!r}` cannot compute what Keras's int8 layers do. Received: a network "
            "quantized to int8. Export the one that it was made from, with `quantize` where the "
            "format has it."
        )


@contextlib.contextmanager
def _saved(model_or_file):
    """The network as loaded from a file: a model in memory stays untouched."""
    if not isinstance(model_or_file, keras.Model):
        yield SavedNetwork(model_or_file)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "model.keras"
        model_or_file.save(file)
        yield SavedNetwork(file)


def _test_images(saved, dataset, data_dir):
    if not isinstance(dataset, data.Dataset):
        if dataset is None and "dataset" not in saved.settings:
            raise ValueError(
                "`dataset` must name the data set whose test images verify the export: no run.json "
                "beside the model tells it. Received: dataset=None."
            )
        dataset = data.load(saved.dataset if dataset is None else dataset, data_dir=data_dir)
    wanted = saved.model.input_shape[1:], saved.model.output_shape[-1]
    if wanted != (dataset.input_shape, dataset.classes):
        raise ValueError(
            f"The network takes images of shape {wanted[0]} in {wanted[1]} classes. Received: "
            f"dataset={dataset.name!r} with shape {dataset.input_shape} in {dataset.classes}."
        )
    return dataset


def _class_names(saved, images):
    return saved.class_names if "class_names" in saved.settings else list(images.class_names)


def _write(saved, path, format, quantize, card, calibration):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not FORMATS[format].traced:
        write_keras(saved.path, path, card, quantize)
        return
    from highway_keras.export.formats import WRITERS  # imports TensorFlow
    from highway_keras.export.graph import ServingGraph

    graph = ServingGraph(saved.model, card["class_names"])
    WRITERS[format](graph, path, card, quantize, calibration)


def _size(path):
    """Bytes of a folder's files, of a file, or of a file and its weights beside it (OpenVINO)."""
    files = path.rglob("*") if path.is_dir() else [path, path.with_suffix(".bin")]
    return sum(file.stat().st_size for file in files if file.is_file())
