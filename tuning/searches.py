"""The searches of section 3.1: which networks, at which size, and where the results go."""

import contextlib
import os

import keras
import numpy as np

from highway_keras import data
from highway_keras.models import thin
from highway_keras.runs.folder import RunFolder, check_same_settings
from highway_keras.runs.machine import Session
from highway_keras.training.networks import under_policy
from highway_keras.training.trainer import data_settings
from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.oracle import check_recorded
from highway_keras.tuning.population import check_backend
from highway_keras.tuning.tuner import METRICS, PopulationRandomSearch
from highway_keras.util import checks
from highway_keras.util.files import folder_lock, replacing, write_rows

DEPTHS = (10, 20, 50, 100)
KINDS = ("highway", "plain")
BATCH_SIZE = 128  # the paper gives none
MNIST = (28, 28, 1)  # the shape of the images that the paper searched on
HELD_OUT = 0.1  # share of the training images, for an objective that starts with val_


def run_searches(
    depths=DEPTHS,
    kinds=KINDS,
    *,
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
    rungs=None,
    objective="loss",
    **space,
):
    """Search for the hyperparameters with the lowest training loss, for each kind and depth.

    As the paper's apparently do, the searches train on all training images (or `limit` of them) and
    hold out none: the question is how well a network can be optimized. A trial's score is the
    lowest mean loss over the batches of an epoch. To choose a network for use,
    `objective="val_loss"` scores by a tenth of the training images that is held out.

    Each search has a folder in `out`, named after the network. It holds keras-tuner's files, the
    settings in `run.json`, hardware and versions in `machine.json` (unless workers trained), all
    trials in `trials.csv`, best first, and the best network with its preprocessing in `best.keras`.

    Args:
        depths: Numbers of hidden layers.
        kinds: Any of `"highway"`, `"plain"`, `"residual"`.
        trials: Number of trials for each kind and depth.
        epochs: Epochs per trial; with rungs, of the trials that are never stopped.
        dataset: What `highway_keras.data.load` takes; the pictures of a folder are scaled to
            28 x 28 gray levels. They must fit into memory.
        out: Folder of the searches.
        population: Number of trials to train together. Default: 10 for each CPU core, or all on an
            accelerator.
        resume: Whether to continue searches that are in `out`, also with more trials.
        limit: Number of training images. Default: all.
        seed: Non-negative integer.
        data_dir: Where TFDS keeps its data.
        verbose: `"auto"` for a line of progress, 0 for none.
        rungs: How many trials continue beyond which epoch: `{40: 30, 133: 10}` stops all but the
            best 30 after epoch 40, and all but 10 after epoch 133. Default: all train to the end.
        objective: `"loss"`, `"accuracy"`, `"val_loss"` or `"val_accuracy"`.
        **space: What to draw from, `activations`, `learning_rate`, `one_minus_momentum`, `decay`
            and `transform_bias`, as for `HighwayHyperModel`.

    Returns:
        The folders of the searches.

    Raises:
        ValueError: If an argument is out of its range, or a folder holds another search.
        BusyError: If another process is searching there.
        ImportError: If the backend is PyTorch.

    Examples:
        >>> from highway_keras import tuning
        >>> tuning.run_searches([10, 50], ["highway"], trials=20, epochs=2)  # doctest: +SKIP
    """
    check_backend()  # before images are loaded
    if "KERASTUNER_ORACLE_PORT" in os.environ and len(depths) * len(kinds) > 1:
        raise ValueError(
            "Processes that share a search take one depth and one kind at a time. "
            f"Received: depths={list(depths)}, kinds={list(kinds)}."
        )
    checks.positive_integer("trials", trials)
    checks.positive_integer("epochs", epochs)
    checks.one_of("objective", objective, [p + metric for p in ("", "val_") for metric in METRICS])
    out = checks.path("out", out)
    data.check_outside(dataset, out)
    held_out = HELD_OUT if objective.startswith("val_") else 0.0
    images = data.load(dataset, data_dir, held_out, limit, input_shape=MNIST)
    if held_out and not len(images.x_val):
        raise ValueError(f"`dataset` must hold out images for objective={objective!r}.")
    space |= {"input_shape": images.input_shape, "classes": images.classes}
    tuners = [
        PopulationRandomSearch(
            HighwayHyperModel(depth, kind, **space),
            objective,
            trials,
            seed,
            population,
            directory=out,
            project_name=thin.NAME.format(kind=kind, depth=depth),
            rungs=rungs,
        )
        for kind in kinds
        for depth in depths
    ]
    preprocess = data.preprocessor(("scale",), images.x_train)
    pairs = {"": (images.x_train, images.y_train)}
    if held_out:
        pairs["val_"] = images.x_val, images.y_val
    at_once = data.images_at_once(images.input_shape)
    for prefix, (x, y) in pairs.items():
        pairs[prefix] = preprocess.predict(np.asarray(x), at_once, verbose=0), y
    shared = {"epochs": epochs, "batch_size": BATCH_SIZE, "limit": limit}  # `trials` may grow
    shared |= {**data_settings(dataset, images), "seed": seed}
    shared |= {} if objective == "loss" else {"objective": objective}
    searches = [(tuner, RunFolder(tuner.project_dir)) for tuner in tuners]
    # Existing ones come first: if one must not be resumed, the others are not started.
    for tuner, folder in sorted(searches, key=lambda search: not search[1].settings.exists()):
        settings = {"kind": tuner.hypermodel.kind, "depth": tuner.hypermodel.depth, **tuner.chosen}
        settings |= shared
        tuner.oracle_here.epochs = epochs
        if tuner.is_worker:
            tuner.has_chief()
            if folder.settings.exists():  # which the chief has written
                check_same_settings(folder.read_json(), settings, f"the search in {folder.path}")
            continue
        with folder_lock(folder.path):
            if not folder.settings.exists():
                check_recorded(folder.path, tuner.settings(pairs, epochs, BATCH_SIZE))
            folder.open(settings, resume)
    for tuner, folder in searches:
        trains_here = not (tuner.is_worker or tuner.is_chief or tuner.oracle.has_ended)
        with Session(folder) if trains_here else contextlib.nullcontext():
            tuner.search(*pairs[""], pairs.get("val_"), epochs, BATCH_SIZE, verbose)
        if not tuner.is_worker:
            _write_results(tuner, folder, preprocess)
    return [folder.path for _, folder in searches]


def _write_results(tuner, folder, preprocess):
    """Write the trials as a table, and the best network."""
    ended = tuner.oracle.get_best_trials(len(tuner.oracle.trials))  # the best first
    rows = [
        {
            "trial": trial.trial_id,
            "score": "" if trial.score is None else trial.score,
            "epochs": len(trial.metrics.get_history("loss")) if trial.metrics.exists("loss") else 0,
            **trial.hyperparameters.values,
        }
        for trial in ended
    ]
    write_rows(folder.path / "trials.csv", rows, max(rows, key=len))
    if ended[0].status == "COMPLETED":
        best = tuner.get_best_models()[0]
        with under_policy("float32"):  # or Keras would round the inputs to that of the process
            inputs = keras.Input(best.input_shape[1:])
            complete = keras.Sequential([inputs, preprocess, best], name=best.name)
        with replacing(folder.best) as temporary:
            complete.save(temporary)
