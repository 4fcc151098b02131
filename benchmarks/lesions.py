"""All lesions of a network in one pass against one plain evaluation of it, as a ratio.

    python -m benchmarks.lesions run/best.keras

Figure 4 of the paper measures a network with the gates of each layer closed, layer by layer: one
evaluation per layer. The two take turns, on the same training images.
"""

import pathlib

from benchmarks import measurements
from benchmarks.turns import Worker, take_turns

EVALUATE_BATCHES = (500, 2000)  # the peer may have the better one


def main(arguments=None):
    limit = {"limit": (None, "images of the training set")}
    parser = measurements.parser("benchmarks.lesions", __doc__, turns=5, data=True, **limit)
    parser.add_argument("files", metavar="FILE", nargs="+", help=".keras files that `fit` saved")
    options = parser.parse_args(arguments)
    for file in options.files:
        asked = (str(pathlib.Path(file).resolve()), options.limit, options.data_dir)
        ours, *others = take_turns(
            [
                Worker(f"batch {size}", "benchmarks.lesions:work", *asked, size)
                for size in (None, *EVALUATE_BATCHES)
            ],
            options.turns,
            all_needed=True,
        )
        row = {"file": measurements.name_of(file), "layers": ours.turns[0]["layers"]}
        row |= {"images": ours.turns[0]["images"], "n": options.turns}
        row |= measurements.middle("seconds", ours.values("seconds"))
        for size, other in zip(EVALUATE_BATCHES, others, strict=True):
            ratios = measurements.ratios(ours.values("seconds"), other.values("seconds"))
            row |= measurements.middle(f"over_evaluate_{size}", ratios)
        command = {"limit": options.limit, "turns": options.turns}
        keys = ("file", "images")
        measurements.record([row], keys, options.out, "benchmarks.lesions", file, **command)


def work(file, limit, data_dir, batch):
    """Measure all lesions; with a `batch`, evaluate in batches of that size instead."""
    from highway_keras import analysis, data, models
    from highway_keras.training.evaluation import compile_classifier

    trained = models.load(file)
    images = data.load(trained.dataset, data_dir=data_dir, validation=0, limit=limit)
    x, y = images.x_train, images.y_train
    model = compile_classifier(trained.complete)
    yield
    while batch:
        model.evaluate(x, y, batch, verbose=0)
        yield
    while True:
        lesions = analysis.lesions(model, x, y, verbose=0)
        yield {"layers": len(lesions.layers), "images": len(x)}


if __name__ == "__main__":
    main()
