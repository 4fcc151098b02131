"""The searches of section 3.1: what is searched, at which size, and where it lands on disk."""

import contextlib
import io
import os
import pathlib

import keras

from highway_keras import data
from highway_keras.files import replacing
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
    """Searches for the hyperparameters with the lowest training loss, for each kind and depth.

    Like the paper, it trains on all training images (or `limit` of them) and holds out none: the
    question is how well a network can be optimized. A trial's score is the lowest mean loss over
    the batches of an epoch. Each search has a folder in `out`, named as the network in the zoo:
    keras-tuner's files, the settings in `run.json`, and `best.keras`, the best network with its
    preprocessing.

    Args:
        depths: Numbers of hidden layers.
        kinds: From `"highway"`, `"plain"`, `"residual"`.
        trials: Trials for each.
        epochs: Epochs a trial.
        dataset: Name or `.npz` for `highway_keras.data.load`.
        out: Folder of the searches.
        population: Trials to train at once; default: what memory allows.
        resume: Whether to continue searches that are in `out`.
        limit: Number of training images; default all.
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
    size = {"trials": trials, "epochs": epochs, "batch_size": BATCH_SIZE, "limit": limit}
    source = {"dataset": str(dataset), "class_names": list(images.class_names), "seed": seed}
    shape = {"input_shape": images.input_shape, "classes": images.classes}
    hypermodels = [HighwayHyperModel(d, kind, **shape) for kind in kinds for d in depths]
    with contextlib.redirect_stdout(io.StringIO()):  # keras-tuner says what it reloads
        tuners = [
            PopulationRandomSearch(
                hypermodel,
                max_trials=trials,
                seed=seed,
                population=population,
                directory=out,
                project_name=f"thin-{hypermodel.kind}-{hypermodel.depth}",
            )
            for hypermodel in hypermodels
        ]
    _open_folders(tuners, {**size, **source}, resume)
    preprocess = data.preprocessor(("scale",), images.x_train)
    x = preprocess.predict(images.x_train, batch_size=500, verbose=0)
    for tuner in tuners:
        tuner.search(x, images.y_train, epochs=epochs, batch_size=BATCH_SIZE, verbose=verbose)
        if not tuner.is_worker:
            _save_best(tuner, preprocess)
    return [pathlib.Path(tuner.project_dir) for tuner in tuners]


def _open_folders(tuners, settings, resume):
    folders = {tuner: RunFolder(tuner.project_dir) for tuner in tuners}
    # Those that are there come first: if one is not to be resumed, the others are not begun.
    for tuner in sorted(tuners, key=lambda tuner: not folders[tuner].settings.exists()):
        own = {"kind": tuner.hypermodel.kind, "depth": tuner.hypermodel.depth}
        folders[tuner].open({**own, **settings}, resume or tuner.is_worker)


def _save_best(tuner, preprocess):
    if tuner.oracle.get_best_trials(1)[0].status != "COMPLETED":
        return
    best = tuner.get_best_models()[0]
    complete = keras.Sequential([preprocess, best], name=best.name)
    with replacing(pathlib.Path(tuner.project_dir) / "best.keras") as temporary:
        complete.save(temporary)
