"""What each rendered number stands for: one table of names, `NUMBERS`, at the end of this file.

Most are a file of `results/`, a template and a filter: `one(...)` for a number, `table(...)` for a
Markdown table with a line for each row. Those that combine rows are functions above the table.
"""

import contextlib
import functools
import itertools
import math
import pathlib
import re
import statistics
import string

import pandas as pd

from highway_keras import models, results
from highway_keras.models import shipped
from highway_keras.paper.finals import better_curves
from highway_keras.results import DIVERGED
from highway_keras.training.recipes import get_recipe
from tools import recipe_options

RESULTS = pathlib.Path(__file__).parents[1] / "results"
NONE = "not measured yet"
KINDS = ("highway", "plain", "residual")
DEPTHS = (10, 20, 50, 100)
SCALES = (0.5, 1.0, 2.0)
ACTIVATIONS = ("tanh", "relu")
TABLE_3 = ("highway-gap-10", "highway-gap-100")
# The scale of the images: the standard deviation that contrast normalization leaves, or half of it.
WHOLE, HALF = "('gcn','mean')", "('gcn','mean','half')"

PEERS = {
    "ours": "**`HighwayStack`, through the trainer**",
    "dense_chain": "two Dense layers per block, Keras `fit`",
    "dense_chain_xla": "the same under XLA",
    "plain": "plain network of equal parameters, Keras `fit`",
    "torch_eager": "PyTorch eager",
    "torch_compile": "PyTorch, `torch.compile`",
    "jax_scan": "JAX by hand, `lax.scan`",
    "products": "the matrix products alone, as a loop",
}
RUNTIMES = {
    "keras predict": "Keras `predict`",
    "keras int8": "Keras `predict`, int8",
    "saved_model": "SavedModel",
    "onnx": "ONNX Runtime",
    "litert": "LiteRT",
    "litert float16": "LiteRT float16",
    "litert int8": "LiteRT int8",
    "openvino": "OpenVINO",
    "openvino float16": "OpenVINO float16",
}
FORMATS = {**RUNTIMES, "onnx": "ONNX", "keras": "Keras"}
SOURCES = {  # of converted weights: the library, and what ran it
    "keras-1.0.8.h5": ("Keras 1.0.8", "itself, on Theano 1.0.5"),
    "keras-1.1.2.h5": ("Keras 1.1.2", "itself, on TensorFlow 1.15.5"),
    "keras-1.2.2.h5": ("Keras 1.2.2", "itself, on TensorFlow 1.15.5"),
    "keras-2.2.4.h5": ("Keras 2.2.4", "itself, on TensorFlow 1.15.5"),
    "allennlp-2.10.1.npz": ("allennlp 2.10.1", "its `Highway` on PyTorch 1.4.0"),
    "bilm-tf.hdf5": ("bilm-tf", "its graph, rebuilt in TensorFlow 1.15.5"),
    "tacotron-tensorflow.npz": ("keithito/tacotron", "its graph, rebuilt in TensorFlow 1.15.5"),
    "tacotron-pytorch.npz": ("r9y9/tacotron_pytorch", "its module, rebuilt in PyTorch 1.4.0"),
}
INSTALLED = {"core": "`pip install -e .`", "cpu": '`pip install -e ".[cpu]"`'}
WAYS = {
    "frozen": "classifier only (`--freeze`)",
    "adapters": "adapters of rank 2 and classifier",
    "all": "all of it",
    "scratch": "all of it, from scratch",
}


# Rows, and what is made of one


class NotMeasured(LookupError):
    """No row says so yet."""


def rows(name, **wanted):
    """Return the rows of `results/NAME.csv` whose columns are as `wanted`, a `DataFrame`.

    Raises:
        NotMeasured: If there are none.
    """
    path = RESULTS / f"{name}.csv"
    found = _read(path) if path.exists() else pd.DataFrame(columns=list(wanted))
    for column, value in wanted.items():
        found = found[found[column] == value]
    if found.empty:
        raise NotMeasured(f"No row of {name}.csv fits {wanted}.")
    return found


@functools.lru_cache
def _read(path):
    return pd.read_csv(path, dtype={"trial": str})


def row(name, **wanted):
    """Return the one row of `results/NAME.csv` whose columns are as `wanted`, a dictionary."""
    found = rows(name, **wanted).to_dict("records")
    if len(found) > 1:
        raise LookupError(f"{len(found)} rows of {name}.csv fit {wanted}, not one.")
    return found[0]


class _Filler(string.Formatter):
    def format_field(self, value, spec):
        if isinstance(value, float) and math.isnan(value):
            return ""
        if spec and isinstance(value, str):  # in a column that also says "diverged"
            value = float(value)
        if spec.endswith("%"):
            value, spec = 100 * value, f"{spec[:-1]}f"
        return format(value, spec)


def fill(template, row):
    """Fill a template from the columns of a row, a dictionary.

    `{a}` is what the row says, `{a:.2f}` a number, `{a:.2%}` percent without the sign, and
    `{a:.2f~}` "median (lowest to highest)" of columns a, a_low and a_high. Blanks stay blank.
    """
    middle = r"{\1:\2} ({\1_low:\2} to {\1_high:\2})"
    return _Filler().vformat(re.sub(r"{(\w+):([^{}]*)~}", middle, template), (), row)


def one(name, template, **wanted):
    """Return a function that fills a template from the one row that is as `wanted`."""
    return lambda: fill(template, row(name, **wanted))


def table(source, names, cells, align="", **wanted):
    """Return a function that makes a Markdown table with a line for each row that is as `wanted`.

    Args:
        source: Name of a file, or a function that returns rows as a `DataFrame` or dictionaries.
        names: Names of the columns, with | between them.
        cells: The template of a line, in the same form.
        align: A letter for each column, l or r; default the first to the left, others to the right.
    """

    def text():
        found = rows(source, **wanted) if isinstance(source, str) else source()
        found = found.to_dict("records") if isinstance(found, pd.DataFrame) else found
        lines = [fill(cells, row).split(" | ") for row in found]
        return markdown(names.split(" | "), lines, align)

    return text


def markdown(names, lines, align=""):
    """Return a Markdown table on lines of its own."""
    align = align.ljust(len(names), "r") if align else "l".ljust(len(names), "r")
    rule = [{"l": "---", "r": "---:"}[letter] for letter in align]
    return "\n".join(["", *(f"| {' | '.join(line)} |" for line in (names, rule, *lines)), ""])


def mean_and_deviation(values, form, unit=""):
    """Return "mean ± standard deviation" of several values, or the one there is."""
    if len(values) == 1:
        return f"{values[0]:{form}}{unit}"
    return f"{statistics.mean(values):{form}} ± {statistics.stdev(values):{form}}{unit}"


# Accuracies: of the zoo, of the tables' networks, and beside the authors' logs


def cards(with_weights=False):
    """Return the networks of the zoo; with weights, one row for each file of them."""
    measured = results.accuracies()
    for card in map(models.get, models.list_models()):
        weights = {d: 100 * shipped.find_entry(card.name, d)["accuracy"] for d in card.weights}
        row = {**vars(card), "paper": card.paper or "", "ours": measured.get(card.name, "")}
        if with_weights:
            yield from ({**row, "data": d, "accuracy": found} for d, found in weights.items())
        else:
            row["claim"] = ", ".join(filter(None, (card.paper, card.table)))
            row["weights"] = ", ".join(f"`{d}`, {found:.2f}" for d, found in weights.items())
            yield row


def of_runs(model, recipe):
    """Return what all runs of a network by a recipe came to, the longest first; blank if none."""
    found = [row for name in results.TABLES for row in results.read(name) if row["images"] == "all"]
    found = [row for row in found if (row["model"], row["recipe"]) == (model, recipe)]
    return "; ".join(
        f"{results.text(s)}, n={s['n']}, {s['epochs']} epochs"
        + (", in bfloat16" if s["dtype_policy"] != "float32" else "")
        for s in sorted(results.summarize(found), key=lambda s: -int(s["epochs"]))
    )


def minutes(model, epochs):
    """Return the range of the minutes a run took, as far as they are known."""
    found = rows("table1", model=model, epochs=epochs, images="all")["minutes"]
    return " to ".join(dict.fromkeys(f"{value:.0f}" for value in (found.min(), found.max())))


def logged(model, choose):
    """Return an accuracy of an authors' log, in percent: `choose` picks from those by epoch."""
    return f"{100 * choose([float(r['test_accuracy']) for r in results.authors_logs()[model]]):.2f}"


def reached_in_the_log(model):
    """Return the first epoch of an authors' log that has the test accuracy of our run."""
    ours = row("table3", model=model, recipe="modern", images="all")["test_accuracy"]
    log = results.authors_logs()[model]
    return next((r["epoch"] for r in log if float(r["test_accuracy"]) >= ours), "no epoch")


def beside_the_logs():
    """Yield our seeds beside the authors' logs by epoch."""
    for _, group in rows("authors-log-ours").groupby(["model", "epoch"], sort=False):
        ours = mean_and_deviation(list(100 * group["ours_accuracy"]), ".2f", " %")
        ours += f", {mean_and_deviation(list(group['ours_loss']), '.3f')}"
        yield {**group.iloc[0], "ours": ours, "n": len(group)}


# Runs by epoch, and settings that were compared on images held out of the training set


def curves(model):
    """Return the rows by epoch of each run of a network, by its command."""
    return dict(iter(rows("training-curves", model=model).groupby("command", sort=False)))


def whole_runs(model):
    """Return the rows by epoch of each run of a network on all images, which differ in seeds."""
    runs = {
        command: run
        for command, run in curves(model).items()
        if not float(recipe_options.values(command)["validation"])
        and not recipe_options.is_limited(command)
    }
    settings = {re.sub(r" --seed \d+$", "", command) for command in runs}
    if len(settings) > 1:
        raise LookupError(f"training-curves.csv has {len(settings)} settings of {model}, not one.")
    if not runs:
        raise NotMeasured(f"training-curves.csv has no run of {model} on all training images.")
    return list(runs.values())


def training_accuracy(model, epoch):
    """Return the training accuracy after an epoch, the mean of a network's runs, in percent."""
    reached = (100 * float(run["accuracy"].iloc[epoch - 1]) for run in whole_runs(model))
    return f"{statistics.mean(reached):.1f}"


def held_out_runs(model, limit, **wanted):
    """Return (recipe as text by attribute, held-out accuracy in percent or "diverged") of runs.

    Args:
        model: Registered name.
        limit: Whether they trained on some of the images only.
        **wanted: Values of their recipes, as text.
    """
    found = []
    for command, run in curves(model).items():
        values, accuracy = recipe_options.values(command), run["val_accuracy"].iloc[-1]
        held_out = float(values["validation"]) and wanted.items() <= values.items()
        if held_out and recipe_options.is_limited(command) == limit:
            found.append((values, accuracy if accuracy == DIVERGED else 100 * float(accuracy)))
    return found


def compared(model):
    """Yield a network's runs of eight epochs on all images, the best first."""
    now = {k: recipe_options.text(v) for k, v in vars(get_recipe("modern-cifar")).items()}
    # What all runs of the table share, and what has a column of its own
    apart = ("epochs", "dtype_policy", "validation", "preprocessing")
    found = held_out_runs(model, limit=False, epochs="8")
    found.sort(key=lambda run: -1 if run[1] == DIVERGED else run[1], reverse=True)
    for values, accuracy in found:
        changed = [f"{k}={v}" for k, v in values.items() if k not in apart and v != now[k]]
        yield {
            "changed": f"`{' '.join(changed)}`" if changed else "nothing",
            "scale": {WHOLE: "1", HALF: "0.5"}[values["preprocessing"]],
            "accuracy": accuracy if accuracy == DIVERGED else f"{accuracy:.1f}",
        }


def policy(name):
    """Return mean and deviation of the accuracy that a dtype policy reaches in a short run."""
    runs = held_out_runs("highway-a", True, epochs="6", dropout="0.25", dtype_policy=name)
    return f"{mean_and_deviation([run[1] for run in runs], '.1f', ' %')}, n={len(runs)}"


def authors_solver(model, preprocessing, clip_norm=None):
    """Return what the runs of a network by the authors' solver on some of the images come to."""
    wanted = {"schedule": "steps", "preprocessing": preprocessing, "clip_norm": str(clip_norm)}
    ends = [accuracy for _, accuracy in held_out_runs(model, True, **wanted)]
    reached = [f"reaches {accuracy:.1f} %" for accuracy in ends if accuracy != DIVERGED]
    if len(ends) == 1:
        return reached[0] if reached else "diverges"
    diverged = f"{len(ends) - len(reached)} of {len(ends)} seeds diverge"
    return ", ".join([diverged, *(f"one {end}" for end in reached)])


# Figure 1


def figure1():
    """Return the searches, a row for each depth."""
    found = rows("figure1-top10").pivot(index="depth", columns="kind")
    found.columns = [f"{kind}_{column}" for column, kind in found.columns]
    return found.reset_index()


def times(one, other, column):
    """Return how many times a loss is another one, and the same in orders of magnitude."""
    found = rows("figure1-top10").set_index(["kind", "depth"])[column]
    ratio = found[one] / found[other]
    return f"{ratio:.0f} times, {math.log10(ratio):.1f} orders of magnitude"


def rates_of_best(kind, depth):
    """Return the range of the learning rates of the ten best trials of a search."""
    rates = rows("figure1-trials", kind=kind, depth=depth).nsmallest(10, "score")["learning_rate"]
    return f"{rates.min():.4f} to {rates.max():.4f}"


def failed(kind):
    """Return the numbers of trials that diverged, by depth."""
    *counts, last = rows("figure1-top10", kind=kind).sort_values("depth")["failed"].astype(str)
    return f"{', '.join(counts)} and {last}"


def diverged_above(bias):
    """Return how many of the highway trials that diverged started with a higher bias than this."""
    trials = rows("figure1-trials", kind="highway")
    biases = trials[trials["score"].isna()]["transform_bias"]
    return f"{(biases > bias).sum()} of {len(biases)}"


def winner():
    """Return the hyperparameters that won at every depth of the highway networks.

    Raises:
        LookupError: If another trial won at some depth.
    """
    trials = rows("figure1-trials", kind="highway")
    best = trials.loc[trials.groupby("depth")["score"].idxmin()]
    if best["trial"].nunique() != 1:
        raise LookupError("More than one set of hyperparameters won.")
    values = best.iloc[0]
    return (
        f"learning rate {values['learning_rate']:.3f}, "
        f"momentum {1 - values['one_minus_momentum']:.3f}, decay {values['decay']:.2f} an epoch, "
        f"{values['activation']}, transform bias {values['transform_bias']:.1f}"
    )


def finals():
    """Yield all finals that were trained."""
    found = rows("figure1-finals").groupby(["kind", "depth", "trial"], sort=False)
    for _, final in found:
        losses = [float(loss) for loss in final["loss"] if loss != DIVERGED]
        below = next((epoch for epoch, loss in enumerate(losses, 1) if loss < 1e-4), "")
        ends = {"lowest": f"{min(losses):.1e}", "of_40": f"{min(losses[:40]):.1e}", "below": below}
        if len(losses) < len(final):
            ends = {"lowest": f"diverged in epoch {len(final)}", "of_40": "", "below": ""}
        yield {**final.iloc[0], **ends}


def lowest(kind, depth):
    """Return the lowest training loss of the finals of a search, in nats."""
    found = better_curves(rows("figure1-finals", kind=kind, depth=depth).to_dict("records"))
    return min(found[kind, depth])


def gap_of_ends(one, other):
    """Return by how many orders of magnitude the loss of one network ends above the other's."""
    return f"{math.log10(lowest(*one) / lowest(*other)):.1f}"


def started_open(template):
    """Return the end of the run of the tanh network of 50 layers that started at -2."""
    runs = [run for command, run in curves("thin-highway-50").items() if "bias=-2.0" in command]
    return fill(template, runs[-1].to_dict("records")[-1])


# Starts: losses before the first step, gradients by layer, and training from other starts


def first_losses():
    """Return the losses before the first step, those from stock Caffe's start beside the others."""
    authors = rows("first-losses", kernel_initializer="authors")
    stock = rows("first-losses", kernel_initializer="lecun_uniform")
    return authors.merge(stock, on=["model", "input_scale"], suffixes=("", "_stock"))


def starts():
    """Return the losses from every start, of both biases and of plain networks."""
    networks = {"bias -4": {"transform_bias": -4.0}, "bias -10": {"transform_bias": -10.0}}
    networks["plain"] = {"kind": "plain"}
    names = ["activation", "start", *(f"{n}, x {scale:g}" for n in networks for scale in SCALES)]
    lines = []
    for activation, start in itertools.product(ACTIVATIONS, ("uniform", "normal", "orthogonal")):
        line = [activation, start]
        for network, scale in itertools.product(networks.values(), SCALES):
            case = {"activation": activation, "start": start, "scale": scale, **network}
            loss = row("starts", depth=50, **case)["loss"]
            line.append(f"{loss:.2f}" if math.isfinite(loss) else "diverged")
        lines.append(line)
    return markdown(names, lines, "ll")


def range_of_losses(**network):
    """Return the range of the losses of some networks over the starts."""
    losses = rows("starts", **network)["loss"]
    return f"{losses.min():.2f} to {losses.max():.2f}"


def norms_by_layer(kind, activation, depth, scale):
    """Return the norms of the gradients of a network, the layer nearest to the images first."""
    case = {"kind": kind, "activation": activation, "depth": depth, "scale": scale}
    return [float(norm) for norm in row("gradient-norms", **case)["by_layer"].split()]


def gradients():
    """Return the gradient's norm at 10 and 100 layers, the geometric mean over the layers."""
    cases = list(itertools.product((10, 100), SCALES))
    names = ["network", "activation", *(f"{d} layers, x {s:g}" for d, s in cases)]
    lines = []
    for kind, activation in itertools.product(KINDS, ACTIVATIONS):
        line = [kind, activation]
        for depth, scale in cases:
            norms = norms_by_layer(kind, activation, depth, scale)
            finite = all(map(math.isfinite, norms))
            line.append(f"{statistics.geometric_mean(norms):.0e}" if finite else "overflows")
        lines.append(line)
    return markdown(names, lines, "ll")


def fall_of_plain_gradients():
    """Return the orders of magnitude for each ten layers, from 10 to 100, at half of the start."""
    falls = []
    for activation in ACTIVATIONS:
        shallow, deep = (
            statistics.geometric_mean(norms_by_layer("plain", activation, depth, 0.5))
            for depth in (10, 100)
        )
        falls.append(math.log10(shallow / deep) / 9)
    return f"{statistics.mean(falls):.0f}"


def growth_towards_the_images():
    """Return the orders from the last layer to the first: plain, tanh, twice the start."""
    norms = norms_by_layer("plain", "tanh", 100, 2.0)
    return f"{math.log10(norms[0] / norms[-1]):.0f}"


# Section 4: two networks, layer by layer, beside what the paper says of its own


def look():
    """Return the networks beside each other, as far as they were analyzed."""
    found = {}
    for title, dataset, classes in (("MNIST", "mnist", (0, 7)), ("CIFAR-100", "cifar100", (0, 1))):
        with contextlib.suppress(NotMeasured):
            found[title] = layers_together(rows("analysis", dataset=dataset), classes)
    lines = [line.split(" | ") for line in LOOK.strip().splitlines()]
    lines = [[name, *(fill(cell, values) for values in found.values())] for name, cell in lines]
    return markdown(["", *found], lines, "lll")


LOOK = """
error and loss on all training images | {lesion_error:.2%} %, {lesion_loss:.3f} nats
test accuracy | {test_accuracy:.2%} %
epochs | {epochs:.0f}
biases at the start | {all[start]:.2f}
after training; mean distance moved | {all[mean_bias]:.2f}; {all[moved]:.2f}
below their start | {all[below_start]:.0%} %
in the first and the last ten layers | {first10[mean_bias]:.2f}, {last10[mean_bias]:.2f}
rank correlation of depth with the mean bias, with the mean gate | {trends}
mean gate; mean distance moved | {all[mean_gate]:.3f}; {all[gate_moved]:.3f}
gates above 0.5 for a sample; in the first seven layers | {all[open]:.1%} %; {first7[open]:.1%} %
gates above 0.5 for any of 2,000 samples | {all[ever_open]:.0%} %
change of block outputs in the first 15, first 40, last 5 layers | {shares}
gates of the first class: layers 1 to 15, 16 to 44, last 5 | {first}
gates of the second class: layers 1 to 15, 16 to 44, last 5 | {second}
largest rise of the error by one closed layer; last layer with a rise | {rises}
numbers of the layers that matter | {matter}
layers that can be closed, one at a time | {idle} of {of}, {idle_share:.0%} %
"""


def layers_together(rows, classes):
    """Return what `LOOK` says of a network.

    Args:
        rows: Those of `analysis.csv`; layer 0 is the whole network.
        classes: The two classes of Figure 3.
    """
    whole, layers = rows[rows["layer"] == 0].iloc[0].to_dict(), rows[rows["layer"] > 0]
    parts = {
        "all": slice(None),
        "first7": slice(7),
        "first10": slice(10),
        "last10": slice(-10, None),
    }
    found = {name: layers.iloc[part].mean(numeric_only=True) for name, part in parts.items()}
    trends = (layers[key].rank().corr(layers["layer"]) for key in ("mean_bias", "mean_gate"))
    change = layers["change"].fillna(0)
    shares = (change.iloc[part].sum() for part in (slice(15), slice(40), slice(-5, None)))
    for name, number in zip(("first", "second"), classes, strict=True):
        gates = layers[f"routing_{number}"]
        parts = (slice(15), slice(15, 44), slice(-5, None))
        found[name] = ", ".join(f"{gates.iloc[part].mean():.3f}" for part in parts)
    rise = layers.set_index("layer")["lesion_error"] - whole["lesion_error"]
    last = max(rise.index[rise > 0], default="none")
    ranges = []  # of the layers that matter
    for layer in layers["layer"][layers["matters"] == 1]:
        if ranges and layer == ranges[-1][1] + 1:
            ranges[-1][1] = layer
        else:
            ranges.append([layer, layer])
    idle = int((layers["matters"] == 0).sum())
    return {
        **whole,
        **found,
        "trends": ", ".join(f"{trend:+.2f}" for trend in trends),
        "shares": ", ".join(f"{100 * share / change.sum():.0f} %" for share in shares),
        "rises": f"{100 * rise.max():.2f} points, layer {rise.idxmax()}; {last}",
        "matter": ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in ranges) or "none",
        "idle": idle,
        "of": len(layers),
        "idle_share": idle / len(layers),
    }


def layers_of(model):
    """Yield a network of the zoo layer by layer, with the error once its gates are closed."""
    for row in rows("layers", model=model).to_dict("records"):
        name = row["name"].replace("_", ", ") if row["layer"] else "none: the intact network"
        yield {**row, "name": name}


def least_rise(model):
    """Return by how much closing a layer raises the error, in points, where it does so least."""
    intact, *closed = rows("layers", model=model)["lesion_error"]
    return f"{100 * min(closed) - 100 * intact:.1f}"


# Speeds and sizes


def steps():
    """Yield the training steps of our networks, and what they reach."""
    for file in ("speed-thin", "speed-convolutional"):
        for row in rows(file).to_dict("records"):
            model, step, *batch = row["case"].replace(" batch", "").split()
            known = row["peer"].startswith("ours") and not math.isnan(row["cpu_ms_a_step"])
            if step == "train" and known:
                size = int(batch[0]) if batch else 128 if file == "speed-thin" else 100
                name = f"`{model}`" + (", bfloat16" if "bfloat16" in row["peer"] else "")
                yield {**row, "name": name, "batch": size, "rate": 1000 * size / row["ms_a_step"]}


def epochs():
    """Return an epoch of the networks for CIFAR, which has 50,000 images."""
    found = rows("speed-epoch", dtype="float32")
    return found.assign(seconds=50_000 / found["images_a_second"])


def peers():
    """Yield a training step of 100 layers beside its peers."""
    for peer, label in PEERS.items():
        found = row("speed-thin", case="thin-highway-100 train", peer=peer)
        first = "" if peer == "products" else f"{found['first_step_s']:.1f}"
        step, ratio = f"{found['ms_a_step']:.1f}", f"{found['ours_over_peer']:.2f}"
        if peer == "ours":
            step, ratio, first = f"**{step}**", "", f"**{first}**"
        yield {"label": label, "step": step, "ratio": ratio, "first": first}


def serving(model):
    """Yield the runtimes of a network's exports."""
    for row in rows("serving", file=f"{model}-mnist.keras").to_dict("records"):
        row |= {"runtime": RUNTIMES[row["format"]], "rate": 256_000 / row["ms_256"]}
        for size in (1, 256):
            faster = f"times_faster_{size}"
            form = f"{{{faster}:{',.0f' if row[faster] >= 10 else '.2f'}~}}"
            # `predict` is as fast as itself
            row[f"faster_{size}"] = "1" if row["format"] == "keras predict" else fill(form, row)
        yield row


def exports():
    """Yield all exports, each with its size as a share of that of its float file."""
    floats = {}
    for row in rows("export").to_dict("records"):
        size = floats.setdefault((row["model"], row["format"]), row["bytes"])
        quantized = isinstance(row["quantize"], str)
        what = FORMATS[row["format"]] + (f" {row['quantize']}" if quantized else "")
        yield {**row, "what": what, "share": row["bytes"] / size if quantized else math.nan}


def conversions():
    """Yield the differences of converted layers from what other libraries computed."""
    for row in rows("convert").to_dict("records"):
        source, by = SOURCES[row["file"]]
        layers = (
            f"{row['layers']}, one by one" if by[:6] == "itself" else f"chain of {row['layers']}"
        )
        yield {**row, "source": source, "by": by, "layers": layers}


def footprint():
    """Yield fresh environments: packages, megabytes, seconds of imports."""
    for row in rows("footprint").to_dict("records"):
        row["environment"] = INSTALLED[row["environment"]]
        for module in ("keras", "highway_keras"):
            known = not math.isnan(row[f"{module}_s"])
            row[module] = fill(f"{{{module}_s:.1f~}}", row) if known else "needs a backend"
        yield row


def shared_by_all(name, column, **wanted):
    """Return what all rows have in a column."""
    (value,) = set(rows(name, **wanted)[column])
    return str(value)


def transfer():
    """Yield the four ways of fine-tuning, each at the rate that held-out images chose."""
    for way, name in WAYS.items():
        yield from rows("transfer", way=way, chosen=1).assign(way=name).to_dict("records")


def transfer_rates():
    """Return the learning rates among which held-out images chose."""
    return ", ".join(f"{rate:g}" for rate in sorted(set(rows("transfer")["learning_rate"])))


def number(name):
    """Return the text that stands for a name.

    Raises:
        KeyError: If the name is unknown.
    """
    try:
        return NUMBERS[name]()
    except NotMeasured:
        return NONE


call = functools.partial
THIN_1000 = {"case": "thin-highway-1000 train", "peer": "ours"}
SEARCH_10, SEARCH_50 = ({"depth": d, "images": 10_000, "epochs": 1} for d in (10, 50))
NUMBERS = {
    # The zoo and Tables 1 to 3
    "zoo": table(
        cards,
        "name | layers | parameters | multiplications | paper % | ours % | weights",
        "`{name}` | {layers:,} | {parameters:,} | {multiplications:,} | {claim} | {ours} | "
        "{weights}",
        "lrrrlll",
    ),
    "zoo.trained": table(
        call(cards, with_weights=True),
        "network | data | layers | parameters | paper % | ours % | weights %",
        "`{name}` | `{data}` | {layers} | {parameters:,} | {paper} | {ours} | {accuracy:.2f}",
        "llrrllr",
    ),
    "minutes.16": call(minutes, "mnist-highway-16", 30),
    "minutes.32": call(minutes, "mnist-highway-32", 30),
    "runs.cifar": table(
        lambda: pd.concat([rows(name, images="all") for name in ("table2", "table3")]),
        "network | recipe | arithmetic | hardware | seed | epochs | minutes | test, %",
        "`{model}` | `{recipe}` | `{dtype_policy}` | {hardware} | {seed} | {epochs} | "
        "{minutes:.0f} | {test_accuracy:.2%}",
        "llll",
    ),
    "logs": table(
        beside_the_logs,
        "network | epoch | authors: accuracy, loss | ours: accuracy, loss | n",
        "`{model}` | {epoch} | {authors_accuracy:.2%} %, {authors_loss:.3f} | {ours} | {n}",
        "lrllr",
    ),
    **{
        f"{card.name}.{recipe}": call(of_runs, card.name, recipe)
        for card in map(models.get, models.list_models())
        for recipe in ("authors", "modern")
        if card.table in results.TABLES.values()
    },
    **{f"{name}.log.reached": call(reached_in_the_log, name) for name in TABLE_3},
    **{f"{n}.log": call(logged, n, lambda epochs: epochs[-1]) for n in results.authors_logs()},
    **{f"{name}.log.best": call(logged, name, max) for name in results.authors_logs()},
    **{
        f"{name}.training.{epoch}": call(training_accuracy, name, epoch)
        for epochs, names in {
            (90, 100): ("highway-a", "fitnet-a"),
            (19, 24): ("highway-b", "highway-c", "fitnet-b", *TABLE_3),
        }.items()
        for name in names
        for epoch in epochs
    },
    # Settings compared on held-out images
    **{
        f"held-out.{model}": table(
            call(compared, model),
            "changed | scale | held out, %",
            "{changed} | {scale} | {accuracy}",
        )
        for model in ("highway-a", "fitnet-a")
    },
    "highway-gap-10.whole": call(authors_solver, "highway-gap-10", WHOLE),
    "fitnet-a.whole": call(authors_solver, "fitnet-a", WHOLE),
    "fitnet-a.whole.limit": call(authors_solver, "fitnet-a", WHOLE, 1.0),
    "fitnet-a.half": call(authors_solver, "fitnet-a", HALF),
    "fitnet-a.half.limit": call(authors_solver, "fitnet-a", HALF, 1.0),
    "fitnet-b.half": call(authors_solver, "fitnet-b", HALF),
    "fitnet-b.half.limit": call(authors_solver, "fitnet-b", HALF, 1.0),
    "highway-b.half": call(authors_solver, "highway-b", HALF),
    "policy.float32": call(policy, "float32"),
    "policy.mixed_bfloat16": call(policy, "mixed_bfloat16"),
    # Figure 1
    "figure1": table(
        figure1,
        "hidden layers | highway, best | plain, best | residual, best | highway, top 10 | "
        "plain, top 10 | residual, top 10",
        "{depth} | {highway_best:.3f} | {plain_best:.3f} | {residual_best:.3f} | "
        + " | ".join(f"{{{k}_top10_mean:.3f}} ± {{{k}_top10_std:.3f}}" for k in KINDS),
        "r",
    ),
    "depth50.highway": one("figure1-top10", "{best:.3f}", kind="highway", depth=50),
    "depth50.plain": one("figure1-top10", "{best:.3f}", kind="plain", depth=50),
    "plain10": one("figure1-top10", "{best:.3f}", kind="plain", depth=10),
    "plain20": one("figure1-top10", "{best:.3f}", kind="plain", depth=20),
    "plain.rise": call(times, ("plain", 100), ("plain", 10), "top10_mean"),
    "residual.rise": call(times, ("residual", 100), ("residual", 10), "top10_mean"),
    "gap": call(times, ("plain", 100), ("highway", 100), "top10_mean"),
    "gap.best": call(times, ("plain", 100), ("highway", 100), "best"),
    **{f"failed.{kind}": call(failed, kind) for kind in KINDS},
    **{f"rates.{kind}.100": call(rates_of_best, kind, 100) for kind in KINDS},
    "diverged.open": call(diverged_above, -3),
    "winner": winner,
    "finals": table(
        finals,
        "kind | hidden layers | lowest loss | after 40 epochs | below 10^-4 after | rate | "
        "momentum | decay | activation | transform bias",
        "{kind} | {depth} | {lowest} | {of_40} | {below} | {learning_rate:.3f} | {momentum:.3f} | "
        "{decay:.3f} | {activation} | {transform_bias:.1f}",
    ),
    "finals.gap": call(gap_of_ends, ("plain", 100), ("highway", 100)),
    "finals.rise": call(gap_of_ends, ("highway", 100), ("highway", 10)),
    **{
        f"finals.{k}.{d}": lambda k=k, d=d: f"{lowest(k, d):.1e}"
        for k, d in itertools.product(KINDS[:2], DEPTHS)
    },
    "open.epochs": call(started_open, "{epoch}"),
    "open.loss": call(started_open, "{loss:.3f}"),
    "open.accuracy": call(started_open, "{val_accuracy:.1%}"),
    # Starts
    "first-losses": table(
        first_losses,
        "network | factor on the inputs | authors' log | N(0, 2 / fan-in), theirs | "
        "uniform, 1 / fan-in, stock Caffe's",
        "`{model}` | {input_scale} | {authors:.2f} | {mean:.2f} ± {std:.2f} | "
        "{mean_stock:.2f} ± {std_stock:.2f}",
    ),
    "starts": starts,
    "starts.two": call(range_of_losses, kind="plain", depth=2),
    "starts.ten": call(range_of_losses, kind="highway", depth=50, transform_bias=-10.0),
    "gradients": gradients,
    "gradients.fall": fall_of_plain_gradients,
    "gradients.growth": growth_towards_the_images,
    # Section 4, and the networks of the zoo layer by layer
    "look": look,
    **{
        f"layers.{model}": table(
            call(layers_of, model),
            "gated layer | bias at the start | mean bias | mean gate | error if closed",
            "{name} | {start:.2f} | {mean_bias:.2f} | {mean_gate:.2f} | {lesion_error:.2%} %",
        )
        for model in ("highway-a", "highway-b")
    },
    **{f"layers.{m}.least": call(least_rise, m) for m in ("highway-a", "highway-b")},
    "lesions.500": one("lesions", "{over_evaluate_500:.1f~}", images=60_000),
    "lesions.2000": one("lesions", "{over_evaluate_2000:.1f~}", images=60_000),
    # Speeds
    "thin100": table(
        peers,
        "100 layers | ms per step | ours / theirs | first step, s",
        "{label} | {step} | {ratio} | {first}",
    ),
    "thin100.n": one("speed-thin", "{n}", case="thin-highway-100 train", peer="ours"),
    "thin1000.first": one("speed-thin", "{first_step_s:.1f}", **THIN_1000),
    "thin1000.ms": one("speed-thin", "{ms_a_step:.0f}", **THIN_1000),
    "thin1000.mb": one("speed-thin", "{peak_mb:.0f}", **THIN_1000),
    **{
        f"b.{name}": one(
            "speed-convolutional", "{ours_over_peer:.2f}", case="highway-b train", peer=peer
        )
        for name, peer in (
            ("two", "two_convolutions"),
            ("maxout", "maxout"),
            ("torch", "torch_eager"),
        )
    },
    "steps": table(
        steps,
        "training step | batch | ms | processor ms | images per second | of the machine",
        "{name} | {batch} | {ms_a_step:.1f} | {cpu_ms_a_step:.1f} | {rate:,.0f} | "
        "{share_of_machine:.0%}%",
    ),
    "epochs": table(
        epochs,
        "network | images per second | an epoch | `fit` / ours | ours / products",
        "`{model}` | {images_a_second:,.0f} | {seconds:.0f} s | {fit_over_ours:.2f~} | "
        "{ours_over_products:.2f}",
    ),
    "search.10": one("search-speed", "{ratio_seconds:.0f}", **SEARCH_10),
    "search.50": one("search-speed", "{ratio_seconds:.0f}", **SEARCH_50),
    "search.10.processor": one("search-speed", "{ratio_cpu:.0f}", **SEARCH_10),
    "search.50.processor": one("search-speed", "{ratio_cpu:.0f}", **SEARCH_50),
    "search.10.long": one("search-speed", "{projected_ratio:.1f}", **SEARCH_10),
    "search.50.long": one("search-speed", "{projected_ratio:.1f}", **SEARCH_50),
    # Exports, servers, conversions, installations
    "exports": table(
        exports,
        "network | format | bytes | of float | accuracy %, Keras | exported | images",
        "`{model}` | {what} | {bytes:,} | {share:.2f} | {keras_accuracy:.2%} | {accuracy:.2%} | "
        "{images:,}",
        "ll",
    ),
    **{
        f"serving.{name}": table(
            call(serving, model),
            f"`{model}` | ms, batch 1 | times faster | images/s, batch 256 | times faster",
            "{runtime} | {ms_1:.2f} | {faster_1} | {rate:,.0f} | {faster_256}",
        )
        for name, model in (("16", "mnist-highway-16"), ("50", "thin-highway-50"))
    },
    "server": table(
        lambda: rows("server").replace({"protocol": {"grpc": "gRPC", "http": "HTTP"}}),
        "protocol | clients | requests per second | p50, ms | p99, ms | answers | errors",
        "{protocol} | {clients} | {requests_a_second:,.0f~} | {p50_ms:.1f~} | {p99_ms:.1f~} | "
        "{answers:,} | {errors}",
    ),
    "conversions": table(
        conversions,
        "source | run by | layers | largest difference",
        "{source} | {by} | {layers} | {largest_difference:.1e}",
        "lll",
    ),
    "footprint": table(
        footprint,
        " | packages | MB | `import keras`, s | `import highway_keras`, s",
        "{environment} | {packages} | {megabytes:,.0f} | {keras} | {highway_keras}",
    ),
    # Fine-tuning on few images
    "transfer": table(
        transfer,
        "trained | parameters | rate | held out, % | test, % | processor seconds",
        "{way} | {parameters:,} | {learning_rate} | {held_out:.1f} | {mean:.1f} ± {std:.1f} | "
        "{processor_seconds:.0f}",
    ),
    "transfer.images": call(shared_by_all, "transfer", "images", chosen=1),
    "transfer.epochs": call(shared_by_all, "transfer", "epochs", chosen=1),
    "transfer.n": call(shared_by_all, "transfer", "n", chosen=1),
    "transfer.rates": transfer_rates,
}
