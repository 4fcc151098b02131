"""The cards of the paper's networks: exact size, the paper's claims, default recipe.

Measurements are in `results/`, joined to a card by its name. A network's name is stated here and
nowhere else. Importing this module does not import Keras, so listing the zoo takes no time.
"""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable

from highway_keras import checks
from highway_keras.models import shipped

# The names of the networks by factory; the factory's arguments fill them in.
NAMES = {
    "thin_mlp": "thin-{kind}-{depth}",
    "mnist_highway": "mnist-highway-{width}",
    "highway_a": "highway-a",
    "highway_b": "highway-b",
    "highway_c": "highway-c",
    "highway_gap": "highway-gap-{classes}",
    "fitnet_a": "fitnet-a",
    "fitnet_b": "fitnet-b",
}


def name_of(factory, **arguments):
    """Return the name of the network that a factory of the zoo builds from `arguments`."""
    return NAMES[factory].format(**arguments)


def check_name(name):
    """Return `name` if TensorFlow takes it as the name of a model, and so every backend does."""
    if not re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.-]*", checks.text("name", name)):
        raise ValueError(
            "`name` must consist of letters without accents, digits, '_', '-' and '.', and begin "
            f"with a letter or digit. Received: name={checks.short_repr(name)}."
        )
    return name


# The arguments of a factory that change only what comes after its last features.
TOP = {"include_top", "classes", "pooling", "classifier_activation"}


@dataclasses.dataclass(frozen=True)
class Card:
    """What the zoo knows of a network.

    Attributes:
        name: Registered name.
        factory: Name of the factory in `highway_keras.models`, or a function.
        arguments: Arguments of the factory, a dictionary.
        dataset: The data set it is trained on by default; the paper's for the paper's networks.
        input_shape: Shape of one image.
        classes: Number of classes.
        recipe: Name of the default training recipe.
        layers: Depth as the paper counts it; `None` if not stated.
        parameters: Exact number of parameters; `None` if not stated.
        multiplications: Exact number of multiplications by a weight in one forward pass of one
            image, including those with padding zeros: the paper's measure of operations.
        paper: The paper's test accuracy, "best (mean ± std)" in percent; empty if not given.
        table: Where the paper reports it.
        origin: Where the network comes from, if not from the paper as it is.
        weights: Data sets for which trained weights come with the package.
    """

    name: str
    factory: str | Callable
    arguments: dict
    dataset: str
    input_shape: tuple
    classes: int
    recipe: str
    layers: int | None = None
    parameters: int | None = None
    multiplications: int | None = None
    paper: str = ""
    table: str = ""
    origin: str = ""

    @property
    def weights(self):
        return shipped.datasets(self.name)

    def weights_file(self, dataset):
        """Return the path of the `.keras` file that `create(name, weights=dataset)` reads.

        It holds the network and its preprocessing: `keras.models.load_model` returns a model that
        takes raw images.

        Raises:
            ValueError: If there are no such weights, or the file is damaged.
            FileNotFoundError: If the file is missing.
        """
        return shipped.find_file(self.name, dataset)

    def takes(self, argument):
        """Return whether the factory has an argument."""
        known = inspect.signature(self._factory()).parameters.values()
        return any(p.name == argument or p.kind is p.VAR_KEYWORD for p in known)

    def build(self, weights=None, **overrides):
        """Return an uncompiled `keras.Model`; `overrides` are arguments of the factory."""
        from highway_keras.models.weight_files import after, copy_below_top, load_weights

        path, model = shipped.resolve(self.name, weights), self._make(overrides)
        if path is None:
            return model
        network = after(overrides.get("input_tensor"), model)
        try:
            load_weights(network, path)
        except ValueError:
            if not TOP & set(overrides):
                raise
            # As in keras.applications: the layers below another top have their weights.
            copy_below_top(self._with_own_top(path, overrides), network)
        return model

    def _with_own_top(self, path, overrides):
        """Return the network that a file of weights is of, if it may have another top."""
        from highway_keras.models.weight_files import classes_in, load_weights

        tensor = overrides.get("input_tensor")
        below = {k: v for k, v in overrides.items() if k not in TOP | {"input_tensor"}}
        classes = classes_in(path)
        if classes not in (None, self.classes):
            below["classes"] = classes
        if tensor is not None:
            below["input_shape"] = tuple(tensor.shape[1:])
        try:
            return load_weights(self._make(below), path)
        except ValueError:
            # Below the top, images of another size take the same weights.
            if overrides.get("include_top", True) or below.pop("input_shape", None) is None:
                raise
        return load_weights(self._make(below), path)

    def _make(self, overrides):
        _check_one_shape(**overrides)
        factory = self._factory()
        arguments = {"name": self.name, **self.arguments, **overrides}
        if arguments["name"] is not None:
            check_name(arguments["name"])
        try:
            model = factory(**arguments)
        except TypeError as error:
            raise _named(error, self.name, overrides) from error
        if not getattr(model, "inputs", None):  # as a functional or Sequential model has them
            raise TypeError(
                "`factory` must return a functional or Sequential `keras.Model`. "
                f"Received: {model!r} from {factory!r}."
            )
        check_name(model.name)
        return model

    def _factory(self):
        if isinstance(self.factory, str):
            return getattr(importlib.import_module("highway_keras.models"), self.factory)
        return self.factory


def _check_one_shape(input_shape=None, input_tensor=None, **others):
    found = None if input_tensor is None else tuple(getattr(input_tensor, "shape", ())[1:])
    shape = tuple(input_shape) if isinstance(input_shape, list) else input_shape
    if shape is not None and found and shape != found:
        raise ValueError(
            "`input_shape` must be that of `input_tensor`, or left out. "
            f"Received: input_shape={input_shape}, input_tensor of shape {found}."
        )


def _named(error, name, overrides):
    """Return an error that names the argument that a factory does not have, or `error` itself."""
    for argument, value in overrides.items():
        if f"argument '{argument}'" in str(error):
            return TypeError(
                f"`{argument}` must be an argument that {name!r} leaves open; the documentation of "
                f"its factory lists them. Received: {argument}={checks.short_repr(value)}."
            )
    return error


def _card(factory, arguments=None, **claims):
    arguments = arguments or {}
    return Card(name_of(factory, **arguments), factory, arguments, **claims)


def _thin(kind, units, depth):
    gates = 2 if kind == "highway" else 1
    products = 784 * units + (depth - 1) * gates * units * units + units * 10
    biases = units + (depth - 1) * gates * units + 10
    return _card(
        "thin_mlp",
        {"depth": depth, "kind": kind},
        dataset="mnist",
        input_shape=(28, 28, 1),
        classes=10,
        recipe="thin",
        layers=depth,
        parameters=products + biases,
        multiplications=products,
        table="Figure 1" if kind != "residual" else "",
    )


def _mnist(width, parameters, multiplications, paper):
    return _card(
        "mnist_highway",
        {"width": width},
        dataset="mnist",
        input_shape=(28, 28, 1),
        classes=10,
        recipe="mnist",
        layers=10,
        parameters=parameters,
        multiplications=multiplications,
        paper=paper,
        table="Table 1",
    )


RECONSTRUCTED = "a reconstruction: the paper does not give the widths of its layers"
ROMERO = (
    "by [Romero et al., 2014](https://arxiv.org/abs/1412.6550), who trained it with hints from a "
    "teacher; here it is trained without"
)


def _cifar(factory, layers, parameters, multiplications, paper, recipe="cifar", origin=""):
    return _card(
        factory,
        dataset="cifar10",
        input_shape=(32, 32, 3),
        classes=10,
        recipe=recipe,
        layers=layers,
        parameters=parameters,
        multiplications=multiplications,
        paper=paper,
        table="Table 2",
        origin=origin,
    )


def _gap(classes, parameters, multiplications, paper):
    return _card(
        "highway_gap",
        {"classes": classes},
        dataset=f"cifar{classes}",
        input_shape=(32, 32, 3),
        classes=classes,
        recipe="cifar",
        layers=19,
        parameters=parameters,
        multiplications=multiplications,
        paper=paper,
        table="Table 3",
    )


PAPER = (
    *(_thin("highway", 50, depth) for depth in (10, 20, 50, 100)),
    *(_thin("plain", 71, depth) for depth in (10, 20, 50, 100)),
    *(_thin("residual", 71, depth) for depth in (10, 20, 50, 100)),
    _mnist(16, 38_986, 8_028_576, "99.43 (99.40 ± 0.03)"),
    _mnist(32, 151_690, 31_650_624, "99.55 (99.54 ± 0.02)"),
    _cifar("highway_a", 11, 236_328, 31_131_716, "89.18", origin=RECONSTRUCTED),
    _cifar("highway_b", 19, 2_312_438, 330_075_528, "92.46 (92.28 ± 0.16)"),
    _cifar("highway_c", 32, 1_264_502, 229_484_904, "91.20", origin=RECONSTRUCTED),
    _gap(10, 2_256_838, 330_826_728, "92.40 (92.31 ± 0.12)"),
    _gap(100, 2_265_928, 330_835_728, "67.76 (67.61 ± 0.15)"),
    _cifar("fitnet_a", 11, 251_194, 30_150_024, "89.01 (with hints)", "fitnet", ROMERO),
    _cifar("fitnet_b", 19, 2_548_602, 381_749_128, "91.61 (with hints)", "fitnet", ROMERO),
)
