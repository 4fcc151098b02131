"""`fit`: one network, one run or several."""

import argparse
import ast

from highway_keras.cli.backend import import_backend
from highway_keras.cli.shared import (
    add_command,
    add_dataset,
    add_distribute,
    add_dtype_policy,
    add_jobs,
    add_limit,
    add_seed,
)
from highway_keras.training.recipes import RECIPES, choose_recipe


def add_commands(commands):
    command = add_command(commands, "fit", _fit, "Train a network and save it.")
    command.add_argument("model", metavar="MODEL", help="a name that `highway-keras list` shows")
    add_dataset(command, "the network's own")
    _add_recipe(command)
    command.add_argument(
        "--model-set",
        nargs="+",
        type=_pair,
        default=[],
        metavar="KEY=VALUE",
        help="arguments of the network's factory, such as activation=tanh transform_bias=-4.0",
    )
    add_limit(command)
    add_seed(command)
    command.add_argument(
        "--runs", type=int, default=1, help="number of runs, with the seeds from --seed on"
    )
    add_jobs(command)
    add_distribute(command)
    command.add_argument("--out", help="folder of the run (default: runs/MODEL-DATASET)")
    command.add_argument("--resume", action="store_true", help="continue a run that was stopped")


def _add_recipe(command):
    command.add_argument("--recipe", help=f"{', '.join(RECIPES)} (default: the network's own)")
    command.add_argument("--epochs", type=int)
    command.add_argument("--batch-size", type=int)
    command.add_argument("--learning-rate", type=float)
    add_dtype_policy(command)
    command.add_argument(
        "--set",
        nargs="+",
        type=_pair,
        default=[],
        metavar="KEY=VALUE",
        help="other values of the recipe, such as momentum=0.95 l2=0.0001",
    )


def _pair(text):
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, received {text!r}")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


def _fit(options):
    recipe = _recipe(options)  # first: a mistake in it needs no backend
    import_backend()
    from highway_keras import training

    runs = training.fit_runs(
        options.model,
        options.runs,
        jobs=options.jobs,
        dataset=options.dataset,
        recipe=recipe,
        out=options.out,
        resume=options.resume,
        seed=options.seed,
        data_dir=options.data_dir,
        limit=options.limit,
        model_options=dict(options.model_set),
        distribute=options.distribute,
    )
    for result in runs:
        print(f"test accuracy {100 * result.test_accuracy:.2f} %  (epoch {result.best_epoch})")
        print(f"saved {result.folder.best}")
    if len(runs) > 1:
        accuracies = training.summary([result.test_accuracy for result in runs])
        print(f"{len(runs)} runs, best (mean ± std): {accuracies} %")


def _recipe(options):
    recipe = choose_recipe(options.recipe, options.model, options.dataset)
    named = ("epochs", "batch_size", "learning_rate", "dtype_policy")
    flags = {name: getattr(options, name) for name in named if getattr(options, name) is not None}
    return recipe.override(**{**dict(options.set), **flags})
