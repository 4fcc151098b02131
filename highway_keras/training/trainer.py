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
from highway_keras.training.recipes import choose_recipe
from highway_keras.training.run import Run


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
    test_curve=False,
    **overrides,
):
    """Train a registered network and leave a folder with its models, history and settings.

    Same seed, same machine: same result, also if the run was killed and resumed in between.
    The test images are used once, at the end; with `test_curve` after every epoch, for the record.

    Args:
        model: Registered name, such as `"thin-highway-50"`.
        dataset: Name or `.npz` for `highway_keras.data.load`; default: that of the network's card.
        recipe: A `Recipe`, or the name of one; default: that of the network's card.
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
        test_curve: Whether to add loss and accuracy on the test images to the history, as
            `test_loss` and `test_accuracy`. They decide nothing, not even which network is best.
        **overrides: Attributes of the recipe, such as `epochs=5`.

    Returns:
        A `Result`.

    Raises:
        ValueError: If an argument is unknown or out of its range.
        OSError: If the folder cannot be written.
        BusyError: If another process is writing to the folder.
        TrainingDiverged: If the loss is no longer finite.

    Example:

    >>> from highway_keras import training
    >>> result = training.fit("thin-highway-10", "digits", epochs=20)  # doctest: +SKIP
    """
    engine = _engine(distribute, test_curve)  # first, as TensorFlow and JAX want it
    dataset = models.get(model).dataset if dataset is None else dataset
    recipe, seed = choose_recipe(recipe, model, dataset).override(**overrides), checks.seed(seed)
    images = data.load(dataset, data_dir=data_dir, validation=recipe.validation, limit=limit)
    settings = {"model": model, "model_options": model_options or {}, "dataset": str(dataset)}
    settings |= {"class_names": list(images.class_names), "limit": limit, "seed": seed}
    settings |= {"recipe": dataclasses.asdict(recipe)}
    if test_curve:
        settings["test_curve"] = True
    network, saved = _build(settings, images, recipe, engine)
    check_memory(network.count_params(), copies=3, model=model, model_options=model_options)
    folder = RunFolder(out or f"runs/{model}-{images.name}")
    verbose = (1 if sys.stdout.isatty() else 2) if verbose == "auto" else verbose
    with engine.writable(folder) as written:
        run = Run(network, images, recipe, written, seed, verbose, engine, saved, test_curve)
        with written.locked():  # last, so that a mistake leaves no folder
            written.open(settings, resume)
            with recorded(written, distribute):
                return dataclasses.replace(run.train(), folder=folder)


def _engine(distribute, test_curve):
    if distribute and test_curve:
        raise ValueError(
            "`test_curve` is recorded on one device. Received: test_curve=True, distribute=True."
        )
    return data_parallel() if distribute else Engine()


def _build(settings, images, recipe, engine):
    """Return the network, and its twin in float32 if it computes in something else."""
    keras.utils.set_random_seed(settings["seed"])
    options = _factory_options(images, recipe, settings["model_options"])
    card = models.get(settings["model"])
    with engine.scope():
        with _computing_in(recipe.dtype_policy):
            network = card.build(**options)
        return network, None if recipe.dtype_policy == "float32" else card.build(**options)


def _factory_options(images, recipe, model_options):
    """Return the arguments of a network's factory, those of the user last."""
    options = {"input_shape": images.input_shape, "classes": images.classes}
    if not isinstance(model_options, dict) or options.keys() & model_options.keys():
        raise ValueError(
            "`model_options` must be a dictionary of arguments of the network's factory, without "
            "`input_shape` and `classes`, which are those of the data set. "
            f"Received: model_options={checks.shown(model_options)}."
        )
    if recipe.kernel_initializer:
        options["kernel_initializer"] = recipe.kernel_initializer
    return {**options, **model_options}


@contextlib.contextmanager
def _computing_in(dtype_policy):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype_policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
