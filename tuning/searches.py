"""The searches of section 3.1: which networks, at which size, and where the results go."""

import contextlib
import io
import os
import pathlib

import keras

from highway_keras import data
from highway_keras.files import replacing
from highway_keras.models.cards import name_of
from highway_keras.training.folder import RunFolder
from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.tuner import PopulationRandomSearch

DEPTHS = (10, 20, 50, 100)
KINDS = ("highway", "plain")
BATCH_SIZE = 128  # the paper gives none


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
    verbose="auto",
):
    """Search for the hyperparameters with the lowest training loss, for each kind and depth.

    Like the paper's, the searches train on all training images (or `limit` of them) and hold out
    none: the question is how well a network can be optimized. A trial's score is the lowest mean
    loss over the batches of an epoch. Each search has a folder in `out`, named like the network:
    keras-tuner's files, the settings in `run.json`, and `best.keras`, the best network with its
    preprocessing.

    Args:
        depths: Numbers of hidden layers.
        kinds: From `"highway"`, `"plain"`, `"residual"`.
        trials: Number of trials for each kind and depth.
        epochs: Epochs a trial.
        dataset: Name or `.npz` for `highway_keras.data.load`.
        out: Folder of the searches.
        population: Number of trials to train together. Default: what memory allows.
        resume: Whether to continue searches that are in `out`.
        limit: Number of training images. Default: all.
        seed: Non-negative integer.
        data_dir: Where TFDS keeps its data.
        verbose: `"auto"` for a line of progress, 0 for none.

    Returns:
        The folders of the searches.

    Raises:
        ValueError: If an argument is out of its range, or a folder holds another search.

    Example:

    >>> from highway_keras import tuning
    >>> tuning.run_searches([10, 50], ["highway"], trials=20, epochs=2)  # doctest: +SKIP
    """
    if "KERASTUNER_ORACLE_PORT" in os.environ and len(depths) * len(kinds) > 1:
        raise ValueError(
            "Processes that share a search take one depth and one kind at a time. "
            f"Received: depths={list(depths)}, kinds={list(kinds)}."
        )
    images = data.load(dataset, data_dir=data_dir, validation=0.0, limit=limit)
    shape = {"input_shape": images.input_shape, "classes": images.classes}
    hypermodels = [HighwayHyperModel(depth, kind, **shape) for kind in kinds for depth in depths]
    tuners = [_tuner(hypermodel, trials, seed, population, out) for hypermodel in hypermodels]
    size = {"trials": trials, "epochs": epochs, "batch_size": BATCH_SIZE, "limit": limit}
    source = {"dataset": str(dataset), "class_names": list(images.class_names), "seed": seed}
    _open_folders(tuners, {**size, **source}, resume)
    preprocess = data.preprocessor(("scale",), images.x_train)
    x = preprocess.predict(images.x_train, batch_size=500, verbose=0)
    for tuner in tuners:
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


def _open_folders(tuners, settings, resume):
    folders = {tuner: RunFolder(tuner.project_dir) for tuner in tuners}
    # Those that exist come first: if one is not to be resumed, the others are not begun.
    for tuner in sorted(tuners, key=lambda tuner: not folders[tuner].settings.exists()):
        searched = {"kind": tuner.hypermodel.kind, "depth": tuner.hypermodel.depth}
        folders[tuner].open({**searched, **settings}, resume or tuner.is_worker)


def _save_best(tuner, preprocess):
    if tuner.oracle.get_best_trials(1)[0].status != "COMPLETED":
        return
    best = tuner.get_best_models()[0]
    complete = keras.Sequential([preprocess, best], name=best.name)
    with replacing(pathlib.Path(tuner.project_dir) / "best.keras") as temporary:
        complete.save(temporary)
