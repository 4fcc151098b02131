"""Searches read back from disk, the best trial first."""

import dataclasses
import json
import math
import statistics

from highway_keras.runs.folder import RunFolder
from highway_keras.training.trainer import TrainingDiverged
from highway_keras.util import checks
from highway_keras.util.messages import notice


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
    """The trials of one kind and depth that have ended, the best first, and their settings."""

    kind: str
    depth: int
    settings: dict
    trials: list
    folder: RunFolder

    @property
    def rungs(self):
        """Its rungs as the command takes them: `"40:30 133:10"`; empty without."""
        rungs = self.settings.get("rungs", {}).items()
        return " ".join(f"{epoch}:{count}" for epoch, count in rungs)

    @property
    def completed(self):
        """The trials that did not fail."""
        return [trial for trial in self.trials if math.isfinite(trial.score)]


def read_searches(folder, depths=None, kinds=None):
    """Return the searches in a folder of `run_searches`, sorted by kind and depth.

    `None` stands for all depths or kinds that are there. Those of which no trial has succeeded are
    left out.

    Raises:
        ValueError: If there are no searches of the depths and kinds, or their trials are ranked by
            something else than the training loss.
        TrainingDiverged: If all trials of all of them diverged.
    """
    files = checks.path("searches", folder).glob("*/oracle.json")
    found = [read_search(file.parent) for file in files]
    found = [search for search in found if search and search.trials]
    for search in found:
        if "objective" in search.settings:
            raise ValueError(
                "`searches` must rank by the training loss, as the paper's do. Received: "
                f"{search.folder.path}, ranked by {search.settings['objective']}."
            )
    if not found:
        raise ValueError(
            "`searches` must be a folder that `run_searches` left, with trials that have ended. "
            f"Received: searches={folder}."
        )
    for name, wanted in (("depth", depths), ("kind", kinds)):
        there = {getattr(search, name) for search in found}
        if not there.issuperset(wanted or ()):
            raise ValueError(
                f"`{name}s` must be those of searches in {folder}: {sorted(there)}. "
                f"Received: {name}s={list(wanted)}."
            )
        found = [search for search in found if wanted is None or getattr(search, name) in wanted]
    failed = [search for search in found if not search.completed]
    found = [search for search in found if search.completed]
    if not found:
        raise TrainingDiverged(f"All trials of the searches in {folder} diverged.")
    for search in failed:
        notice(f"{search.folder.path} is left out: all of its trials diverged.")
    return sorted(found, key=lambda search: (search.kind, search.depth))


def read_search(folder):
    """Return the `Search` in a folder of its own, or `None` if it holds none."""
    files = RunFolder(folder)
    if not files.settings.exists():
        return None
    settings = files.read_json()
    trials = list(filter(None, map(_trial, folder.glob("trial_*/trial.json"))))
    sign = -1 if "accuracy" in settings.get("objective", "loss") else 1
    # The number breaks ties.
    trials.sort(key=lambda t: (math.isinf(t.score), sign * t.score, int(t.number)))
    return Search(settings["kind"], settings["depth"], settings, trials, files)


def _trial(path):
    """Return the `TrialResult` in a file of keras-tuner, or `None` if it has not ended."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        if state["status"] not in ("COMPLETED", "FAILED"):
            return None
        curve = state["metrics"]["metrics"].get("loss", {}).get("observations", [])
        losses = [statistics.fmean(point["value"]) for point in curve]
        score = float(state["score"]) if state["status"] == "COMPLETED" else math.inf
        values = dict(state["hyperparameters"]["values"])
        return TrialResult(state["trial_id"], values, losses, score)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read. Restore it, or delete the folder of its search to search anew."
        ) from error
