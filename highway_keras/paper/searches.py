"""Searches read back from disk, and the tables of Figure 1 made from them."""

import dataclasses
import itertools
import json
import math
import statistics

import numpy as np

from highway_keras import checks
from highway_keras.models import thin
from highway_keras.runs.folder import RunFolder

HYPERPARAMETERS = ("learning_rate", "one_minus_momentum", "decay", "activation", "transform_bias")
SETTINGS = ("dataset", "limit", "epochs", "batch_size", "seed")  # of a search
ACTIVATIONS = ("relu", "tanh")
QUARTILES = (0, 0.25, 0.5, 0.75, 1)
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
        folder: Its `RunFolder`.
    """

    kind: str
    depth: int
    settings: dict
    trials: list
    folder: RunFolder

    @property
    def name(self):
        """The name of the network in the zoo."""
        return thin.NAME.format(kind=self.kind, depth=self.depth)

    @property
    def completed(self):
        """The trials that did not fail."""
        return [trial for trial in self.trials if math.isfinite(trial.score)]


def read_searches(folder, depths=None, kinds=None):
    """Return the searches in a folder, sorted by kind and depth.

    Args:
        folder: Folder of searches, as `run_searches` leaves it. Those without a result are left
            out.
        depths: Numbers of hidden layers; `None` for all that are there.
        kinds: Any of `"highway"`, `"plain"`, `"residual"`; `None` for all that are there.

    Returns:
        A list of `Search`.

    Raises:
        ValueError: If there is none, or none for a depth or kind.
    """
    files = checks.path("searches", folder).glob("*/oracle.json")
    searches = [read_search(file.parent) for file in files]
    searches = [search for search in searches if search and search.completed]
    if not searches:
        raise ValueError(
            "`searches` must be a folder that `run_searches` left, with trials that have ended. "
            f"Received: searches={folder}."
        )
    _check_found("depths", depths, {search.depth for search in searches}, folder)
    _check_found("kinds", kinds, {search.kind for search in searches}, folder)
    searches = [search for search in searches if depths is None or search.depth in depths]
    searches = [search for search in searches if kinds is None or search.kind in kinds]
    return sorted(searches, key=lambda search: (search.kind, search.depth))


def _check_found(name, wanted, found, folder):
    absent = [value for value in wanted or () if value not in found]
    if absent:
        raise ValueError(
            f"`{name}` must be those of searches in {folder}: {sorted(found)}. "
            f"Received: {name}={list(wanted)}."
        )


def read_search(folder):
    """Return the `Search` in a folder of its own, or `None` if it holds none."""
    files = RunFolder(folder)
    if not files.settings.exists():
        return None
    settings = files.read_json()
    trials = [_trial(path) for path in folder.glob("trial_*/trial.json")]
    trials = sorted(filter(None, trials), key=lambda trial: trial.score)
    try:
        return Search(settings["kind"], settings["depth"], settings, trials, files)
    except KeyError as error:
        raise ValueError(f"{files.settings} is not that of a search: it lacks {error}.") from error


def _trial(path):
    """Return the `Trial` that a file holds, or `None` if it has not ended."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        if state["status"] not in ("COMPLETED", "FAILED"):
            return None
        curve = state["metrics"]["metrics"].get("loss", {}).get("observations", [])
        losses = [statistics.fmean(point["value"]) for point in curve]
        score = float(state["score"]) if state["status"] == "COMPLETED" else math.inf
        return Trial(state["trial_id"], dict(state["hyperparameters"]["values"]), losses, score)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read. Bring it back, or delete the folder of its search to search "
            "anew."
        ) from error


def curve_rows(searches):
    """Return the left panel: the training curve of the best trial of each search."""
    return [
        {
            "kind": search.kind,
            "depth": search.depth,
            "trial": search.trials[0].number,
            "of": len(search.trials),
            "epoch": epoch,
            "loss": loss,
            **{key: search.settings[key] for key in SETTINGS if key != "epochs"},
        }
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
            row |= {key: search.settings[key] for key in SETTINGS}
            row |= {f"loss_{n}": loss for n, loss in enumerate(trial.losses, start=1)}
            rows.append(row)
    return rows


def top_rows(searches):
    """Return the right panel: the mean of the top 10 of each search, and its settings.

    If fewer than 10 trials succeeded, mean and deviation are blank.
    """
    rows = []
    for search in searches:
        top = [trial.score for trial in search.completed[:TOP]]
        row = {"kind": search.kind, "depth": search.depth, "trials": len(search.trials)}
        row |= {"failed": len(search.trials) - len(search.completed), "best": top[0]}
        spread = (statistics.fmean(top), statistics.stdev(top)) if len(top) == TOP else ("", "")
        row |= dict(zip(("top10_mean", "top10_std"), spread, strict=True))
        row |= {"median": statistics.median(trial.score for trial in search.completed)}
        rows.append(row | {key: search.settings[key] for key in SETTINGS})
    return rows


def bias_rows(searches):
    """Return losses by the transform bias that highway networks started from, in steps of one.

    Activations are separate; each cell has the best loss, the quartiles and the worst.
    """
    rows = []
    for search in (search for search in searches if search.kind == "highway"):
        for activation, low in itertools.product(ACTIVATIONS, range(-10, -1)):
            scores = [
                trial.score
                for trial in search.trials
                if trial.values["activation"] == activation
                and min(math.floor(trial.values["transform_bias"]), -2) == low  # -1 belongs to -2
            ]
            row = {"activation": activation, "depth": search.depth}
            row |= {"bias_from": low, "bias_to": low + 1, **_spread(scores)}
            rows.append(row | {key: search.settings[key] for key in SETTINGS})
    return rows


def _spread(scores):
    """Return how scores scatter; those of failed trials are infinite."""
    finished = [score for score in scores if math.isfinite(score)]
    row = {"n": len(finished), "failed": len(scores) - len(finished)}
    quartiles = np.quantile(finished, QUARTILES) if finished else [""] * len(QUARTILES)
    return row | dict(zip(("best", "lower", "median", "upper", "worst"), quartiles, strict=True))
