"""`export`: write a network aside, verify the file, and rename it."""

import contextlib
import dataclasses
import importlib
import os
import pathlib
import shutil

import keras

from highway_keras.export import cards, verification
from highway_keras.export.formats import FORMATS
from highway_keras.export.serving_model import serving_model
from highway_keras.util import checks, files
from highway_keras.util.extras import extra
from highway_keras.util.messages import printable, reason


@dataclasses.dataclass(frozen=True)
class Exported:
    """What was exported, and what its verification measured; `None` if there was none.

    `print` shows it in two lines.

    Attributes:
        path: The file; for a SavedModel its folder.
        size: Bytes on disk, without the card.
        accuracy: Share of the images that the export classifies correctly.
        keras_accuracy: The same for the Keras model.
        difference: Largest difference between a probability and Keras's.
        same_class: Number of images for which the export and Keras return the same class.
        images: Number of test images that were compared.
        runtime: What ran the export, such as `"onnxruntime 1.32.0"`.
    """

    path: pathlib.Path
    size: int
    accuracy: float | None = None
    keras_accuracy: float | None = None
    difference: float | None = None
    same_class: int | None = None
    images: int | None = None
    runtime: str | None = None

    def __str__(self):
        last_line = f"saved {printable(self.path)}  ({self.size:,} bytes)"
        if self.images is None:
            return f"not verified\n{last_line}"
        return (
            f"test accuracy {100 * self.accuracy:.2f} % (Keras {100 * self.keras_accuracy:.2f} %)  "
            f"same class on {self.same_class:,} of {self.images:,} images  "
            f"largest difference {self.difference:.1e}\n{last_line}"
        )


def export(
    model,
    path,
    images=None,
    *,
    format=None,
    quantize=None,
    class_names=None,
    verify=True,
    overwrite=False,
) -> Exported:
    """Write a classifier for another runtime, and verify the file in a new process.

    The export is written into a hidden folder beside `path` and renamed after the verification. If
    the process is killed, the disk is full or the export computes something else, `path` stays as
    it was. `highway_keras.export` describes inputs, outputs and the card.

    For all formats but `"keras"`, the process that verifies can import neither Keras nor this
    package. On up to 1,000 test images, the probabilities must equal those of the Keras model to
    1e-5, or to 0.02 if the export or the network computes in 16 bits. If either is quantized to
    int8, the accuracy may fall by 1 percentage point instead.

    Args:
        model: A functional or Sequential model with raw images in and class probabilities out.
        path: A folder for a SavedModel, otherwise a file.
        images: A `data.Dataset`. Its test images verify the export; its training images calibrate
            LiteRT's int8.
        format: `"saved_model"` (a folder), `"keras"` (`.keras`), `"onnx"` (`.onnx`), `"litert"`
            (`.tflite`) or `"openvino"` (`.xml`, with the weights in `.bin`). Default: the format
            of the suffix of `path`.
        quantize: `"float16"` (LiteRT and OpenVINO) stores the weights in half precision. `"int8"`
            quantizes weights and activations (LiteRT) or the kernels and inputs of `Dense` and
            `Highway` layers (Keras).
        class_names: Names of the classes, in their order. Default: those of `images`, otherwise
            the numbers.
        verify: Whether to verify. `False` needs no images, except to calibrate.
        overwrite: Whether to replace an earlier export. A file without a card is never replaced.

    Raises:
        ValueError: If an argument is wrong, or `path` exists.
        ImportError: If a package of the format is missing.
        ExportMismatch: If the export does not compute what the Keras model computes.
        RuntimeError: If the file cannot be written, for example because the format lacks an
            operation of the network or the disk is full.
        BusyError: If another process is writing to `path`.

    Examples:
        >>> from highway_keras import data, models
        >>> from highway_keras.export import export
        >>> model = models.load("run").model  # doctest: +SKIP
        >>> print(export(model, "serving/mnist/1", data.load("mnist")))  # doctest: +SKIP
        test accuracy 99.70 % (Keras 99.70 %)  same class on 1,000 of 1,000 images  largest ...
        saved serving/mnist/1  (325,176 bytes)
    """
    path = pathlib.Path(path).expanduser()
    format = choose_format(path, format)
    checks.one_of("quantize", quantize, (None, *FORMATS[format].quantizations))
    check_model(model, format)
    if images is None and (verify or (format, quantize) == ("litert", "int8")):
        raise ValueError(
            "`images` must be a data.Dataset, to verify the export and to calibrate LiteRT's int8. "
            "Received: images=None. Pass verify=False to skip the verification."
        )
    if class_names is None:
        class_names = images.class_names if images else map(str, range(model.output_shape[-1]))
    class_names = list(class_names)
    checks.class_names("class_names", class_names, model.output_shape[-1])
    with extra(format):
        for package in FORMATS[format].packages:
            importlib.import_module(package)

    with staged(path, format, overwrite) as aside:
        try:
            served = model if format == "keras" else serving_model(model)
            FORMATS[format].write(served, aside, quantize, class_names, images)
        except Exception as error:  # converters raise any kind, also when the disk is full
            raise RuntimeError(f"{path} was not written: {reason(error)}.") from error
        size = sum(file.stat().st_size for file in cards.files_below(aside.parent))
        measured = {}
        if verify:
            measured = verification.verify(aside, format, model, images, quantize, class_names)
        card = cards.describe(model, aside, format, quantize, class_names)
        card["verification"] = {"dataset": images.name, **measured} if verify else None
        card_path = cards.path_of(aside, format)
        card_path.parent.mkdir(exist_ok=True)
        files.write_json(card_path, card)
    return Exported(path, size, **measured)


def choose_format(path, format):
    """Return the name of the format, which follows from the suffix of `path` if it is not given."""
    if format is not None:
        return checks.one_of("format", format, FORMATS)
    by_suffix = {one.suffix: name for name, one in FORMATS.items()}
    if path.suffix not in by_suffix:
        raise ValueError(
            f"`path` must end in {', '.join(filter(None, by_suffix))}, or have no suffix for the "
            f"folder of a SavedModel. Received: path={path}. To make a folder of this name, pass "
            "format='saved_model'."
        )
    return by_suffix[path.suffix]


def check_model(model, format):
    shape = model.input_shape
    if len(shape) != 4 or None in shape[1:]:
        raise ValueError(
            "`model` must take images of one size, (height, width, channels). "
            f"Received: model.input_shape={shape}."
        )
    if format != "keras" and keras.backend.backend() != "tensorflow":
        raise ValueError(
            "`format` must be 'keras' unless the backend is TensorFlow. Received: "
            f"format={format!r}. Save the model as a .keras file, and export that with "
            "KERAS_BACKEND=tensorflow."
        )


@contextlib.contextmanager
def staged(path, format, overwrite):
    """Yield a path to write an export to; then move the export to `path`.

    The yielded path is in a hidden folder beside `path`, on the same disk. If the process is
    killed, that folder stays until the next export to `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.with_name(f".{path.name}-unfinished")
    new, old = folder / "new", folder / "old"
    card = cards.path_of(path, format)
    more = [path.with_suffix(suffix) for suffix in FORMATS[format].more_suffixes]

    def rank(file):  # `path` is last; the card is first, because it marks the others as an export
        return {".json": 0, path.suffix: 2}.get(file.suffix, 1)

    def clear():
        if old.exists() and not path.exists():  # killed before the new `path` was there
            for file in sorted(old.iterdir(), key=rank):
                os.replace(file, path.parent / file.name)
        shutil.rmtree(folder, ignore_errors=True)

    with files.file_lock(path):
        clear()
        existing = [file for file in (path, card, *more) if file.exists()]
        if existing and not (overwrite and card in existing):
            raise ValueError(
                "`path` must not exist, or be an earlier export with its card and "
                f"`overwrite=True`. Received: path={path}, overwrite={overwrite}; {existing[0]} "
                "exists."
            )
        new.mkdir(parents=True)
        try:
            yield new / path.name
            # No portable call replaces a folder, or two files at once.
            if path.is_dir() or more:
                old.mkdir()
                for file in existing:
                    if file.exists():  # a folder took its card along
                        file.rename(old / file.name)
            for file in sorted(new.iterdir(), key=rank):
                os.replace(file, path.parent / file.name)
        finally:
            clear()
