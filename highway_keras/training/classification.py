"""Picture files in, classes out: any number of them, in batches, skipping damaged ones."""

import dataclasses

import numpy as np

from highway_keras import checks
from highway_keras.data import DataError, check_channels, read_image
from highway_keras.training.evaluation import EVALUATION_BATCH, probabilities


@dataclasses.dataclass(frozen=True)
class Classified:
    """What a network sees in a picture.

    Attributes:
        path: Path of the picture, a string.
        classes: Pairs (class name, probability), the most probable first; empty if the picture
            cannot be read.
        error: Why it cannot be read; `None` if it can.
    """

    path: str
    classes: tuple = ()
    error: str | None = None


def classify(model, class_names, paths, top=1):
    """Yield a `Classified` for each of many picture files, in their order.

    Args:
        model: Network with raw images in and class probabilities out.
        class_names: The names of its classes.
        paths: Paths of PNG or JPEG files. One that cannot be read does not end the others.
        top: How many classes to name for each picture.

    Yields:
        A `Classified` for each path.

    Raises:
        ValueError: If `top` is out of its range, or pictures do not have the network's channels.
        TypeError: If `paths` is not a list of paths.
    """
    checks.integer("top", top, least=1, most=len(class_names))
    check_channels(model.input_shape[1:])
    paths = checks.paths("paths", paths)
    for start in range(0, len(paths), EVALUATION_BATCH):
        batch = paths[start : start + EVALUATION_BATCH]
        read = [_read(path, model.input_shape[1:]) for path in batch]
        yield from _classify(model, class_names, read, top)


def _read(path, shape):
    """Return a path with its pixels, or with what is wrong with it instead."""
    try:
        return str(path), read_image(path, shape), None
    except (OSError, DataError) as error:
        return str(path), None, str(error)


def _classify(model, class_names, read, top):
    pixels = [image for _, image, _ in read if image is not None]
    found = iter(probabilities(model, np.stack(pixels)) if pixels else ())
    for path, image, error in read:
        if image is None:
            yield Classified(path, error=error)
            continue
        row = next(found)
        best = np.argsort(-row, kind="stable")[:top]
        yield Classified(path, tuple((class_names[i], float(row[i])) for i in best))
