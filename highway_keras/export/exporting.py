"""`export`: check the request, write the file, verify it."""

import contextlib
import dataclasses
import pathlib
import tempfile

import keras

from highway_keras import data
from highway_keras.export.card import model_card
from highway_keras.export.formats import check_request, check_weights, is_int8
from highway_keras.export.keras_file import write_keras
from highway_keras.export.verification import verify
from highway_keras.training import SavedNetwork

VERIFIED_IMAGES = 1000
CALIBRATION_IMAGES = 500


@dataclasses.dataclass(frozen=True)
class Exported:
    """An export that passed its verification.

    Attributes:
        path: The file; for a SavedModel its folder.
        size: Bytes on disk, without what is beside the file.
        difference: Largest difference of a probability from Keras's.
        accuracy: Share of the images that the export classifies correctly.
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
    """Write a classifier for another runtime, and verify what was written.

    `highway_keras.export` says what goes in and comes out, and how it is verified.

    Args:
        model_or_file: A `.keras` file that `fit` saved, or a Sequential or functional model with
            raw images in and class probabilities out.
        path: Where to write: a folder for a SavedModel, else a file with the format's suffix,
            `.onnx`, `.tflite`, `.xml` or `.keras`. It must not exist yet.
        format: `"saved_model"`, `"onnx"`, `"litert"`, `"openvino"` or `"keras"`.
        quantize: `None`; `"float16"` (LiteRT and OpenVINO: weights in half precision); or `"int8"`
            (LiteRT: weights and activations, calibrated on training images; Keras: kernels, and
            the inputs of plain `Dense` layers).
        dataset: A `data.Dataset`, or a name or path as for `data.load`: its test images verify,
            its training images calibrate. Default: that of the training, for a file with its
            `run.json` beside it.
        data_dir: As for `data.load`.

    Returns:
        An `Exported`.

    Raises:
        ValueError: If an argument is out of its range, the file is damaged or holds something else,
            or the format cannot hold the network.
        ImportError: If a package that the format needs is missing.
        ExportMismatch: If the export does not compute what the Keras model does. It is kept.

    Example:

    >>> from highway_keras.export import export
    >>> export("run/best.keras", "serving/mnist/1").difference  # doctest: +SKIP
    2.4e-07
    """
    path = pathlib.Path(path)
    check_request(path, format, quantize)
    with _saved(model_or_file) as saved:
        check_weights(saved.model, format)
        images = _test_images(saved, dataset, data_dir)
        return _write_and_verify(saved, path, format, quantize, images)


def _write_and_verify(saved, path, format, quantize, images):
    names = _class_names(saved, images)
    card = model_card(saved, names, format, quantize)
    # A network that Keras has quantized rounds its inputs, and half-way cases either way.
    quantized = quantize or ("int8" if is_int8(saved.model) else None)
    count = None if quantized else VERIFIED_IMAGES
    x, y = images.x_test[:count], images.y_test[:count]
    expected = saved.model.predict(x, batch_size=500, verbose=0)
    _write(saved, path, card, images.x_train[:CALIBRATION_IMAGES])
    difference, accuracy = verify(path, format, quantized, x, y, expected, names)
    keras_accuracy = float((expected.argmax(-1) == y).mean())
    return Exported(path, _size(path), difference, accuracy, keras_accuracy, len(x))


@contextlib.contextmanager
def _saved(model_or_file):
    """Yield the network as loaded from a file: a model in memory stays untouched."""
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


def _write(saved, path, card, calibration):
    path.parent.mkdir(parents=True, exist_ok=True)
    if card["format"] == "keras":
        write_keras(saved.path, path, card)
        return
    from highway_keras.export.classifier import classifier  # imports TensorFlow
    from highway_keras.export.writers import WRITERS

    WRITERS[card["format"]](classifier(saved.model), path, card, calibration)


def _size(path):
    """Return the bytes of a file, its weights beside it (OpenVINO), or a folder."""
    files = path.rglob("*") if path.is_dir() else [path, path.with_suffix(".bin")]
    return sum(file.stat().st_size for file in files if file.is_file())
