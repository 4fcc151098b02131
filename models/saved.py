"""Trained networks as files: a `.keras` file that also says what it was trained on.

The file holds the whole way from raw images to class probabilities. Keras reads it as any other.
"""

from __future__ import annotations

import json
import pathlib
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from highway_keras.util.files import replacing
from highway_keras.util.messages import reason

if TYPE_CHECKING:
    import os

    import keras

SETTINGS = "highway_keras.json"  # member of the `.keras` archive, beside those of Keras


@dataclass(frozen=True)
class Trained:
    """A trained network, as `load` returns it.

    Attributes:
        model: The model from raw images, gray levels 0 to 255, to class probabilities.
        network: The network alone, which takes preprocessed images.
        preprocess: The model from raw images to what `network` takes; `None` if that is raw images.
        class_names: Names of the classes; their numbers, as text, if the file has no names.
        dataset: Name or path of the data set that it was trained on; `None` if the file names none.
        settings: All that `save` wrote, a dictionary.
        path: Path of the file.
    """

    model: keras.Model
    network: keras.Model
    preprocess: keras.Model | None
    class_names: tuple[str, ...]
    dataset: str | None
    settings: dict
    path: pathlib.Path


def save(path: str | os.PathLike, model: keras.Model, /, **settings) -> None:
    """Write a network with its preprocessing, and what it was trained on, to a `.keras` file.

    An existing file is replaced as a whole: a process that is killed leaves the old one.

    Args:
        path: Path of the file, which ends in `.keras`.
        model: The model from raw images to class probabilities. `load` takes it apart if it is
            `keras.Sequential([preprocess, network])` with a `data.preprocessor`.
        **settings: What can be written as JSON, such as `dataset`, `class_names`, `preprocessing`.
    """
    text = json.dumps(settings, indent=1)
    with replacing(path) as temporary:
        model.save(temporary)
        with zipfile.ZipFile(temporary, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(SETTINGS, text)


def load(path: str | os.PathLike) -> Trained:
    """Load a trained network from a `.keras` file.

    Files of plain Keras load as well. Pickles and Lambda layers stay off, as in Keras's safe mode.

    Args:
        path: The file, or the folder of a run, for its `best.keras`.

    Returns:
        A `Trained`, not compiled.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, or its model is not a classifier of images.

    Examples:
        >>> from highway_keras import models
        >>> trained = models.load(models.get("mnist-highway-16").weights_file("mnist"))
        >>> trained.dataset, trained.class_names[:3]
        ('mnist', ('0', '1', '2'))
        >>> trained.network.name
        'mnist-highway-16'
    """
    import keras

    from highway_keras.data.preprocessing import PREPROCESSOR

    path = resolve_network_path(path)
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                has_settings = SETTINGS in archive.namelist()
                settings = json.loads(archive.read(SETTINGS)) if has_settings else {}
            model = keras.models.load_model(path, compile=False)
            _, classes = model.output_shape
            class_names = tuple(map(str, settings.get("class_names") or range(classes)))
            if len(class_names) != classes:
                raise ValueError(f"it names {len(class_names)} of its {classes} classes")
        except Exception as error:  # damaged archives raise errors of many kinds
            raise ValueError(
                f"{path} cannot be loaded as a network that classifies images: {reason(error)}."
            ) from error
    layers = [layer for layer in model.layers if not isinstance(layer, keras.layers.InputLayer)]
    is_pair = len(layers) == 2 and layers[0].name == PREPROCESSOR
    preprocess, network = layers if is_pair else (None, model)
    return Trained(model, network, preprocess, class_names, settings.get("dataset"), settings, path)


def resolve_network_path(path):
    """Return `best.keras` if `path` is a run's folder, otherwise `path`."""
    path = pathlib.Path(path).expanduser()
    return path / "best.keras" if path.is_dir() else path
