"""All lesions of a network in one pass against one plain evaluation of it, as a ratio.

    python -m benchmarks.lesions run/best.keras

Figure 4 of the paper measures a network with the gates of each layer closed, layer by layer: one
evaluation per layer. The two take turns, on the same training images.
"""

import pathlib

from benchmarks import rows
from benchmarks.turns import Worker, take_turns

EVALUATE_BATCHES = (500, 2000)  # the peer may have the better one


def main(arguments=None):
    limit = {"limit": (None, "images of the training set")}
    parser = rows.parser("benchmarks.lesions", __doc__, turns=5, data=True, **limit)
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
        row = {"file": rows.name_of(file), "layers": ours.turns[0]["layers"]}
        row |= {"images": ours.turns[0]["images"], "n": options.turns}
        row |= rows.middle("seconds", ours.values("seconds"))
        for size, other in zip(EVALUATE_BATCHES, others, strict=True):
            ratios = rows.ratios(ours.values("seconds"), other.values("seconds"))
            row |= rows.middle(f"over_evaluate_{size}", ratios)
        command = {"limit": options.limit, "turns": options.turns}
        keys = ("file", "images")
        rows.record([row], keys, options.out, "benchmarks.lesions", file, **command)


def work(file, limit, data_dir, batch):
    """Measure all lesions; with a `batch`, evaluate in batches of that size instead."""
    from highway_keras import analysis, training
    from highway_keras.training.evaluation import compile_classifier

    saved = training.SavedNetwork(file)
    images = saved.load(None, data_dir, validation=0, limit=limit)
    x, y = images.x_train, images.y_train
    compile_classifier(saved.model)
    yield
    while batch:
        saved.model.evaluate(x, y, batch, verbose=0)
        yield
    while True:
        found = analysis.lesions(saved.model, x, y, verbose=0)
        yield {"layers": len(found.layers), "images": len(x)}


if __name__ == "__main__":
    main()
