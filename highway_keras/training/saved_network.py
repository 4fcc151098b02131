"""A network that `fit` saved or that comes with the zoo: loaded safely, measured and used."""

import dataclasses
import os
import zipfile

import keras
import numpy as np

from highway_keras import checks, data
from highway_keras.messages import notice
from highway_keras.models.shipped import entry_of
from highway_keras.runs.folder import RunFolder
from highway_keras.training.evaluation import EVALUATION_BATCH, evaluate, probabilities


class SavedNetwork:
    """A `.keras` file and, if its training is known, its data set and classes.

    They are known if the run's settings are next to the file, and for the zoo's weights.

    Args:
        path: A `.keras` file with raw images in and class probabilities out, such as `best.keras`
            of a run or `models.get("mnist-highway-16").weights_file("mnist")`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged or holds something else.
    """

    def __init__(self, path):
        self.path = checks.existing_file("path", path)
        self.model = load_network(self.path)
        takes, gives = (getattr(self.model, f"{end}_shape", None) for end in ("input", "output"))
        single = isinstance(takes, tuple) and isinstance(gives, tuple)  # else several, or not built
        if not single or (len(takes), len(gives)) != (4, 2) or None in (*takes[1:], gives[1]):
            raise ValueError(
                f"{self.path} must take one image of a fixed size and return a probability for "
                "each class, as a network that `fit` saved does."
            )
        folder = RunFolder(self.path.parent)
        known = folder.settings.exists()
        self.settings = folder.read_json() if known else entry_of(self.path)

    @property
    def dataset(self):
        """Name of the data set it was trained on, or path of its folder or `.npz`."""
        name = self.settings.get("dataset")
        if not isinstance(name, str):
            raise ValueError(
                f"No run.json next to {self.path} names the path of its data set: pass `dataset`."
            )
        return name

    @property
    def class_names(self):
        """The names of its classes; their numbers where the names are not known."""
        count = self.model.output_shape[-1]
        names = self.settings.get("class_names", list(range(count)))
        if not isinstance(names, list) or len(names) != count:
            raise ValueError(
                f"`class_names` in the run.json next to {self.path} must be a list of the names of "
                f"the {count} classes. {checks.received('class_names', names)} Correct it, or "
                "move the network away from that file."
            )
        return list(map(str, names))

    def load(self, dataset=None, data_dir=None, validation=0.1, limit=None):
        """Return the `data.Dataset` to use it on, with pictures scaled to its input size.

        Args:
            dataset: What `data.load` takes; default: the one it was trained on.
            data_dir, validation, limit: As for `data.load`.

        Raises:
            ValueError: If images or classes are not those of the network.
        """
        dataset = self.dataset if dataset is None else dataset
        shape = self.model.input_shape[1:]
        skip_broken = self.settings.get("skip_broken") is True
        images = data.load(dataset, data_dir, validation, limit, shape, skip_broken)
        # Numbers are names, too, where they are those of folders.
        self._check_fits(images, data.is_folder(dataset) and "class_names" in self.settings)
        before, known = self.settings.get("test_images"), self.settings.get("dataset")
        same = before and known and _real_path(dataset) == _real_path(known)
        if same and images.fingerprint(("test",)) != before:  # some were added or removed
            notice(
                f"The test images of {dataset} are no longer those of the run, so the network may "
                "have been trained on some of them. Folders train/ and test/ keep them apart."
            )
        return images

    def check(self, images):
        """Return a `data.Dataset` as training takes it.

        Raises:
            ValueError: If images or classes are not those of the network.
        """
        images = data.check_dataset(images)
        self._check_fits(images)
        return images

    def _check_fits(self, images, always_by_name=False):
        wanted = self.model.input_shape[1:], self.model.output_shape[-1]
        if wanted != (images.input_shape, images.classes):
            raise ValueError(
                f"The network takes images of shape {wanted[0]} in {wanted[1]} classes. Received: "
                f"dataset={images.name!r} with shape {images.input_shape} in {images.classes}."
            )
        numbers = tuple(map(str, range(images.classes)))  # which stand in for names
        unnamed = numbers in (tuple(self.class_names), images.class_names)
        if tuple(self.class_names) != images.class_names and (always_by_name or not unnamed):
            raise ValueError(
                f"The network's classes are {', '.join(self.class_names)}. Received: "
                f"dataset={images.name!r} with {', '.join(images.class_names)}. Give the images "
                "the same classes, in the same order."
            )

    def evaluate(self, images):
        """Return cross-entropy (nats) and accuracy on the test images of a `data.Dataset`.

        Returns:
            An `Evaluation`: a pair that also has `confusion` and `class_accuracy`.

        Raises:
            ValueError: If images or classes are not those of the network.
        """
        return evaluate(self.model, self.check(images))

    def classify(self, paths, top=1):
        """Yield a `Classified` for each picture file; see `classify`."""
        return classify(self.model, self.class_names, paths, top)


def _real_path(name):
    """Return the path that a name of images stands for, or `None` for arrays."""
    is_path = isinstance(name, str | os.PathLike)
    return os.path.realpath(os.path.expanduser(name)) if is_path else None


def load_network(path, remedy="Restore it from a copy, or train the network again."):
    """Return the model, not compiled, that a `.keras` file holds.

    Raises:
        ValueError: If it is damaged or holds something else; the message ends with `remedy`.
    """
    if path.suffix != ".keras":
        raise ValueError(f"A saved network is a .keras file. Received: {path}.")
    reason = "it is damaged, cut short, or was not saved as a .keras file"
    try:
        if not zipfile.is_zipfile(path):  # Keras calls it "not found"
            raise OSError
        # Not compiled: losses and metrics may be a user's own, and Keras's torch backend refuses
        # several steps per call, which other backends save.
        return keras.models.load_model(path, compile=False)
    except Exception as error:  # damaged archives raise errors of many kinds
        said = "" if isinstance(error, OSError) else str(error).strip()
        reason = said.splitlines()[0].rstrip(".") if said else reason
        raise ValueError(f"{path} cannot be loaded as a Keras model: {reason}. {remedy}") from error


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

    Raises:
        ValueError: If `top` is out of its range, or pictures do not have the network's channels.
        TypeError: If `paths` is not a list of paths.
    """
    checks.integer("top", top, least=1, most=len(class_names))
    shape = model.input_shape[1:]
    data.check_channels(shape)
    paths = checks.paths("paths", paths)
    for start in range(0, len(paths), EVALUATION_BATCH):
        read = [_read(path, shape) for path in paths[start : start + EVALUATION_BATCH]]
        pixels = [image for _, image, _ in read if image is not None]
        rows = iter(probabilities(model, np.stack(pixels)) if pixels else ())
        for path, image, error in read:
            row = [] if image is None else next(rows)
            best = np.argsort(-np.asarray(row), kind="stable")[:top]
            yield Classified(path, tuple((class_names[i], float(row[i])) for i in best), error)


def _read(path, shape):
    """Return a path with its pixels, or with what is wrong with it instead."""
    try:
        return str(path), data.read_image(path, shape), None
    except (OSError, data.DataError) as error:
        return str(path), None, str(error)
