"""Small pictures: in folders, one per class, and as the bytes of a file; a network for them."""

import io

import keras
import numpy as np
from PIL import Image

CLASSES = ("ant", "bee", "cat")


def images(count, size=(8, 8), classes=3, seed=0):
    """Images of noise, the brighter the higher their class, and their labels."""
    labels = np.arange(count) % classes
    noise = np.random.default_rng(seed).integers(0, 60, (count, *size), "uint8")
    return noise + (80 * labels)[:, None, None].astype("uint8"), labels


def as_file(picture, kind="PNG", **options):
    """The bytes of a file that Pillow writes."""
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def write_classes(folder, count, size=(8, 8), seed=0, classes=CLASSES):
    """Write `count` pictures into a folder for each class."""
    pictures, labels = images(count, size, len(classes), seed)
    for index, image in enumerate(pictures):
        below = folder / classes[labels[index]]
        below.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(below / f"{index:03}.png")
    return folder


def write_parts(folder):
    """Write `train/` and `test/`."""
    write_classes(folder / "train", 60)
    write_classes(folder / "test", 15, seed=1)
    return folder


def little(*layers, classes=3, name="little"):
    """A network of little work for them, with `layers` below its classifier."""
    end = keras.layers.Dense(classes, activation="softmax")
    start = [keras.Input((8, 8, 1)), keras.layers.Flatten()]
    return keras.Sequential([*start, *layers, end], name=name)
