"""The one trainer: what to train, on which images, with which recipe, and where to put it."""

import dataclasses
import os
import sys

import keras

from highway_keras import checks, data
from highway_keras.models.parts import check_image_shape
from highway_keras.runs.folder import RunFolder
from highway_keras.runs.provenance import recorded
from highway_keras.training.engines.engine import Engine, data_parallel
from highway_keras.training.networks import find_network
from highway_keras.training.recipe import DEFAULTS
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
    weights=None,
    freeze=False,
    input_shape=None,
    callbacks=(),
    **overrides,
):
    """Train a network and leave a folder with its models, history and settings.

    Same seed, same machine: same result, even if the run was killed and resumed in between.
    The test images are used once, at the end; with `test_curve`, after every epoch, for the record.

    Args:
        model: Registered name, such as `"thin-highway-50"`, or a functional or Sequential
            `keras.Model` that maps images to class probabilities and is trained in place, from the
            weights it has. It takes images as preprocessed by the recipe's `preprocessing`.
        dataset: What `highway_keras.data.load` takes: a name, the path of a folder or a `.npz`,
            arrays, a `tf.data.Dataset`, a `data.Dataset`. Default: that on the network's card.
        recipe: A `Recipe`, or the name of one; default: `"digits"` on the embedded digits, else
            that on the network's card, `"quick"` for a `keras.Model`.
        out: Folder of the run; default `runs/MODEL-DATASET`.
        resume: Whether to continue the run in `out`, if there is one.
        seed: Non-negative integer; decides weights, order of images, dropout and augmentation.
        data_dir: Where TFDS keeps its data.
        limit: Number of training images to use; default all.
        model_options: Arguments of the network's factory, such as `{"transform_bias": -3.0}`. They
            take precedence over the recipe's `kernel_initializer`.
        verbose: As in Keras; `"auto"`: a progress bar on a terminal, elsewhere a line per epoch.
        distribute: Whether to split each batch across all devices: those of this machine and, if
            `TF_CONFIG` (TensorFlow) or `KERAS_DISTRIBUTION_JOB_ADDRESSES` (JAX) names them, of
            other processes. The recipe's `batch_size` is the whole batch. One process writes `out`.
        test_curve: Whether to add loss and accuracy on the test images to the history, as
            `test_loss` and `test_accuracy`. They decide nothing, not even which network is best.
        weights: Start of a registered network, as for `models.create`: a name of its card's
            `weights`, or a file. If the number of classes differs, the classifier starts from
            scratch, and a message says so.
        freeze: Whether to freeze all layers but the classifier, the last one with weights, for
            this run.
        input_shape: (height, width, channels) to scale the pictures of a folder to. Default: the
            network's. A message says how many had another size.
        callbacks: List of `keras.callbacks.Callback`, called after the epoch is saved: if one
            raises, the run can resume after that epoch. Their `model` takes preprocessed images.
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
    network = find_network(model, model_options, weights, freeze, distribute)
    dataset = network.dataset if dataset is None else dataset
    recipe, seed = choose_recipe(recipe, model, dataset).override(**overrides), checks.seed(seed)
    images = _load(dataset, network, input_shape, data_dir, recipe.validation, limit)
    settings = {**network.settings, **data_settings(dataset, images), "limit": limit, "seed": seed}
    settings |= {"recipe": dataclasses.asdict(recipe)}
    if test_curve:
        settings["test_curve"] = True
    keras.utils.set_random_seed(seed)
    folder = RunFolder(out or f"runs/{network.name}-{images.name}")
    verbose = (1 if sys.stdout.isatty() else 2) if verbose == "auto" else verbose
    with network.in_training(), engine.writable(folder) as written:
        built = network.build(images, recipe, engine)
        options = {"test_curve": test_curve, "callbacks": _check_callbacks(callbacks)}
        run = Run(*built, images, recipe, written, seed, verbose, engine, **options)
        with written.locked():  # last, so a mistake leaves no folder
            written.open(settings, resume, DEFAULTS)
            with recorded(written, distribute) as session:
                return dataclasses.replace(run.train(session), folder=folder)


def _engine(distribute, test_curve):
    if distribute and test_curve:
        raise ValueError(
            "`test_curve` is recorded on one device. Received: test_curve=True, distribute=True."
        )
    return data_parallel() if distribute else Engine()


def _load(dataset, network, input_shape, data_dir, validation, limit):
    if dataset is None:
        raise ValueError(
            "`dataset` must say what to train on: no card names it for a `keras.Model`. "
            "Received: dataset=None."
        )
    if input_shape is not None and not data.is_folder(dataset):
        raise ValueError(
            "`input_shape` is for pictures in a folder; other images keep their size. "
            f"Received: input_shape={checks.short_repr(input_shape)} "
            f"for {checks.short_repr(dataset)}."
        )
    shape = network.input_shape if input_shape is None else check_image_shape(input_shape, least=1)
    return data.load(dataset, data_dir, validation, limit, shape)


def data_settings(dataset, images):
    """Return what `run.json` says about the images: a user's own may change under the same name.

    Args:
        dataset: What `data.load` took.
        images: The `data.Dataset` that it returned.
    """
    source = str(dataset) if isinstance(dataset, str | os.PathLike) else None
    settings = {"dataset": source, "class_names": list(images.class_names)}
    if source in data.NAMES:
        return settings
    of_test = images.fingerprint(("test",))
    return settings | {"images": images.fingerprint(), "test_images": of_test}


def _check_callbacks(callbacks):
    is_list = isinstance(callbacks, list | tuple)
    for callback in callbacks if is_list else [callbacks]:
        if not isinstance(callback, keras.callbacks.Callback) or not is_list:
            raise TypeError(
                "`callbacks` must be a list of `keras.callbacks.Callback`. "
                f"Received: callbacks={checks.short_repr(callbacks)}."
            )
    return callbacks
