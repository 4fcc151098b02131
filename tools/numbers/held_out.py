"""Settings that were compared on images held out of the training set."""

import functools
import re

from tools.numbers.rows import NONE, columns, rows, spread, table

SHORT = ("highway-a", "--epochs 6 ", "--limit 10000 ")  # of the runs that compare policies
POLICIES = {"float32": False, "mixed_bfloat16": True}  # whether the command names it


def tries(model, epochs):
    """Return the table of a network's runs of so many epochs on all images, the best first."""
    last = _last(lambda r: r["model"] == model and f"--epochs {epochs} " in r["command"])
    values = {_changed(command): _percent(r["val_accuracy"]) for command, r in last.items()}
    if not values:
        return NONE
    ranked = sorted(values.items(), key=lambda item: (item[1] != "diverged", item[1]))
    return table(columns(("changed", "held out, %")), ranked[::-1])


def policy(name):
    """Return mean and deviation of the accuracy that a dtype policy reaches in a short run."""
    last = _last(lambda r: all(option in r["command"] for option in SHORT))
    chosen = [r for c, r in last.items() if ("--dtype-policy" in c) == POLICIES[name]]
    values = [100 * float(r["val_accuracy"]) for r in chosen]
    return f"{spread(values, '.1f', ' %')}, n={len(values)}" if values else NONE


def _last(chosen):
    """Return the last epoch of each run with held-out images, by its command."""
    found = [r for r in rows("training-curves") if "validation=0.1" in r["command"] and chosen(r)]
    return {r["command"]: r for r in found}


def _percent(value):
    return value if value == "diverged" else f"{100 * float(value):.1f}"


def _changed(command):
    """Return what a run changed in its recipe, without what all of them did."""
    for same in (r"^.*--recipe \S+", r"--epochs \d+", r"--dtype-policy \S+", r"--seed \d+"):
        command = re.sub(same, "", command)
    command = re.sub(r"--set|validation=\S+", "", command)
    command = re.sub(r"--learning-rate ", "learning_rate=", command)
    command = re.sub(r"--batch-size ", "batch_size=", command)
    return f"`{' '.join(command.split())}`" if command.split() else "nothing"


NUMBERS = {
    "held-out.highway-a": functools.partial(tries, "highway-a", 8),
    "held-out.fitnet-a": functools.partial(tries, "fitnet-a", 8),
    **{f"policy.{name}": functools.partial(policy, name) for name in POLICIES},
}
