"""`search`: the random searches of section 3.1."""

import contextlib
import dataclasses
import sys

from highway_keras.cli.backend import import_backend
from highway_keras.cli.shared import (
    add_command,
    add_dataset,
    add_json,
    add_limit,
    add_seed,
    print_json,
    print_saved,
)


def add_commands(commands):
    summary = "Search for hyperparameters of thin networks, as the paper did."
    command = add_command(commands, "search", _search, summary)
    add_searches(command)
    command.add_argument("--trials", type=int, default=100, help="for each (default: 100)")
    command.add_argument("--epochs", type=int, default=10, help="of a trial (default: 10)")
    command.add_argument(
        "--activation",
        dest="activations",
        nargs="+",
        default=["relu", "tanh"],
        choices=["relu", "tanh"],
        help="to draw from (default: both)",
    )
    add_dataset(command, "mnist")
    add_limit(command)
    add_seed(command)
    command.add_argument("--out", default="runs/search", help="folder (default: runs/search)")
    command.add_argument("--resume", action="store_true", help="continue searches in that folder")
    add_json(command)


def add_searches(command):
    command.add_argument(
        "--depth",
        dest="depths",
        metavar="DEPTH",
        type=int,
        nargs="+",
        default=[10, 20, 50, 100],
        help="numbers of hidden layers (default: 10 20 50 100)",
    )
    command.add_argument(
        "--kind",
        dest="kinds",
        nargs="+",
        default=["highway", "plain"],
        choices=["highway", "plain", "residual"],
        help="(default: highway plain)",
    )
    add_population(command)


def add_population(command):
    command.add_argument(
        "--population", type=int, help="trials to train at once (default: what memory allows)"
    )


def _search(options):
    import_backend()
    from highway_keras import tuning

    # JSON has stdout to itself; progress goes to stderr.
    aside = contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext()
    with aside:
        folders = tuning.run_searches(
            options.depths,
            options.kinds,
            trials=options.trials,
            epochs=options.epochs,
            dataset=options.dataset or "mnist",
            out=options.out,
            population=options.population,
            resume=options.resume,
            limit=options.limit,
            seed=options.seed,
            data_dir=options.data_dir,
            activations=options.activations,
        )
    if options.json:
        print_json([_as_json(folder) for folder in folders])
        return
    for folder in folders:
        print_saved(folder)


def _as_json(folder):
    """Return a search with its best trial, or with `None` if all have failed."""
    from highway_keras.paper.searches import read_search

    search = read_search(folder)
    best = dataclasses.asdict(search.completed[0]) if search.completed else None
    counts = {"trials": len(search.trials), "failed": len(search.trials) - len(search.completed)}
    about = {"folder": str(folder), "kind": search.kind, "depth": search.depth}
    return {**about, **counts, "best": best}
