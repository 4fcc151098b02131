"""What README and docs say in numbers, each held to the rows of `results/`.

A function for each page yields phrases with their numbers. `test_pages.py` asks that a phrase
stands once on its page, however its lines are broken. When rows change, change the page.
"""

import functools
import math
import shlex

import numpy as np
import pandas as pd
from scipy import stats

from highway_keras import models, results
from highway_keras.cli.command import parser
from highway_keras.training.recipes import get_recipe
from tools import figure1 as panels
from tools import section4
from tools.figure1 import DEPTHS, LOSSES
from tools.frames import listed, read, rows, select, shown, summary


def one(name, column, **values):
    """Return what the rows with these values say, if they agree."""
    (value,) = set(rows(name, **values)[column])
    return value


def welch(a, b):
    """Return the difference of two means, and half of its 95 % interval."""
    interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    return a.mean() - b.mean(), (interval.high - interval.low) / 2


def epoch(model, number, command, column, **values):
    return one("training-curves", column, model=model, epoch=number, command=command, **values)


# README


def readme():
    milliseconds = speed("thin-highway-1000 train", "ours", "ms_a_step")
    yield f"training step of 128 images takes {milliseconds:.0f} ms on 2 CPU"
    yield f"train as well as 10, 20](docs/figure1.md) | loss {tens('highway')} at"
    yield f"train worse with depth](docs/figure1.md) | loss {tens('plain')} at"
    counts = [text for name in section4.STARTS for text in measured(name, matter())]
    yield "| {}, {} layers on MNIST, {}, {} on CIFAR-100 |".format(*counts)
    mnist = [accuracies(f"mnist-highway-{width}", "modern") for width in (16, 32)]
    counts, authors = listed(map(len, mnist)), accuracy("mnist-highway-16", "authors")
    ours = f"{', '.join(map(summary, mnist))}; the authors', 16: {authors:.2f}"
    yield f"99.40, 99.54 % | our recipe: {ours} | {counts}; 1 |"
    runs = [accuracies("highway-a", recipe) for recipe in ("authors", "modern", "muon")]
    highway_a = "the authors' solver: {}; SGD: {}; Muon: {}".format(*map(summary, runs))
    yield f"89.18 % | {highway_a} | {'; '.join(str(len(of_one)) for of_one in runs)} |"
    names = "highway-b", "highway-c", "highway-gap-10", "highway-gap-100"
    sgd, muon = (", ".join(reached(name, run) for name in names) for run in ("modern", "muon"))
    yield f"67.61 % | SGD: {sgd}; Muon: {muon} | 1 of each |"
    ahead_of_fitnets = *beside_fitnet("a", "muon"), *beside_fitnet("b", "modern")
    yield "| A: {:.1f} ± {:.1f} points (Muon); B: {:.1f} (SGD) |".format(*ahead_of_fitnets)
    led = panels.epoch_400()
    ratio = led["highway", 100].mean() / led["highway", 10].mean()
    of_plain = led["plain", 100].mean() / led["plain", 10].mean()
    yield f"mean loss [{ratio:.0f} times higher](docs/figure1.md) at 100 layers than at 10; of"
    yield f"at 10; of plain networks {of_plain:.0f} times | 10 per depth |"
    ratios = of_100("highway", 50)
    alike = f"median ratio {ratios.median():.2f}, n = {len(ratios)}"
    yield f"[end alike](docs/figure1.md) ({alike}), but of the ten"
    failed = 10 - of_led(10)["finished"]
    yield f"of the ten that led at 10 layers, {failed} do not train at 100."
    mnist, cifar100 = (
        measured(name, raised("lesion_loss", factor=1.1)) for name in section4.STARTS
    )
    yield "by over a tenth for {} and {} layers on MNIST, {} and {} on".format(*mnist, *cifar100)
    plain, residual, deep = gains()
    yield f"7 % more weights ({plain} points over plain, {residual} over residual ones), nor at 32"
    yield f"at 32 over residual layers with 53 % of the weights ({deep}; n = 3 seeds,"


# Figure 1


@functools.cache
def epoch_10():
    return panels.epoch_10(panels.read())


def tens(kind):
    """Return the mean loss of the ten best of 100 trials at epoch 10, for each depth, as text."""
    return listed((epoch_10().loc[f"{kind} {depth}", "mean"] for depth in DEPTHS), ".3f")


def cells(text):
    """Return listed numbers as cells of a table."""
    return text.replace(", ", " | ")


def of_100(kind, depth):
    """Return the losses of settings at 100 layers over those at a depth, where both ended."""
    ends = panels.lowest(panels.to_the_end().loc["usual"], 400).replace(np.inf, np.nan)
    return (ends[kind, 100] / ends[kind, depth]).dropna()


def of_led(depth):
    """Return what came at 100 layers of the ten highway settings that led at a depth: counts."""
    settings = panels.epoch_400()["highway", depth].index.get_level_values("trial")
    at_100 = panels.to_the_end().loc["usual", "highway", 100].loc[settings]
    finished, diverged = at_100["loss_400"].notna(), at_100["score"].isna()
    assert (at_100["score"][~finished & ~diverged] > 2.29).all()
    counts = {"finished": finished.sum(), "diverged": diverged.sum()}
    return {**counts, "chance": len(settings) - sum(counts.values())}


def rise(led, kind):
    """Return how many times the mean at 10 layers that at 100 is, with 95 % of a bootstrap."""
    rng = np.random.default_rng(0)
    ends = led[kind, 100].to_numpy(), led[kind, 10].to_numpy()
    deep, shallow = (rng.choice(losses, (panels.DRAWS, panels.TOP)).mean(axis=1) for losses in ends)
    return ends[0].mean() / ends[1].mean(), *np.percentile(deep / shallow, [2.5, 97.5])


def figure1():
    trials = panels.read()
    usual = trials[trials["rates"] == "usual"]
    rises = [epoch_10().loc[f"{kind} 100 / {kind} 10"] for kind in ("plain", "highway")]
    yield "rises {:.1f}-fold (95 %: {:.1f} to {:.1f}) for plain networks and".format(*rises[0])
    yield "{:.2f}-fold ({:.2f} to {:.2f}) for highway networks. After".format(*rises[1])
    yield f"perform as well as 10 and 20: loss at epoch 10 | {cells(tens('highway'))} | 100 each |"
    counts = listed(trials[trials["kind"] == "plain"].groupby("depth").size())
    yield f"rises with depth: loss at epoch 10 | {cells(tens('plain'))} | {counts} |"
    deep = usual[(usual["kind"] == "plain") & (usual["depth"] == 100)]
    without = panels.lowest(deep, 10).nsmallest(10).mean()
    yield f"at 100 layers is {without:.3f}, not {epoch_10().loc['plain 100', 'mean']:.3f}."
    diverged = np.isinf(panels.lowest(trials, 10)).groupby([trials["kind"], trials["depth"]]).sum()
    yield f"At each point, {diverged.min()} to {diverged.max()} trials diverged."

    ended = panels.to_the_end().loc["usual"]
    ratios = [of_100("highway", depth) for depth in (20, 50)]
    medians = " | ".join(f"{ratio.median():.2f}" for ratio in ratios)
    yield f"100 layers over the loss here | | {medians} | | {listed(map(len, ratios))} |"
    ranges = [f"from {ratio.min():.2f} to {ratio.max():.2f}" for ratio in ratios]
    yield f"are medians; they range {' and '.join(ranges)}."
    yield f"50 and 100 layers end {ratios[1].median():.2f} times as high at 100 (median)"

    every = panels.trainings()
    scores = every.dropna(subset="loss_400").groupby(["kind", "depth"])["score"]
    best, worst, counts = scores.min(), scores.max(), scores.size()
    rates = [panels.epoch_400()["plain", d].index.get_level_values("rates") for d in (50, 100)]
    fifty, hundred = ((of_ten == "low rates").sum() for of_ten in rates)
    yield f"Of *the ten that led*, {fifty} at 50 layers and {hundred} at 100 have such low rates."
    rises = [rise(panels.epoch_400(), kind) for kind in ("plain", "highway")]
    yield "rises {:,.0f}-fold ({:,.0f} to {:,.0f}) for plain networks and".format(*rises[0])
    yield "{:.0f}-fold ({:.0f} to {:.0f}) for highway networks. But".format(*rises[1])
    led = {case: losses.mean() for case, losses in panels.epoch_400().items()}
    of_highway = listed([led["highway", depth] for depth in DEPTHS], ".1e")
    yield f"the ten that led, after 400 epochs | {cells(of_highway)} | 10 each | *not found* |"
    of_plain = listed([led["plain", depth] for depth in DEPTHS], ".1e")
    yield f"the ten that led, after 400 epochs | {cells(of_plain)} | 10 each | *holds* |"
    bests = listed(best["highway"], ".1e")
    yield f"lowest loss after 400 epochs | {cells(bests)} | {listed(counts['highway'])} |"
    highway, plain = best["highway", 100], best["plain", 100]
    runs = f"{counts['plain', 100]}, {counts['highway', 100]}"
    yield f"plain over highway | | | | {plain / highway:.0f} | {runs} | *holds* |"
    yield f"that finished ends {plain / worst['highway', 100]:.1f} times below the best plain one."
    yield f"loss is {highway / best['highway', 20]:.1f} times higher at 100 layers than at 20."
    ends = f"{best['plain', 10]:.1e} beside {best['highway', 10]:.1e}"
    yield f"At 10 layers plain networks end lower,** at {ends}, and"
    of_plain = cells(listed(best["plain"], ".1e"))
    yield f"lowest loss after 400 epochs | {of_plain} | {listed(counts['plain'])} | *holds* |"
    low = [(scores.get_group(("plain", depth)) < 1e-4).sum() for depth in (10, 20)]
    yield "layers, {} and {} end below 1e-4.".format(*low)
    first = {case: epochs_to(losses.index, 0.01) for case, losses in panels.epoch_400().items()}
    highway, plain = ([first[kind, d].median() for d in DEPTHS] for kind in panels.KINDS)
    assert np.isinf(plain[2:]).all()
    chance = stats.mannwhitneyu(first["highway", 10], first["plain", 10]).pvalue
    yield f"difference of the medians may be chance (Mann-Whitney, p = {chance:.2f})."
    yield f"median of the ten that led | {cells(listed(highway, 'g'))} | 10 each |"
    yield f"| the same of plain networks | {cells(listed(plain[:2], 'g'))} | never | never |"
    below = first["plain", 50][np.isfinite(first["plain", 50])]
    yield f"At 50 layers {len(below)} of the ten plain networks that led came below 0.01, from"
    yield f"below 0.01, from epoch {below.min():.0f} on."
    losses = [epoch("thin-highway-100", number, "depth=1000", "loss") for number in (1, 5)]
    yield "the loss falls [from {:.2f} to {:.2f}](benchmarks.md#depth)".format(*losses)

    searched = usual[usual["depth"] == 100].groupby("kind")["score"].min()
    deepest = ended.xs(100, level="depth").groupby("kind")["score"].min()
    gains = [searched[kind] / deepest[kind] for kind in ("highway", "plain")]
    yield "at 100 layers, trained further, {:.1f} and {:.1f} times.".format(*gains)
    plain = panels.to_the_end().xs(("plain", 100), level=("kind", "depth"))
    late = panels.lowest(plain.query("stopped_at == 10"), 40)
    led = panels.epoch_400()["plain", 100].index.droplevel(("kind", "depth"))
    now = panels.lowest(plain, 40).nsmallest(10).index
    losses = [panels.lowest(plain, 400)[ten].mean() for ten in (led, now)]
    yield (
        f"Of these {len(late)}, {now.isin(late.index).sum()} would be among *the ten that led*, "
        "which would then end at {1:.3f} on average, not {0:.3f}.".format(*losses)
    )
    searched = usual[usual["depth"] == 20].groupby("kind")["score"].min()
    gains = [searched[kind] / best[kind, 20] for kind in ("highway", "plain")]
    yield "searches, end {:.1f} (highway) and {:.0f} times (plain) below".format(*gains)
    text = (
        "led at 10 layers, {finished} also finished at 100, {diverged} diverged there and {chance}"
    )
    yield text.format(**of_led(10))
    from_minus_2, _ = measured("mnist", loss, ".1e")
    yield f"outside the drawn settings](figures2-4.md) end at {from_minus_2}"

    winners = panels.again().groupby(["kind", "depth"])["score"]
    spreads = (winners.max() / winners.min()).groupby("kind").max()
    yield f"up to {spreads['highway']:.1f} for highway networks and up to {spreads['plain']:.1f}"
    apart = min(best["plain", 100], winners.min()["plain", 100]) / winners.max()["highway", 100]
    yield f"plain winner still end at least {apart:.0f} times above all five of the highway winner"
    is_open = (usual["kind"] == "highway") & (usual["transform_bias"] > -3)
    starts = usual[is_open].groupby("depth")
    *ends, last = starts["loss_400"].count()
    count = starts.size()[10]
    yield f"{listed(ends)} and {last} of the {count} drawn settings that start above -3 finished"


def epochs_to(trials, loss):
    """Return the first epochs at which trials have a lower loss, infinite if they never have."""
    is_below = panels.to_the_end().loc[trials, LOSSES] < loss
    epochs = pd.Series(is_below.to_numpy().argmax(axis=1) + 1.0)
    return epochs.where(is_below.any(axis=1).to_numpy(), np.inf)


# Figures 2 to 4


def measured(dataset, measure, form=".0f"):
    """Return a measure of both networks of section 4 as text, over their seeds."""
    networks = section4.networks(dataset)
    return [summary(pd.Series([measure(seed) for seed in seeds]), form) for seeds in networks]


def loss(layers):
    return layers["lesion_loss"][0]


def error(layers):
    return 100 * layers["lesion_error"][0]


def fallen(layers):
    """Return the percentage of biases that are below their start."""
    return 100 * layers["below_start"].mean()


def is_open(layers):
    """Return the percentage of gates that are above 0.5 for a sample."""
    return 100 * layers["open"].mean()


def bias_with_depth(layers):
    """Return the rank correlation of the layers' mean biases and their depth."""
    return layers["mean_bias"].corr(layers.index.to_series(), "spearman")


def bias_with_gate(layers):
    """Return the rank correlation of the layers' mean biases and mean gates."""
    return layers["mean_bias"].corr(layers["mean_gate"], "spearman")


def change(last):
    """Return a function that gives the percentage that the first layers have of all change."""
    return lambda layers: 100 * layers["change"].loc[:last].sum() / layers["change"].sum()


def routing(layers):
    """Return the percentage that the first 15 layers have of how two classes differ from all."""
    second = "routing_7" if layers["dataset"].iloc[0] == "mnist" else "routing_1"
    difference = layers["routing_0"] + layers[second]
    return 100 * difference.loc[:15].sum() / difference.sum()


def matter(first=1, last=49):
    """Return a function that counts the layers that matter."""
    return lambda layers: layers.loc[first:last, "matters"].sum()


def idle(layers):
    """Return the percentage of layers that do not matter."""
    return 100 * (1 - layers["matters"].mean())


def raised(column, difference=0, factor=1):
    """Return a function that counts the layers whose closing raises the error or the loss."""
    return lambda layers: (layers[column] > factor * layers[column][0] + difference).sum()


def figures_2_to_4():
    mnist, cifar100 = (functools.partial(measured, name) for name in section4.STARTS)

    def all_four(measure, form=".0f"):
        return " | ".join(mnist(measure, form) + cifar100(measure, form))

    yield "layers, {} and {} matter on MNIST,".format(*mnist(matter()))
    yield "{} and {} on CIFAR-100".format(*cifar100(matter()))
    yield "misclassify {} and {} % of their training images".format(*cifar100(error))
    yield "starts at -2: loss | {} | {} | | |".format(*mnist(loss, ".1e"))
    yield "starts at -4: loss | | | {} | {} |".format(*cifar100(loss, ".2f"))
    yield f"Most biases fall in training, % | {all_four(fallen)} |"
    correlations = cifar100(bias_with_depth, ".2f")
    yield "with depth: rank correlation | | | {} | {} |".format(*correlations)
    correlations = cifar100(bias_with_gate, ".2f")
    yield "rank correlation of bias and gate | | | {} | {} |".format(*correlations)
    yield f"for a sample: above 0.5, % | {all_four(is_open, '.1f')} |"
    changes = all_four(change(15)), all_four(change(40))
    yield f"15 layers (claimed of MNIST), % (evenly: {100 * 14 / 48:.0f}) | {changes[0]} |"
    yield f"40 layers (claimed of CIFAR-100), % (evenly: {100 * 39 / 48:.0f}) | {changes[1]} |"
    evenly = f"% (evenly: {100 * 15 / 49:.0f})"
    yield f"15 layers on MNIST, {evenly} | {{}} | {{}} | | |".format(*mnist(routing))
    yield f"CIFAR-100: first 15, {evenly} | | | {{}} | {{}} |".format(*cifar100(routing))
    yield "idle on MNIST, % | {} | {} | | |".format(*mnist(idle))
    counts = mnist(matter(15, 45), ".1f")
    yield "hardly matter on MNIST: how many of 31 | {} | {} | | |".format(*counts)
    counts = cifar100(matter(last=40))
    yield "matter on CIFAR-100: how many of 40 | | | {} | {} |".format(*counts)
    first = [layers["matters"].tolist()[1:] for layers in section4.networks("mnist")[0]]
    assert all(matters == sorted(matters, reverse=True) for matters in first)
    few, many = min(map(sum, first)), max(map(sum, first))
    yield f"From -2 on MNIST, the first {few:.0f} to {many:.0f} matter in every seed, and no other."
    thresholds = {
        "the error at all": raised("lesion_error"),
        "the error by more than 0.1 points": raised("lesion_error", 0.001),
        "the error by more than half a point": raised("lesion_error", 0.005),
        "the loss by more than 0.001 nats": raised("lesion_loss", 0.001),
        "the loss by more than a tenth of it": raised("lesion_loss", factor=1.1),
    }
    for text, count in thresholds.items():
        yield f"| {text} | {all_four(count)} |"
    for letter in "AB":
        layers = rows("layers", model=f"highway-{letter.lower()}")
        errors, images = 100 * layers["lesion_error"], layers["samples"].iloc[0]
        closed = f"{errors[1:].min():.2f} to {errors[1:].max():.2f}"
        network = f"Highway {letter}, {len(layers) - 1} gated layers"
        yield f"| {network} | {images:,} | {errors.iloc[0]:.2f} | {closed} |"


# Tables 1 to 3


TABLES = {  # the paper's accuracies
    "mnist-highway-16": "99.40 ± 0.03",
    "mnist-highway-32": "99.54 ± 0.02",
    "highway-a": "89.18",
    "highway-b": "92.28 ± 0.16",
    "highway-c": "91.20",
    "highway-gap-10": "92.31 ± 0.12",
    "highway-gap-100": "67.61 ± 0.15",
    "fitnet-a": "89.01, with hints",
    "fitnet-b": "91.61, with hints",
}


def accuracies(model, recipe, **values):
    """Return the test accuracies in percent of the runs with the most epochs."""
    runs = pd.concat([read(name) for name in results.TABLES])
    runs = select(runs, model=model, recipe=recipe, images="all", **values)
    return 100 * runs.loc[runs["epochs"] == runs["epochs"].max(), "test_accuracy"].sort_values()


def reached(model, recipe, **values):
    """Return the accuracies of one or two runs as text, of more mean and deviation."""
    return summary(accuracies(model, recipe, **values))


def accuracy(model, recipe, **values):
    (value,) = accuracies(model, recipe, **values)
    return value


def beside_fitnet(letter, recipe):
    """Return how many points Highway A or B is ahead of the Fitnet with one recipe.

    With three runs of each, half of the 95 % interval is added.
    """
    ours, theirs = (accuracies(f"{kind}-{letter}", recipe) for kind in ("highway", "fitnet"))
    if min(len(ours), len(theirs)) < 3:
        return (ours.mean() - theirs.mean(),)
    return welch(ours, theirs)


def tables_1_to_3():
    for model, paper in TABLES.items():
        ours = [accuracies(model, recipe) for recipe in ("authors", "modern", "muon")]
        cells = " | ".join(map(summary, ours))
        counts = "; ".join(str(len(runs)) for runs in ours if len(runs))
        yield f"{models.get(model).parameters:,} | {paper} | {cells} | {counts} |"
    c = [reached("highway-c", recipe) for recipe in ("modern", "muon")]
    yield "Highway C is above the teacher's 90.18 | SGD: {}; Muon: {} | 1; 1".format(*c)
    differences = *beside_fitnet("a", "modern"), *beside_fitnet("a", "muon")
    yield "the same recipe | A: {:.1f} (SGD), {:.1f} ± {:.1f} (Muon); B:".format(*differences)
    yield "(Muon); B: {:.1f} (SGD) | 2 and 1, 3 and 3".format(*beside_fitnet("b", "modern"))
    b = accuracy("highway-b", "muon"), accuracy("fitnet-b", "muon")
    yield "B ends at {:.2f} after 100 epochs, Fitnet B at {:.2f} after 60.".format(*b)
    losses = [
        one("table3", "test_loss", model=model, recipe=recipe)
        for model in ("highway-gap-10", "highway-gap-100")
        for recipe in ("muon", "modern")
    ]
    yield "of SGD: {:.2f} compared with {:.2f}, and {:.2f} compared with {:.2f}.".format(*losses)


def authors_logs():
    networks = {"MNIST, width 32": "mnist-highway-32", "CIFAR-10": "highway-gap-10"}
    for label, model in {**networks, "CIFAR-100": "highway-gap-100"}.items():
        log = 100 * rows("authors-logs", model=model).sort_values("epoch")["test_accuracy"]
        yield f"| {label} | {log.iloc[-1]:.2f} | {log.max():.2f} |"
    for model, number in (("mnist-highway-32", 3), ("highway-gap-10", 10), ("highway-gap-100", 2)):
        seeds = rows("authors-log-ours", model=model, epoch=number)
        theirs, ours = 100 * seeds["authors_accuracy"].mean(), 100 * seeds["ours_accuracy"]
        yield f"| `{model}` | {number} | {theirs:.2f} | {summary(ours)} | {len(seeds)} |"
    by_start = rows("first-losses").groupby(["model", "input_scale"], sort=False)
    for (model, scale), starts in by_start:
        starts = starts.set_index("kernel_initializer")
        log = starts["authors"].iloc[0]
        theirs, stock = (
            f"{starts['mean'][name]:.2f} ± {starts['std'][name]:.2f}"
            for name in ("authors", "lecun_uniform")
        )
        yield f"| `{model}` | {scale:g} | {log:.2f} | {theirs} | {stock} |"
    command = "--epochs 1 .*validation=0.1 --seed"
    runs = rows("training-curves", model="highway-gap-10", command=command)
    runs = runs.assign(scale=runs["command"].str.extract(r"'times([\d.]+)'")[0].fillna("1"))
    for scale, seeds in runs.sort_values("seed").groupby("scale"):
        yield f"| {scale} | {listed(100 * seeds['val_accuracy'], '.1f')} | {len(seeds)} |"


def skip_connections():
    names = "highway110", "resnet110"
    logs = [rows("authors-logs", model=name).set_index("epoch") for name in names]
    ends = [100 * log["test_accuracy"].iloc[-1] for log in logs]
    yield "they end alike: {:.2f} % with gates, {:.2f} % without.".format(*ends)
    sizes = [models.get(name).parameters for name in names]
    yield "0.875 of the maps: {:,} parameters beside {:,}.".format(*sizes)
    yield f"With beta at -6 a gate is about {1 / (1 + math.exp(6)):.4f} open"
    for number in (1, 2, 3, 100, 150, 200):
        cells = [
            f"{log['training_loss'][number]:.3f} | {100 * log['test_accuracy'][number]:.2f}"
            for log in logs
        ]
        yield f"| {number} | {cells[0]} | {cells[1]} |"
    ends = rows("authors-log-ours", model="highway110", epoch=3)
    yield "after three epochs its loss is {}, the author's {:.3f};".format(
        listed(ends.sort_values("seed")["ours_training_loss"], ".3f"), logs[0]["training_loss"][3]
    )
    phrases = [
        "PyTorch is faster: {:.2f} s beside {:.2f} s with Highway110",
        "and {:.2f} s beside {:.2f} s with ResNet110",
    ]
    for name, phrase in zip(names, phrases, strict=True):
        peers = "torch_bfloat16", "ours_bfloat16"
        seconds = [speed(f"{name} train", peer, "ms_a_step") / 1000 for peer in peers]
        yield phrase.format(*seconds)


# Gates and recipes


BIASES = "bias 0", "bias -2", "bias -3", "zero gate kernels"
HIGHWAY = {11: "highway, bias -1", 19: "highway, bias -2", 32: "highway, bias -3"}


def of_seeds(layers, network):
    """Return the held-out accuracies in percent at the rate that has several seeds."""
    runs = rows("gates", layers=layers, network=network)
    return 100 * runs.loc[runs["learning_rate"] == runs["learning_rate"].mode()[0], "val_accuracy"]


def ahead(layers, other, network=None):
    """Return by how many points highway layers, or a network, are ahead of another, as text."""
    first, second = of_seeds(layers, network or HIGHWAY[layers]), of_seeds(layers, other)
    return "{:+.1f} ± {:.1f}".format(*welch(first, second))


def gains():
    """Return the gains over wider plain and residual layers of 11, and over 32 residual layers."""
    return ahead(11, "plain, wider"), ahead(11, "residual, wider"), ahead(32, "residual")


def gates():
    plain, residual, deep = gains()
    yield f"7 % more weights: {plain} points over plain ones, {residual} over residual ones."
    yield f"At 32 layers it is {deep} over residual layers with 53 % of the weights"
    yield f"| plain, wider: 7 % more weights | {plain} | |"
    yield f"| residual, wider: 7 % more weights | {residual} | |"
    yield f"32 layers 53 %) of the weights | {ahead(11, 'residual')} | {deep} |"
    plain, path = ([ahead(n, "plain", kind) for n in (11, 32)] for kind in (None, "residual"))
    yield "| plain: 59 % (53 %) of the weights | {} | {} |".format(*plain)
    yield f"| maxout: as many weights | {ahead(11, 'maxout')} | |"
    yield "| (residual minus plain) | {} | {} | |".format(*path)
    gains_of_width = [ahead(11, kind, f"{kind}, wider")[1:] for kind in ("residual", "plain")]
    yield (
        "wider residual layers gain {} points over residual ones, wider plain layers {} over plain "
        "ones.".format(*gains_of_width)
    )
    halved = [
        100 * one("gates", "val_accuracy", layers=n, network=name, learning_rate=rate, seed=0)
        for n, other in ((19, "highway, bias -3"), (32, "highway, bias -2"))
        for name in ("highway, bias -1", other)
        for rate in (0.2, 0.4)
    ]
    yield (
        "At 19 layers {:.1f} % from -1, not {:.1f}, and {:.1f} from -3, not {:.1f}; at 32 layers "
        "{:.1f} % from -1, not {:.1f}, and {:.1f} from -2, not {:.1f}.".format(*halved)
    )
    others = (
        (11, "residual"),
        (11, "highway, bias -3"),
        (11, "maxout"),
        (19, "highway, bias -1"),
        (11, "plain"),
        (32, "plain"),
    )
    samples = ((of_seeds(n, HIGHWAY[n]), of_seeds(n, other)) for n, other in others)
    chances = [17 * stats.ttest_ind(*pair, equal_var=False).pvalue for pair in samples]
    yield (
        "at 11 layers the leads over residual layers (p = {:.3f}) and over bias -3 ({:.3f}), and "
        "the lead of maxout ({:.3f}); at 19 layers the lead over bias -1 ({:.3f}). The leads over "
        "plain layers do not, at 11 layers ({:.2f}) or at 32 ({:.3f}).".format(*chances)
    )
    zero, two, three, kernels = (ahead(11, f"highway, {bias}") for bias in BIASES)
    yield f"| 11 layers: -1 | {zero} | | {two} | {three} | {kernels} |"
    leads = (ahead(19, f"highway, {bias}") for bias in ("bias -1", "bias -3"))
    yield "| 19 layers: -2 | | {} | | {} | |".format(*leads)
    leads = (ahead(32, f"highway, {bias}") for bias in ("bias -1", "bias -2"))
    yield "| 32 layers: -3 | | {} | {} | | |".format(*leads)
    wider = ["plain, wider", "residual, wider"]
    kinds = {11: ["plain", "residual", "maxout", *wider], 32: ["plain", "residual"]}
    for kind in ("highway", *kinds[11]):
        means = [
            f"{of_seeds(n, HIGHWAY[n] if kind == 'highway' else kind).mean():.1f}"
            for n in (11, 32)
            if kind in ("highway", *kinds[n])
        ]
        yield f"| {kind} | {' | '.join([*means, ''][:2])} |"


def tries(model, recipe="modern-cifar", limit=None, epochs=8):
    """Return what runs reached on held-out images, by their changes to a recipe and the scale."""
    values, reached = vars(get_recipe(recipe)), {}
    runs = rows("training-curves", model=model, command=f"--epochs {epochs} ")
    for run in runs.groupby("command").tail(1).itertuples():
        options = parser().parse_args(shlex.split(run.command)[1:])
        settings = dict(options.set)
        scale = "0.5" if "half" in settings.pop("preprocessing", values["preprocessing"]) else "1"
        del settings["validation"]
        settings |= {name: getattr(options, name) for name in ("batch_size", "learning_rate")}
        changes = [f"{key}={value}" for key, value in settings.items() if value != values[key]]
        if options.limit == limit:
            reached[" ".join(changes), scale] = shown(100 * run.val_accuracy, ".1f")
    return reached


def recipes():
    def row(choice, runs, change, instead, *others, scale="0.5"):
        reached = "; ".join(runs[other, scale] for other in others)
        return f"| {choice} | {runs[change, scale]} | {instead} | {reached} |"

    name, muon = tries("highway-a"), tries("highway-a", "muon-cifar", 25000)
    muon_30 = tries("highway-a", "muon-cifar", 25000, 30)
    gap_10 = tries("highway-gap-10", "muon-cifar", 25000, 25)
    gap_100 = tries("highway-gap-100", "muon-cifar", 25000, 50)
    sgd = "optimizer=sgd nesterov=True l2=0.0005 weight_decay=0.0 batch_size=100 learning_rate=0.2"
    no_warmup = "warmup=0.0 clip_norm=None"
    yield row("warm-up, limited gradients", name, "", "neither", no_warmup)
    yield row("SGD's rate 0.2", name, "", "0.1", "learning_rate=0.1", scale="1")
    dropout = "dropout=0.25", "dropout=0.5"
    yield row("SGD without dropout", name, "", "a quarter; half", *dropout, scale="1")
    ours, theirs = muon["batch_size=100", "0.5"], of_seeds(11, "highway, bias -1").mean()
    seeds = len(rows("gates", layers=11, network="highway, bias -1", learning_rate=0.2))
    yield f"| Muon | {ours} | SGD, n = {seeds} | {theirs:.1f} | Highway A"
    yield row("Muon", muon_30, "", "SGD", sgd)
    yield row("Muon", gap_10, "", "SGD", sgd)
    decays = [f"weight_decay={decay} batch_size=100" for decay in (0.2, 0.8)]
    yield row("Muon's decay 0.4", muon, "batch_size=100", "0.2; 0.8", *decays)
    yield row("Muon's batches of 400", gap_10, "", "200", "batch_size=200")
    yield row("the same", muon, "", "100", "batch_size=100")
    batches = "batch_size=100", "batch_size=50"
    yield row("the same", muon_30, "", "100; 50", *batches)
    dropout = [f"{change} batch_size=200" for change in dropout]
    yield row("Muon without dropout", gap_10, "batch_size=200", "a quarter; half", *dropout)
    yield row("Muon without dropout", gap_100, "", "a quarter", "dropout=0.25")
    command = "--epochs 60 .*optimizer=muon .*validation=0.0 --seed"
    end = 100 * epoch("highway-a", 60, command, "test_accuracy")
    yield f"in batches of 100, it ended at {end:.2f} % after 60 epochs"


# Guides, and speeds


def transfer():
    epochs, images, seeds = (one("transfer", name, chosen=1) for name in ("epochs", "images", "n"))
    yield f"`mnist-highway-16` trains for {epochs} epochs on five images of each of"
    yield f"9 of the bundled data set, {images} in all, placed in images"
    yield f"mean and deviation over {seeds} seeds, each with its own images"
    rates = rows("transfer")["learning_rate"]
    yield f"the rate of each method, from {rates.min()} to {rates.max()}: 25 labels alone"


def speed(case, peer, column="ours_over_peer"):
    name = "speed-thin" if case.startswith("thin") else "speed-convolutional"
    return one(name, column, case=case, peer=peer)


def benchmarks():
    thin_100, thin_1000, b = "thin-highway-100 train", "thin-highway-1000 train", "highway-b train"
    yield f"batch 128, medians of {speed(thin_100, 'ours', 'n')} interleaved turns (`python -m"
    ends = []
    for depth in (100, 50, 10):
        peers = rows("speed-thin", case=f"thin-highway-{depth} train").query("peer != 'ours'")
        ratios = peers["ours_over_peer"]
        ends.append(f"{ratios.min():.2f} to {ratios.max():.2f} times")
    yield f"step of 100 layers takes {ends[0]} as long as with six peers, of 50 layers {ends[1]},"
    yield f"and of 10 layers {ends[2]}."
    columns = ("first_step_s", "ms_a_step", "peak_mb", "n")
    values = [speed(thin_1000, "ours", column) for column in columns]
    yield (
        "first step is done after {:.1f} s, a step takes {:.0f} ms, and memory peaks {:.0f} MB "
        "above its level before the network was built (n = {} turns)".format(*values)
    )
    keras, torch = speed(b, "two_convolutions"), speed(b, "torch_eager")
    yield f"takes {keras:.2f} times as long as with two `Conv2D` per block, and {torch:.2f} times"
    yield f"as long as in PyTorch eager (n = {speed(b, 'ours', 'n')} turns)"
    seconds = [50_000 / one("speed-epoch", "images_a_second", model=f"highway-{x}") for x in "ab"]
    yield "in float32 takes {:.0f} s for Highway A and {:.0f} s for Highway B.".format(*seconds)
    ratios = rows("speed-epoch")["fit_over_ours"]
    yield f"Plain `model.fit` takes {ratios.min():.2f} to {ratios.max():.2f} times as long as our"
    yield f"for the six networks of CIFAR (n = {one('speed-epoch', 'n')} turns each)"
    cases = thin_100, f"{thin_100} batch 512", "highway-a train", b
    shares = [100 * speed(case, "ours", "share_of_machine") for case in cases]
    yield "`thin-highway-100` does {:.0f} % of this in batches of 128, {:.0f} %".format(*shares)
    yield "of 512; Highway A does {2:.0f} % and B {3:.0f} % in batches of 100.".format(*shares)
    peers = "ours_bfloat16", "ours"
    steps = [speed(case, peer, "ms_a_step") for case in cases[2:] for peer in peers]
    yield "their steps take {:.0f} ms, not {:.0f}, and {:.0f} ms, not {:.0f}.".format(*steps)
    lines = {
        "per hour": "ratio_seconds",
        "per hour of processor time": "ratio_cpu",
        "the same, projected to [Figure 1](figure1.md)'s 400 epochs on all images": (
            "projected_ratio"
        ),
    }
    for line, column in lines.items():
        ratios = [one("search-speed", column, depth=depth) for depth in (10, 50)]
        yield f"| {line} | {ratios[0]:.0f} | {ratios[1]:.0f} |"
    peers = "plain", "jax_scan", "dense_chain", "dense_chain_xla"
    ratios = [speed("thin-highway-10 train", peer) for peer in peers]
    yield (
        "plain network (ours takes {:.2f} times as long), JAX by hand ({:.2f}) and two Dense "
        "layers per block without XLA ({:.2f}) and with it ({:.2f});".format(*ratios)
    )
    yield f"at 50 layers the plain network ({speed('thin-highway-50 train', 'plain'):.2f})"
    ends = [speed(thin_100, "plain", f"ours_over_peer_{end}") for end in ("low", "high")]
    yield "in nine turns the ratio is {:.2f} to {:.2f}.".format(*ends)
    jax, torch = (speed("thin-highway-10 predict", peer) for peer in ("jax_scan", "torch_eager"))
    yield f"In prediction, JAX is {jax:.1f} and PyTorch eager {torch:.1f} times as fast at 10"
    yield f"the plain network {speed('thin-highway-100 predict', 'plain'):.1f} times at 100."
    theirs, ours = (speed(thin_100, peer, "cpu_ms_a_step") for peer in ("jax_scan", "ours"))
    yield f"a step takes {theirs:.1f} ms of processor time in JAX, {ours:.1f} in ours, on two."


def search():
    ratios = rows("search-speed")["ratio_seconds"]
    ends = f"{ratios.min():.0f} to {ratios.max():.0f}"
    yield f"which finishes [{ends} times](benchmarks.md#search) as many"


def compact():
    closed = one("compact", "mean", model="thin-highway-50", layers=9, way="closed")
    yield f"`thin-highway-50` keeps {closed:.2f} % with 9 of its 49 gated layers"


def depth():
    closed = rows("starts", kind="highway", depth=50, transform_bias=-10)["loss"]
    yield f"train from all 18 starts and end at {closed.min():.2f} to {closed.max():.2f};"
    shallow = rows("starts", kind="plain", depth=2)["loss"]
    yield f"(`--depth 2`), end at {shallow.min():.2f} to {shallow.max():.2f} after the same epochs"
    relu = rows("gradient-norms", kind="highway", activation="relu").set_index(["depth", "scale"])
    norms = relu["by_layer"].map(lambda text: np.exp(np.log(np.double(text.split())).mean()))
    factors = [norms[depth, 2] / norms[depth, 1] for depth in (10, 20)]
    yield "x 2 makes the gradient {:.0f} and {:.0f} times as large at 10 and".format(*factors)


def gpu():
    of_24 = pd.concat([rows(name, epochs=24, images="all") for name in ("table2", "table3")])
    low, high = of_24["minutes"].min(), of_24["minutes"].max()
    yield f"24 epochs on 2 CPU cores took {low:.0f} to {high:.0f} minutes."
    networks = ("2", "highway-b"), ("3", "highway-gap-10"), ("3", "highway-gap-100")
    minutes = [one(f"table{n}", "minutes", model=name, recipe="muon") for n, name in networks]
    yield f"of the networks of Table 3 took {min(minutes):.1f} to {max(minutes):.1f} minutes."
    alone = one("table2", "minutes", model="highway-a", recipe="muon", seed=1)
    yield f"alone and already compiled, took {alone:.1f} minutes."


def serving():
    exports = rows("export", model="mnist-highway-16")
    (images,), (more,) = exports.groupby(exports["quantize"].notna())["images"].unique()
    yield f"accuracy on {images:,} (quantized: {more:,}) test images of MNIST"
    sizes = rows("export", model="thin-highway-50", format="keras")["bytes"]
    share = sizes.min() / sizes.max()
    yield f"this network keeps its size, and `thin-highway-50` shrinks to {share:.2f} of its size."


CLAIMS = {
    "README.md": readme,
    "docs/authors-logs.md": authors_logs,
    "docs/benchmarks.md": benchmarks,
    "docs/compact.md": compact,
    "docs/depth.md": depth,
    "docs/figure1.md": figure1,
    "docs/figures2-4.md": figures_2_to_4,
    "docs/gates.md": gates,
    "docs/gpu.md": gpu,
    "docs/recipes.md": recipes,
    "docs/search.md": search,
    "docs/serving.md": serving,
    "docs/skip-connections.md": skip_connections,
    "docs/tables.md": tables_1_to_3,
    "docs/transfer.md": transfer,
}
