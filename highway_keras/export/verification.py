"""Check, in a new process, that an export computes what the Keras model computes."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from highway_keras.data.dataset import inference_batch_size
from highway_keras.export import formats
from highway_keras.training import probabilities
from highway_keras.util.extras import extra

MAX_IMAGES, MAX_PICTURES = 1000, 100
TOLERANCE = {None: 1e-5, "float16": 2e-2, "int8": np.inf}  # of a probability
ALLOWED_DROP = 0.01  # of the accuracy


class ExportMismatch(RuntimeError):
    """An export does not compute what the Keras model computes, and was not kept."""


def verify(path, format, model, images, quantize, class_names):
    """Return what `Exported` says of a verification, a dictionary, or raise `ExportMismatch`."""
    x, y = (formats.sample(part, MAX_IMAGES) for part in (images.x_test, images.y_test))
    expected = probabilities(model, x)
    results = run_in_new_process(path, format, x)
    return compare(results, expected, y, precision(model, quantize), class_names)


def precision(model, quantize):
    """Return the key of `TOLERANCE` for a network."""
    # A network that Keras has quantized rounds its inputs, and runtimes may round halfway cases
    # differently. Sums in 16 bits depend on their order.
    config = model.to_json()
    if quantize == "int8" or "QuantizedDTypePolicy" in config:
        return "int8"
    return "float16" if quantize or 'float16"' in config else None


def run_in_new_process(path, format, images):
    """Return the outputs of an export by name, as `formats.main` writes them."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # on a disk with room for it
        folder = pathlib.Path(folder)
        np.save(folder / "images.npy", images)
        if format == "saved_model" and images.shape[-1] in (1, 3):
            with extra("train"):
                from PIL import Image

            for index, image in enumerate(images[:MAX_PICTURES]):
                picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
                picture.save(folder / f"{index:04}.png")
        # -P: the script's folder is not searched for modules.
        command = [sys.executable, "-P", formats.__file__, format, path, folder]
        command.append(str(inference_batch_size(images.shape[1:])))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise ExportMismatch(f"The export was not kept, because it does not run: {last}")
        with np.load(folder / "results.npz") as file:
            return dict(file)


def compare(results, expected, labels, precision, class_names):
    """Compare the outputs of an export with the Keras model's probabilities; see `verify`."""

    def require(holds, otherwise):
        if not holds:
            raise ExportMismatch(f"The export was not kept: {otherwise}.")

    class_id, differences = results["class_id"], [0.0]
    for name in ("probabilities", "probabilities of PNG files"):
        if name in results:
            difference = np.abs(results[name] - expected[: len(results[name])]).max()
            require(
                difference <= TOLERANCE[precision],  # false for NaN
                f"its {name} differ from Keras's by up to {difference:.2g}, but at most "
                f"{TOLERANCE[precision]:g} is allowed",
            )
            differences.append(float(difference))
    require((class_id == results["probabilities"].argmax(-1)).all(), "its class_id is wrong")
    names = np.asarray(class_names)[class_id]
    require((results.get("class_name", names) == names).all(), "its class_name is wrong")
    accuracy = float((class_id == labels).mean())
    keras_accuracy = float((expected.argmax(-1) == labels).mean())
    require(
        accuracy >= keras_accuracy - ALLOWED_DROP,
        f"its accuracy is {accuracy:.2%} where Keras has {keras_accuracy:.2%}, but at most "
        f"{ALLOWED_DROP:.0%} may be lost",
    )
    return {
        "accuracy": accuracy,
        "keras_accuracy": keras_accuracy,
        "difference": max(differences),
        "same_class": int((class_id == expected.argmax(-1)).sum()),
        "images": len(labels),
        "runtime": str(results["runtime"]),
    }
