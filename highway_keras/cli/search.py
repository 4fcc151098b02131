"""`search`: the random searches of section 3.1."""

import contextlib
import os
import sys

from highway_keras.cli import shared
from highway_keras.models.thin import DEPTHS, KINDS, UNITS
from highway_keras.util.messages import printable

RANGES = {  # of `HighwayHyperModel`, which has the defaults
    "--learning-rate": "learning rates, on a log scale (default: 0.001 0.316)",
    "--one-minus-momentum": "1 - momentum, on a log scale; 0.1 is a momentum of 0.9 "
    "(default: 0.01 0.501)",
    "--decay": "factors on the learning rate after each epoch (default: 0.9 1)",
    "--transform-bias": "initial biases of the transform gates (default: -10 -1)",
}


def rung(text):
    epoch, count = text.split(":")
    return int(epoch), int(count)


def add_networks(parser, default_kinds=KINDS):
    parser.add_argument(
        "--depth",
        dest="depths",
        metavar="N",
        type=int,
        nargs="+",
        default=list(DEPTHS),
        help=f"numbers of hidden layers (default: {' '.join(map(str, DEPTHS))})",
    )
    parser.add_argument(
        "--kind",
        dest="kinds",
        choices=[*UNITS],
        nargs="+",
        default=list(default_kinds),
        help=f"kinds of networks (default: {' '.join(default_kinds)})",
    )


def add_rungs(parser, default):
    parser.add_argument(
        "--rungs",
        nargs="*",
        type=rung,
        metavar="EPOCH:TRIALS",
        help="after EPOCH, only the best TRIALS continue, such as 40:30 133:10; without "
        f"values, --rungs lets all trials train to the end (default: {default})",
    )


def add_search(add):
    parser = add("search", search, "Search for hyperparameters of thin networks at random.")
    add_networks(parser)
    parser.add_argument("--trials", type=int, default=100, help="trials a search (default: 100)")
    parser.add_argument("--epochs", type=int, default=10, help="epochs of a trial (default: 10)")
    add_rungs(parser, "none")
    parser.add_argument(
        "--objective",
        default="loss",
        metavar="METRIC",
        help="metric to rank trials by, such as val_loss; a metric that begins with val_ holds out "
        "a tenth of the images (default: loss)",
    )
    parser.add_argument(
        "--activation",
        dest="activations",
        nargs="+",
        choices=["relu", "tanh"],
        help="activations to draw from (default: both)",
    )
    for name, about in RANGES.items():
        parser.add_argument(
            name,
            nargs=2,
            type=float,
            metavar=("LOW", "HIGH"),
            help=f"range of {about}",
        )
    shared.add_data(parser, "mnist")
    shared.add_limit(parser)
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--out", default="runs/search", help="folder (default: runs/search)")
    parser.add_argument(
        "--resume", action="store_true", help="continue the searches there, also to more --trials"
    )
    shared.add_population(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def search(options):
    """Search, and print the best trial of each search; return 1 if one has none."""
    shared.library("tuning.tuner").check_backend()
    tuning = shared.library("tuning")
    images = shared.library("data").load(
        options.dataset or "mnist",
        data_dir=options.data_dir,
        validation=0.1 if options.objective.startswith("val_") else 0.0,
        limit=options.limit,
        input_shape=(28, 28, 1),
    )
    names = ("activations", "learning_rate", "one_minus_momentum", "decay", "transform_bias")
    space = shared.given(options, *names)
    space |= {"input_shape": images.input_shape, "classes": images.classes}
    hypermodels = [
        tuning.HighwayHyperModel(depth, kind, **space)
        for kind in options.kinds
        for depth in options.depths
    ]
    # With --json, stdout holds nothing but JSON; progress goes to stderr.
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        folders = tuning.run_searches(
            images,
            hypermodels,
            epochs=options.epochs,
            out=options.out,
            resume=options.resume,
            objective=options.objective,
            max_trials=options.trials,
            seed=options.seed,
            population=options.population,
            rungs=options.rungs,
        )
    if "chief" not in os.environ.get("KERASTUNER_TUNER_ID", "chief"):
        print("No trial is left for this worker; the chief saves the results.", file=sys.stderr)
        return 0
    searches = [one for one in tuning.read_searches(options.out) if one.folder in folders]
    if options.json:
        shared.print_json([_summary(one) for one in searches])
    else:
        for one in searches:
            _print_best(one)
    return 0 if all(one.completed for one in searches) else 1


def _summary(search):
    """Return what `--json` prints of a search."""
    best = search.completed[0] if search.completed else None
    return {
        "folder": str(search.folder),
        "kind": search.kind,
        "depth": search.depth,
        "trials": len(search.trials),
        "failed": len(search.trials) - len(search.completed),
        "best": best and {"number": best.number, "score": best.score, "values": best.values},
    }


def _print_best(search):
    """Print the best trial of a search, and how many diverged."""
    if search.completed:
        best = search.completed[0]
        values = ", ".join(
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in best.values.items()
        )
        score = f"{search.settings['objective']} {best.score:.4g}"
        print(f"best: trial {best.number}, {score}, {printable(values)}")
    failed = len(search.trials) - len(search.completed)
    if failed:
        print(f"{failed} of {len(search.trials)} trials diverged", file=sys.stderr)
    shared.print_saved(search.folder)
