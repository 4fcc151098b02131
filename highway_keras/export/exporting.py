"""`export`: check the request, write the export aside, verify it, and rename it."""

import contextlib
import dataclasses
import importlib.util
import math
import os
import pathlib
import shutil
import tempfile

import keras
import numpy as np

import highway_keras
from highway_keras import data
from highway_keras.analysis.graph import has_graph
from highway_keras.data.dataset import MOST_IN_MEMORY, shuffled
from highway_keras.export import verification
from highway_keras.export.writers import write
from highway_keras.models import shipped
from highway_keras.runs import trained_file
from highway_keras.training import SavedNetwork
from highway_keras.training.evaluation import probabilities
from highway_keras.training.networks import SCALING, check_loads_as_saved
from highway_keras.training.saved_network import read_card
from highway_keras.util import checks, files
from highway_keras.util.extras import missing
from highway_keras.util.messages import notice, printable, reason, shows_progress

VERIFIED_IMAGES = 1000
CALIBRATION_IMAGES = 500


@dataclasses.dataclass(frozen=True)
class Format:
    """What a format requires; `runs_int8`: whether it holds a network that Keras has quantized."""

    suffix: str  # empty for a folder
    quantizations: tuple = ()  # besides `None`
    packages: tuple = ()
    runs_int8: bool = False


# The name of a format with packages is also the name of the extra that installs them.
FORMATS = {
    "saved_model": Format("", runs_int8=True),
    "onnx": Format(".onnx", packages=("tf2onnx", "onnxruntime")),
    "litert": Format(".tflite", quantizations=("float16", "int8"), packages=("ai_edge_litert",)),
    "openvino": Format(".xml", quantizations=("float16",), packages=("openvino", "scipy")),
    "keras": Format(".keras", quantizations=("int8",), runs_int8=True),
}


@dataclasses.dataclass(frozen=True)
class Exported:
    """What was exported, and what its verification measured; `None` if there was none.

    Attributes:
        path: The file; for a SavedModel its folder.
        size: Bytes on disk, without the model card and class names.
        difference: Largest difference between a probability and Keras's.
        accuracy: Share of the images that the export classifies correctly.
        keras_accuracy: The same for the Keras model.
        images: Number of test images that were compared.
        runtime: What ran the export, such as `"onnxruntime 1.23.2"`.
    """

    path: pathlib.Path
    size: int
    difference: float | None = None
    accuracy: float | None = None
    keras_accuracy: float | None = None
    images: int | None = None
    runtime: str | None = None


def export(
    model,
    path,
    format=None,
    quantize=None,
    dataset=None,
    data_dir=None,
    class_names=None,
    verify=True,
    overwrite=False,
    *,
    verbose=0,
) -> Exported:
    """Write a classifier for another runtime, and verify what was written.

    `highway_keras.export` says what goes in and comes out, and how it is verified. The export is
    written into a hidden folder next to `path` and renamed after the verification: a killed
    process, a full disk or a mismatch leaves `path` as it was.

    Args:
        model: A `.keras` file, the folder of a run, or a Sequential or functional model, with raw
            images in and class probabilities out.
        path: Where to write: a folder for a SavedModel, otherwise a file with the format's suffix,
            `.onnx`, `.tflite`, `.xml` or `.keras`.
        format: `"saved_model"`, `"onnx"`, `"litert"`, `"openvino"` or `"keras"`. Default: that of
            the suffix of `path`, a SavedModel if it has none of these.
        quantize: `None`; `"float16"` (LiteRT and OpenVINO: weights in half precision); or `"int8"`
            (LiteRT: weights and activations, calibrated on training images; Keras: kernels and
            inputs of `Dense` layers, those of highway layers included).
        dataset: A `data.Dataset`, or a name or path as for `data.load`. Its test images are used to
            verify, its training images to calibrate. Default: the one on which the network was
            trained, if the file is one of the zoo's or has its `run.json` next to it.
        data_dir: As for `data.load`.
        class_names: Names of the classes, in the order of their numbers. Default: those of the
            training, then of `dataset`, then the numbers.
        verify: Whether to verify. `False` needs no data, except to calibrate.
        overwrite: Whether to replace an earlier export.
        verbose: 1 says what it is doing, 0 nothing, `"auto"` on a terminal alone.

    Returns:
        An `Exported`; the model card holds the same numbers.

    Raises:
        ValueError: If an argument is out of its range, the file is damaged or holds something else,
            the format cannot hold the network, or it does not return class probabilities for the
            test images.
        ImportError: If a package that the format needs is missing.
        RuntimeError: If the export cannot be written, for example because its format lacks an
            operation of the network or the disk is full. An `ExportMismatch` if it does not compute
            what the Keras model does.
        OSError: If there is no place for it, or for its verification.
        BusyError: If another process is writing to `path`.

    Examples:
        >>> from highway_keras.export import export
        >>> export("run/best.keras", "serving/mnist/1").difference  # doctest: +SKIP
        2.4e-07
    """
    path = checks.path("path", path)
    checks.flag("verify", verify)
    checks.flag("overwrite", overwrite)
    checks.one_of("format", format, (None, *FORMATS))
    by_suffix = {known.suffix: name for name, known in FORMATS.items()}
    implied = by_suffix.get(path.suffix, "saved_model")
    # A path such as model.h5 is a mistake; a folder called v1.2 is fine.
    mistaken = path.suffix not in by_suffix and any(map(str.isalpha, path.suffix))
    if format != implied and (format or mistaken):
        raise ValueError(
            f"`path` must end in {', '.join(filter(None, by_suffix))}, as its format does, or be a "
            f"folder for a SavedModel; with another suffix, that needs format='saved_model'. "
            f"Received: path={path}, format={format!r}."
        )
    format = implied
    if format == "saved_model" and set("*?[\\") & set(path.as_posix()):  # or it could not be loaded
        raise ValueError(
            "`path` of a SavedModel must be without *, ?, [ and \\, which TensorFlow takes for a "
            f"pattern. Received: path={path}."
        )
    known = FORMATS[format]
    if quantize not in (None, *known.quantizations):
        has = [f"{n}: {', '.join(f.quantizations)}" for n, f in FORMATS.items() if f.quantizations]
        raise ValueError(
            f"`quantize` must be None or one that the format supports ({'; '.join(has)}). "
            f"Received: quantize={quantize!r}, format={format!r}."
        )
    if format != "keras" and keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"`format={format!r}` is traced by TensorFlow. Received: the backend "
            f"{keras.backend.backend()!r}. Save the model as a .keras file and export that with "
            "KERAS_BACKEND=tensorflow: such a file loads under any backend."
        )
    absent = [package for package in known.packages if importlib.util.find_spec(package) is None]
    if absent:
        raise ImportError(f"`format={format!r}`: {missing(' and '.join(absent), format)}")
    check_place(path, format, overwrite)

    def say(what):
        if shows_progress(verbose):
            print(f"{what} ...", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        in_memory = isinstance(model, keras.Model)
        if not in_memory:
            file = checks.existing_file("model", trained_file(model))
        else:
            shapes = [x.shape[1:] for x in model.inputs] if has_graph(model) else []
            if len(shapes) != 1 or len(shapes[0]) != 3 or None in shapes[0]:
                raise ValueError(
                    "`model` must be a .keras file, or a built functional or Sequential "
                    "model that takes one image of a fixed size. "
                    f"{checks.received('model', model)}"
                )
            check_loads_as_saved(model, shapes[0])
            file = pathlib.Path(folder) / f"{model.name}.keras"
            model.save(file)  # so that the model stays untouched
        saved = SavedNetwork(file)
        data.check_outside(
            saved.settings.get("dataset") if dataset is None else dataset, path, "path"
        )
        if not any(isinstance(layer, SCALING) for layer in saved.model._flatten_layers()):
            notice(f"{saved.model.name!r} has no layer that scales its input, 0 to 255.")
        noise = np.random.default_rng(0).integers(256, size=(8, *saved.model.input_shape[1:]))
        probabilities(saved.model, noise.astype("uint8"))  # raises if it returns something else
        is_int8 = any(weight.dtype == "int8" for weight in saved.model.weights)
        if is_int8 and not known.runs_int8:
            raise ValueError(
                f"`format={format!r}` cannot compute what Keras's int8 layers do. Received: a "
                "network quantized to int8. Export the one that it was made from, with `quantize` "
                "where the format has it."
            )
        images, calibrates = None, (format, quantize) == ("litert", "int8")
        if dataset is not None or (saved.settings.get("dataset") and (verify or calibrates)):
            say("reading the images")
            try:
                images = saved.load(dataset, data_dir, validation=0, test_only=not calibrates)
            except (data.DataError, FileNotFoundError) as error:
                if calibrates or not verify:
                    raise
                said = f"{error} verify=False does without images."
                raise type(error)(said) from (error.__cause__ or error)
        elif verify or calibrates:
            raise ValueError(
                "`dataset` must name the data set whose images verify the export or calibrate it: "
                "no run.json next to the model names it. Received: dataset=None."
                f"{'' if calibrates else ' verify=False does without images.'}"
            )
        names = saved.class_names if images is None else saved.names_for(images)
        if class_names is not None:
            checks.class_names("class_names", class_names, len(names))
            if sorted(class_names) == sorted(names) and list(class_names) != names:
                notice(f"`class_names` has the names {', '.join(names)} in another order.")
            if images is not None or "class_names" in saved.settings:
                saved.settings.setdefault("data_classes", names)
            names = list(class_names)

        with staged(path, format, overwrite) as aside:
            calibration = None
            if calibrates:
                calibration = images.x_train[shuffled(images.y_train)[:CALIBRATION_IMAGES]]
            say(f"writing {path.name}")
            try:
                write(saved.model, aside, format, quantize, names, calibration)
            except Exception as error:  # converters raise any kind, also when the disk is full
                kept = " The existing export is unchanged." if path.exists() else ""
                raise RuntimeError(f"{path} was not written: {reason(error)}.{kept}") from error
            entries = aside.parent.rglob("*")  # a format may need several
            size = sum(file.stat().st_size for file in entries if file.is_file())
            measured = {}
            if verify:
                # A network that Keras quantized rounds its inputs, and runtimes may round halfway
                # cases differently; sums in 16 bits depend on their order.
                layers = saved.model._flatten_layers()
                is_16bit = any(la.compute_dtype in ("bfloat16", "float16") for la in layers)
                tolerated = quantize or ("int8" if is_int8 else "float16" if is_16bit else None)
                most = max(1, MOST_IN_MEMORY // math.prod(images.input_shape))
                most = most if tolerated else min(most, VERIFIED_IMAGES)
                chosen = shuffled(images.y_test)[:most]
                x, y = images.x_test[chosen], images.y_test[chosen]
                say(f"running it on {len(y):,} test images")
                expected = probabilities(model if in_memory else saved.model, x, verbose)
                measured = verification.verify(aside, format, tolerated, x, y, expected, names)
            _write_card(aside, saved, format, quantize, names, measured)
    return Exported(path, size, **measured)


def _write_card(path, saved, format, quantize, names, measured):
    """Write what an export says about itself: the model card as JSON, the class names as text."""
    model = saved.model
    outputs = {"probabilities": f"float32 (batch, {len(names)})", "class_id": "int64 (batch)"}
    if format == "keras":  # the model itself
        del outputs["class_id"]
    card = {
        "name": model.name,
        "format": format,
        "quantize": quantize,
        "parameters": model.count_params(),
        "inputs": {"images": f"uint8 (batch, {', '.join(map(str, model.input_shape[1:]))})"},
        "outputs": outputs,
        "class_names": names,
        "verification": measured or None,
        "versions": {"highway-keras": highway_keras.__version__, "keras": keras.__version__},
        "paper": "Srivastava et al., Training Very Deep Networks, arXiv:1507.06228",
        "training": {k: v for k, v in saved.settings.items() if k != "class_names"},
    }
    if path.is_file():
        card["sha256"] = shipped.sha256(path)
    card_path, names_path = beside(path, format)
    card_path.parent.mkdir(exist_ok=True)
    files.write_json(card_path, card)
    files.write_text(names_path, "".join(f"{printable(name)}\n" for name in names))


@contextlib.contextmanager
def staged(path, format, overwrite):
    """Yield a path to write an export to; then move it, and what is next to it, to `path`.

    The yielded path is in a new folder next to `path`, on the same disk, so moving is renaming. The
    folder is removed at the end, also after an exception. If the process is killed, it stays until
    the next export to `path`, and `path` keeps what it held.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.with_name(f".{path.name}-unfinished")

    def clear():
        if (folder / "old").exists() and not path.exists():  # ended between the two renames below
            os.rename(folder / "old", path)
        shutil.rmtree(folder, ignore_errors=True)

    with files.file_lock(path):
        clear()
        try:
            (folder / "new").mkdir(parents=True)
            yield folder / "new" / path.name
            check_place(path, format, overwrite)  # something may have been written there since
            # The card first, since it marks the other files as ours, and `path` last.
            turn = {".json": 0, path.suffix: 2}
            for file in sorted((folder / "new").iterdir(), key=lambda f: turn.get(f.suffix, 1)):
                target = path.parent / file.name
                if target.is_dir():
                    # No portable call replaces a folder: for microseconds, there is none.
                    os.rename(target, folder / "old")
                os.replace(file, target)
        finally:
            clear()


def beside(path, format):
    """Return the paths of an export's model card and class names."""
    if format == "saved_model":
        return path / "assets" / "model_card.json", path / "assets" / "class_names.txt"
    return path.with_name(f"{path.name}.json"), path.with_name(f"{path.name}.txt")


def check_place(path, format, overwrite):
    """Raise a `ValueError` if the export would replace what it must not.

    Without `overwrite`, it must not replace anything. With it, it may replace an earlier export
    that has its model card, and nothing else: no network saved by training, and no SavedModel
    folder that holds other files.
    """
    if not files.can_write(path.parent):
        raise PermissionError(
            f"`path` must be in a folder that can be written. Received: path={path}."
        )
    card, names = beside(path, format)
    if format == "saved_model":
        parts = ("saved_model.pb", "fingerprint.pb", "variables/variables.index")
        ours = {card, names, *(path / part for part in parts)}
        existing = [path] if os.path.lexists(path) else []
        foreign = [] if read_card(card) else existing
        foreign += [
            file
            for file in path.rglob("*")
            if not (file.is_dir() or file in ours or file.match("variables/variables.data-*"))
        ]
    else:
        written = [path, card, names, *([path.with_suffix(".bin")] if format == "openvino" else [])]
        existing = [file for file in written if os.path.lexists(file)]
        foreign = [file for file in existing if not (read_card(card) and file.is_file())]
    if foreign:
        raise ValueError(
            "`path` must not exist yet: only an earlier export can be replaced. "
            f"Received: path={path}, but {foreign[0]} is something else. Name another."
        )
    if existing and not overwrite:
        raise ValueError(
            f"`path` must not exist yet. Received: path={path}. Name another, or pass "
            "overwrite=True."
        )
