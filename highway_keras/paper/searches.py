"""Searches read back from disk, and the tables of Figure 1 that are made of them."""

import dataclasses
import json
import math
import pathlib
import statistics

from highway_keras.models.cards import name_of
from highway_keras.training.folder import RunFolder

HYPERPARAMETERS = ("learning_rate", "one_minus_momentum", "decay", "activation", "transform_bias")
TOP = 10  # the paper's: the mean of the top 10 of 100


@dataclasses.dataclass(frozen=True)
class Trial:
    """One trial: its hyperparameters, its training losses by epoch and the lowest of them.

    Attributes:
        number: Its number in the search, as text: `"007"`.
        values: Hyperparameters, a dictionary.
        losses: Mean loss over the batches of each epoch, in nats.
        score: The lowest of them; infinite if the trial failed.
    """

    number: str
    values: dict
    losses: list
    score: float


@dataclasses.dataclass(frozen=True)
class Search:
    """The trials of one kind and depth that have ended, and the settings of their search.

    Attributes:
        kind: `"highway"`, `"plain"` or `"residual"`.
        depth: Number of hidden layers.
        settings: What `run.json` holds.
        trials: A list of `Trial`, the best first.
    """

    kind: str
    depth: int
    settings: dict
    trials: list

    @property
    def name(self):
        """The name of the network in the zoo."""
        return name_of("thin_mlp", kind=self.kind, depth=self.depth)

    @property
    def completed(self):
        """The trials that did not fail."""
        return [trial for trial in self.trials if math.isfinite(trial.score)]


def read_searches(folder):
    """Return the searches in a folder, sorted by kind and depth.

    Args:
        folder: Folder of searches, as `run_searches` leaves it. Those without a result are left
            out.

    Returns:
        A list of `Search`.

    Raises:
        ValueError: If there is none.
    """
    searches = [read_search(path.parent) for path in pathlib.Path(folder).glob("*/oracle.json")]
    searches = [search for search in searches if search and search.completed]
    if not searches:
        raise ValueError(
            "`searches` must be a folder that `run_searches` left, with trials that have ended. "
            f"Received: searches={folder}."
        )
    return sorted(searches, key=lambda search: (search.kind, search.depth))


def read_search(folder):
    """Return the `Search` in a folder of its own, or `None` if it holds none."""
    files = RunFolder(folder)
    if not files.settings.exists():
        return None
    settings = files.read_json()
    states = [json.loads(path.read_text()) for path in folder.glob("trial_*/trial.json")]
    trials = [_trial(state) for state in states if state["status"] in ("COMPLETED", "FAILED")]
    trials.sort(key=lambda trial: trial.score)
    return Search(settings["kind"], settings["depth"], settings, trials)


def _trial(state):
    curve = state["metrics"]["metrics"].get("loss", {}).get("observations", [])
    losses = [statistics.fmean(point["value"]) for point in curve]
    score = state["score"] if state["status"] == "COMPLETED" else math.inf
    return Trial(state["trial_id"], state["hyperparameters"]["values"], losses, score)


def curve_rows(searches):
    """Return the left panel: the training curve of the best trial of each search."""
    return [
        {"kind": search.kind, "depth": search.depth, "epoch": epoch, "loss": loss}
        for search in searches
        for epoch, loss in enumerate(search.trials[0].losses, start=1)
    ]


def trial_rows(searches):
    """Return every trial: its hyperparameters, its score, and its training loss by epoch."""
    rows = []
    for search in searches:
        for trial in sorted(search.trials, key=lambda trial: trial.number):
            row = {"kind": search.kind, "depth": search.depth, "trial": trial.number}
            row |= {name: trial.values.get(name, "") for name in HYPERPARAMETERS}
            row |= {"score": trial.score if math.isfinite(trial.score) else ""}
            row |= {f"loss_{n}": loss for n, loss in enumerate(trial.losses, start=1)}
            rows.append(row)
    return rows


def top_rows(searches):
    """Return the right panel: the mean of the top 10 of each search, and its settings."""
    rows = []
    for search in searches:
        top = [trial.score for trial in search.completed[:TOP]]
        row = {"kind": search.kind, "depth": search.depth, "trials": len(search.trials)}
        row |= {"failed": len(search.trials) - len(search.completed), "best": top[0]}
        row |= {"top10_mean": statistics.fmean(top), "top10_std": statistics.pstdev(top)}
        row |= {"median": statistics.median(trial.score for trial in search.completed)}
        keys = ("dataset", "limit", "epochs", "batch_size", "seed")
        rows.append(row | {key: search.settings[key] for key in keys})
    return rows


def bias_rows(searches):
    """Return losses by the transform bias that highway networks started from, in steps of one."""
    rows = []
    for search in searches:
        if search.kind != "highway":
            continue
        for low in range(-10, -1):
            scores = [
                trial.score
                for trial in search.completed
                if min(math.floor(trial.values["transform_bias"]), -2) == low  # -1 belongs to -2
            ]
            row = {"depth": search.depth, "bias_from": low, "bias_to": low + 1, "n": len(scores)}
            best, median = (min(scores), statistics.median(scores)) if scores else ("", "")
            rows.append(row | {"best": best, "median": median})
    return rows
