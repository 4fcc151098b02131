"""The searches of section 3.1: which networks, at which size, and where the results go."""

import dataclasses
import functools
import json
import math
import os
import pathlib

import keras

from highway_keras import data, models
from highway_keras.data.preprocessing import preprocessed
from highway_keras.models import thin
from highway_keras.training.machine import joined
from highway_keras.tuning.oracle import SEARCH, epochs_of
from highway_keras.tuning.tuner import PopulationRandomSearch
from highway_keras.util.files import write_json, write_rows

BATCH_SIZE = 128  # the paper gives none
PREPROCESSING = ("scale",)


def run_searches(
    images, hypermodels, *, epochs=10, out="runs/search", resume=False, verbose="auto", **options
):
    """Search for the hyperparameters with the lowest training loss, for each hypermodel.

    A trial's score is the lowest mean loss over the batches of an epoch: the paper asks how well a
    network can be optimized. To choose a network for use, rank by `"val_loss"` of held-out images.

    Each search has a folder in `out`, named after the network:

    ```
    search.json    settings and all trials, replaced whenever one has ended
    state-*.npz    trials that are in training, and the best
    best.keras     the best network with its preprocessing
    trials.csv     all trials, the best first
    run.json       settings, where the search ran, how long it took
    ```

    Args:
        images: A `data.Dataset` whose images fit in memory.
        hypermodels: `HighwayHyperModel`s for these images, each of another depth or kind.
        epochs: Epochs per trial; with rungs, of the trials that are never stopped.
        out: Folder of the searches.
        resume: Whether to continue searches that are in `out`, also with more trials.
        verbose: `"auto"` for a bar of progress, 0 for none.
        **options: Those of `PopulationRandomSearch`: `objective`, `max_trials`, `seed`,
            `population` and `rungs`.

    Returns:
        The folders of the searches.

    Raises:
        ValueError: If an argument is out of its range, or a folder holds another search.
        BusyError: If another process is searching there.
        ImportError: If the backend is PyTorch.

    Examples:
        >>> from highway_keras import data, tuning
        >>> mnist = data.load("mnist", validation=0.0)  # doctest: +SKIP
        >>> networks = [tuning.HighwayHyperModel(depth) for depth in (10, 50)]
        >>> tuning.run_searches(mnist, networks, max_trials=20)  # doctest: +SKIP
    """
    if "KERASTUNER_ORACLE_IP" in os.environ and len(hypermodels) > 1:
        raise ValueError(
            "Processes that share a search take one depth and one kind at a time. "
            f"Received: {len(hypermodels)} searches."
        )
    tuners = []
    for hypermodel in hypermodels:
        name = thin.NAME.format(kind=hypermodel.kind, depth=hypermodel.depth)
        tuner = PopulationRandomSearch(hypermodel, directory=out, project_name=name, **options)
        tuner.settings |= {"dataset": images.source, "train_images": len(images.x_train)}
        tuners.append(tuner)
    # Existing ones come first: if one must not be continued, the others are not started.
    tuners.sort(key=lambda tuner: not tuner.local_oracle.settings)
    for tuner in tuners:
        if tuner.local_oracle.settings and not resume:
            raise ValueError(
                f"`out` already holds a search. Received: out={tuner.folder}. Pass resume=True to "
                "continue it, or name another folder."
            )
    preprocess = data.preprocessor(PREPROCESSING, images.x_train)
    train = preprocessed(preprocess, images.x_train), images.y_train
    validation = None
    if options.get("objective", "loss").startswith("val_") and len(images.x_val):
        validation = preprocessed(preprocess, images.x_val), images.y_val
    for tuner in tuners:
        # A hook, because it is called before another process may continue the search.
        tuner.on_search_end = functools.partial(_write_results, tuner, images, preprocess)
        tuner.search(*train, validation, epochs, BATCH_SIZE, verbose)
    return [tuner.folder for tuner in tuners]


def _write_results(tuner, images, preprocess):
    """Write the files that derive from the search: trials, settings, the best network."""
    oracle, hypermodel = tuner.oracle, tuner.hypermodel
    ranked = oracle.get_best_trials(len(oracle.trials))  # the best first
    rows = [
        {
            "kind": hypermodel.kind,
            "depth": hypermodel.depth,
            "trial": trial.trial_id,
            "score": "" if trial.score is None else trial.score,
            "epochs": epochs_of(trial),
            **trial.hyperparameters.values,
        }
        for trial in ranked
    ]
    write_rows(tuner.folder / "trials.csv", rows)
    failed = sum(trial.status == "FAILED" for trial in ranked)
    results = {"trials": len(ranked), "failed": failed, "best": ranked[0].score}
    content = {**oracle.settings, "machine": oracle.sessions, "results": results}
    write_json(tuner.folder / "run.json", content)
    if ranked[0].status == "COMPLETED":
        (trained,) = tuner.get_best_models()
        best = keras.Model(trained.input, trained.output, name=trained.name)  # not compiled
        models.save(
            tuner.folder / "best.keras",
            keras.Sequential([preprocess, best]),
            class_names=list(images.class_names),
            dataset=images.source,
            preprocessing=list(PREPROCESSING),
            model=best.name,
        )


@dataclasses.dataclass(frozen=True)
class TrialResult:
    """One trial: its hyperparameters, its training losses by epoch, and what the search ranks by.

    `number` is text: `"007"`. `score` is infinite if the trial failed.
    """

    number: str
    values: dict
    losses: list
    score: float


@dataclasses.dataclass(frozen=True)
class Search:
    """The trials of one kind and depth that have ended, the best first, and their settings.

    `machine` holds the seconds, hardware, versions, commits and dates of all sessions.
    """

    kind: str
    depth: int
    settings: dict
    trials: list
    folder: pathlib.Path
    machine: dict

    @property
    def completed(self):
        """The trials that did not fail."""
        return [trial for trial in self.trials if math.isfinite(trial.score)]


def read_searches(folder):
    """Return the searches in a folder of `run_searches`, sorted by kind and depth.

    Args:
        folder: The `out` of `run_searches`.

    Returns:
        A list of `Search`; searches without an ended trial are left out.

    Raises:
        ValueError: If there are none.
    """
    searches = [_read(file) for file in pathlib.Path(folder).expanduser().glob(f"*/{SEARCH}")]
    searches = [search for search in searches if search.trials]
    if not searches:
        raise ValueError(
            "`folder` must be the `out` of searches in which a trial has ended. "
            f"Received: folder={folder}."
        )
    return sorted(searches, key=lambda search: (search.kind, search.depth))


def _read(file):
    content = json.loads(file.read_text(encoding="utf-8"))
    settings = content["settings"]
    ended = [t for t in content["trials"] if t["status"] in ("COMPLETED", "FAILED")]
    trials = [
        TrialResult(
            trial["trial_id"],
            trial["hyperparameters"]["values"],
            [p["value"][0] for p in trial["metrics"]["metrics"]["loss"]["observations"]],
            math.inf if trial["score"] is None else trial["score"],
        )
        for trial in ended
    ]
    sign = -1 if settings["direction"] == "max" else 1
    trials.sort(key=lambda trial: (math.isinf(trial.score), sign * trial.score))
    seconds = round(sum(session["seconds"] for session in content["sessions"]), 1)
    machine = {"search_seconds": seconds, **joined(content["sessions"])}
    return Search(settings["kind"], settings["depth"], settings, trials, file.parent, machine)
