"""Check, in a process without Keras, that an export computes what the Keras model does."""

import pathlib
import site
import subprocess
import sys
import tempfile

import numpy as np

from highway_keras.export import runtimes
from highway_keras.extras import extra

TOLERANCE = {None: 1e-5, "float16": 2e-2, "int8": np.inf}
ALLOWED_DROP = 0.01  # of accuracy, by quantization
PICTURES = 100
# The first folder of `sys.path` is the current one; -P, which leaves it out, is new in Python 3.11.
_RUN_FILE = (
    "import sys; del sys.path[0], sys.argv[0]; import runpy; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


class ExportMismatch(RuntimeError):
    """An export does not compute what the Keras model does."""


def verify(path, format, quantize, images, labels, expected, class_names):
    """Run an export in a new process, and compare it with the Keras model.

    Args:
        path: The exported file.
        format: As in `export`.
        quantize: As in `export`; `"int8"` also for a network that Keras has quantized.
        images: Raw images, uint8.
        labels: Their classes.
        expected: The Keras model's probabilities for them.
        class_names: Names of the classes.

    Returns:
        The largest difference between a probability and `expected`, and the accuracy.

    Raises:
        ExportMismatch: If it does not run, or its results differ; the message says how.
    """
    return compare(quantize, _run(path, format, images), labels, expected, class_names)


def compare(quantize, results, labels, expected, class_names):
    """Compare the results of `runtimes.main`; see `verify`."""
    found, tolerance = results["probabilities"], TOLERANCE[quantize]
    difference = _difference("probabilities", found, expected, tolerance)
    single = results["single_probabilities"]
    _difference("probabilities of a single image", single, expected[:1], tolerance)
    if "encoded_probabilities" in results:
        encoded = results["encoded_probabilities"]
        _difference("probabilities of PNG files", encoded, expected[:PICTURES], tolerance)
    accuracy = float((results["class_id"] == labels).mean())
    _check_accuracy(accuracy, float((expected.argmax(-1) == labels).mean()))
    _check_classes(results, class_names)
    return difference, accuracy


def _run(path, format, images):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        np.save(folder / "images.npy", images)
        if format == "saved_model" and images.shape[-1] in (1, 3):
            _write_pictures(folder, images[:PICTURES])
        command = [*_isolated_python(), runtimes.__file__, format, str(path), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip() or "no message").splitlines()[-1]
            raise ExportMismatch(f"the export does not run: {reason}")
        with np.load(folder / "results.npz") as file:
            return dict(file)


def _isolated_python():
    """Return the start of a command that runs a Python file as `python -I FILE` does.

    No PYTHONPATH, and nothing from the current folder or that of the file. But where this process
    imports what `pip install --user` installed, the new one does, too: its runtime may be there.
    """
    options = ["-E"] if site.ENABLE_USER_SITE else ["-E", "-s"]
    return [sys.executable, *options, "-c", _RUN_FILE]


def _write_pictures(folder, images):
    with extra("train"):
        from PIL import Image

    for index, image in enumerate(images):
        picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
        picture.save(folder / f"{index:04}.png")


def _difference(what, found, expected, tolerance):
    if found.shape != expected.shape:
        raise ExportMismatch(
            f"its {what} have the shape {found.shape} instead of {expected.shape}."
        )
    differences = np.abs(found - expected)
    # A NaN is never within the tolerance.
    worst = np.unravel_index(np.argmax(np.nan_to_num(differences, nan=np.inf)), found.shape)
    if not differences[worst] <= tolerance:
        raise ExportMismatch(
            f"its {what} differ from Keras's by up to "
            f"{differences[worst]:.2g} (image {worst[0]}, class {worst[1]}: {found[worst]:.6f} "
            f"instead of {expected[worst]:.6f}); at most {tolerance:g} is allowed."
        )
    return float(differences[worst])


def _check_accuracy(accuracy, before):
    if accuracy < before - ALLOWED_DROP:
        raise ExportMismatch(
            f"its accuracy is {100 * accuracy:.2f} % where Keras has "
            f"{100 * before:.2f} %; quantization may cost {100 * ALLOWED_DROP:g} point."
        )


def _check_classes(results, class_names):
    best = results["probabilities"].argmax(-1)
    wanted = {"class_id": best, "class_name": np.asarray(class_names)[best]}
    for name in wanted.keys() & results.keys():
        wrong = np.flatnonzero(results[name] != wanted[name])
        if len(wrong):
            first = wrong[0]
            raise ExportMismatch(
                f"its {name} of image {first} is "
                f"{results[name][first].item()!r} instead of {wanted[name][first].item()!r}."
            )
