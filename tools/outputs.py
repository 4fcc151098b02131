"""Record what the weights of the zoo compute on made-up images: `python -m tools.outputs`.

A test compares them with the record. Without the data sets, it thus shows whether a change to a
layer or to the preprocessing would change the accuracies on model cards.
"""

import json

import keras
import numpy as np

from benchmarks.rows import ROOT
from highway_keras import models
from highway_keras.models import shipped

RECORD = ROOT / "tests" / "recorded" / "outputs.json"


def outputs(name, dataset):
    """Return the probabilities that a network with its weights gives to three images."""
    network = keras.models.load_model(models.get(name).weights_file(dataset))
    return network.predict(_images(network.input_shape[1:]), verbose=0)


def _images(shape):
    """Return patches of random color with some noise."""
    height, width, channels = shape
    rng = np.random.default_rng(0)
    patches = rng.integers(0, 256, (3, 4, 4, channels))
    images = patches.repeat(height // 4, 1).repeat(width // 4, 2)
    return (images + rng.integers(-20, 21, images.shape)).clip(0, 255).astype("uint8")


def main():
    record = {
        entry["file"]: {
            "sha256": entry["sha256"],
            "outputs": outputs(entry["name"], entry["dataset"]).astype("float64").round(4).tolist(),
        }
        for entry in shipped.read_index()
    }
    lines = (f"  {json.dumps(file)}: {json.dumps(record[file])}" for file in sorted(record))
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(RECORD.relative_to(ROOT))


if __name__ == "__main__":
    main()
