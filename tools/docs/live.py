"""Live pages for the site: networks of the zoo with their trained weights, to draw on."""

import pathlib
import tempfile

import numpy as np
from PIL import Image

NETWORKS = ("mnist-highway-16", "thin-highway-50")
BOX = 20  # MNIST's digits lie in a box of 20 pixels, centered in 28


def pages():
    """Return the live page of each network by its path in the site."""
    from highway_keras import analysis, models, training

    images, labels = examples()
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            path = pathlib.Path(folder, f"{name}.html")
            saved = training.SavedNetwork(models.get(name).weights_file("mnist"))
            title = f"{name}, trained on MNIST"
            analysis.live_page(saved.model, images, labels, path, saved.class_names, title)
            made[f"live/{name}.html"] = path.read_text(encoding="utf-8")
    return made


def examples():
    """Return the embedded test digits in MNIST's format, and their classes.

    The site must build without a download, and the embedded digits are 8 x 8 pixels.
    """
    from highway_keras import data

    digits = data.load("digits")
    images = [Image.fromarray(image[..., 0]) for image in digits.x_test]
    large = np.stack([image.resize((BOX, BOX), Image.Resampling.BICUBIC) for image in images])
    edge = (28 - BOX) // 2
    framed = np.pad(large, [(0, 0), (edge, edge), (edge, edge)])
    return framed[..., None], digits.y_test
