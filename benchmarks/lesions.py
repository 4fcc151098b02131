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
    parser = rows.parser("benchmarks.lesions", __doc__, turns=5, data=True)
    parser.add_argument("files", metavar="FILE", nargs="+", help=".keras files that `fit` saved")
    parser.add_argument(
        "--limit", type=rows.positive, help="images (default: all of the training set)"
    )
    options = parser.parse_args(arguments)
    for file in options.files:
        asked = (str(pathlib.Path(file).resolve()), options.limit, options.data_dir)
        peers = {"all lesions": None, **{f"evaluate {size}": size for size in EVALUATE_BATCHES}}
        workers = [
            Worker(name, "benchmarks.lesions:work", *asked, size, limit=None)
            for name, size in peers.items()
        ]
        ours, *others = workers
        if take_turns(workers, options.turns, rows.say) == workers:
            row = {"file": pathlib.Path(file).name, "layers": ours.turns[0]["layers"]}
            row |= {"images": ours.turns[0]["images"], "n": options.turns}
            row |= rows.middle("seconds", rows.seconds(ours))
            for size, other in zip(EVALUATE_BATCHES, others, strict=True):
                ratios = rows.ratios(rows.seconds(ours), rows.seconds(other))
                row |= rows.middle(f"over_evaluate_{size}", ratios)
            command = {"limit": options.limit, "turns": options.turns}
            keys = ("file", "images")
            rows.record([row], keys, options.out, "benchmarks.lesions", file, **command)


def work(file, limit, data_dir, batch, turns):
    """Measure all lesions; with a `batch`, evaluate in batches of that size instead."""
    from highway_keras import analysis, data, training
    from highway_keras.training.evaluation import compile_classifier

    saved = training.SavedNetwork(file)
    images = data.load(saved.dataset, data_dir=data_dir, validation=0.0, limit=limit)
    x, y = images.x_train, images.y_train
    compile_classifier(saved.model)
    while turns.wait():
        if batch:
            saved.model.evaluate(x, y, batch, verbose=0)
            turns.end()
        else:
            found = analysis.lesions(saved.model, x, y, verbose=0)
            turns.end(layers=len(found.layers), images=len(x))


if __name__ == "__main__":
    main()
