"""A network that `fit` saved or that comes with the zoo: loaded safely, measured and used."""

import dataclasses
import json
import os
import zipfile

import keras
import numpy as np

from highway_keras import data
from highway_keras.models import shipped
from highway_keras.runs import trained_file
from highway_keras.runs.folder import RunFolder
from highway_keras.training.evaluation import evaluate, probabilities
from highway_keras.training.recipes import get_recipe
from highway_keras.util import checks
from highway_keras.util.cores import on_every_core
from highway_keras.util.files import is_transient
from highway_keras.util.messages import notice, reason

HALF = 255 / 2  # of the range of gray levels


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


class SavedNetwork:
    """A network loaded from a `.keras` file, with its data set and class names if they are known.

    They are known if the run's `run.json` is next to the file, and for the zoo's weights.

    Args:
        path: A `.keras` file with raw images in and class probabilities out, such as
            `models.get("mnist-highway-16").weights_file("mnist")`; or the folder of a run, for its
            `best.keras`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged or holds something else.

    Examples:
        >>> from highway_keras import models, training
        >>> file = models.get("mnist-highway-16").weights_file("mnist")
        >>> network = training.SavedNetwork(file)
        >>> network.class_names[:3]
        ['0', '1', '2']
        >>> [one.classes for one in network.classify(["seven.png"])]  # doctest: +SKIP
    """

    def __init__(self, path):
        self.path = checks.existing_file("path", trained_file(path))
        self.model = load_network(self.path)
        takes, gives = (getattr(self.model, f"{end}_shape", None) for end in ("input", "output"))
        single = isinstance(takes, tuple) and isinstance(gives, tuple)  # else several, or not built
        if not single or (len(takes), len(gives)) != (4, 2) or None in (*takes[1:], gives[1]):
            raise ValueError(
                f"{self.path} must take one image of a fixed size and return a probability for "
                "each class, as a network that `fit` saved does."
            )
        self.settings = settings_beside(self.path)

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

    def names_for(self, images):
        """Return the names of the classes: the network's, or those of the images if it has none."""
        numbers = list(map(str, range(images.classes)))
        return list(images.class_names) if self.class_names == numbers else self.class_names

    def load(self, dataset=None, data_dir=None, validation=0.1, limit=None, test_only=False):
        """Return the `data.Dataset` to use it on, with pictures scaled to its input size.

        Args:
            dataset: What `data.load` takes; default: the one it was trained on.
            data_dir, validation, limit, test_only: As for `data.load`.

        Raises:
            ValueError: If images or classes are not those of the network.
            FileNotFoundError: If the images that it was trained on are not there.
        """
        if dataset is None:
            dataset = self.dataset
            check_here(dataset, self.path)
        shape = self.model.input_shape[1:]
        skip_broken = self.settings.get("skip_broken") is True
        images = data.load(dataset, data_dir, validation, limit, shape, skip_broken, test_only)
        wanted = shape, self.model.output_shape[-1]
        if wanted != (images.input_shape, images.classes):
            raise ValueError(
                f"The network takes images of shape {wanted[0]} in {wanted[1]} classes. Received: "
                f"dataset={images.name!r} with shape {images.input_shape} in {images.classes}."
            )
        known = tuple(self.settings.get("data_classes", self.class_names))  # before an export's own
        # Classes of a folder are compared by name even if the names are numbers.
        always_by_name = data.is_folder(dataset) and "class_names" in self.settings
        numbers = tuple(map(str, range(images.classes)))  # which stand in for names
        unnamed = numbers in (known, images.class_names)
        same = images.class_names in (known, tuple(self.class_names))
        if not same and (always_by_name or not unnamed):
            raise ValueError(
                f"The network's classes are {', '.join(known)}. Received: "
                f"dataset={images.name!r} with {', '.join(images.class_names)}. Give the images "
                "the same classes, in the same order."
            )
        in_keras_order = list(images.class_names) == sorted(images.class_names)
        if data.is_folder(dataset) and self.settings.get("dataset") is None and not in_keras_order:
            notice(
                f"The classes of {dataset} are taken in the order of their numbers; Keras's "
                "`image_dataset_from_directory` sorts them as text, 10 before 2."
            )
        notice_other_split(self.settings, dataset, images)
        return images

    def evaluate(self, images, verbose=0):
        """Return cross-entropy (nats) and accuracy on the test images of a `data.Dataset`.

        Args:
            images: The images, or their name, as `load` takes it.
            verbose: 1 shows a progress bar, 0 none, `"auto"` one on a terminal.

        Returns:
            An `Evaluation`: a pair that also has `confusion` and `class_accuracy`.

        Raises:
            ValueError: If images or classes are not those of the network.
        """
        return evaluate(self.model, self.load(images, validation=0, test_only=True), verbose)

    def classify(self, paths, top=1):
        """Yield a `Classified` for each of many picture files, in their order.

        A notice at the end says how many pictures look inverted: dark at the edges where the
        training images are bright, or the other way round, as in a photograph of ink on paper.

        Args:
            paths: Paths of PNG or JPEG files. One that cannot be read does not stop the others.
            top: How many classes to name for each picture.

        Raises:
            ValueError: If `top` is out of its range, or pictures do not have the network's
                channels.
            TypeError: If `paths` is not a list of paths.
        """
        names, shape = self.class_names, self.model.input_shape[1:]
        checks.integer("top", top, least=1, most=len(names))
        data.check_channels(shape)
        paths, inverted = list(map(str, checks.paths("paths", paths))), []
        edges = self.settings.get("edge_brightness")

        def read(path):
            try:
                return data.read_image(path, shape)
            except (OSError, data.DataError) as error:
                return str(error)

        at_once = data.images_at_once(shape)
        for start in range(0, len(paths), at_once):
            part = paths[start : start + at_once]
            images = dict(zip(part, on_every_core(read, part), strict=True))
            pixels = {path: image for path, image in images.items() if not isinstance(image, str)}
            rows = probabilities(self.model, np.stack([*pixels.values()])) if pixels else ()
            rows = dict(zip(pixels, rows, strict=True))
            for path in part:
                best = np.argsort(-rows[path], kind="stable")[:top] if path in rows else ()
                classes = tuple((names[i], float(rows[path][i])) for i in best)
                if path in pixels and edges is not None:
                    if abs(data.edge_brightness(pixels[path][None]) - edges) > HALF:
                        inverted.append(path)
                yield Classified(path, classes, None if path in pixels else images[path])
        if inverted:
            found = "dark, they are bright" if edges < HALF else "bright, they are dark"
            notice(
                f"{len(inverted)} of {len(paths)} pictures look inverted, the first {inverted[0]}: "
                f"at the edges, where the training images are {found}. Invert them."
            )


def settings_beside(path):
    """Return what is known about the training of a `.keras` file, in the form of a `run.json`.

    It comes from the model card next to an export, from the run.json next to the file or, for the
    zoo's weights, from their index, which names the recipe and what differed from it. The
    dictionary is empty if nothing is known.
    """
    card = read_card(path.with_name(f"{path.name}.json"))
    if card and card.get("sha256") == shipped.sha256(path):
        names, known = card["class_names"], card["training"]
        named = names != list(map(str, range(len(names))))  # else numbers stand in for names
        return {**known, "class_names": names} if named else known
    folder = RunFolder(path.parent)
    if folder.settings.exists():
        if folder.saved(path):
            return folder.read_json()
        notice(
            f"{path} is not of the run in its folder, so what run.json says there is left aside."
        )
    entry = shipped.entry_of(path)
    if entry:
        changes = {name: entry[name] for name in ("epochs", "preprocessing", "dtype_policy")}
        recipe = get_recipe(entry["recipe"]).override(**changes)
        entry["recipe"] = dataclasses.asdict(recipe)
        del entry["images"]  # their number; a run's settings have a fingerprint under that name
        entry["dropout_in_file"] = 1.0  # the rates of the network itself, not of its training
    return entry


def read_card(path):
    """Return the model card that `export` wrote, a dictionary; an empty one if it is none."""
    try:  # a pipe would be waited for
        card = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, RecursionError, ValueError):
        return {}
    is_card = isinstance(card, dict) and {"inputs", "outputs", "class_names"} <= card.keys()
    return card if is_card else {}


def check_here(dataset, path):
    """Raise unless the data set that `run.json` names, next to a network's file, is there."""
    path_of_it = None if dataset in data.NAMES else _real_path(dataset)
    if path_of_it and not os.path.exists(path_of_it):
        raise FileNotFoundError(
            f"The data set that {path} was trained on is not here: {dataset}, as its run.json "
            "says. Pass `dataset`."
        )


def notice_other_split(before, dataset, images):
    """Give a notice if some test images may be those that a run with the settings `before` had."""
    known, source = before.get("test_images"), before.get("dataset")
    same = known and source and dataset and _real_path(dataset) == _real_path(source)
    shape = list(images.input_shape)  # the same pictures differ in another size
    same = same and before.get("image_shape", shape) == shape
    if same and images.fingerprint(("test",)) != known:  # some were added or removed
        notice(
            f"The test images of {dataset} are no longer those of the network's run, which may "
            "have trained on some of them. Folders train/ and test/ keep them apart."
        )


def _real_path(name):
    """Return the path that a name of images stands for, or `None` for arrays."""
    is_path = isinstance(name, str | os.PathLike)
    return os.path.realpath(os.path.expanduser(name)) if is_path else None


def load_network(path, remedy="Restore it from a copy, or train the network again."):
    """Return the model, not compiled, that a `.keras` file holds; `remedy` is for a damaged one."""
    if path.suffix != ".keras":
        raise ValueError(f"A saved network is a .keras file. Received: {path}.")
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):  # Keras calls it "not found"
                raise OSError
        # Not compiled: losses and metrics may be a user's own, and Keras's torch backend refuses
        # several steps per call, which other backends save.
        return keras.models.load_model(path, compile=False)
    except Exception as error:  # damaged archives raise errors of many kinds
        if is_transient(error):
            raise
        said = f"it is damaged, cut short, or was not saved as a .keras file. {remedy}"
        of_keras = isinstance(error, TypeError | ValueError) and str(error).strip()
        if of_keras or "(missing)" in str(error):  # such as LZMA, of this Python
            said = f"{reason(error)}."
        raise ValueError(f"{path} cannot be loaded as a Keras model: {said}") from error
