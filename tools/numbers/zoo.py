"""Accuracies: of the zoo, of the tables' networks, and beside the authors' logs."""

import functools
import statistics

from highway_keras import models, results
from highway_keras.models import shipped
from tools.numbers.rows import NONE, columns, row, rows, spread, table, whole_runs

RECIPES = ("authors", "modern")
TABLE_3 = ("highway-gap-10", "highway-gap-100")
# The epochs whose training accuracy the pages name: the last, and ten or five before it.
NAMED_EPOCHS = {"highway-a": (90, 100), "fitnet-a": (90, 100)}
NAMED_EPOCHS |= dict.fromkeys(("highway-b", "highway-c", "fitnet-b", *TABLE_3), (19, 24))


def zoo():
    """Return the table of all networks: size, the paper's accuracy, ours, and that of weights."""
    names = ("name", "layers", "parameters", "multiplications", "paper %", "ours %", "weights")
    header = names, ("---", "---:", "---:", "---:", "---", "---", "---")
    measured = results.accuracies()
    lines = []
    for card in map(models.get, models.list_models()):
        paper = ", ".join(filter(None, (card.paper, card.table)))
        counts = (f"{n:,}" for n in (card.layers, card.parameters, card.multiplications))
        ours = measured.get(card.name, "")
        weights = ", ".join(_weights(card.name, dataset) for dataset in card.weights)
        lines.append((f"`{card.name}`", *counts, paper, ours, weights))
    return table(header, lines)


def trained():
    """Return the table of the networks that come with weights, for a first look."""
    names = ("network", "data", "layers", "parameters", "paper %", "ours %", "weights %")
    header = names, ("---", "---", "---:", "---:", "---", "---", "---:")
    measured = results.accuracies()
    lines = []
    for card in map(models.get, models.list_models()):
        for dataset in card.weights:
            what = (f"`{dataset}`", str(card.layers), f"{card.parameters:,}")
            accuracies = (
                card.paper or "",
                measured.get(card.name, ""),
                _accuracy(card.name, dataset),
            )
            lines.append((f"`{card.name}`", *what, *accuracies))
    return table(header, lines)


def _weights(name, dataset):
    return f"`{dataset}`, {_accuracy(name, dataset)}"


def _accuracy(name, dataset):
    return f"{100 * shipped.find_entry(name, dataset)['accuracy']:.2f}"


def of_runs(model, recipe):
    """Return what all runs of a network by a recipe came to, the longest first; blank if none."""
    found = [r for name in results.TABLES for r in rows(name, model=model, recipe=recipe)]
    found = results.summarize([r for r in found if r["images"] == "all"])
    found.sort(key=lambda summary: -int(summary["epochs"]))
    return "; ".join(f"{results.text(s)}, n={s['n']}, {_length(s)}" for s in found)


def _length(summary):
    half = ", in bfloat16" if summary["dtype_policy"] != "float32" else ""
    return f"{summary['epochs']} epochs{half}"


def minutes(model, epochs):
    """Return the range of the minutes a run took, as far as they are known."""
    found = [
        float(r["minutes"])
        for r in rows("table1", model=model, epochs=epochs, images="all")
        if r["minutes"]
    ]
    if not found:
        return NONE
    low, high = (f"{value:.0f}" for value in (min(found), max(found)))
    return low if low == high else f"{low} to {high}"


def runs(*tables):
    """Return the table of the single runs of some tables: what each took, and on what."""
    names = ("network", "recipe", "arithmetic", "hardware", "seed", "epochs", "minutes", "test, %")
    lines = [
        (
            *(f"`{r[key]}`" for key in ("model", "recipe", "dtype_policy")),
            *(r[key] for key in ("hardware", "seed", "epochs")),
            f"{float(r['minutes']):.0f}" if r["minutes"] else "",
            f"{100 * float(r['test_accuracy']):.2f}",
        )
        for name in tables
        for r in rows(name, images="all")
    ]
    return table(columns(names, left=4), lines) if lines else NONE


def training_accuracy(model, epoch):
    """Return the training accuracy after an epoch, the mean of a network's runs, in percent."""
    reached = [100 * float(run[epoch - 1]["accuracy"]) for run in whole_runs(model)]
    return f"{statistics.mean(reached):.1f}" if reached else NONE


def logged(model, choose):
    """Return an accuracy of an authors' log, in percent: `choose` picks from those by epoch."""
    return f"{100 * choose([float(r['test_accuracy']) for r in results.authors_logs()[model]]):.2f}"


def reached_in_the_log(model):
    """Return the first epoch of an authors' log that has the test accuracy of our run."""
    if not rows("table3", model=model):
        return NONE
    ours = float(row("table3", model=model, recipe="modern", images="all")["test_accuracy"])
    log = results.authors_logs()[model]
    return next((r["epoch"] for r in log if float(r["test_accuracy"]) >= ours), "no epoch")


def beside_the_logs():
    """Return the table of our seeds beside the authors' logs, mean and deviation by epoch."""
    names = ("network", "epoch", "authors: accuracy, loss", "ours: accuracy, loss", "n")
    groups = {}
    for r in rows("authors-log-ours"):
        groups.setdefault((r["model"], int(r["epoch"])), []).append(r)
    lines = []
    for (model, epoch), found in groups.items():
        accuracy, loss = float(found[0]["authors_accuracy"]), float(found[0]["authors_loss"])
        ours = [spread([100 * float(r["ours_accuracy"]) for r in found], ".2f", " %")]
        ours.append(spread([float(r["ours_loss"]) for r in found], ".3f"))
        cells = (f"{100 * accuracy:.2f} %, {loss:.3f}", ", ".join(ours), str(len(found)))
        lines.append((f"`{model}`", str(epoch), *cells))
    return table((names, ("---", "---:", "---", "---", "---:")), lines) if lines else NONE


NUMBERS = {
    "zoo": zoo,
    "zoo.trained": trained,
    "minutes.16": functools.partial(minutes, "mnist-highway-16", 30),
    "minutes.32": functools.partial(minutes, "mnist-highway-32", 30),
    "runs.cifar": functools.partial(runs, "table2", "table3"),
    "logs": beside_the_logs,
}
for _name in TABLE_3:
    NUMBERS[f"{_name}.log.reached"] = functools.partial(reached_in_the_log, _name)
for _card in map(models.get, models.list_models()):
    if _card.table in results.TABLES.values():
        NUMBERS |= {
            f"{_card.name}.{recipe}": functools.partial(of_runs, _card.name, recipe)
            for recipe in RECIPES
        }
for _name, _epochs in NAMED_EPOCHS.items():
    NUMBERS |= {
        f"{_name}.training.{epoch}": functools.partial(training_accuracy, _name, epoch)
        for epoch in _epochs
    }
for _name in results.authors_logs():
    NUMBERS |= {
        f"{_name}.log": functools.partial(logged, _name, lambda accuracies: accuracies[-1]),
        f"{_name}.log.best": functools.partial(logged, _name, max),
    }
