"""The searches of section 3.1: which networks, at which size, and where the results go."""

import contextlib
import io
import os
import pathlib

import keras
import numpy as np

from highway_keras import checks, data
from highway_keras.io import folder_lock, make_folder, replacing
from highway_keras.models.cards import name_of
from highway_keras.runs.folder import RunFolder
from highway_keras.runs.provenance import recorded
from highway_keras.training.trainer import data_settings
from highway_keras.tuning import chief
from highway_keras.tuning.arguments import check_backend
from highway_keras.tuning.hypermodel import ACTIVATIONS, HighwayHyperModel, check_activations
from highway_keras.tuning.settings import check_recorded, search_settings, space
from highway_keras.tuning.tuner import PopulationRandomSearch

DEPTHS = (10, 20, 50, 100)
KINDS = ("highway", "plain")
BATCH_SIZE = 128  # the paper gives none
MNIST = (28, 28, 1)  # the shape of the images that the paper searched on


def run_searches(
    depths=DEPTHS,
    kinds=KINDS,
    trials=100,
    epochs=10,
    dataset="mnist",
    out="runs/search",
    population=None,
    resume=False,
    limit=None,
    seed=0,
    data_dir=None,
    activations=ACTIVATIONS,
    verbose="auto",
):
    """Search for the hyperparameters with the lowest training loss, for each kind and depth.

    Like the paper's, the searches train on all training images (or `limit` of them) and hold out
    none: the question is how well a network can be optimized. A trial's score is the lowest mean
    loss over the batches of an epoch. Each search has a folder in `out`, named after the network:
    keras-tuner's files, the settings in `run.json`, what it was trained on in `machine.json`, and
    `best.keras`, the best network with its preprocessing.

    Args:
        depths: Numbers of hidden layers.
        kinds: Any of `"highway"`, `"plain"`, `"residual"`.
        trials: Number of trials for each kind and depth.
        epochs: Epochs per trial.
        dataset: What `highway_keras.data.load` takes; the pictures of a folder are scaled to
            28 x 28 gray levels. They must fit into memory.
        out: Folder of the searches.
        population: Number of trials to train together. Default: what memory allows.
        resume: Whether to continue searches that are in `out`.
        limit: Number of training images. Default: all.
        seed: Non-negative integer.
        data_dir: Where TFDS keeps its data.
        activations: The activations of H to draw from, `"relu"`, `"tanh"` or both.
        verbose: `"auto"` for a line of progress, 0 for none.

    Returns:
        The folders of the searches.

    Raises:
        ValueError: If an argument is out of its range, or a folder holds another search.
        BusyError: If another process is searching there.
        ImportError: If the backend is PyTorch.

    Example:

    >>> from highway_keras import tuning
    >>> tuning.run_searches([10, 50], ["highway"], trials=20, epochs=2)  # doctest: +SKIP
    """
    check_backend()  # before a folder is made
    if "KERASTUNER_ORACLE_PORT" in os.environ and len(depths) * len(kinds) > 1:
        raise ValueError(
            "Processes that share a search take one depth and one kind at a time. "
            f"Received: depths={list(depths)}, kinds={list(kinds)}."
        )
    checks.positive_integers(trials=trials, epochs=epochs)
    checks.positive_integer("population", population, or_none="what memory allows")
    activations = check_activations(activations)
    images = data.load(dataset, data_dir, 0.0, limit, input_shape=MNIST)
    of = {"input_shape": images.input_shape, "classes": images.classes, "activations": activations}
    hypermodels = [HighwayHyperModel(depth, kind, **of) for kind in kinds for depth in depths]
    out = make_folder(out)
    tuners = [_tuner(hypermodel, trials, seed, population, out) for hypermodel in hypermodels]
    size = {"trials": trials, "epochs": epochs, "batch_size": BATCH_SIZE, "limit": limit}
    source = {**data_settings(dataset, images), "seed": seed, **space(activations)}
    _open_folders(tuners, {**size, **source}, resume, images)
    preprocess = data.preprocessor(("scale",), images.x_train)
    x = preprocess.predict(np.asarray(images.x_train), batch_size=500, verbose=0)
    for tuner in tuners:
        with _recorded(tuner):
            tuner.search(x, images.y_train, epochs=epochs, batch_size=BATCH_SIZE, verbose=verbose)
        if not tuner.is_worker:
            _save_best(tuner, preprocess)
    return [pathlib.Path(tuner.project_dir) for tuner in tuners]


def _tuner(hypermodel, trials, seed, population, out):
    with contextlib.redirect_stdout(io.StringIO()):  # keras-tuner prints what it reloads
        return PopulationRandomSearch(
            hypermodel,
            max_trials=trials,
            seed=seed,
            population=population,
            directory=out,
            project_name=name_of("thin_mlp", kind=hypermodel.kind, depth=hypermodel.depth),
        )


def _recorded(tuner):
    """Return a context that records in `machine.json` what the remaining trials are trained on."""
    # A worker comes first: its oracle is the chief's, which does not tell which trials have ended.
    if tuner.is_worker or len(tuner.oracle.end_order) >= tuner.oracle.max_trials:
        return contextlib.nullcontext()
    return recorded(RunFolder(tuner.project_dir))


def _open_folders(tuners, settings, resume, images):
    folders = {tuner: RunFolder(tuner.project_dir) for tuner in tuners}
    # Existing ones come first: if one must not be resumed, the others are not started.
    for tuner in sorted(tuners, key=lambda tuner: not folders[tuner].settings.exists()):
        searched = {"kind": tuner.hypermodel.kind, "depth": tuner.hypermodel.depth}
        if tuner.is_worker:
            chief.wait()  # which writes the settings that the worker compares
            folders[tuner].open({**searched, **settings}, resume=True)
            continue
        with folder_lock(tuner.project_dir):
            if not folders[tuner].settings.exists():
                _check_remains(tuner, settings["epochs"], images, resume)
            folders[tuner].open({**searched, **settings}, resume)


def _check_remains(tuner, epochs, images, resume):
    """Raise a `ValueError` unless the files of a search without its `run.json` are of this one."""
    folder = pathlib.Path(tuner.project_dir)
    if not any(folder.glob("*.json")) and not any(folder.glob("trial_*")):
        return
    if not resume:
        raise ValueError(
            f"`out` already holds a search. Received: out={folder}. Pass resume=True to continue "
            "it, or name another folder."
        )
    pairs = {"": (images.x_train, images.y_train)}
    if not check_recorded(folder, search_settings(tuner, pairs, epochs, BATCH_SIZE)):
        raise ValueError(
            f"`out` holds a search whose settings are gone. Received: out={folder} without "
            "run.json. Bring that file back, or delete the folder to search anew."
        )


def _save_best(tuner, preprocess):
    if tuner.oracle.get_best_trials(1)[0].status != "COMPLETED":
        return
    best = tuner.get_best_models()[0]
    complete = keras.Sequential([preprocess, best], name=best.name)
    with replacing(pathlib.Path(tuner.project_dir) / "best.keras") as temporary:
        complete.save(temporary)
