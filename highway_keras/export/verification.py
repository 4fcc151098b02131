"""Check, in a new process, that an export computes what the Keras model does."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from highway_keras.data import images_at_once
from highway_keras.export import runtimes
from highway_keras.util.extras import extra
from highway_keras.util.messages import reason

TOLERANCE = {None: 1e-5, "float16": 2e-2, "int8": np.inf}
ALLOWED_DROP = 0.01  # of accuracy
PICTURES = 100


class ExportMismatch(RuntimeError):
    """An export does not compute what the Keras model does."""


def verify(path, format, precision, images, labels, expected, class_names):
    """Run an export in a new process, and compare it with the Keras model.

    `precision` is a key of `TOLERANCE`: "int8" also for a network that Keras has quantized,
    "float16" also for one that computes in 16 bits. `expected` are the Keras model's probabilities.
    Return the measured attributes of `Exported`, a dictionary. Raise an `ExportMismatch` if the
    export does not run, or its results differ.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # whose disk has room
        folder = pathlib.Path(folder)
        np.savez(folder / "images.npz", images=images)  # `save` raises no errno on a full disk
        if format == "saved_model" and images.shape[-1] in (1, 3):
            with extra("train"):
                from PIL import Image

            for index, image in enumerate(images[:PICTURES]):
                picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
                picture.save(folder / f"{index:04}.png")
        # -P: nothing from the folder of the file
        command = [sys.executable, "-P", runtimes.__file__, format, str(path), str(folder)]
        command.append(str(images_at_once(images.shape[1:])))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            last = reason(RuntimeError((done.stderr.strip() or "no message").splitlines()[-1]))
            if format == "keras" and "Could not locate" in last:
                last += "; a new process does not know your own layers, so pass verify=False"
            if done.returncode < 0:
                why = ", perhaps for want of memory" if done.returncode == -9 else ""
                last = f"it was killed by signal {-done.returncode}{why} ({last})"
            raise ExportMismatch(f"The export was not kept, as it does not run: {last}")
        with np.load(folder / "results.npz") as file:
            return compare(precision, dict(file), labels, expected, class_names)


def compare(precision, results, labels, expected, class_names):
    """Compare the results of `runtimes.main`; see `verify`."""
    difference = 0.0
    for what, found, wanted in (
        ("probabilities", results["probabilities"], expected),
        ("probabilities of a single image", results["single_probabilities"], expected[:1]),
        ("probabilities of PNG files", results.get("encoded_probabilities"), expected[:PICTURES]),
    ):
        if found is None:
            continue
        if found.shape != wanted.shape:
            raise ExportMismatch(
                f"The export was not kept: its {what} have the shape {found.shape} instead of "
                f"{wanted.shape}."
            )
        differences = np.nan_to_num(np.abs(found - wanted), nan=np.inf)
        worst = np.unravel_index(np.argmax(differences), found.shape)
        if np.isnan(found).any() or differences[worst] > TOLERANCE[precision]:
            raise ExportMismatch(
                f"The export was not kept: its {what} differ from Keras's by up to "
                f"{differences[worst]:.2g} (image {worst[0]}, class {worst[1]}: "
                f"{found[worst]:.6f} instead of {wanted[worst]:.6f}); at most "
                f"{TOLERANCE[precision]:g} is allowed."
            )
        difference = max(difference, float(differences[worst]))
    accuracy = float((results["class_id"] == labels).mean())
    keras_accuracy = float((expected.argmax(-1) == labels).mean())
    if accuracy < keras_accuracy - ALLOWED_DROP:
        raise ExportMismatch(
            f"The export was not kept: its accuracy is {100 * accuracy:.2f} % where Keras has "
            f"{100 * keras_accuracy:.2f} %; quantization may cost {100 * ALLOWED_DROP:g} point."
        )
    best = results["probabilities"].argmax(-1)
    wanted = {"class_id": best, "class_name": np.asarray(class_names)[best]}
    for key in wanted.keys() & results.keys():
        wrong = np.flatnonzero(results[key] != wanted[key])
        if len(wrong):
            raise ExportMismatch(
                f"The export was not kept: its {key} of image {wrong[0]} is "
                f"{results[key][wrong[0]].item()!r} instead of {wanted[key][wrong[0]].item()!r}."
            )
    return {
        "difference": difference,
        "accuracy": accuracy,
        "keras_accuracy": keras_accuracy,
        "images": len(labels),
        "runtime": str(results["runtime"]),
    }
