"""Figure 1 from its rows: `python -m tools.figure1 [PICTURE] [--epoch10 PICTURE]`.

It prints a table for each right panel, and draws the panels if files are named. The first table
is that of epoch 10, which all 100 trials of a kind and depth have reached: the mean loss of the
ten best, with a bootstrap over trials. The second has, after 400 epochs, the ten trials that led
at epoch 40 (10 layers: 133); a mean stays blank until all ten have ended.
"""

import argparse
import pathlib

import numpy as np
import pandas as pd

RESULTS = pathlib.Path(__file__).parents[1] / "results"
DEPTHS, KINDS, TOP = (10, 20, 50, 100), ("highway", "plain"), 10
LOSSES = [f"loss_{epoch}" for epoch in range(1, 401)]
LEAD = {10: 133, 20: 40, 50: 40, 100: 40}  # the last rung of each depth
DRAWS = 10_000


def read():
    """Return the trials of the searches as long as they were trained, one row each."""
    trials = pd.read_csv(RESULTS / "figure1-long.csv", dtype={"trial": str})
    file = RESULTS / "figure1-continued.csv"
    if file.exists():
        more = pd.read_csv(file, dtype={"trial": str, "label": str})
        more = more[more["label"].isna() & (more["seed"] == 0)]
        keys = ["kind", "depth", "trial"]
        trials = pd.concat([more, trials]).drop_duplicates(keys)
    return trials.reset_index(drop=True)


def lowest(trials, epoch):
    """Return the lowest loss of each trial up to an epoch, infinite for one that has not come."""
    losses = trials[LOSSES[:epoch]].to_numpy(float)
    reached = np.isfinite(losses[:, -1])
    return np.where(reached, np.nanmin(np.where(np.isnan(losses), np.inf, losses), axis=1), np.inf)


def top_mean(losses):
    return np.sort(losses, axis=-1)[..., :TOP].mean(axis=-1)


def at_epoch_10(trials):
    """Return a row for each kind and depth, and one for each ratio between depths or kinds."""
    # The same numbers are drawn for all kinds and depths, whose trials share hyperparameters.
    drawn = np.random.default_rng(0).integers(0, 100, (DRAWS, 100))
    means, samples = {}, {}
    for kind in KINDS:
        for depth in DEPTHS:
            chosen = trials[(trials["kind"] == kind) & (trials["depth"] == depth)]
            losses = lowest(chosen.sort_values("trial"), 10)
            means[kind, depth] = top_mean(losses)
            samples[kind, depth] = top_mean(losses[drawn])
    rows = [
        (f"{kind} {depth}", means[kind, depth], *interval(samples[kind, depth]))
        for kind, depth in means
    ]
    pairs = [((kind, 100), (kind, 10)) for kind in KINDS]
    pairs += [(("plain", depth), ("highway", depth)) for depth in DEPTHS]
    for a, b in pairs:
        name = f"{a[0]} {a[1]} / {b[0]} {b[1]}"
        rows.append((name, means[a] / means[b], *interval(samples[a] / samples[b])))
    return pd.DataFrame(rows, columns=["top 10 of 100, epoch 10", "mean", "low", "high"])


def interval(samples):
    return np.percentile(samples, [2.5, 97.5])


def at_epoch_400(trials):
    """Return a row for each kind and depth: the ten that led at the last rung, after 400 epochs."""
    rows = []
    for kind in KINDS:
        for depth in DEPTHS:
            chosen = trials[(trials["kind"] == kind) & (trials["depth"] == depth)]
            # A trial that diverged after the rung would have led it, but counts as failed.
            chosen = chosen[chosen["score"].notna()]
            leaders = chosen.iloc[np.argsort(lowest(chosen, LEAD[depth]), kind="stable")[:TOP]]
            ends = lowest(leaders, 400)
            ended = ends[np.isfinite(ends)]
            row = {"kind": kind, "depth": depth, "losses": ended, "ended": len(ended)}
            row["best"] = ended.min()
            if len(ended) == TOP:
                row |= {"mean": ended.mean(), "std": ended.std(ddof=1), "median": np.median(ended)}
            rows.append(row)
    return pd.DataFrame(rows)


def draw(trials, epochs, path, title, draw_kind):
    """Draw the best curves by epoch; `draw_kind(axes, kind, style)` draws the right panel."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.6, 4.8), layout="constrained")
    for kind, style in zip(KINDS, ("-", "--"), strict=True):
        for number, depth in enumerate(DEPTHS):
            chosen = trials[(trials["kind"] == kind) & (trials["depth"] == depth)]
            best = chosen.iloc[np.argmin(lowest(chosen, epochs))][LOSSES[:epochs]].astype(float)
            line = {"color": f"C{number}", "lw": 1, "label": f"{kind} {depth}"}
            left.semilogy(range(1, epochs + 1), best, style, **line)
        draw_kind(right, kind, style)
    right.set(yscale="log", xticks=DEPTHS, xlabel="hidden layers", title=title)
    left.set(xlabel="epoch", ylabel="training loss (nats)", title="best trial")
    left.legend(ncols=2, frameon=False, fontsize=8)
    right.legend(frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.figure1")
    parser.add_argument("picture", nargs="?", help="file for the panels after 400 epochs")
    parser.add_argument("--epoch10", help="file for the panels after 10 epochs")
    options = parser.parse_args()
    trials = read()
    short, long = at_epoch_10(trials), at_epoch_400(trials)
    print(short.to_string(index=False, float_format="{:.4g}".format))
    print(long.drop(columns="losses").to_string(index=False, float_format="{:.3g}".format))

    def with_bars(axes, kind, style):
        rows = short[short.iloc[:, 0].str.fullmatch(rf"{kind} \d+")]
        bars = rows["mean"] - rows["low"], rows["high"] - rows["mean"]
        axes.errorbar(DEPTHS, rows["mean"], bars, fmt=f"o{style}", color="k", capsize=3, label=kind)

    def with_trials(axes, kind, style):
        shift, mark, color = (-1, "o", "C0") if kind == "highway" else (1, "s", "C1")
        rows = long[long["kind"] == kind]
        for depth, losses in zip(rows["depth"], rows["losses"], strict=True):
            axes.plot([depth + shift] * len(losses), losses, mark, color=color, ms=4, mfc="none")
        axes.plot(rows["depth"] + shift, rows["mean"], f"{mark}{style}", color=color, label=kind)

    if options.epoch10:
        draw(trials, 10, options.epoch10, "ten best of 100, all 60,000 images", with_bars)
    if options.picture:
        draw(
            trials, 400, options.picture, "ten that led at the last rung; filled: mean", with_trials
        )


if __name__ == "__main__":
    main()
