"""The numbers and tables that pages take from `results/`: marks call the public names here.

    a step takes <!--=cell speed-thin {ms_a_step:.0f} peer=ours-->9<!--/--> ms

calls `cell("speed-thin", "{ms_a_step:.0f}", peer="ours")`, which is enough for a number from a
single row. The other functions combine rows. All take the words of the mark as text, and return
text.
"""

import math
import re
import shlex
import statistics

import pandas as pd

from benchmarks.cases import CASES
from highway_keras import models, results
from highway_keras.cli.command import parser
from highway_keras.models import shipped
from highway_keras.training.recipes import get_recipe
from tools.templates import (
    across,
    fill,
    groups,
    long_trials,
    markdown,
    rows,
    table,
    whole_trainings,
)


def cell(name, template, **wanted):
    """Fill a template from the row that is as `wanted`, or from several that agree."""
    found = {fill(template, row) for row in rows(name, **wanted).to_dict("records")}
    if len(found) > 1:
        raise LookupError(f"{len(found)} rows of {name}.csv fit {wanted}, not one.")
    return found.pop()


def over(name, template, **wanted):
    """Fill a template from all rows that are as `wanted`: `{loss.min:.2f}` is their lowest loss."""
    return fill(template, rows(name, **wanted))


# Accuracies: of the zoo, of the tables' networks, and beside the authors' logs


def _cards():
    measured = results.accuracies()
    for card in map(models.get, models.list_models()):
        weights = {d: 100 * shipped.find_entry(card.name, d)["accuracy"] for d in card.weights}
        yield {
            **vars(card),
            "claim": ", ".join(filter(None, (card.paper, card.table))),
            "ours": measured.get(card.name, ""),
            "accuracies": weights,
            "weights": ", ".join(f"`{d}`, {found:.2f}" for d, found in weights.items()),
        }


zoo = table(
    _cards,
    "name | layers | parameters | multiplications | paper % | ours % | weights",
    "`{name}` | {layers:,} | {parameters:,} | {multiplications:,} | {claim} | {ours} | {weights}",
    "lrrrlll",
)
trained = table(
    lambda: (
        {**card, "data": data, "accuracy": found}
        for card in _cards()
        for data, found in card["accuracies"].items()
    ),
    "network | data | layers | parameters | accuracy, %",
    "`{name}` | `{data}` | {layers} | {parameters:,} | {accuracy:.2f}",
    "llrrr",
)


cifar_runs = table(
    lambda: (
        {**row, "before": curve["accuracy"].iloc[-6], "end": curve["accuracy"].iloc[-1]}
        for row, curve in whole_trainings()
    ),
    "network | recipe | hardware | seed | epochs | minutes | training, %, five epochs before the "
    "end | at the end | test, %",
    "`{model}` | `{recipe}` | {hardware} | {seed} | {epochs} | {minutes:.0f} | {before:.1%} | "
    "{end:.1%} | {test_accuracy:.2%}",
    "lll",
)


def runs(model, recipe):
    """Return what all runs of a network by a recipe came to, the longest first; blank if none."""
    found = [row for name in results.TABLES for row in results.read(name) if row["images"] == "all"]
    found = [row for row in found if (row["model"], row["recipe"]) == (model, recipe)]
    policies = {row["dtype_policy"] for row in found}
    return "; ".join(
        f"{results.text(s)}, n={s['n']}, {s['epochs']} epochs"
        + (f", in {s['dtype_policy']}" if len(policies) > 1 else "")
        for s in sorted(results.summarize(found), key=lambda s: -int(s["epochs"]))
    )


logs = table(
    lambda: groups(rows("authors-log-ours"), "model", "preprocessing", "dtype_policy", "epoch"),
    "network | images | arithmetic | epoch | authors: accuracy, loss | ours: accuracy, loss | n",
    "`{model}` | {preprocessing} | `{dtype_policy}` | {epoch} | "
    "{authors_accuracy.mean:.2%} %, {authors_loss.mean:.3f} | "
    "{ours_accuracy.mean:.2%} ± {ours_accuracy.std:.2%} %, "
    "{ours_loss.mean:.3f} ± {ours_loss.std:.3f} | {n.sum}",
    "lllrllr",
)


gates = table(
    lambda layers: groups(
        rows("gates", layers=layers).sort_values("seed", kind="stable"), "network", "learning_rate"
    ),
    "layers | parameters | rate | training, % | held out, % | mean | n",
    "{network} | {parameters.min:,} | {learning_rate} | {accuracy.mean:.1%} | {val_accuracy:.1%} | "
    "{val_accuracy.mean:.1%} | {n.sum}",
)


def _held_out(model, recipe="modern-cifar", limit=None, epochs=8):
    """Yield the last epoch of runs of `epochs` epochs, best first, with changes to `recipe`."""
    now = vars(get_recipe(recipe))
    # Not shown as changes: what all runs of the table share, and what has its own column
    apart = ("epochs", "dtype_policy", "validation", "preprocessing")
    found = rows("training-curves", model=model, command=f"--epochs {epochs} ")
    found = found.groupby("command").tail(1)
    found = found.sort_values("val_accuracy", ascending=False, key=lambda a: a.where(a < 1, -1))
    for row in found.to_dict("records"):
        settings = vars(parser().parse_args(shlex.split(row["command"])[1:]))
        settings = {**dict(settings.pop("set")), **settings}
        if str(settings["limit"]) != str(limit):
            continue
        names = [key for key in settings if key in now and key not in apart]
        changed = [f"{key}={settings[key]}" for key in names if settings[key] != now[key]]
        yield {
            **row,
            "changed": f"`{' '.join(changed)}`" if changed else "nothing",
            "scale": _scale(row["command"]),
        }


def _scale(command):
    times = re.search(r"'times([\d.]+)'", command)
    return times[1] if times else "0.5" if "'half'" in command else "1"


def _scales():
    found = rows(
        "training-curves", model="highway-gap-10", command="--epochs 1 .*validation=0.1 --seed"
    )
    found = found.assign(scale=found["command"].map(_scale)).sort_values(["scale", "seed"])
    return groups(found, "scale")


scales = table(_scales, "scale | held out, % | n", "{scale} | {val_accuracy:.1%} | {n.sum}")
held_out = table(
    _held_out, "changed | scale | held out, %", "{changed} | {scale} | {val_accuracy:.1%}"
)

# Figure 1


def figure1():
    """Return the best trial and the ten best of each search."""
    found = rows("figure1-top10").rename(columns={"depth": "hidden layers"})
    text = "{best:.3f}; {top10_mean:.3f} ± {top10_std:.3f}"
    return across(found, ["hidden layers"], "{kind}: best; top 10", text)


def times(kind, depth, other_kind, other_depth, name, column):
    """Return how many times the lowest loss of one search is that of another, and in orders."""
    one = rows(name, kind=kind, depth=depth)[column].min()
    ratio = one / rows(name, kind=other_kind, depth=other_depth)[column].min()
    return f"{ratio:,.0f} times ({math.log10(ratio):.1f} orders of magnitude)"


def rates_of_best(kind, depth):
    """Return the range of the learning rates of the ten best trials of a search."""
    best = rows("figure1-trials", kind=kind, depth=depth).nsmallest(10, "score")
    return fill("{learning_rate.min:.4f} to {learning_rate.max:.4f}", best)


def _long_searches():
    for _, _, trials in long_trials():
        losses = trials.filter(regex=r"loss_\d")
        lowest = losses.cummin(axis=1)
        below = (lowest.iloc[0] < 1e-4).to_numpy()
        yield {
            **trials.iloc[0],
            "rank_10": int(lowest["loss_10"].rank().iloc[0]),
            "below": below.argmax() + 1 if below.any() else math.nan,
            "ends": trials["score"][losses.iloc[:, -1].notna()],
            "failed": trials["score"].isna().sum(),
        }


long_searches = table(
    _long_searches,
    "hidden layers | kind | rungs | best | mean of those that ended | best trial | its rank after "
    "10 epochs | below 10^-4 after | rate | 1 - momentum | decay | activation | transform bias | "
    "diverged",
    "{depth} | {kind} | {rungs} | {score:.1e} | {ends.mean:.1e}, n={ends.count} | {trial} | "
    "{rank_10} | {below:.0f} | {learning_rate:.3f} | {one_minus_momentum:.3f} | {decay:.3f} | "
    "{activation} | {transform_bias:.1f} | {failed}",
    "rll",
)
halving = table(
    "halving",
    "kind | hidden layers | best of all | best with rungs (its rank) | of the ten best, kept | "
    "mean of the ten best | mean of the ten that are left | rank correlation, first rung and end",
    "{kind} | {depth} | {best:.1e} | {best_halved:.1e} ({rank_of_best_halved}) | {top_kept} | "
    "{top_mean:.1e} | {top_mean_halved:.1e} | {rank_correlation_first_end:.2f}",
    "lrrrrrrr",
)

# Starts: losses before the first step, gradients by layer, and training from other starts


def _first_losses():
    authors = rows("first-losses", kernel_initializer="authors")
    stock = rows("first-losses", kernel_initializer="lecun_uniform")
    return authors.merge(stock, on=["model", "input_scale"], suffixes=("", "_stock"))


first_losses = table(
    _first_losses,
    "network | factor on the inputs | authors' log | N(0, 2 / fan-in), theirs | "
    "uniform, 1 / fan-in, stock Caffe's",
    "`{model}` | {input_scale} | {authors:.2f} | {mean:.2f} ± {std:.2f} | "
    "{mean_stock:.2f} ± {std_stock:.2f}",
)


def starts():
    """Return the losses of the networks of 50 layers by their start."""
    found = rows("starts", depth=50).sort_values("transform_bias", ascending=False, kind="stable")
    biases = found["transform_bias"].map("bias {:g}".format)
    found = found.assign(network=biases.where(found["kind"] == "highway", "plain"))
    return across(found, ["activation", "start"], "{network}, x {scale:g}", "{loss:.2f}")


def gradients():
    """Return the gradient's norm at 10 and 100 layers, the geometric mean over the layers."""
    found = rows("gradient-norms")
    norms = found["by_layer"].map(lambda text: statistics.geometric_mean(map(float, text.split())))
    found = found.assign(norm=norms.map("{:.0e}".format).replace("nan", "overflows"))[
        found["depth"].isin((10, 100))
    ]
    return across(found, ["kind", "activation"], "{depth} layers, x {scale:g}", "{norm}")


# Section 4: two networks, layer by layer, beside what the paper says of its own

LOOK = """
error and loss on all training images | {lesion_error:.2%} %, {lesion_loss:.3f} nats
test accuracy | {test_accuracy:.2%} %
epochs | {epochs:.0f}
biases at the start | {all[start].mean:.2f}
after training; mean distance moved | {all[mean_bias].mean:.2f}; {all[moved].mean:.2f}
below their start | {all[below_start].mean:.0%} %
in the first and the last ten layers | {first10[mean_bias].mean:.2f}, {last10[mean_bias].mean:.2f}
rank correlation of depth with the mean bias, with the mean gate | \
{trend[mean_bias]:+.2f}, {trend[mean_gate]:+.2f}
mean gate; mean distance moved | {all[mean_gate].mean:.3f}; {all[gate_moved].mean:.3f}
gates above 0.5 for a sample; in the first seven layers | \
{all[open].mean:.1%} %; {first7[open].mean:.1%} %
gates above 0.5 for any of 2,000 samples | {all[ever_open].mean:.0%} %
change of block outputs in the first 15, first 40, last 5 layers | \
{first15[share].sum:.0%} %, {first40[share].sum:.0%} %, {last5[share].sum:.0%} %
gates of the first class: layers 1 to 15, 16 to 44, last 5 | \
{first15[one].mean:.3f}, {middle[one].mean:.3f}, {last5[one].mean:.3f}
gates of the second class: layers 1 to 15, 16 to 44, last 5 | \
{first15[two].mean:.3f}, {middle[two].mean:.3f}, {last5[two].mean:.3f}
largest rise of the error by one closed layer; last layer with a rise | \
{all[rise].max:.2%} points, layer {all[rise].idxmax}; {risen.index.max}
layers that matter if any rise counts, or more than 0.05, 0.1, 0.5, 1 points | {rises}
numbers of the layers that matter: more than 0.1 points | {matter}
layers that can be closed, one at a time | \
{all[idle].sum} of {all[idle].count}, {all[idle].mean:.0%} %
"""


def look():
    """Return the networks of section 4 beside each other."""
    found = {}
    for dataset, name, two in (("mnist", "MNIST", 7), ("cifar100", "CIFAR-100", 1)):
        for start, network in rows("analysis", dataset=dataset).groupby("searched_bias"):
            searched = f"at {network['start'].mean():.1f} by a search"
            biases = start.replace("from -10 to -1", searched)
            found[f"{name}, biases {biases}"] = _layers_together(network, two)
    lines = [line.split(" | ") for line in LOOK.strip().splitlines()]
    lines = [[name, *(fill(cell, values) for values in found.values())] for name, cell in lines]
    return markdown(["", *found], lines, "l" * (1 + len(found)))


def _layers_together(rows, two):
    """Return what `LOOK` says of a network: its row 0, and its layers as parts of a `DataFrame`.

    `two` is the second class of Figure 3; the first is 0.
    """
    rows = rows.set_index("layer")
    whole, layers = rows.loc[0].to_dict(), rows.loc[1:]
    layers = layers.assign(
        rise=layers["lesion_error"] - whole["lesion_error"],
        share=layers["change"] / layers["change"].sum(),
        one=layers["routing_0"],
        two=layers[f"routing_{two}"],
        idle=layers["matters"] == 0,
    )
    numbers = layers.index.to_series()
    samples = whole["samples"]
    more_errors = (layers["rise"] * samples).round()  # shares on a threshold round either way
    # Layers that matter and follow one another are one group: the sum changes between groups.
    matter = numbers[~layers["idle"]].groupby(layers["idle"].cumsum())
    ranges = zip(matter.min(), matter.max(), strict=True)
    return {
        **whole,
        "all": layers,
        **{f"first{count}": layers[:count] for count in (7, 10, 15, 40)},
        **{f"last{count}": layers[-count:] for count in (5, 10)},
        "middle": layers[15:44],
        "risen": layers[layers["rise"] > 0],
        "rises": ", ".join(
            f"{(more_errors > points * samples / 100).sum()}" for points in (0, 0.05, 0.1, 0.5, 1)
        ),
        "trend": layers[["mean_bias", "mean_gate"]].rank().corrwith(numbers),
        "matter": ", ".join(f"{a} to {b}" if a < b else f"{a}" for a, b in ranges) or "none",
    }


layers = table(
    lambda model: rows("layers", model=model),
    "gated layer | name | bias at the start | mean bias | mean gate | error if closed",
    "{layer} | {name} | {start:.2f} | {mean_bias:.2f} | {mean_gate:.2f} | {lesion_error:.2%} %",
    "ll",
)

# Speeds and sizes

peers = table(
    lambda: rows("speed-thin", case="thin-highway-100 train"),
    "100 layers | ms per step | ours / theirs | first step, s",
    "{peer!l} | {ms_a_step:.1f} | {ours_over_peer:.2f~} | {first_step_s:.1f}",
)


def _steps():
    for row in pd.concat(map(rows, ("speed-thin", "speed-convolutional"))).to_dict("records"):
        case = CASES[row["case"]]
        if case.training and row["peer"].startswith("ours") and row["cpu_ms_a_step"] > 0:
            arithmetic = "bfloat16" if row["peer"].endswith("bfloat16") else "float32"
            rate = 1000 * case.batch / row["ms_a_step"]
            yield {**row, **vars(case), "arithmetic": arithmetic, "rate": rate}


steps = table(
    _steps,
    "training step | arithmetic | batch | ms | processor ms | images per second | of the machine",
    "`{model}` | {arithmetic} | {batch} | {ms_a_step:.1f} | {cpu_ms_a_step:.1f} | {rate:,.0f} | "
    "{share_of_machine:.0%}%",
    "ll",
)
epochs = table(  # of the networks for CIFAR, which has 50,000 images
    lambda: rows("speed-epoch", dtype="float32").assign(
        seconds=lambda found: 50_000 / found["images_a_second"]
    ),
    "network | images per second | an epoch | `fit` / ours | ours / products",
    "`{model}` | {images_a_second:,.0f} | {seconds:.0f} s | {fit_over_ours:.2f~} | "
    "{ours_over_products:.2f}",
)


def _exports():
    found = rows("export")
    floats = found.groupby(["model", "format"])["bytes"].transform("first")
    return found.assign(share=(found["bytes"] / floats).where(found["quantize"].notna()))


exports = table(
    _exports,
    "network | format | bytes | of float | accuracy %, Keras | exported | images",
    "`{model}` | {format!l} {quantize} | {bytes:,} | {share:.2f} | {keras_accuracy:.2%} | "
    "{accuracy:.2%} | {images:,}",
    "ll",
)


def _serving(model):
    for row in rows("serving", file=f"{model}-mnist.keras").to_dict("records"):
        for size in (1, 256):
            form = ",.0f" if row[f"times_faster_{size}"] >= 10 else ".2f"
            row[f"faster_{size}"] = fill(f"{{times_faster_{size}:{form}~}}", row)
        yield {**row, "rate": 256_000 / row["ms_256"]}


serving = table(
    _serving,
    "`{}` | ms, batch 1 | times faster | images/s, batch 256 | times faster",
    "{format!l} | {ms_1:.2f} | {faster_1} | {rate:,.0f} | {faster_256}",
)
server = table(
    "server",
    "protocol | clients | requests per second | p50, ms | p99, ms | answers | errors",
    "{protocol!l} | {clients} | {requests_a_second:,.0f~} | {p50_ms:.1f~} | {p99_ms:.1f~} | "
    "{answers:,} | {errors}",
)
footprint = table(
    "footprint",
    " | packages | MB | `import keras`, s | `import highway_keras`, s",
    "{environment!l} | {packages} | {megabytes:,.0f} | {keras_s:.1f~} | {highway_keras_s:.1f~}",
)
transfer = table(  # at the rate that held-out images chose
    lambda: rows("transfer", chosen=1),
    "trained | parameters | rate | held out, % | test, % | processor seconds",
    "{way!l} | {parameters:,} | {learning_rate} | {held_out:.1f} | {mean:.1f} ± {std:.1f} | "
    "{processor_seconds:.0f}",
)

# Compact networks


def _compacted():
    measured = rows("compact").sort_values(["model", "layers"], ascending=False)
    for (model, _), found in measured.groupby(["model", "layers"], sort=False):
        ways = {row["way"]: fill("{mean:.2f} ± {std:.2f}", row) for row in found.to_dict("records")}
        whole = measured[(measured["model"] == model) & (measured["layers"] == found["of"].iloc[0])]
        share = found["multiplications"].iloc[0] / whole["multiplications"].iloc[0]
        ways = {"tuned": "", "scratch": "", **ways}
        yield {**found.iloc[0], **ways, "share": share, "n": found["n"].max()}


compacted = table(
    _compacted,
    "network | gated layers left | parameters | multiplications, % | closed, % | "
    "fine-tuned, % | from scratch, % | n",
    "`{model}` | {layers} of {of} | {parameters:,} | {share:.0%} | {closed} | {tuned} | "
    "{scratch} | {n}",
)
