"""Figure 1: the searches, what their losses say of depth, and the trial that won."""

import functools
import itertools
import math

from highway_keras.paper.finals_plot import better_curves
from highway_keras.results import DIVERGED
from tools.numbers.rows import NONE, columns, row, rows, table

KINDS = ("highway", "plain", "residual")
DEPTHS = (10, 20, 50, 100)


def losses():
    """Return the table of Figure 1: the best trial and the mean of the ten best, by depth."""
    names = ["hidden layers", *(f"{k}, best" for k in KINDS), *(f"{k}, top 10" for k in KINDS)]
    lines = []
    for depth in DEPTHS:
        found = [row("figure1-top10", kind=kind, depth=depth) for kind in KINDS]
        best = [f"{float(r['best']):.3f}" for r in found]
        top = [f"{float(r['top10_mean']):.3f} ± {float(r['top10_std']):.3f}" for r in found]
        lines.append((str(depth), *best, *top))
    return table(columns(names, left=0), lines)


def loss(kind, depth, column="best"):
    """Return a loss of a search, in nats."""
    return float(row("figure1-top10", kind=kind, depth=depth)[column])


def shown(kind, depth):
    """Return the loss of the best trial as text."""
    return f"{loss(kind, depth):.3f}"


def times(one, other, column):
    """Return how many times a loss is another one, and the same in orders of magnitude."""
    ratio = loss(*one, column) / loss(*other, column)
    return f"{ratio:.0f} times, {math.log10(ratio):.1f} orders of magnitude"


def failed(kind):
    """Return the numbers of trials that diverged, by depth."""
    *counts, last = (row("figure1-top10", kind=kind, depth=depth)["failed"] for depth in DEPTHS)
    return f"{', '.join(counts)} and {last}"


def diverged_above(bias):
    """Return how many of the highway trials that diverged started with a higher bias than this."""
    biases = [
        float(r["transform_bias"]) for r in rows("figure1-trials", kind="highway") if not r["score"]
    ]
    return f"{sum(b > bias for b in biases)} of {len(biases)}"


def winner():
    """Return the hyperparameters that won at every depth of the highway networks.

    Raises:
        LookupError: If another trial won at some depth.
    """
    best = {}
    for trial in rows("figure1-trials", kind="highway"):
        if trial["score"]:
            own = best.setdefault(trial["depth"], trial)
            best[trial["depth"]] = min(own, trial, key=lambda t: float(t["score"]))
    if not best:
        return NONE
    if len({trial["trial"] for trial in best.values()}) != 1:
        raise LookupError("More than one set of hyperparameters won.")
    values = next(iter(best.values()))
    rate, decay, bias = (float(values[k]) for k in ("learning_rate", "decay", "transform_bias"))
    momentum = 1 - float(values["one_minus_momentum"])
    return (
        f"learning rate {rate:.3f}, momentum {momentum:.3f}, decay {decay:.2f} an epoch, "
        f"{values['activation']}, transform bias {bias:.1f}"
    )


def finals():
    """Return the table of the finals, all that were trained: their losses, and their settings."""
    names = ["kind", "hidden layers", "lowest loss", "after 40 epochs", "below 10^-4 after"]
    names += ["rate", "momentum", "decay", "activation", "transform bias"]
    lines = []
    for kind, depth in itertools.product(KINDS[:2], DEPTHS):
        found = rows("figure1-finals", kind=kind, depth=depth)
        for trial in dict.fromkeys(r["trial"] for r in found):
            final = [r for r in found if r["trial"] == trial]
            lines.append((kind, str(depth), *_final(final)))
        if not found:
            lines.append((kind, str(depth), *[""] * (len(names) - 2)))
    return table(columns(names), lines)


def _final(epochs):
    first, losses = epochs[0], [float(r["loss"]) for r in epochs if r["loss"] != DIVERGED]
    values = (f"{float(first[k]):.3f}" for k in ("learning_rate", "momentum", "decay"))
    bias = first["transform_bias"] and f"{float(first['transform_bias']):.1f}"
    below = next((str(epoch) for epoch, loss in enumerate(losses, 1) if loss < 1e-4), "")
    ends = f"{min(losses):.1e}", f"{min(losses[:40]):.1e}", below
    if len(losses) < len(epochs):
        ends = f"diverged in epoch {len(epochs)}", "", ""
    return *ends, *values, first["activation"], bias


def lowest(kind, depth):
    """Return the lowest training loss of the finals of a search, in nats; `None` without one."""
    curves = better_curves(rows("figure1-finals", kind=kind, depth=depth))
    return min(curves[kind, depth]) if curves else None


def end(kind, depth):
    """Return the same as text."""
    loss = lowest(kind, depth)
    return NONE if loss is None else f"{loss:.1e}"


def gap_of_ends(one, other):
    """Return by how many orders of magnitude the loss of one network ends above the other's."""
    losses = lowest(*one), lowest(*other)
    return NONE if None in losses else f"{math.log10(losses[0] / losses[1]):.1f}"


def started_open(column, form, factor=1):
    """Return a function for a figure of the tanh network of 50 layers that started at -2."""

    def text():
        runs = rows("training-curves", model="thin-highway-50")
        found = [r for r in runs if "transform_bias=-2.0" in r["command"]]
        return format(factor * float(found[-1][column]), form) if found else NONE

    return text


NUMBERS = {
    "figure1": losses,
    "finals": finals,
    "finals.gap": functools.partial(gap_of_ends, ("plain", 100), ("highway", 100)),
    "finals.rise": functools.partial(gap_of_ends, ("highway", 100), ("highway", 10)),
    "open.epochs": started_open("epoch", ".0f"),
    "open.loss": started_open("loss", ".3f"),
    "open.accuracy": started_open("val_accuracy", ".1f", 100),
    **{
        f"finals.{kind}.{depth}": functools.partial(end, kind, depth)
        for kind, depth in itertools.product(KINDS[:2], DEPTHS)
    },
    "depth50.highway": functools.partial(shown, "highway", 50),
    "depth50.plain": functools.partial(shown, "plain", 50),
    "plain10": functools.partial(shown, "plain", 10),
    "plain20": functools.partial(shown, "plain", 20),
    "plain.rise": functools.partial(times, ("plain", 100), ("plain", 10), "top10_mean"),
    "residual.rise": functools.partial(times, ("residual", 100), ("residual", 10), "top10_mean"),
    "gap": functools.partial(times, ("plain", 100), ("highway", 100), "top10_mean"),
    "gap.best": functools.partial(times, ("plain", 100), ("highway", 100), "best"),
    **{f"failed.{kind}": functools.partial(failed, kind) for kind in KINDS},
    "diverged.open": functools.partial(diverged_above, -3),
    "winner": winner,
}
