"""The claims: one card a network, with its exact size and what the paper says of it.

Claims only. What was measured stands in `results/` and is joined to a card by its name.
Importing this module does not import Keras, so that listing the zoo takes no time.
"""

import dataclasses
import difflib
import importlib

from highway_keras.models import trained


@dataclasses.dataclass(frozen=True)
class Card:
    """What the zoo knows of a network.

    Attributes:
        name: Registered name.
        factory: Name of the factory in `highway_keras.models`.
        arguments: What the factory is called with.
        dataset: The data set of the paper's experiment.
        input_shape: Shape of one image.
        classes: Number of classes.
        layers: Depth as the paper counts it.
        parameters: Exact number of parameters.
        multiplications: Exact number of multiplications by a weight in one forward pass of one
            image, those with the zeros of a padding included: the paper's measure of operations.
        paper: The paper's test accuracy, "best (mean ± std)" in percent; empty if not given.
        table: Where the paper reports it.
        recipe: Name of the default training recipe.
        weights: Data sets that trained weights come with the package for.
    """

    name: str
    factory: str
    arguments: dict
    dataset: str
    input_shape: tuple
    classes: int
    layers: int
    parameters: int
    multiplications: int
    paper: str
    table: str
    recipe: str

    @property
    def weights(self):
        return trained.datasets(self.name)

    def weights_file(self, dataset):
        """Path of the `.keras` file that `create(name, weights=dataset)` reads, checked.

        It holds the network behind its preprocessing: `keras.models.load_model` gives a model that
        takes raw images.
        """
        return trained.find_file(self.name, dataset)

    def build(self, weights=None, **overrides):
        """An uncompiled `keras.Model`; `overrides` are arguments of the factory."""
        factory = getattr(importlib.import_module("highway_keras.models"), self.factory)
        weights = trained.resolve(self.name, weights)
        return factory(**{"name": self.name, **self.arguments, **overrides, "weights": weights})


def _thin(kind, units, depth):
    gates = 2 if kind == "highway" else 1
    products = 784 * units + (depth - 1) * gates * units * units + units * 10
    biases = units + (depth - 1) * gates * units + 10
    return Card(
        name=f"thin-{kind}-{depth}",
        factory="thin_mlp",
        arguments={"depth": depth, "kind": kind},
        dataset="mnist",
        input_shape=(28, 28, 1),
        classes=10,
        layers=depth,
        parameters=products + biases,
        multiplications=products,
        paper="",
        table="Figure 1" if kind != "residual" else "",
        recipe="thin",
    )


def _mnist(width, parameters, multiplications, paper):
    return Card(
        name=f"mnist-highway-{width}",
        factory="mnist_highway",
        arguments={"width": width},
        dataset="mnist",
        input_shape=(28, 28, 1),
        classes=10,
        layers=10,
        parameters=parameters,
        multiplications=multiplications,
        paper=paper,
        table="Table 1",
        recipe="mnist",
    )


def _cifar(
    name,
    factory,
    layers,
    parameters,
    multiplications,
    paper,
    table="Table 2",
    classes=10,
    recipe="cifar",
):
    return Card(
        name=name,
        factory=factory,
        arguments={"classes": classes} if factory == "highway_gap" else {},
        dataset=f"cifar{classes}",
        input_shape=(32, 32, 3),
        classes=classes,
        layers=layers,
        parameters=parameters,
        multiplications=multiplications,
        paper=paper,
        table=table,
        recipe=recipe,
    )


CARDS = {
    card.name: card
    for card in (
        *(_thin("highway", 50, depth) for depth in (10, 20, 50, 100)),
        *(_thin("plain", 71, depth) for depth in (10, 20, 50, 100)),
        *(_thin("residual", 71, depth) for depth in (10, 20, 50, 100)),
        _mnist(16, 38_986, 8_028_576, "99.43 (99.40 ± 0.03)"),
        _mnist(32, 151_690, 31_650_624, "99.55 (99.54 ± 0.02)"),
        _cifar("highway-a", "highway_a", 11, 236_328, 31_131_716, "89.18"),
        _cifar("highway-b", "highway_b", 19, 2_312_438, 330_075_528, "92.46 (92.28 ± 0.16)"),
        _cifar("highway-c", "highway_c", 32, 1_264_502, 229_484_904, "91.20"),
        _cifar(
            "highway-gap-10",
            "highway_gap",
            19,
            2_256_838,
            330_826_728,
            "92.40 (92.31 ± 0.12)",
            "Table 3",
        ),
        _cifar(
            "highway-gap-100",
            "highway_gap",
            19,
            2_265_928,
            330_835_728,
            "67.76 (67.61 ± 0.15)",
            "Table 3",
            classes=100,
        ),
        _cifar("fitnet-a", "fitnet_a", 11, 251_194, 30_150_024, "89.01", recipe="fitnet"),
        _cifar("fitnet-b", "fitnet_b", 19, 2_548_602, 381_749_128, "91.61", recipe="fitnet"),
    )
}


def list_models():
    """The registered names, in the order of the paper.

    Example:

    >>> from highway_keras import models
    >>> models.list_models()[:2]
    ['thin-highway-10', 'thin-highway-20']
    """
    return list(CARDS)


def get(name):
    """The card of a registered network.

    Raises:
        ValueError: If there is no network of that name; the message lists near matches.

    Example:

    >>> from highway_keras import models
    >>> models.get("mnist-highway-16").parameters
    38986
    """
    if name not in CARDS:
        near = difflib.get_close_matches(str(name), CARDS, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(CARDS)}."
        raise ValueError(f"`name` must be a registered network. Received: name={name!r}. {hint}")
    return CARDS[name]


def create(name, weights=None, **overrides):
    """Builds a registered network.

    Args:
        name: Registered name; see `list_models()`.
        weights: `None`; a name of `get(name).weights`, such as `"mnist"`, for weights that come
            with the package; or the path of a weights file, or of a `.keras` file that `fit`
            saved. Those of the package and of `fit` were trained behind a preprocessing that the
            network alone does not have, such as `x / 256`; the file itself has it.
        **overrides: Arguments of the factory, such as `input_shape` or `classes`.

    Returns:
        An uncompiled `keras.Model`.

    Raises:
        ValueError: If an argument is out of its range, or the weights are unknown, damaged, or do
            not fit.

    Example:

    >>> from highway_keras import models
    >>> models.create("thin-highway-10", input_shape=(8, 8, 1)).count_params()
    49660
    """
    return get(name).build(weights=weights, **overrides)
