"""What `compact` is worth: networks before and after, fine-tuned, and from scratch at that depth.

    python -m benchmarks.compact thin-highway-50

Gates are chosen on training images, and test images measure each network. What is trained stays in
a folder: called again, the benchmark trains what is missing and measures all of it.
"""

import dataclasses
import pathlib

import keras

from benchmarks import measurements
from highway_keras import analysis, data, models, results, training

SEEDS = range(3)
TUNING_EPOCHS = 3  # at a tenth of the recipe's rate


@dataclasses.dataclass(frozen=True)
class Case:
    """A network of the zoo.

    Attributes:
        dataset, recipe: Those of its weights.
        layers: Numbers of gated layers to leave, all of them first.
        choosing: How many images choose them.
        tuning: How many images train it further, all by default.
        epochs: Epochs from scratch; `None` if it is not trained.
    """

    dataset: str
    recipe: str
    layers: tuple
    choosing: int
    tuning: int | None = None
    epochs: int | None = None


CASES = {
    "thin-highway-50": Case("mnist", "thin", (49, 19, 9, 4, 29), 1000, epochs=10),
    "thin-highway-100": Case("mnist", "thin", (99, 19, 9, 4, 49), 1000, epochs=10),
    "mnist-highway-16": Case("mnist", "modern-mnist", (8, 6, 4), 5000, 10_000, epochs=5),
    "highway-b": Case("cifar10", "muon-cifar", (14, 13, 11), 1000),
}


def main(arguments=None):
    file = measurements.RESULTS / "compact.csv"
    parser = measurements.parser("benchmarks.compact", __doc__, data=True, file=file)
    parser.add_argument("network", choices=CASES)
    parser.add_argument("--layers", type=int, nargs="+", help="gated layers to leave (all)")
    parser.add_argument("--runs", default="runs/compact", help="folder of what is trained")
    options = parser.parse_args(arguments)
    name, case = options.network, CASES[options.network]
    chosen = options.layers or case.layers
    if not set(chosen) <= set(case.layers):
        parser.error(f"--layers must be of {case.layers}. Received: {chosen}.")
    for layers in chosen:
        for row, runs in measure(name, layers, pathlib.Path(options.runs), options.data_dir):
            keys, asked = ("model", "layers", "way"), {"runs": runs, "layers": layers}
            measurements.record([row], keys, options.out, "benchmarks.compact", name, **asked)


def measure(name, layers, folder, data_dir):
    """Yield a row, and the folders of its runs, for each way to so many gated layers of a network.

    The network is measured as it is (`closed`), trained further (`tuned`), or trained from scratch.
    """
    case = CASES[name]
    recipe = training.get_recipe(case.recipe)
    trained = models.load(models.get(name).weights_file(case.dataset))
    images = data.load(case.dataset, data_dir=data_dir, validation=0, limit=case.choosing)
    x = trained.preprocess.predict(images.x_train, verbose=0)

    def compacted():
        if layers == case.layers[0]:
            return trained.model, {}
        compacted = analysis.compact(trained.model, x, images.y_train, layers=layers)
        return compacted.model, compacted.curve[-1]

    small, cost = compacted()
    measured = training.evaluate(keras.Sequential([trained.preprocess, small]), images)
    sizes = {"model": name, "layers": layers, "of": case.layers[0]}
    sizes |= {
        "parameters": cost.get("parameters", small.count_params()),
        "multiplications": cost.get("multiplications", models.get(name).multiplications),
    }
    yield row("closed", [measured.accuracy], sizes, images=case.choosing), ()
    if case.epochs is None:
        return

    def train(way, make, limit, epochs, **options):
        loaded = data.load(
            case.dataset, data_dir=data_dir, validation=recipe.validation, limit=limit
        )
        runs = [
            training.fit(
                make(seed),
                loaded,
                recipe,
                out=folder / name / f"{way}-{layers}" / f"seed-{seed}",
                seed=seed,
                resume=True,
                verbose=2,
                epochs=epochs,
                **options,
            )
            for seed in SEEDS
        ]
        accuracies = [run.test_accuracy for run in runs]
        return (
            row(way, accuracies, sizes, epochs=epochs, images=limit or "all"),
            [run.folder for run in runs],
        )

    def with_weights(seed):
        network = keras.models.clone_model(small)
        network.set_weights(small.get_weights())
        return network

    def from_scratch(seed):
        keras.utils.set_random_seed(seed)
        building = {"kernel_initializer": recipe.kernel_initializer, "dropout": recipe.dropout}
        if recipe.name == "thin":  # whose gates start by the depth
            return models.create("thin-highway-10", depth=layers + 1)
        original = models.create(name, **building)

        def fresh(layer):
            config = original.get_layer(layer.name).get_config()
            return type(layer).from_config(config)

        return keras.models.clone_model(small, clone_function=fresh)

    rate = recipe.learning_rate / 10
    yield train("tuned", with_weights, case.tuning, TUNING_EPOCHS, learning_rate=rate)
    if layers < case.layers[0]:  # the runs from scratch of the whole are in `accuracy.csv`
        yield train("scratch", from_scratch, None, case.epochs)


def row(way, accuracies, sizes, images, epochs=""):
    """Return a row of `compact.csv`."""
    reached = results.spread([100 * accuracy for accuracy in accuracies])
    return {
        "way": way,
        **sizes,
        "n": reached["n"],
        "seed": " ".join(map(str, range(reached["n"]))),
        "mean": round(reached["mean"], 2),
        "std": round(reached["std"], 2) if reached["n"] > 1 else "",
        "epochs": epochs,
        "images": images,
    }


if __name__ == "__main__":
    main()
