"""What pages say of `results/`: a public function here is what a mark on a page calls.

    a step takes <!--=cell speed-thin {ms_a_step:.0f} peer=ours-->9<!--/--> ms

is `cell("speed-thin", "{ms_a_step:.0f}", peer="ours")`: a number that stands in a row needs nothing
else. The other functions combine rows. They return text, and get the words of the mark as text.
"""

import itertools
import math
import shlex
import statistics

import pandas as pd

from highway_keras import models, results
from highway_keras.cli.command import parser
from highway_keras.models import shipped
from highway_keras.paper.finals import better_curves
from highway_keras.paper.gradient_norms import ACTIVATIONS, KINDS, SCALES
from highway_keras.results import DIVERGED
from highway_keras.training.recipes import get_recipe
from tools.tables import NotMeasured, fill, markdown, mean_and_deviation, rows, table


def cell(name, template, **wanted):
    """Fill a template from the row that is as `wanted`, or from several that agree."""
    found = {fill(template, row) for row in rows(name, **wanted).to_dict("records")}
    if len(found) > 1:
        raise LookupError(f"{len(found)} rows of {name}.csv fit {wanted}, not one.")
    return found.pop()


# Accuracies: of the zoo, of the tables' networks, and beside the authors' logs


def _cards():
    measured = results.accuracies()
    for card in map(models.get, models.list_models()):
        weights = {d: 100 * shipped.find_entry(card.name, d)["accuracy"] for d in card.weights}
        yield {
            **vars(card),
            "claim": ", ".join(filter(None, (card.paper, card.table))),
            "paper": card.paper or "",
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
    "network | data | layers | parameters | paper % | ours % | weights %",
    "`{name}` | `{data}` | {layers} | {parameters:,} | {paper} | {ours} | {accuracy:.2f}",
    "llrrllr",
)
cifar_runs = table(
    lambda: pd.concat([rows(name, images="all") for name in ("table2", "table3")]),
    "network | recipe | arithmetic | hardware | seed | epochs | minutes | test, %",
    "`{model}` | `{recipe}` | `{dtype_policy}` | {hardware} | {seed} | {epochs} | {minutes:.0f} | "
    "{test_accuracy:.2%}",
    "llll",
)


def runs(model, recipe):
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


def log(model, which):
    """Return the "last" or the "best" accuracy of an authors' log, in percent."""
    logged = [100 * float(row["test_accuracy"]) for row in results.authors_logs()[model]]
    return f"{logged[-1] if which == 'last' else max(logged):.2f}"


def reached_in_log(model):
    """Return the first epoch of an authors' log that has the test accuracy of our run."""
    (ours,) = rows("table3", model=model, recipe="modern", images="all")["test_accuracy"]
    logged = results.authors_logs()[model]
    return next((r["epoch"] for r in logged if float(r["test_accuracy"]) >= ours), "no epoch")


def _beside_the_logs():
    for _, seeds in rows("authors-log-ours").groupby(["model", "epoch"], sort=False):
        ours = mean_and_deviation(list(100 * seeds["ours_accuracy"]), ".2f", " %")
        ours += f", {mean_and_deviation(list(seeds['ours_loss']), '.3f')}"
        yield {**seeds.iloc[0], "ours": ours, "n": len(seeds)}


logs = table(
    _beside_the_logs,
    "network | epoch | authors: accuracy, loss | ours: accuracy, loss | n",
    "`{model}` | {epoch} | {authors_accuracy:.2%} %, {authors_loss:.3f} | {ours} | {n}",
    "lrllr",
)

# Runs by epoch, and settings that were compared on images held out of the training set

GCN = ("gcn", "mean")  # leaves a standard deviation of 1 in the images; "half" halves it
PREPROCESSING = {"1": GCN, "0.5": (*GCN, "half")}


def _curves(model):
    """Yield each run of a network: its settings, those of its command, and its rows by epoch."""
    for command, run in rows("training-curves", model=model).groupby("command", sort=False):
        settings = vars(parser().parse_args(shlex.split(command)[1:]))
        settings["model_options"] = dict(settings["model_options"])
        yield {**dict(settings.pop("set")), **settings}, run


def whole_runs(model):
    """Return the rows by epoch of each run of a network on all images, which differ in seeds."""
    found = [(s, run) for s, run in _curves(model) if not (s["validation"] or s["limit"])]
    settings = {str({**setting, "seed": None}) for setting, _ in found}
    if len(settings) > 1:
        raise LookupError(f"training-curves.csv has {len(settings)} settings of {model}, not one.")
    if not found:
        raise NotMeasured(f"training-curves.csv has no run of {model} on all training images.")
    return [run for _, run in found]


def training(model, epoch):
    """Return the training accuracy after an epoch, the mean of a network's runs, in percent."""
    reached = (100 * float(run["accuracy"].iloc[int(epoch) - 1]) for run in whole_runs(model))
    return f"{statistics.mean(reached):.1f}"


def _held_out(model, limited, **wanted):
    """Yield (settings, last held-out accuracy in percent, -1 if diverged) of runs.

    They are those on some of the training images (`limited`) or on all, with settings as `wanted`.
    """
    for settings, run in _curves(model):
        accuracy = run["val_accuracy"].iloc[-1]
        as_wanted = all(settings[key] == value for key, value in wanted.items())
        if settings["validation"] and bool(settings["limit"]) == limited and as_wanted:
            yield settings, -1 if accuracy == DIVERGED else 100 * float(accuracy)


def _compared(model):
    now = vars(get_recipe("modern-cifar"))
    # What all runs of the table share, and what has a column of its own
    apart = ("epochs", "dtype_policy", "validation", "preprocessing")
    found = sorted(_held_out(model, False, epochs=8), key=lambda run: run[1], reverse=True)
    for settings, accuracy in found:
        names = [key for key in settings if key in now and key not in apart]
        changed = [f"{key}={settings[key]}" for key in names if settings[key] != now[key]]
        (scale,) = (s for s, steps in PREPROCESSING.items() if steps == settings["preprocessing"])
        yield {
            "changed": f"`{' '.join(changed)}`" if changed else "nothing",
            "scale": scale,
            "accuracy": f"{accuracy:.1f}" if accuracy >= 0 else DIVERGED,
        }


held_out = table(_compared, "changed | scale | held out, %", "{changed} | {scale} | {accuracy}")


def policy(name):
    """Return mean and deviation of the accuracy that a dtype policy reaches in a short run."""
    found = _held_out("highway-a", True, epochs=6, dropout=0.25, dtype_policy=name)
    reached = [accuracy for _, accuracy in found]
    return f"{mean_and_deviation(reached, '.1f', ' %')}, n={len(reached)}"


def authors_solver(model, scale, clip_norm=None):
    """Return what the runs of a network by the authors' solver on some of the images come to."""
    wanted = {"preprocessing": PREPROCESSING[scale], "clip_norm": clip_norm and float(clip_norm)}
    ends = [accuracy for _, accuracy in _held_out(model, True, schedule="steps", **wanted)]
    reached = [f"reaches {accuracy:.1f} %" for accuracy in ends if accuracy >= 0]
    if len(ends) == 1:
        return reached[0] if reached else "diverges"
    diverged = f"{len(ends) - len(reached)} of {len(ends)} seeds diverge"
    return ", ".join([diverged, *(f"one {end}" for end in reached)])


# Figure 1


def _searches():
    found = rows("figure1-top10").pivot(index="depth", columns="kind")
    found.columns = [f"{kind}_{column}" for column, kind in found.columns]
    return found.reset_index()


figure1 = table(
    _searches,
    "hidden layers | highway, best | plain, best | residual, best | highway, top 10 | "
    "plain, top 10 | residual, top 10",
    "{depth} | {highway_best:.3f} | {plain_best:.3f} | {residual_best:.3f} | "
    + " | ".join(f"{{{kind}_top10_mean:.3f}} ± {{{kind}_top10_std:.3f}}" for kind in KINDS),
    "r",
)


def times(kind, depth, other_kind, other_depth, column):
    """Return how many times a loss is another one, and the same in orders of magnitude."""
    found = rows("figure1-top10").set_index(["kind", "depth"])[column]
    ratio = found[kind, int(depth)] / found[other_kind, int(other_depth)]
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
    return f"{(biases > float(bias)).sum()} of {len(biases)}"


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
    return fill(
        "learning rate {learning_rate:.3f}, momentum {momentum:.3f}, decay {decay:.2f} an epoch, "
        "{activation}, transform bias {transform_bias:.1f}",
        {**values, "momentum": 1 - values["one_minus_momentum"]},
    )


def _finals():
    for _, final in rows("figure1-finals").groupby(["kind", "depth", "trial"], sort=False):
        losses = [float(loss) for loss in final["loss"] if loss != DIVERGED]
        below = next((epoch for epoch, loss in enumerate(losses, 1) if loss < 1e-4), "")
        ends = {"lowest": f"{min(losses):.1e}", "of_40": f"{min(losses[:40]):.1e}", "below": below}
        if len(losses) < len(final):
            ends = {"lowest": f"diverged in epoch {len(final)}", "of_40": "", "below": ""}
        yield {**final.iloc[0], **ends}


halving = table(
    lambda: rows("halving"),
    "kind | hidden layers | best of all | best with rungs (its rank) | of the ten best, kept | "
    "mean of the ten best | mean of the ten that are left | rank correlation, first rung and end",
    "{kind} | {depth} | {best:.1e} | {best_halved:.1e} ({rank_of_best_halved}) | {top_kept} | "
    "{top_mean:.1e} | {top_mean_halved:.1e} | {rank_correlation_first_end:.2f}",
    "lrrrrrrr",
)
finals = table(
    _finals,
    "kind | hidden layers | lowest loss | after 40 epochs | below 10^-4 after | rate | momentum | "
    "decay | activation | transform bias",
    "{kind} | {depth} | {lowest} | {of_40} | {below} | {learning_rate:.3f} | {momentum:.3f} | "
    "{decay:.3f} | {activation} | {transform_bias:.1f}",
)


def _lowest(kind, depth):
    found = better_curves(rows("figure1-finals", kind=kind, depth=depth).to_dict("records"))
    return min(found[kind, int(depth)])


def lowest(kind, depth):
    """Return the lowest training loss of the finals of a search, in nats."""
    return f"{_lowest(kind, depth):.1e}"


def gap_of_ends(kind, depth, other_kind, other_depth):
    """Return by how many orders of magnitude the loss of one network ends above the other's."""
    return f"{math.log10(_lowest(kind, depth) / _lowest(other_kind, other_depth)):.1f}"


def started_open(template):
    """Return the end of the run of the tanh network of 50 layers that started at -2."""
    biases = (
        (s["model_options"].get("transform_bias"), run) for s, run in _curves("thin-highway-50")
    )
    (run,) = (run for bias, run in biases if bias == -2)
    return fill(template, run.to_dict("records")[-1])


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
    """Return the losses from every start, of both biases and of plain networks."""
    networks = {"bias -4": {"transform_bias": -4}, "bias -10": {"transform_bias": -10}}
    networks["plain"] = {"kind": "plain"}
    names = ["activation", "start", *(f"{n}, x {scale:g}" for n in networks for scale in SCALES)]
    lines = []
    for activation, start in itertools.product(ACTIVATIONS, ("uniform", "normal", "orthogonal")):
        case = {"depth": 50, "activation": activation, "start": start}
        losses = (
            cell("starts", "{loss:.2f}", scale=scale, **case, **network)
            for network, scale in itertools.product(networks.values(), SCALES)
        )
        lines.append([activation, start, *("diverged" if x == "inf" else x for x in losses)])
    return markdown(names, lines, "ll")


def range_of_losses(**network):
    """Return the range of the losses of some networks over the starts."""
    losses = rows("starts", **network)["loss"]
    return f"{losses.min():.2f} to {losses.max():.2f}"


def _norms(kind, activation, depth, scale):
    """Return the norms of the gradients of a network, the layer nearest to the images first."""
    case = {"kind": kind, "activation": activation, "depth": depth, "scale": scale}
    return [float(norm) for norm in cell("gradient-norms", "{by_layer}", **case).split()]


def gradients():
    """Return the gradient's norm at 10 and 100 layers, the geometric mean over the layers."""
    cases = list(itertools.product((10, 100), SCALES))
    names = ["network", "activation", *(f"{d} layers, x {s:g}" for d, s in cases)]
    lines = []
    for network in itertools.product(KINDS, ACTIVATIONS):
        means = (statistics.geometric_mean(_norms(*network, *case)) for case in cases)
        lines.append([*network, *(f"{x:.0e}" if math.isfinite(x) else "overflows" for x in means)])
    return markdown(names, lines, "ll")


def fall_of_plain_gradients():
    """Return the orders of magnitude for each ten layers, from 10 to 100, at half of the start."""
    shallow, deep = (
        [statistics.geometric_mean(_norms("plain", a, depth, 0.5)) for a in ACTIVATIONS]
        for depth in (10, 100)
    )
    return (
        f"{statistics.mean(math.log10(a / b) / 9 for a, b in zip(shallow, deep, strict=True)):.0f}"
    )


def growth_towards_the_images():
    """Return the orders from the last layer to the first: plain, tanh, twice the start."""
    norms = _norms("plain", "tanh", 100, 2.0)
    return f"{math.log10(norms[0] / norms[-1]):.0f}"


# Section 4: two networks, layer by layer, beside what the paper says of its own

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


def look():
    """Return the networks of section 4 beside each other."""
    found = {}
    for dataset, classes in {"mnist": (0, 7), "cifar100": (0, 1)}.items():
        for start, network in rows("analysis", dataset=dataset).groupby("searched_bias"):
            name = {"mnist": "MNIST", "cifar100": "CIFAR-100"}[dataset]
            found[f"{name}, biases {start}"] = _layers_together(network, classes)
    lines = [line.split(" | ") for line in LOOK.strip().splitlines()]
    lines = [[name, *(fill(cell, values) for values in found.values())] for name, cell in lines]
    return markdown(["", *found], lines, "l" * (1 + len(found)))


def _layers_together(rows, classes):
    """Return what `LOOK` says of a network.

    Args:
        rows: Those of `analysis.csv`; layer 0 is the whole network.
        classes: The two classes of Figure 3.
    """
    whole, layers = rows[rows["layer"] == 0].iloc[0].to_dict(), rows[rows["layer"] > 0]

    first7, first15, first40 = layers[:7], layers[:15], layers[:40]
    rise = layers.set_index("layer")["lesion_error"] - whole["lesion_error"]
    matters = layers["matters"] == 1
    # Layers that matter and follow one another are one group: the sum changes between groups.
    groups = layers["layer"][matters].groupby((~matters).cumsum())
    ranges = zip(groups.min(), groups.max(), strict=True)
    change = layers["change"].sum()
    shares = (part["change"].sum() for part in (first15, first40, layers[-5:]))
    trends = (layers[key].rank().corr(layers["layer"]) for key in ("mean_bias", "mean_gate"))
    first, second = (
        ", ".join(
            f"{part[f'routing_{number}'].mean():.3f}"
            for part in (first15, layers[15:44], layers[-5:])
        )
        for number in classes
    )
    return {
        **whole,
        "all": layers.mean(numeric_only=True),
        "first7": first7.mean(numeric_only=True),
        "first10": layers[:10].mean(numeric_only=True),
        "last10": layers[-10:].mean(numeric_only=True),
        "trends": ", ".join(f"{trend:+.2f}" for trend in trends),
        "shares": ", ".join(f"{100 * share / change:.0f} %" for share in shares),
        "first": first,
        "second": second,
        "rises": f"{100 * rise.max():.2f} points, layer {rise.idxmax()}; "
        f"{max(rise.index[rise > 0], default='none')}",
        "matter": ", ".join(f"{a} to {b}" if a < b else f"{a}" for a, b in ranges) or "none",
        "idle": (~matters).sum(),
        "of": len(layers),
        "idle_share": (~matters).mean(),
    }


def _layers(model):
    for row in rows("layers", model=model).to_dict("records"):
        name = row["name"].replace("_", ", ") if row["layer"] else "none: the intact network"
        yield {**row, "name": name}


layers = table(
    _layers,
    "gated layer | bias at the start | mean bias | mean gate | error if closed",
    "{name} | {start:.2f} | {mean_bias:.2f} | {mean_gate:.2f} | {lesion_error:.2%} %",
)


def least_rise(model):
    """Return by how much closing a layer raises the error, in points, where it does so least."""
    intact, *closed = rows("layers", model=model)["lesion_error"]
    return f"{100 * min(closed) - 100 * intact:.1f}"


# Speeds and sizes

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
FORMATS = {
    "keras": "Keras",
    "saved_model": "SavedModel",
    "onnx": "ONNX",
    "litert": "LiteRT",
    "openvino": "OpenVINO",
}
RUNTIMES = {  # where they are not called as the format
    "keras predict": "Keras `predict`",
    "keras int8": "Keras `predict`, int8",
    "onnx": "ONNX Runtime",
}
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


def _peers():
    found = rows("speed-thin", case="thin-highway-100 train").set_index("peer")
    for peer, label in PEERS.items():
        form = {"ours": "**{:.1f}**"}.get(peer, "{:.1f}").format
        step, first = form(found["ms_a_step"][peer]), form(found["first_step_s"][peer])
        ratio = "" if peer == "ours" else f"{found['ours_over_peer'][peer]:.2f}"
        first = "" if peer == "products" else first
        yield {"label": label, "step": step, "ratio": ratio, "first": first}


peers = table(
    _peers,
    "100 layers | ms per step | ours / theirs | first step, s",
    "{label} | {step} | {ratio} | {first}",
)


def _steps():
    for file, usual in (("speed-thin", 128), ("speed-convolutional", 100)):
        for row in rows(file).dropna(subset="cpu_ms_a_step").to_dict("records"):
            model, step, *batch = row["case"].replace(" batch", "").split()
            if step == "train" and row["peer"].startswith("ours"):
                size = int(batch[0]) if batch else usual
                name = f"`{model}`" + (", bfloat16" if "bfloat16" in row["peer"] else "")
                yield {**row, "name": name, "batch": size, "rate": 1000 * size / row["ms_a_step"]}


steps = table(
    _steps,
    "training step | batch | ms | processor ms | images per second | of the machine",
    "{name} | {batch} | {ms_a_step:.1f} | {cpu_ms_a_step:.1f} | {rate:,.0f} | "
    "{share_of_machine:.0%}%",
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
    floats = {}
    for row in rows("export").to_dict("records"):
        size = floats.setdefault((row["model"], row["format"]), row["bytes"])
        quantized = isinstance(row["quantize"], str)
        what = FORMATS[row["format"]] + (f" {row['quantize']}" if quantized else "")
        yield {**row, "what": what, "share": row["bytes"] / size if quantized else math.nan}


exports = table(
    _exports,
    "network | format | bytes | of float | accuracy %, Keras | exported | images",
    "`{model}` | {what} | {bytes:,} | {share:.2f} | {keras_accuracy:.2%} | {accuracy:.2%} | "
    "{images:,}",
    "ll",
)


def _serving(model):
    for row in rows("serving", file=f"{model}-mnist.keras").to_dict("records"):
        format, *quantized = row["format"].split()
        name = " ".join([FORMATS[format], *quantized])
        row["runtime"] = RUNTIMES.get(row["format"], name)
        row["rate"] = 256_000 / row["ms_256"]
        for size in (1, 256):
            form = ",.0f" if row[f"times_faster_{size}"] >= 10 else ".2f"
            row[f"faster_{size}"] = fill(f"{{times_faster_{size}:{form}~}}", row)
            if row["format"] == "keras predict":
                row[f"faster_{size}"] = "1"  # as fast as itself
        yield row


serving = table(
    _serving,
    "`{}` | ms, batch 1 | times faster | images/s, batch 256 | times faster",
    "{runtime} | {ms_1:.2f} | {faster_1} | {rate:,.0f} | {faster_256}",
)
server = table(
    lambda: rows("server").replace({"protocol": {"grpc": "gRPC", "http": "HTTP"}}),
    "protocol | clients | requests per second | p50, ms | p99, ms | answers | errors",
    "{protocol} | {clients} | {requests_a_second:,.0f~} | {p50_ms:.1f~} | {p99_ms:.1f~} | "
    "{answers:,} | {errors}",
)


def _conversions():
    for row in rows("convert").to_dict("records"):
        source, by = SOURCES[row["file"]]
        chained = "{layers}, one by one" if by.startswith("itself") else "chain of {layers}"
        yield {**row, "source": source, "by": by, "layers": fill(chained, row)}


conversions = table(
    _conversions,
    "source | run by | layers | largest difference",
    "{source} | {by} | {layers} | {largest_difference:.1e}",
    "lll",
)


def _footprint():
    for row in rows("footprint").to_dict("records"):
        row["environment"] = INSTALLED[row["environment"]]
        for module in ("keras", "highway_keras"):
            known = not math.isnan(row[f"{module}_s"])
            row[module] = fill(f"{{{module}_s:.1f~}}", row) if known else "needs a backend"
        yield row


footprint = table(
    _footprint,
    " | packages | MB | `import keras`, s | `import highway_keras`, s",
    "{environment} | {packages} | {megabytes:,.0f} | {keras} | {highway_keras}",
)
transfer = table(  # at the rate that held-out images chose
    lambda: (
        {**row, "way": name}
        for way, name in WAYS.items()
        for row in rows("transfer", way=way, chosen=1).to_dict("records")
    ),
    "trained | parameters | rate | held out, % | test, % | processor seconds",
    "{way} | {parameters:,} | {learning_rate} | {held_out:.1f} | {mean:.1f} ± {std:.1f} | "
    "{processor_seconds:.0f}",
)


def transfer_rates():
    """Return the learning rates among which held-out images chose."""
    return ", ".join(f"{rate:g}" for rate in sorted(set(rows("transfer")["learning_rate"])))


# Compact networks


def _compacted():
    measured = rows("compact").sort_values(["model", "layers"], ascending=False)
    for (model, _), found in measured.groupby(["model", "layers"], sort=False):
        ways = {
            row["way"]: fill("{mean:.2f}", row) + fill(" ± {std:.2f}", row) * (row["n"] > 1)
            for row in found.to_dict("records")
        }
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
compacted_speed = table(
    lambda: rows("compact-speed").assign(runtime=lambda found: found["format"].map(FORMATS)),
    "network | gated layers left | runtime | ms before, one image | ms after | times faster | "
    "times faster, 128 images",
    "`{model}` | {layers} of {of} | {runtime} | {before_1:.2f} | {after_1:.2f} | {faster_1:.1f~} | "
    "{faster_128:.1f~}",
    "lll",
)
