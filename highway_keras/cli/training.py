"""`fit`: one network, one run or several."""

import argparse
import ast
import json

from highway_keras.cli.backend import import_backend
from highway_keras.cli.shared import (
    FILES,
    add_command,
    add_dataset,
    add_distribute,
    add_dtype_policy,
    add_limit,
    add_seed,
    print_saved,
)
from highway_keras.training.recipes import RECIPES, choose_recipe


def add_commands(commands):
    command = add_command(commands, "fit", _fit, "Train a network and save it.")
    command.add_argument("model", metavar="MODEL", help="a name that `highway-keras list` shows")
    add_dataset(command, "the network's own")
    command.add_argument(
        "--input-shape",
        metavar=("HEIGHT", "WIDTH", "CHANNELS"),
        type=int,
        nargs=3,
        help="to which the pictures of a folder are scaled (default: the network's)",
    )
    summary = "leave out pictures of a folder that cannot be read, and say which"
    command.add_argument("--skip-broken", action="store_true", help=summary)
    _add_fine_tuning(command)
    _add_recipe(command)
    command.add_argument(
        "--model-set",
        nargs="+",
        type=_pair,
        action=_Collect,
        default={},
        metavar="KEY=VALUE",
        help="arguments of the network's factory, such as activation=tanh transform_bias=-4.0",
    )
    add_limit(command)
    add_seed(command)
    command.add_argument(
        "--runs", type=int, default=1, help="number of runs, with the seeds from --seed on"
    )
    add_distribute(command)
    command.add_argument(
        "--out",
        help="folder of the run (default: runs/MODEL-DATASET, of N runs runs/MODEL-N-runs)",
    )
    command.add_argument("--resume", action="store_true", help="continue a run that was stopped")


def _add_fine_tuning(command):
    summary = "start from the trained weights of that name, which `list` shows, or from a file"
    command.add_argument("--weights", metavar="NAME_OR_FILE", help=summary).complete = FILES
    summary = "with --weights: train the classifier only, on features that stay as they are"
    command.add_argument("--freeze", action="store_true", help=summary)


def _add_recipe(command):
    command.add_argument(
        "--recipe",
        help=f"{', '.join(RECIPES)} (default: digits on the digits, else the network's own)",
    )
    default = "(default: the recipe's)"
    command.add_argument("--epochs", type=int, help=default)
    command.add_argument("--batch-size", type=int, help=default)
    command.add_argument("--learning-rate", type=float, help=default)
    add_dtype_policy(command)
    command.add_argument(
        "--set",
        nargs="+",
        type=_pair,
        action=_Collect,
        default={},
        metavar="KEY=VALUE",
        help="other values of the recipe, such as momentum=0.95 l2=0.0001",
    )


class _Collect(argparse.Action):
    """Collect the pairs of all uses of an option; none may replace another."""

    def __call__(self, parser, namespace, pairs, option_string=None):
        collected = dict(getattr(namespace, self.dest))
        for key, value in pairs:
            if key in collected:
                raise argparse.ArgumentError(
                    self, f"{key} is given twice, {collected[key]!r} and {value!r}: give it once"
                )
            collected[key] = value
        setattr(namespace, self.dest, collected)


def _pair(text):
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, received {text!r}")
    try:
        value = ast.literal_eval(value)
    except Exception:  # what is no literal is text; deep or odd ones raise errors of many kinds
        return key, value
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(
            f"expected a number, text, a list, True, False or None, received {text!r}"
        ) from error
    return key, value


def _overrides(options):
    """Return the values of the recipe that the options name, each once."""
    flags = ("epochs", "batch_size", "learning_rate", "dtype_policy")
    named = {key: getattr(options, key) for key in flags if getattr(options, key) is not None}
    for key in named.keys() & options.set.keys():
        flag = f"--{key.replace('_', '-')}"
        raise ValueError(
            f"`{key}` is given twice. Received: {flag} {named[key]} and --set "
            f"{key}={options.set[key]}. Give one of them."
        )
    return {**named, **options.set}


def _fit(options):
    recipe = choose_recipe(options.recipe, options.model, options.dataset)
    recipe = recipe.override(**_overrides(options))  # first: a mistake in it needs no backend
    import_backend()
    from highway_keras import training

    runs = training.fit_runs(
        options.model,
        options.runs,
        dataset=options.dataset,
        recipe=recipe,
        out=options.out,
        resume=options.resume,
        seed=options.seed,
        data_dir=options.data_dir,
        limit=options.limit,
        model_options=options.model_set,
        distribute=options.distribute,
        weights=options.weights,
        freeze=options.freeze,
        input_shape=options.input_shape,
        skip_broken=options.skip_broken,
    )
    for result in runs:
        print(f"test accuracy {100 * result.test_accuracy:.2f} %  (epoch {result.best_epoch})")
        print_saved(result.folder.best)
    if len(runs) > 1:
        accuracies = training.summary([result.test_accuracy for result in runs])
        print(f"{len(runs)} runs, best (mean ± std): {accuracies} %")
