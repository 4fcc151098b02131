"""Figure 1: the searches, what their losses say of depth, and the trial that won."""

import functools
import math

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


def failed(*kinds):
    """Return the range of the numbers of trials that diverged, of all depths."""
    counts = [int(r["failed"]) for r in rows("figure1-top10") if r["kind"] in kinds]
    return f"{min(counts)} to {max(counts)}"


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


NUMBERS = {
    "figure1": losses,
    "depth50.highway": functools.partial(shown, "highway", 50),
    "depth50.plain": functools.partial(shown, "plain", 50),
    "plain10": functools.partial(shown, "plain", 10),
    "plain20": functools.partial(shown, "plain", 20),
    "plain.rise": functools.partial(times, ("plain", 100), ("plain", 10), "top10_mean"),
    "residual.rise": functools.partial(times, ("residual", 100), ("residual", 10), "top10_mean"),
    "gap": functools.partial(times, ("plain", 100), ("highway", 100), "top10_mean"),
    "gap.best": functools.partial(times, ("plain", 100), ("highway", 100), "best"),
    "failed": functools.partial(failed, "highway", "plain"),
    "failed.residual": functools.partial(failed, "residual"),
    "winner": winner,
}
