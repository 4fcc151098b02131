"""`fit`: one network, one run or several."""

import argparse
import ast
import json
import shlex

from highway_keras import models
from highway_keras.cli import shared as cli
from highway_keras.cli.backend import library
from highway_keras.runs import PROSE, trained_file
from highway_keras.training.recipes import RECIPES, choose_recipe
from highway_keras.util import checks
from highway_keras.util.messages import did_you_mean, printable


def _pair(text):
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, received {text!r}")
    try:
        literal = ast.literal_eval(value)
        json.dumps(literal)  # as `run.json` will hold it
    except Exception:  # anything else is text; deep or odd ones raise errors of many kinds
        return key, value
    return key, literal


PAIRS = {"nargs": "+", "type": _pair, "action": cli.Collect, "default": [], "metavar": "KEY=VALUE"}


@cli.command(
    "fit",
    "Train a network and save it.",
    cli.option(
        "model",
        help="a name that `highway-keras list` shows, or a .keras file or a run's folder to train "
        "further",
        metavar="MODEL",
        complete=cli.FILES,
    ),
    cli.dataset("the network's own, or what it was trained on"),
    cli.DATA_DIR,
    cli.option(
        "--input-shape",
        metavar=("HEIGHT", "WIDTH", "CHANNELS"),
        type=int,
        nargs=3,
        help="scale the pictures of a folder to this shape (default: the network's)",
    ),
    cli.flag("--skip-broken", "leave out pictures of a folder that cannot be read, and say which"),
    cli.option(
        "--weights",
        metavar="NAME_OR_FILE",
        help="start from the included weights of that data set, which `list` shows, from a file or "
        "from a run's folder",
        complete=cli.FILES,
    ),
    cli.flag(
        "--freeze",
        "train only the classifier, on top of --weights or of a .keras file, whose features stay",
    ),
    cli.option(
        "--recipe",
        help=f"{', '.join(RECIPES)} (default: digits on the digits, quick for a file, thin for "
        "thin networks, else the authors': 300 or 400 epochs)",
    ),
    cli.option("--epochs", type=int, help="(default: the recipe's)"),
    cli.option("--batch-size", type=int, help="(default: the recipe's)"),
    cli.option("--learning-rate", type=float, help="(default: the recipe's)"),
    cli.DTYPE_POLICY,
    cli.option(
        "--set",
        help="other values of the recipe, such as momentum=0.95 l2=0.0001; a wrong key lists all",
        **PAIRS,
    ),
    cli.option(
        "--model-set",
        dest="model_options",
        help="arguments of the network, such as activation=tanh transform_bias=-4.0",
        **PAIRS,
    ),
    cli.option(
        "--class-weight",
        choices=["balanced"],
        help="balanced: give every class the same total weight in the loss",
    ),
    cli.limit(),
    cli.SEED,
    cli.option("--runs", type=int, default=1, help="number of runs; seeds count up from --seed"),
    cli.DISTRIBUTE,
    cli.option(
        "--out",
        help="folder (default: runs/MODEL-DATASET; for several runs, runs/MODEL-runs; for the "
        "network of a run, runs/RUN-further)",
    ),
    cli.flag(
        "--resume",
        "continue a run that was stopped or, unless its rate falls as a cosine (quick, modern-*, "
        "muon-*), one that has ended to more --epochs; start one if there is none",
    ),
)
def fit(model, runs, recipe, set, epochs, batch_size, learning_rate, dtype_policy, **arguments):
    if model not in models.list_models():  # else a folder of that name is not meant
        file = checks.path("model", trained_file(model))
        model = str(cli.trained_network("model", file) if cli.is_path(file) else file)
        if cli.is_path(file) and file.suffix != ".keras":
            raise ValueError(f"A saved network is a .keras file. Received: {file}.")
    named = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
    named = checks.given(**named, dtype_policy=dtype_policy)
    for name in named.keys() & dict(set):
        raise ValueError(f"'{name}' must be given once. Received: an option and --set {name}=...")
    if not model.endswith(".keras"):  # mistakes come before a backend is imported
        models.get(model)
    known = [key for key in vars(RECIPES["quick"]) if key not in PROSE]
    for key in dict(set):
        if key not in known:
            raise ValueError(
                f"--set must be one of {', '.join(known)}. Received: --set {key}."
                f"{did_you_mean(key, known)} Arguments of the network follow --model-set."
            )
    # The default recipe of a file depends on its data set, which is not known yet.
    if recipe or not model.endswith(".keras"):
        choose_recipe(recipe, model, arguments["dataset"]).override(**dict(set), **named)
    arguments["model_options"] = dict(arguments["model_options"])
    # A run in a folder for several is not one of them.
    resume = arguments["resume"] if runs == 1 else None
    cli.check_paths(arguments["dataset"], arguments["out"], resume)
    training = library("training")
    done = training.fit_runs(model, runs, recipe=recipe, **dict(set), **named, **arguments)
    for result in done:
        print(f"test accuracy {100 * result.test_accuracy:.2f} %  (epoch {result.best_epoch})")
        cli.print_saved(result.folder.best)
    if len(done) > 1:
        accuracies = training.summary([result.test_accuracy for result in done])
        print(f"{len(done)} runs, best (mean ± std): {accuracies} %")
    print(
        f"next: highway-keras predict {printable(shlex.quote(str(done[0].folder.best)))} IMAGE ..."
    )
