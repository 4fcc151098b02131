"""Settings that were compared on images held out of the training set."""

import dataclasses
import functools

from highway_keras.paper.provenance import DIVERGED
from highway_keras.training.recipes import get_recipe
from tools import recipe_options
from tools.numbers.rows import NONE, columns, rows, spread, table

RECIPE = "modern-cifar"
ALIKE = ("epochs", "dtype_policy", "validation")  # what all runs of a table share
SHORT = {"epochs": "6", "dropout": "0.25"}  # of the runs that compare policies
POLICIES = ("float32", "mixed_bfloat16")


def tries(model, epochs):
    """Return the table of a network's runs of so many epochs on all images, the best first."""
    runs = [run for run in _runs(model) if run.values["epochs"] == str(epochs) and not run.limit]
    if not runs:
        return NONE
    ranked = sorted(runs, key=lambda run: (run.accuracy is not None, run.accuracy or 0))
    lines = [
        (_changed(run), DIVERGED if run.accuracy is None else f"{run.accuracy:.1f}")
        for run in reversed(ranked)
    ]
    return table(columns(("changed", "held out, %")), lines)


def policy(name):
    """Return mean and deviation of the accuracy that a dtype policy reaches in a short run."""
    runs = _limited_runs("highway-a", {**SHORT, "dtype_policy": name})
    values = [run.accuracy for run in runs]
    return f"{spread(values, '.1f', ' %')}, n={len(values)}" if values else NONE


def authors_fitnet(clip_norm):
    """Return what a short run of Fitnet A by the authors' solver comes to with such a limit."""
    found = _limited_runs("fitnet-a", {"schedule": "steps", "clip_norm": str(clip_norm)})
    if not found:
        return NONE
    (run,) = found
    return "diverges" if run.accuracy is None else f"reaches {run.accuracy:.1f} %"


@dataclasses.dataclass(frozen=True)
class Run:
    """A run with held-out images: its recipe as text by attribute, and how it ended, in percent."""

    values: dict
    limit: bool
    accuracy: float | None  # none if it diverged


def _runs(model):
    last = {r["command"]: r for r in rows("training-curves", model=model)}
    runs = []
    for command, end in last.items():
        accuracy = end["val_accuracy"]
        accuracy = None if accuracy == DIVERGED else 100 * float(accuracy)
        runs.append(Run(recipe_options.values(command), "--limit " in command, accuracy))
    return [run for run in runs if float(run.values["validation"])]


def _limited_runs(model, wanted):
    """Return a network's runs on some of the images whose recipes have the `wanted` values."""
    return [run for run in _runs(model) if wanted.items() <= run.values.items() and run.limit]


def _changed(run):
    """Return what a run changed in the recipe as it is now, without what all of them did."""
    now = {key: recipe_options.text(value) for key, value in vars(get_recipe(RECIPE)).items()}
    changed = {k: v for k, v in run.values.items() if k not in ALIKE and v != now[k]}
    return f"`{' '.join(f'{k}={v}' for k, v in changed.items())}`" if changed else "nothing"


NUMBERS = {
    "held-out.highway-a": functools.partial(tries, "highway-a", 8),
    "held-out.fitnet-a": functools.partial(tries, "fitnet-a", 8),
    **{f"fitnet.clip.{norm}": functools.partial(authors_fitnet, norm) for norm in (None, 1.0)},
    **{f"policy.{name}": functools.partial(policy, name) for name in POLICIES},
}
