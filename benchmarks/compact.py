"""What `compact` is worth: networks before and after, fine-tuned, and from scratch at that depth.

    python -m benchmarks.compact thin-highway-50

Gates are chosen on training images, and test images measure each network. What is trained stays in
a folder: called again, the benchmark trains what is missing and measures all of it.
"""

import json
import pathlib

from benchmarks import rows
from highway_keras import analysis, io, models, results, training
from highway_keras.analysis.compaction import leave_out
from highway_keras.models import shipped

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
    known = CASES[options.network][2]
    if not set(options.layers or known) <= set(known):
        parser.error(f"--layers must be of {known}. Received: {options.layers}.")
    case = Case(options.network, pathlib.Path(options.runs), options.data_dir)
    for layers in options.layers or known:
        for way in case.ways:
            key = {"model": case.name, "layers": str(layers), "way": way.__name__}
            for row, runs in way(layers):
                row, made = {**key, "of": case.of, **row}, {"runs": runs, "layers": layers}
                rows.record([row], tuple(key), options.out, "benchmarks.compact", case.name, **made)


class Case:
    """A network of `CASES`, and the folder of what is made from it.

    `closed`, `tuned` and `scratch` take the number of gated layers left and yield at most one pair:
    a row, and the folders of its runs. The network is measured as it is, trained further, or
    trained from scratch.
    """

    def __init__(self, name, runs, data_dir):
        self.name, self.data_dir, self.runs = name, data_dir, runs
        weights, recipe, self.depths, self.choosing, *trained = CASES[name]
        self.ways = [self.closed]
        if trained:
            self.tuning, self.epochs = trained
            self.ways += [self.tuned, self.scratch]
        self.folder = runs / name / shipped.find_entry(name, weights)["sha256"][:8]
        self.recipe = training.get_recipe(recipe)
        self.whole = training.SavedNetwork(models.get(name).weights_file(weights))
        order = self.folder / "order.json"
        if not order.exists():
            images = self.images()
            found = analysis.compact(
                self.whole.model, images.x_train, images.y_train, layers=min(self.depths), verbose=1
            )
            self.folder.mkdir(parents=True, exist_ok=True)
            io.write_json(order, [found.closed, found.curve])
        self.order, self.curve = json.loads(order.read_text())
        self.of = self.depths[0]

    def images(self):
        return self.whole.load(None, self.data_dir, validation=0, limit=self.choosing)

    def gone(self, layers):
        """Return the names of the layers that are closed."""
        return self.order[: self.of - layers]

    def small(self, layers):
        """Return the file of the network with so many gated layers left, made if it is missing."""
        path = self.folder / f"{layers}.keras"
        if not path.exists():
            with io.replacing(path) as temporary:
                leave_out(self.whole.model, self.gone(layers)).save(temporary)
        return path

    def closed(self, layers):
        small = training.SavedNetwork(self.small(layers))
        yield self._row(layers, [small.evaluate(self.images())[1]], "", self.choosing), ()

    def tuned(self, layers):
        settings = {"learning_rate": self.recipe.learning_rate / 10, "limit": self.tuning}
        file, folder = str(self.small(layers)), self.folder / f"tuned-{layers}"
        accuracies, runs = self._fit(file, folder, TUNED, **settings)
        yield self._row(layers, accuracies, TUNED, self.tuning or "all"), runs

    def scratch(self, layers):
        """Train from scratch, except the whole network, whose runs are in `accuracy.csv`."""
        if layers == self.of:
            return
        options = {}
        if self.recipe.name == "thin":  # whose gates start by the depth
            model, folder = "thin-highway-10", self.runs / "scratch" / f"thin-{layers + 1}"
            options = {"model_options": {"depth": layers + 1, "implementation": "stack"}}
        else:
            model, folder = self._register(layers), self.folder / f"scratch-{layers}"
        accuracies, runs = self._fit(model, folder, self.epochs, **options)
        yield self._row(layers, accuracies, self.epochs, "all"), runs

    def _register(self, layers):
        """Register the network that has so many gated layers from the start; return its name."""

        def factory(name, input_shape, classes, kernel_initializer=None):
            network = models.create(self.name, kernel_initializer=kernel_initializer)
            return leave_out(network, self.gone(layers))

        card = models.get(self.name)
        name = f"{self.name}-{layers}-layers"
        models.register(name, factory, card.dataset, card.input_shape, card.classes)
        return name

    def _fit(self, model, folder, epochs, **options):
        """Return the test accuracies and the folders of a run for each seed."""
        options = {"resume": True, "verbose": 2, "data_dir": self.data_dir, **options}
        named = {"dataset": self.whole.dataset, "recipe": self.recipe, "epochs": epochs, **options}
        fits = training.fit_runs(model, RUNS, folder, **named)
        return [fit.test_accuracy for fit in fits], [fit.folder for fit in fits]

    def _row(self, layers, accuracies, epochs, images):
        found = results.spread([100 * accuracy for accuracy in accuracies])
        cost = self.curve[self.of - layers]
        return {
            **{key: cost[key] for key in ("parameters", "multiplications")},
            "n": found["n"],
            "seed": " ".join(map(str, range(found["n"]))),
            "mean": round(found["mean"], 2),
            "std": round(found["std"], 2) if found["n"] > 1 else "",
            "epochs": epochs,
            "images": images,
        }


if __name__ == "__main__":
    main()
