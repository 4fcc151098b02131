"""`search`: the random searches of section 3.1."""

import argparse
import contextlib
import dataclasses
import itertools
import os
import pathlib
import sys

from highway_keras.cli import shared as cli
from highway_keras.cli.backend import library
from highway_keras.models.thin import NAME
from highway_keras.util.messages import printable

OBJECTIVES = ["loss", "accuracy", "val_loss", "val_accuracy"]
DEPTH = {"dest": "depths", "metavar": "DEPTH", "type": int}
KIND = {"dest": "kinds", "choices": ["highway", "plain", "residual"]}
RANGE = {"nargs": 2, "type": float, "metavar": ("LOW", "HIGH")}


def _rung(text):
    epoch, colon, count = text.partition(":")
    if not (epoch.isdecimal() and colon and count.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected EPOCH:TRIALS, received {text!r}")
    return int(epoch), int(count)


def rungs(default):
    """Declare `--rungs`, whose help names `default` as the default."""
    return cli.option(
        "--rungs",
        nargs="*",
        action=cli.Collect,
        type=_rung,
        metavar="EPOCH:TRIALS",
        help="EPOCH:TRIALS: from that epoch on only the best TRIALS continue, such as 40:30 133:10;"
        f" without a value, all train to the end (default: {default})",
    )


@cli.command(
    "search",
    "Search for hyperparameters of thin networks, as the paper did.",
    cli.several("--depth", default=[10, 20, 50, 100], **DEPTH, help="numbers of hidden layers"),
    cli.several("--kind", default=["highway", "plain"], **KIND, help="kinds of networks"),
    cli.option("--trials", type=int, default=100, help="trials for each kind and depth"),
    cli.option("--epochs", type=int, default=10, help="of a trial"),
    rungs("none"),
    cli.option(
        "--objective",
        default="loss",
        choices=OBJECTIVES,
        help="what trials are ranked by; val_ holds out a tenth of the images",
    ),
    cli.several(
        "--activation",
        dest="activations",
        default=["relu", "tanh"],
        choices=["relu", "tanh"],
        help="to draw from (default: both)",
    ),
    cli.option("--learning-rate", default=[1e-3, 10**-0.5], **RANGE, help="on a log scale"),
    cli.option(
        "--one-minus-momentum",
        default=[1e-2, 10**-0.3],
        **RANGE,
        help="on a log scale; 0.1 is a momentum of 0.9",
    ),
    cli.option("--decay", default=[0.9, 1.0], **RANGE, help="factor on the rate after each epoch"),
    cli.option(
        "--transform-bias", default=[-10.0, -1.0], **RANGE, help="range of the gates' initial bias"
    ),
    cli.dataset("mnist"),
    cli.DATA_DIR,
    cli.limit(),
    cli.SEED,
    cli.out("runs/search"),
    cli.flag("--resume", "continue searches in that folder, also with more trials"),
    cli.POPULATION,
    cli.JSON,
)
def search(dataset, json, **arguments):
    """Search, and print the best trial of each search; return 1 if one has none."""
    cli.check_paths(dataset, arguments["out"])
    for name in ("depths", "kinds"):
        arguments[name] = list(dict.fromkeys(arguments[name]))  # each once
    shared = "KERASTUNER_ORACLE_PORT" in os.environ  # workers join an existing search
    continues = arguments["resume"] or shared
    for kind, depth in itertools.product(arguments["kinds"], arguments["depths"]):
        folder = pathlib.Path(arguments["out"]) / NAME.format(kind=kind, depth=depth)
        cli.check_paths(out=folder, resume=continues)
    tuning, searches = library("tuning"), library("tuning.search_results")
    # With --json, stdout holds nothing but JSON; progress goes to stderr.
    with contextlib.redirect_stdout(sys.stderr) if json else contextlib.nullcontext():
        folders = tuning.run_searches(dataset=dataset or "mnist", **arguments)
    if shared and "chief" not in os.environ.get("KERASTUNER_TUNER_ID", ""):
        print("No trial is left for this worker; the chief saves the results.", file=sys.stderr)
        return 0
    found = []
    for folder in folders:
        done = searches.read_search(folder)
        ended = done.completed
        failed = len(done.trials) - len(ended)
        best = ended[0] if ended else None
        about = {"folder": str(folder), "kind": done.kind, "depth": done.depth}
        about |= {"trials": len(done.trials), "failed": failed}
        found.append({**about, "best": best and dataclasses.asdict(best)})
        if best and not json:
            settings = ", ".join(
                f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in best.values.items()
                if not name.startswith("tuner/")
            )
            score = f"{arguments['objective']} {best.score:.4g}"
            print(f"best: trial {best.number}, {score}, {printable(settings)}")
        if failed:
            print(f"{failed} of {len(done.trials)} trials diverged", file=sys.stderr)
        if not json:
            cli.print_saved(folder)
    if json:
        cli.print_json(found)
    return 0 if all(one["best"] for one in found) else 1
