"""What `compact` is worth: networks before and after, fine-tuned, and from scratch at that depth.

    python -m benchmarks.compact thin-highway-50

Gates are chosen on training images, and test images measure each network. What is trained stays in
a folder: called again, the benchmark trains what is missing and measures all of it.
"""

import json
import pathlib

from benchmarks import rows
from highway_keras import analysis, models, results, training
from highway_keras.analysis.compaction import leave_out
from highway_keras.models import shipped
from highway_keras.util import files

RUNS, TUNED = 3, 3  # seeds; epochs of fine-tuning, at a tenth of the recipe's rate
# For each network: the data set and recipe of its weights, the numbers of gated layers to leave,
# all of them first, and how many images choose them. If it is also trained: how many images
# fine-tune it (None: all), and the epochs from scratch.
CASES = {
    "thin-highway-50": ("mnist", "thin", (49, 19, 9, 4, 29), 1000, None, 10),
    "thin-highway-100": ("mnist", "thin", (99, 19, 9, 4, 49), 1000, None, 10),
    "mnist-highway-16": ("mnist", "modern-mnist", (8, 6, 4), 5000, 10_000, 5),
    "highway-b": ("cifar10", "muon-cifar", (14, 13, 11), 1000),
}


def main(arguments=None):
    file = rows.RESULTS / "compact.csv"
    parser = rows.parser("benchmarks.compact", __doc__, data=True, file=file)
    parser.add_argument("network", choices=CASES)
    parser.add_argument("--layers", type=int, nargs="+", help="gated layers to leave (all)")
    parser.add_argument("--runs", default="runs/compact", help="folder of what is trained")
    options = parser.parse_args(arguments)
    name, known = options.network, CASES[options.network][2]
    if not set(options.layers or known) <= set(known):
        parser.error(f"--layers must be of {known}. Received: {options.layers}.")
    for layers in options.layers or known:
        for row, runs in measure(name, layers, pathlib.Path(options.runs), options.data_dir):
            keys, made = ("model", "layers", "way"), {"runs": runs, "layers": layers}
            rows.record([row], keys, options.out, "benchmarks.compact", name, **made)


def measure(name, layers, runs, data_dir):
    """Yield a row, and the folders of its runs, for each way to so many gated layers of a network.

    The network is measured as it is (`closed`), trained further (`tuned`), or trained from scratch.
    """
    weights, recipe, (whole, *_), choosing, *trained = CASES[name]
    folder = runs / name / shipped.find_entry(name, weights)["sha256"][:8]
    recipe, card = training.get_recipe(recipe), models.get(name)
    network = training.SavedNetwork(card.weights_file(weights))
    images = network.load(None, data_dir, validation=0, limit=choosing)
    order, curve = _order(name, network.model, images, folder)
    closed, cost = order[: whole - layers], curve[whole - layers]
    small = folder / f"{layers}.keras"
    if not small.exists():
        with files.replacing(small) as temporary:
            leave_out(network.model, closed).save(temporary)

    def row(way, accuracies, epochs, of):
        found = results.spread([100 * accuracy for accuracy in accuracies])
        return {
            "model": name,
            "layers": layers,
            "way": way,
            "of": whole,
            **{key: cost[key] for key in ("parameters", "multiplications")},
            "n": found["n"],
            "seed": " ".join(map(str, range(found["n"]))),
            "mean": round(found["mean"], 2),
            "std": round(found["std"], 2) if found["n"] > 1 else "",
            "epochs": epochs,
            "images": of,
        }

    def train(way, model, out, epochs, limit=None, **options):
        options |= {"dataset": network.dataset, "recipe": recipe, "epochs": epochs, "limit": limit}
        options |= {"resume": True, "verbose": 2, "data_dir": data_dir}
        fits = training.fit_runs(model, RUNS, out, **options)
        accuracies = [fit.test_accuracy for fit in fits]
        return row(way, accuracies, epochs, limit or "all"), [fit.folder for fit in fits]

    yield row("closed", [training.SavedNetwork(small).evaluate(images)[1]], "", choosing), ()
    if not trained:
        return
    limit, epochs = trained
    rate = recipe.learning_rate / 10
    yield train("tuned", str(small), folder / f"tuned-{layers}", TUNED, limit, learning_rate=rate)
    if layers == whole:  # the runs from scratch are in `accuracy.csv`
        return
    if recipe.name == "thin":  # whose gates start by the depth
        options = {"model_options": {"depth": layers + 1, "implementation": "stack"}}
        out = runs / "scratch" / f"thin-{layers + 1}"
        yield train("scratch", "thin-highway-10", out, epochs, **options)
    else:

        def factory(name, input_shape, classes, kernel_initializer=None):
            return leave_out(
                models.create(card.name, kernel_initializer=kernel_initializer), closed
            )

        model = f"{name}-{layers}-layers"
        models.register(model, factory, card.dataset, card.input_shape, card.classes)
        yield train("scratch", model, folder / f"scratch-{layers}", epochs)


def _order(name, network, images, folder):
    """Return the gated layers in the order of their closing, and the costs; they are kept."""
    order = folder / "order.json"
    if not order.exists():
        least = min(CASES[name][2])
        found = analysis.compact(network, images.x_train, images.y_train, layers=least, verbose=1)
        folder.mkdir(parents=True, exist_ok=True)
        files.write_json(order, [found.closed, found.curve])
    return json.loads(order.read_text())


if __name__ == "__main__":
    main()
