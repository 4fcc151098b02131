"""Settings that were compared on images held out of the training set."""

import dataclasses
import functools

from highway_keras.results import DIVERGED
from highway_keras.training.recipes import get_recipe
from tools import recipe_options
from tools.numbers.rows import NONE, columns, curves, spread, table

RECIPE = "modern-cifar"
# What all runs of a table share, and what has a column of its own.
APART = ("epochs", "dtype_policy", "validation", "preprocessing")
SHORT = {"epochs": "6", "dropout": "0.25"}  # of the runs that compare policies
POLICIES = ("float32", "mixed_bfloat16")
# The scale of the images: the standard deviation that contrast normalization leaves, or half of it.
WHOLE, HALF = "('gcn','mean')", "('gcn','mean','half')"
SCALES = {WHOLE: "1", HALF: "0.5"}


def tries(model, epochs):
    """Return the table of a network's runs of so many epochs on all images, the best first."""
    runs = [run for run in _runs(model) if run.values["epochs"] == str(epochs) and not run.limit]
    if not runs:
        return NONE
    ranked = sorted(runs, key=lambda run: run.accuracy or -1, reverse=True)
    lines = [(_changed(run), SCALES[run.values["preprocessing"]], _percent(run)) for run in ranked]
    return table(columns(("changed", "scale", "held out, %")), lines)


def policy(name):
    """Return mean and deviation of the accuracy that a dtype policy reaches in a short run."""
    runs = _limited_runs("highway-a", {**SHORT, "dtype_policy": name})
    values = [run.accuracy for run in runs]
    return f"{spread(values, '.1f', ' %')}, n={len(values)}" if values else NONE


def authors_solver(model, preprocessing, clip_norm=None):
    """Return what the runs of a network by the authors' solver on some of the images come to."""
    wanted = {"schedule": "steps", "preprocessing": preprocessing, "clip_norm": str(clip_norm)}
    runs = _limited_runs(model, wanted)
    if len(runs) < 2:
        return _outcome(runs[0]) if runs else NONE
    diverged = sum(run.accuracy is None for run in runs)
    others = [f"one {_outcome(run)}" for run in runs if run.accuracy is not None]
    return ", ".join([f"{diverged} of {len(runs)} seeds diverge", *others])


@dataclasses.dataclass(frozen=True)
class Run:
    """A run with held-out images: its recipe as text by attribute, and how it ended, in percent."""

    values: dict
    limit: bool
    accuracy: float | None  # none if it diverged


def _outcome(run):
    return "diverges" if run.accuracy is None else f"reaches {_percent(run)} %"


def _percent(run):
    return DIVERGED if run.accuracy is None else f"{run.accuracy:.1f}"


def _runs(model):
    runs = []
    for command, curve in curves(model).items():
        accuracy, values = curve[-1]["val_accuracy"], recipe_options.values(command)
        if float(values["validation"]):
            accuracy = None if accuracy == DIVERGED else 100 * float(accuracy)
            runs.append(Run(values, recipe_options.is_limited(command), accuracy))
    return runs


def _limited_runs(model, wanted):
    """Return a network's runs on some of the images whose recipes have the `wanted` values."""
    return [run for run in _runs(model) if wanted.items() <= run.values.items() and run.limit]


def _changed(run):
    """Return what else a run changed in the recipe as it is now."""
    now = {key: recipe_options.text(value) for key, value in vars(get_recipe(RECIPE)).items()}
    changed = {k: v for k, v in run.values.items() if k not in APART and v != now[k]}
    return f"`{' '.join(f'{k}={v}' for k, v in changed.items())}`" if changed else "nothing"


NUMBERS = {
    "held-out.highway-a": functools.partial(tries, "highway-a", 8),
    "held-out.fitnet-a": functools.partial(tries, "fitnet-a", 8),
    "highway-gap-10.whole": functools.partial(authors_solver, "highway-gap-10", WHOLE),
    "fitnet-a.whole": functools.partial(authors_solver, "fitnet-a", WHOLE),
    "fitnet-a.whole.limit": functools.partial(authors_solver, "fitnet-a", WHOLE, 1.0),
    "fitnet-a.half": functools.partial(authors_solver, "fitnet-a", HALF),
    "fitnet-a.half.limit": functools.partial(authors_solver, "fitnet-a", HALF, 1.0),
    "fitnet-b.half": functools.partial(authors_solver, "fitnet-b", HALF),
    "fitnet-b.half.limit": functools.partial(authors_solver, "fitnet-b", HALF, 1.0),
    "highway-b.half": functools.partial(authors_solver, "highway-b", HALF),
    **{f"policy.{name}": functools.partial(policy, name) for name in POLICIES},
}
