"""`fit`: one network, one run or several."""

import argparse
import ast
import contextlib
import pathlib
import shlex

from highway_keras import models
from highway_keras.cli import shared
from highway_keras.training.recipes import BUILDING, RECIPES, choose_recipe
from highway_keras.util import checks
from highway_keras.util.messages import printable


def _pair(text):
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, received {text!r}")
    with contextlib.suppress(ValueError, SyntaxError):  # anything else is text
        value = ast.literal_eval(value)
    return key, value


PAIRS = {"nargs": "+", "type": _pair, "action": "extend", "default": [], "metavar": "KEY=VALUE"}


def add_fit(add):
    parser = add("fit", fit, "Train a network and save it.")
    parser.add_argument(
        "model", metavar="MODEL", help="a name that `list` shows, or a run or file to train further"
    )
    shared.add_data(parser, "the network's, or the data set that a run or file was trained on")
    parser.add_argument(
        "--input-shape",
        metavar=("HEIGHT", "WIDTH", "CHANNELS"),
        type=int,
        nargs=3,
        help="scale the pictures of a folder to this shape (default: the network's)",
    )
    shared.add_limit(parser)
    parser.add_argument(
        "--weights", metavar="DATASET_OR_RUN", help="start from the zoo's weights or a run's"
    )
    parser.add_argument("--freeze", action="store_true", help="train only the last layer")
    parser.add_argument(
        "--recipe",
        choices=[*RECIPES],
        metavar="RECIPE",
        help=f"{', '.join(RECIPES)} (default: digits on the digits, quick for a run, thin for "
        "thin networks, else the authors': 200 to 400 epochs)",
    )
    parser.add_argument("--epochs", type=int, metavar="N", help="epochs (default: the recipe's)")
    parser.add_argument("--batch-size", type=int, help="images per step (default: the recipe's)")
    parser.add_argument("--learning-rate", type=float, help="first rate (default: the recipe's)")
    shared.add_dtype_policy(parser)
    parser.add_argument("--set", help="other values of the recipe, such as momentum=0.95", **PAIRS)
    parser.add_argument(
        "--model-set",
        dest="model_options",
        help="arguments of the network, such as activation=tanh transform_bias=-4.0",
        **PAIRS,
    )
    parser.add_argument(
        "--class-weight", choices=["balanced"], help="give all classes the same total weight"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the first run (default: 0)")
    parser.add_argument("--runs", type=int, default=1, help="runs, one seed each (default: 1)")
    parser.add_argument("--distribute", action="store_true", help="split batches over all devices")
    parser.add_argument("--out", metavar="FOLDER", help="folder (default: one in runs/)")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --out, or start one if there is none; --epochs may be raised, "
        "except with a cosine schedule",
    )


def fit(options):
    """Train a network of the zoo, or go on training one from a file, once for each seed."""
    is_name = options.model in models.list_models()
    if not is_name and not pathlib.Path(options.model).exists():
        models.get(options.model)  # raises, with names that are like it
    named = ("epochs", "batch_size", "learning_rate", "dtype_policy")
    overrides = {**dict(options.set), **shared.given(options, *named)}
    checks.positive_integer("--runs", options.runs)
    # First: TensorFlow and JAX connect their processes before any other computation.
    scope = contextlib.nullcontext
    if options.distribute:
        scope = shared.library("training.distribution").devices()
    make = _from_the_zoo if is_name else _from_a_file
    results = []
    for seed in range(options.seed, options.seed + options.runs):
        network, images, recipe, settings = make(options, overrides, seed, scope)
        if options.freeze:
            for layer in [layer for layer in network.layers if layer.weights][:-1]:
                layer.trainable = False
        out = options.out
        if not is_name:
            path = pathlib.Path(settings["start"]).resolve()
            run = path.parent.name if path.name == "best.keras" else path.stem
            out = out or f"runs/{run}-further"
        if options.runs > 1:
            out = pathlib.Path(out or f"runs/{network.name}-runs") / f"seed-{seed}"
        result = shared.library("training").fit(
            network,
            images,
            recipe,
            out=out,
            seed=seed,
            resume=options.resume,
            class_weight=options.class_weight,
            settings={**settings, "limit": options.limit},
        )
        print(f"test accuracy {100 * result.test_accuracy:.2f} %  (epoch {result.best_epoch})")
        shared.print_saved(result.folder / "best.keras")
        results.append(result)
    if len(results) > 1:
        accuracies = [result.test_accuracy for result in results]
        summary = shared.library("training").summary(accuracies)
        print(f"{len(results)} runs, best (mean ± std): {summary} %")
    print(f"next: highway-keras predict {printable(shlex.quote(str(results[0].folder)))} IMAGE ...")


def _from_the_zoo(options, overrides, seed, scope):
    """Return a new network, its images, the recipe, and how it was made, for `run.json`."""
    card, model_options = models.get(options.model), dict(options.model_options)
    source = options.dataset or card.dataset
    recipe = choose_recipe(options.recipe, options.model, source).override(**overrides)
    images = _load(options, source, card.input_shape, recipe)
    with scope():
        network = shared.library("training.run").create_for(
            options.model, images, recipe, seed, weights=options.weights, **model_options
        )
    settings = {"model": options.model, "start": options.weights, "model_options": model_options}
    return network, images, recipe, settings


def _from_a_file(options, overrides, seed, scope):
    """Return what `_from_the_zoo` does, for a network in a file."""
    if options.model_options or options.weights:
        raise ValueError(
            "--model-set and --weights act when a network is made: name one of `list`."
        )
    shared.library("training.run").check_can_act(overrides, BUILDING)
    with scope():
        trained = models.load(options.model)
    source = shared.dataset_of(trained, options)
    recipe = choose_recipe(options.recipe, None, source)
    steps = trained.settings.get("preprocessing", recipe.preprocessing)
    recipe = recipe.override(**{"preprocessing": tuple(steps), **overrides})
    images = _load(options, source, trained.network.input_shape[1:], recipe)
    settings = {"start": str(trained.path), "not_applied": BUILDING}
    return trained.network, images, recipe, settings


def _load(options, source, shape, recipe):
    return shared.library("data").load(
        source,
        data_dir=options.data_dir,
        validation=recipe.validation,
        limit=options.limit,
        input_shape=tuple(options.input_shape or shape),
    )
