"""A network that `fit` saved or that comes with the zoo: loaded safely, measured and used."""

import os
import zipfile

import keras

from highway_keras import checks, data
from highway_keras.data.arrays import check_dataset
from highway_keras.messages import notice
from highway_keras.models.shipped import entry_of
from highway_keras.runs.folder import RunFolder
from highway_keras.training.classification import classify
from highway_keras.training.evaluation import evaluate

PATH = str | os.PathLike


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
        _check_classifies_images(self.model, self.path)
        folder = RunFolder(self.path.parent)
        known = folder.settings.exists()
        self.settings = folder.read_json() if known else entry_of(self.path)

    @property
    def dataset(self):
        """Name of the data set it was trained on, or path of its folder or `.npz`."""
        if self.settings.get("dataset") is None:
            found = f"The run.json next to {self.path} names no path of"
            if "dataset" not in self.settings:
                found = f"No run.json next to {self.path} names"
            raise ValueError(f"{found} its data set: pass `dataset`.")
        if not isinstance(self.settings["dataset"], str):
            raise ValueError(
                f"`dataset` in the run.json next to {self.path} must be a name. Received: "
                f"dataset={checks.short_repr(self.settings['dataset'])}. Pass --dataset."
            )
        return self.settings["dataset"]

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
        images = data.load(dataset, data_dir, validation, limit, shape)  # which has checked them
        self._check_fits(images)
        if data.is_folder(dataset) and "class_names" in self.settings:
            self._check_names(images)  # numbers, too: they are the names of its folders
        self._check_still_held_out(dataset, images)
        return images

    def _check_still_held_out(self, dataset, images):
        """Say so if a user's own images were split anew, since some were added or removed."""
        before = self.settings.get("test_images")
        if before is None or not _same_path(dataset, self.settings.get("dataset")):
            return
        if images.fingerprint(("test",)) != before:
            notice(
                f"The test images of {dataset} are no longer those of the run, so the network may "
                "have been trained on some of them. Folders train/ and test/ keep them apart."
            )

    def check(self, images):
        """Return a `data.Dataset` as training takes it.

        Raises:
            ValueError: If images or classes are not those of the network.
        """
        images = check_dataset(images)
        self._check_fits(images)
        return images

    def _check_fits(self, images):
        wanted = self.model.input_shape[1:], self.model.output_shape[-1]
        if wanted != (images.input_shape, images.classes):
            raise ValueError(
                f"The network takes images of shape {wanted[0]} in {wanted[1]} classes. Received: "
                f"dataset={images.name!r} with shape {images.input_shape} in {images.classes}."
            )
        if not (_are_numbers(self.class_names) or _are_numbers(images.class_names)):
            self._check_names(images)

    def _check_names(self, images):
        if tuple(self.class_names) != images.class_names:
            raise ValueError(
                f"The network's classes are {', '.join(self.class_names)}. Received: "
                f"dataset={images.name!r} with {', '.join(images.class_names)}. Give the images "
                "the same classes, in the same order."
            )

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

    def evaluate(self, images):
        """Return cross-entropy (nats) and accuracy on the test images of a `data.Dataset`.

        Raises:
            ValueError: If images or classes are not those of the network.
        """
        return evaluate(self.model, self.check(images))

    def classify(self, paths, top=1):
        """Yield a `Classified` for each picture file; see `classification.classify`."""
        return classify(self.model, self.class_names, paths, top)


def _same_path(*names):
    """Return whether two names of images are paths of the same folder or file."""
    paths = [os.path.realpath(os.path.expanduser(n)) for n in names if isinstance(n, PATH)]
    return len(paths) == 2 and paths[0] == paths[1]


def _are_numbers(names):
    """Return whether classes have only their numbers, which stand in for names."""
    return list(names) == list(map(str, range(len(names))))


def load_network(path, remedy="Restore it from a copy, or train the network again."):
    """Return the model, not compiled, that a `.keras` file holds.

    Raises:
        ValueError: If it is damaged or holds something else; the message ends with `remedy`.
    """
    if path.suffix != ".keras":
        raise ValueError(f"A saved network is a .keras file. Received: {path}.")
    reason = "it is damaged, cut short, or was not saved as a .keras file"
    if not zipfile.is_zipfile(path):  # Keras calls it "not found"
        raise ValueError(f"{path} cannot be loaded as a Keras model: {reason}. {remedy}")
    try:
        # Not compiled: losses and metrics may be a user's own, and Keras's torch backend refuses
        # several steps per call, which other backends save.
        return keras.models.load_model(path, compile=False)
    except Exception as error:  # damaged archives raise errors of many kinds
        said = "" if isinstance(error, OSError) else str(error).strip()
        reason = said.splitlines()[0].rstrip(".") if said else reason
        raise ValueError(f"{path} cannot be loaded as a Keras model: {reason}. {remedy}") from error


def _check_classifies_images(model, path):
    if not _classifies_images(model):
        raise ValueError(
            f"{path} must take one image of a fixed size and return a probability for each class, "
            "as a network that `fit` saved does."
        )


def _classifies_images(model):
    inputs, outputs = (getattr(model, f"{end}_shape", None) for end in ("input", "output"))
    if not isinstance(inputs, tuple) or not isinstance(outputs, tuple):  # several, or not built
        return False
    return len(inputs) == 4 and len(outputs) == 2 and None not in (*inputs[1:], outputs[1])
