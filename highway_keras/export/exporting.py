"""`export`: check the request, write the export aside, verify it, and rename it."""

import contextlib
import dataclasses
import pathlib
import tempfile

import keras

from highway_keras import checks, data
from highway_keras.data.dataset import hold_out
from highway_keras.export.card import model_card
from highway_keras.export.formats import check_request, check_weights, is_int8, needs_images
from highway_keras.export.keras_file import write_keras
from highway_keras.export.staging import check_place, staged
from highway_keras.export.verification import ExportMismatch, verify
from highway_keras.messages import reason
from highway_keras.training import SavedNetwork
from highway_keras.training.evaluation import probabilities

VERIFIED_IMAGES = 1000
CALIBRATION_IMAGES = 500


@dataclasses.dataclass(frozen=True)
class Exported:
    """What was exported, and what its verification measured; `None` if there was none.

    Attributes:
        path: The file; for a SavedModel its folder.
        size: Bytes on disk, without the model card and class names next to a file.
        difference: Largest difference between a probability and Keras's.
        accuracy: Share of the images that the export classifies correctly.
        keras_accuracy: The same for the Keras model.
        images: Number of test images that were compared.
    """

    path: pathlib.Path
    size: int
    difference: float | None = None
    accuracy: float | None = None
    keras_accuracy: float | None = None
    images: int | None = None


def export(
    model_or_file,
    path,
    format="saved_model",
    quantize=None,
    dataset=None,
    data_dir=None,
    class_names=None,
    verify=True,
    overwrite=False,
):
    """Write a classifier for another runtime, and verify what was written.

    `highway_keras.export` says what goes in and comes out, and how it is verified. The export is
    written into a hidden folder next to `path` and renamed after the verification: a killed
    process, a full disk or a mismatch leaves `path` as it was.

    Args:
        model_or_file: A `.keras` file, or a Sequential or functional model, with raw images in and
            class probabilities out.
        path: Where to write: a folder for a SavedModel, otherwise a file with the format's suffix,
            `.onnx`, `.tflite`, `.xml` or `.keras`.
        format: `"saved_model"`, `"onnx"`, `"litert"`, `"openvino"` or `"keras"`.
        quantize: `None`; `"float16"` (LiteRT and OpenVINO: weights in half precision); or `"int8"`
            (LiteRT: weights and activations, calibrated on training images; Keras: kernels, and
            the inputs of plain `Dense` layers).
        dataset: A `data.Dataset`, or a name or path as for `data.load`: its test images verify,
            its training images calibrate. Default: the one trained on, for a file with its
            `run.json` next to it.
        data_dir: As for `data.load`.
        class_names: Names of the classes, in the order of their numbers. Default: those of the
            training, then of `dataset`, then the numbers.
        verify: Whether to verify. `False` needs no data, except to calibrate.
        overwrite: Whether to replace an earlier export.

    Returns:
        An `Exported`.

    Raises:
        ValueError: If an argument is out of its range, the file is damaged or holds something else,
            the format cannot hold the network, or what it returns for the test images is no class
            probabilities.
        ImportError: If a package that the format needs is missing.
        RuntimeError: If the export cannot be written, for example because its format lacks an
            operation of the network or the disk is full. An `ExportMismatch` if it does not compute
            what the Keras model does.

    Example:

    >>> from highway_keras.export import export
    >>> export("run/best.keras", "serving/mnist/1").difference  # doctest: +SKIP
    2.4e-07
    """
    path = checks.path("path", path)
    checks.flag("verify", verify)
    checks.flag("overwrite", overwrite)
    check_request(path, format, quantize)
    check_place(path, format, overwrite)
    with _saved(model_or_file) as saved:
        check_weights(saved.model, format)
        images = None
        if verify or dataset is not None or needs_images(format, quantize):
            images = _images(saved, dataset, data_dir)
        names = _class_names(saved, class_names, images)
        card = model_card(saved, names, format, quantize)
        with staged(path, format, overwrite) as aside:
            _write(saved, path, aside, card, images)
            size = _size(aside)
            measured = _measure(saved, path, aside, card, images) if verify else {}
    return Exported(path, size, **measured)


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


def _images(saved, dataset, data_dir):
    if not isinstance(dataset, data.Dataset):
        if dataset is None and "dataset" not in saved.settings:
            raise ValueError(
                "`dataset` must name the data set whose images verify the export or calibrate it: "
                "no run.json next to the model names it. Received: dataset=None."
            )
        return saved.load(dataset, data_dir, validation=0)
    return saved.check(dataset)


def _class_names(saved, chosen, images):
    if chosen is not None:
        checks.class_names("class_names", chosen, saved.model.output_shape[-1])
        return list(chosen)
    if images is None or "class_names" in saved.settings:
        return saved.class_names
    return list(images.class_names)


def _write(saved, path, aside, card, images):
    """Write at `aside` what is to be at `path`."""
    try:
        if card["format"] == "keras":
            write_keras(saved.path, aside, card)
            return
        from highway_keras.export.classifier import classifier  # imports TensorFlow
        from highway_keras.export.writers import WRITERS

        calibration = None
        if needs_images(card["format"], card["quantize"]):
            chosen = hold_out(images.y_train, 0)[0][:CALIBRATION_IMAGES]
            calibration = images.x_train[chosen]
        WRITERS[card["format"]](classifier(saved.model), aside, card, calibration)
    except Exception as error:  # converters, and a full disk under them, raise errors of many kinds
        raise RuntimeError(
            f"{path} was not written: {reason(error)}. What was there is unharmed."
        ) from error


def _measure(saved, path, aside, card, images):
    """Verify what is written at `aside`; return what an `Exported` says about it."""
    # A network that Keras has quantized rounds its inputs, and half-way cases either way.
    quantize = card["quantize"] or ("int8" if is_int8(saved.model) else None)
    count = None if quantize else VERIFIED_IMAGES
    chosen = hold_out(images.y_test, 0)[0][:count]
    x, y = images.x_test[chosen], images.y_test[chosen]
    expected = probabilities(saved.model, x)
    names = card["class_names"]
    try:
        difference, accuracy = verify(aside, card["format"], quantize, x, y, expected, names)
    except ExportMismatch as error:
        raise ExportMismatch(f"{path} was not written: {error}") from error
    return {
        "difference": difference,
        "accuracy": accuracy,
        "keras_accuracy": float((expected.argmax(-1) == y).mean()),
        "images": len(x),
    }


def _size(path):
    """Return the bytes of a file, its weights next to it (OpenVINO), or a folder."""
    files = path.rglob("*") if path.is_dir() else [path, path.with_suffix(".bin")]
    return sum(file.stat().st_size for file in files if file.is_file())
