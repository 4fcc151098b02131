"""Figure 1 from its rows: the numbers of docs/figure1.md, and both of its pictures."""

import numpy as np
import pandas as pd

from highway_keras.plots import MUTED, plot_figure1
from tools import frames

DEPTHS, KINDS, TOP = (10, 20, 50, 100), ("highway", "plain"), 10
TRIAL = ["rates", "kind", "depth", "trial"]
LOSSES = [f"loss_{epoch}" for epoch in range(1, 401)]
LAST_RUNG = {10: 133, 20: 40, 50: 40, 100: 40}
DRAWS = 10_000


def read():
    """Return the trials of the long searches, one row each.

    `rates` is their range of rates, "usual" or "low rates": plain networks of 50 and 100 layers
    were searched in both.
    """
    searches = {"usual": "figure1-long", "low rates": "figure1-low-rates"}
    trials = [frames.read(name).assign(rates=rates) for rates, name in searches.items()]
    return pd.concat(trials, ignore_index=True)


def to_the_end():
    """Return the trials, each with its longest training."""
    trials = pd.concat([_trained_on(), read()])
    return trials.drop_duplicates(TRIAL).set_index(TRIAL).sort_index()


def trainings():
    """Return all trainings of the drawn settings, also those outside the searches."""
    return pd.concat([read(), _trained_on(), frames.read("figure1-finals")], ignore_index=True)


def again():
    """Return four more trainings of the settings with the lowest loss, of each kind and depth."""
    trials = frames.read("figure1-continued")
    return trials[trials["label"].str.startswith("again", na=False)]


def _trained_on():
    """Return the trials that a rung stopped, trained again from the start as far as they came."""
    trials = frames.read("figure1-continued")
    trials = trials.assign(rates=trials["label"].fillna("usual"))
    return trials[trials["rates"].isin(["usual", "low rates"])]  # others differ from the trial


def lowest(trials, epoch):
    """Return each trial's lowest loss up to an epoch; infinite if it did not come so far."""
    losses = trials[LOSSES[:epoch]]
    return losses.min(axis=1).where(losses.iloc[:, -1].notna(), np.inf)


def epoch_10(trials):
    """Return the mean loss of the ten best of all trials at epoch 10, by kind and depth.

    The index also has ratios, such as "plain 100 / plain 10". `low` and `high` are 95 % of a
    bootstrap, which draws the same trials for all kinds, depths and ranges of rates: they share
    hyperparameters.
    """
    drawn = np.random.default_rng(0).integers(0, 100, (DRAWS, 100))
    means = {}
    for (kind, depth), group in trials.sort_values("trial").groupby(["kind", "depth"]):
        by_range = [lowest(one, 10) for _, one in group.groupby("rates")]
        losses = np.column_stack(by_range)[np.vstack([range(100), drawn])]  # all, then each draw
        means[f"{kind} {depth}"] = np.sort(losses.reshape(1 + DRAWS, -1))[:, :TOP].mean(axis=1)
    pairs = [(f"{kind} 100", f"{kind} 10") for kind in KINDS]
    pairs += [(f"plain {depth}", f"highway {depth}") for depth in DEPTHS]
    means |= {f"{one} / {other}": means[one] / means[other] for one, other in pairs}
    ends = [(values[0], *np.percentile(values[1:], [2.5, 97.5])) for values in means.values()]
    return pd.DataFrame(ends, index=means, columns=["mean", "low", "high"])


def epoch_400():
    """Return by kind and depth the losses after 400 epochs of the ten that led at the last rung."""
    losses = {}
    ended = lowest(to_the_end(), 400)
    searched = read().dropna(subset="score").set_index(TRIAL)
    for (kind, depth), group in searched.groupby(["kind", "depth"]):
        leaders = lowest(group, LAST_RUNG[depth]).nsmallest(TOP).index
        losses[kind, depth] = ended[leaders]
    return losses


def draw_epoch_10():
    """Draw all trials after 10 epochs: the best ones, and the mean of the ten best."""
    trials = read()
    means = epoch_10(trials)
    tops = [
        {"kind": kind, "depth": depth, "top10_mean": means.loc[f"{kind} {depth}", "mean"]}
        for kind in KINDS
        for depth in DEPTHS
    ]
    figure, axes = _panels(trials, 10, "ten best trials, all 60,000 images", tops)
    for top in tops:
        ends = means.loc[f"{top['kind']} {top['depth']}", ["low", "high"]]
        axes.errorbar(top["depth"], ends.mean(), np.ptp(ends) / 2, fmt="none", color="k", capsize=3)
    return figure


def draw_epoch_400():
    """Draw trainings of 400 epochs: the lowest loss, and the trials that led at the last rung.

    A band goes from the lowest to the highest of four more trainings with the same settings.
    """
    title = "ten that led at the last rung; filled: their mean"
    figure, axes = _panels(trainings(), 400, title)
    left = figure.axes[0]
    left.set(title="lowest loss; band: four more trainings")
    colors = {line.get_label(): line.get_color() for line in left.lines}
    for (kind, depth), trials in again().groupby(["kind", "depth"]):
        ends = trials[LOSSES].agg(["min", "max"]).to_numpy()
        style = {"color": colors[f"{kind} {depth}"], "alpha": 0.3, "lw": 0}
        left.fill_between(range(1, 401), *ends, **style)
    axes.set_yscale("log")
    for (kind, depth), losses in epoch_400().items():
        shift, mark, color = (-1, "o", "k") if kind == "highway" else (1, "s", MUTED)
        style = {"color": color, "ls": ""}
        axes.plot([depth + shift] * TOP, losses, mark, ms=4, mfc="none", **style)
        label = kind if depth == DEPTHS[0] else None
        axes.plot(depth + shift, losses.mean(), mark, label=label, **style)
    axes.legend(frameon=False)
    return figure


def _panels(trials, epochs, title, tops=()):
    """Draw the best trials by epoch and `tops` by depth; return the figure and its right panel."""
    curves = {
        case: group.loc[lowest(group, epochs).idxmin(), LOSSES[:epochs]].astype(float)
        for case, group in trials.groupby(["kind", "depth"])
    }
    figure = plot_figure1(curves, tops)
    right = figure.axes[1]
    right.set_title(title)
    return figure, right
