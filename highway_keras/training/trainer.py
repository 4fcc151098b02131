"""The one trainer: what to train on which images by which recipe, and where to leave it."""

import contextlib
import dataclasses
import sys

import keras

from highway_keras import checks, data, models
from highway_keras.models.memory import check_memory
from highway_keras.training.engines.engine import Engine, data_parallel
from highway_keras.training.folder import RunFolder
from highway_keras.training.machine import recorded
from highway_keras.training.recipes import Recipe, get_recipe
from highway_keras.training.run import Run


def choose_recipe(recipe, model, dataset=None):
    """The `Recipe` for a network: the one named, or else its own.

    The embedded digits are too few for any but theirs.
    """
    if isinstance(recipe, Recipe):
        return recipe
    own = "digits" if dataset == "digits" else models.get(model).recipe
    return get_recipe(own if recipe is None else recipe)


def fit(
    model,
    dataset=None,
    recipe=None,
    out=None,
    resume=False,
    seed=0,
    data_dir=None,
    limit=None,
    model_options=None,
    verbose="auto",
    distribute=False,
    **overrides,
):
    """Trains a registered network and leaves a folder with its models, history and settings.

    Same seed, same machine: same result, also if the run was killed and resumed in between.
    The test images are used once, at the end.

    Args:
        model: Registered name, such as `"thin-highway-50"`.
        dataset: Name or `.npz` for `highway_keras.data.load`; default: the network's own.
        recipe: A `Recipe`, or the name of one; default: the network's own.
        out: Folder of the run; default `runs/MODEL-DATASET`.
        resume: Whether to continue the run in `out`, if there is one.
        seed: Non-negative integer; decides weights, order of images, dropout and augmentation.
        data_dir: Where TFDS keeps its data.
        limit: Number of training images to use; default all.
        model_options: Arguments of the network's factory, such as `{"transform_bias": -3.0}`. They
            come before the recipe's `kernel_initializer`.
        verbose: Keras's; `"auto"` is a progress bar on a terminal and a line an epoch elsewhere.
        distribute: Whether to share each batch among all devices: those of this machine and, where
            `TF_CONFIG` (TensorFlow) or `KERAS_DISTRIBUTION_JOB_ADDRESSES` (JAX) names them, of
            other processes. The recipe's `batch_size` is the whole batch. One process writes `out`.
        **overrides: Attributes of the recipe, such as `epochs=5`.

    Returns:
        A `Result`.

    Raises:
        ValueError: If an argument is unknown or out of its range.
        OSError: If the folder cannot be written.
        TrainingDiverged: If the loss is no longer finite.

    Example:

    >>> from highway_keras import training
    >>> result = training.fit("thin-highway-10", "digits", epochs=20)  # doctest: +SKIP
    """
    engine = data_parallel() if distribute else Engine()  # first, as TensorFlow and JAX want it
    card = models.get(model)
    dataset = card.dataset if dataset is None else dataset
    recipe = choose_recipe(recipe, model, dataset).override(**overrides)
    seed = checks.seed(seed)
    images = data.load(dataset, data_dir=data_dir, validation=recipe.validation, limit=limit)
    settings = {
        "model": model,
        "model_options": model_options or {},
        "dataset": str(dataset),
        "class_names": list(images.class_names),
        "limit": limit,
        "seed": seed,
        "recipe": dataclasses.asdict(recipe),
    }
    keras.utils.set_random_seed(seed)
    options = _factory_options(images, recipe, model_options)
    with engine.scope():
        with _computing_in(recipe.dtype_policy):
            network = card.build(**options)
        saved = None if recipe.dtype_policy == "float32" else card.build(**options)
    check_memory(network.count_params(), copies=3, model=model, model_options=model_options)
    folder = RunFolder(out or f"runs/{model}-{images.name}")
    with engine.writable(folder) as own_folder:
        run = Run(network, images, recipe, own_folder, seed, _verbosity(verbose), engine, saved)
        own_folder.open(settings, resume)  # last, so that a mistake leaves no folder behind
        with recorded(own_folder, distribute):
            return dataclasses.replace(run.train(), folder=folder)


def fit_runs(model, runs, out=None, seed=0, **arguments):
    """Trains `runs` times, with the seeds from `seed` on; several runs get a subfolder each.

    Args:
        model: Registered name.
        runs: Number of runs, a positive integer.
        out: Folder; the runs are in `OUT/seed-0`, `OUT/seed-1`, ... if there are several.
        seed: Seed of the first run.
        **arguments: As for `fit`.

    Returns:
        A list of `Result`.
    """
    checks.positive_integer("runs", runs)
    if runs == 1:
        return [fit(model, out=out, seed=seed, **arguments)]
    out = out or f"runs/{model}-{runs}-runs"
    seeds = range(seed, seed + runs)
    return [fit(model, out=f"{out}/seed-{s}", seed=s, **arguments) for s in seeds]


@contextlib.contextmanager
def _computing_in(dtype_policy):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype_policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _factory_options(images, recipe, model_options):
    """Return the arguments of a network's factory, those of the user last."""
    options = {"input_shape": images.input_shape, "classes": images.classes}
    given = {} if model_options is None else model_options
    if not isinstance(given, dict) or options.keys() & given.keys():
        raise ValueError(
            "`model_options` must be a dictionary of arguments of the network's factory, without "
            "`input_shape` and `classes`, which are those of the data set. "
            f"Received: model_options={checks.shown(given)}."
        )
    if recipe.kernel_initializer:
        options["kernel_initializer"] = recipe.kernel_initializer
    return {**options, **given}


def _verbosity(verbose):
    return verbose if verbose != "auto" else (1 if sys.stdout.isatty() else 2)
