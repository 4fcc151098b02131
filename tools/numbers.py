"""What each rendered number stands for: a name, and how its text comes out of `results/`."""

import itertools
import math
import statistics

from highway_keras import models, results

SCALES = (0.5, 1.0, 2.0)  # of the starts
STARTED = ("tanh", "relu")
PEERS = {
    "ours": "**`HighwayStack`, through the trainer**",
    "dense_chain": "two Dense layers a block, Keras `fit`",
    "dense_chain_xla": "the same under XLA",
    "plain": "plain network of equal parameters, Keras `fit`",
    "torch_eager": "PyTorch eager",
    "torch_compile": "PyTorch, `torch.compile`",
    "jax_scan": "JAX by hand, `lax.scan`",
    "products": "the matrix products alone (floor)",
}


def rows(name, **wanted):
    """Return the rows of `results/NAME.csv` whose columns are as `wanted`."""
    return [r for r in results.read(name) if all(r[k] == str(v) for k, v in wanted.items())]


def row(name, **wanted):
    """Return the one row of `results/NAME.csv` whose columns are as `wanted`."""
    found = rows(name, **wanted)
    if len(found) != 1:
        raise LookupError(f"{len(found)} rows of {name}.csv fit {wanted}, not one.")
    return found[0]


def table(header, lines):
    """Return a Markdown table on lines of its own; a column of `---:` is aligned to the right."""
    return "\n".join(["", *(f"| {' | '.join(line)} |" for line in (*header, *lines)), ""])


def speed(case, peer, column, form):
    """Return a function that gives a figure of a speed benchmark as text."""
    file = "speed-thin" if case.startswith("thin") else "speed-convolutional"
    return lambda: format(float(row(file, case=case, peer=peer)[column]), form)


def speed_of_100_layers():
    """Return the table of a training step of 100 layers beside its peers."""
    header = (("100 layers", "ms a step", "ours / theirs", "first step, s"), ("---", *["---:"] * 3))
    lines = []
    for peer, label in PEERS.items():
        found = row("speed-thin", case="thin-highway-100 train", peer=peer)
        step, first = f"{float(found['ms_a_step']):.1f}", f"{float(found['first_step_s']):.1f}"
        ratio = f"{float(found['ours_over_peer']):.2f}"
        if peer == "ours":
            lines.append((label, f"**{step}**", "", f"**{first}**"))
        else:
            lines.append((label, step, ratio, "" if peer == "products" else first))
    return table(header, lines)


def zoo():
    """Return the table of all networks: size, the paper's accuracy, and ours."""
    header = ("name", "layers", "parameters", "multiplications", "paper %", "ours %", "weights")
    header = (header, ("---", "---:", "---:", "---:", "---", "---", "---"))
    measured = results.accuracies()
    lines = []
    for card in map(models.get, models.list_models()):
        paper = ", ".join(filter(None, (card.paper, card.table)))
        counts = (f"{n:,}" for n in (card.layers, card.parameters, card.multiplications))
        ours = measured.get(card.name, "")
        lines.append((f"`{card.name}`", *counts, paper, ours, ", ".join(card.weights)))
    return table(header, lines)


def figure1():
    """Return the table of Figure 1: the best trial and the mean of the ten best, by depth."""
    kinds = ("highway", "plain", "residual")
    header = ["hidden layers", *(f"{k}, best" for k in kinds), *(f"{k}, top 10" for k in kinds)]
    lines = []
    for depth in (10, 20, 50, 100):
        found = [row("figure1-top10", kind=kind, depth=depth) for kind in kinds]
        best = [f"{float(r['best']):.3f}" for r in found]
        top = [f"{float(r['top10_mean']):.3f} ± {float(r['top10_std']):.3f}" for r in found]
        lines.append((str(depth), *best, *top))
    return table((header, ["---:"] * len(header)), lines)


def of_runs(model, recipe, epochs):
    """Return a function that states all runs of a network by one recipe and number of epochs."""

    def text():
        found = results.summarize(rows("table1", model=model, recipe=recipe, epochs=epochs))
        return results.text(found[0]) + f" (n={found[0]['n']})"

    return text


def first_losses():
    """Return the table of the losses before the first step, beside the authors' logs."""
    header = ("network", "size of the inputs", "authors' log", "N(0, 2 / fan-in), theirs")
    header = ((*header, "uniform, 1 / fan-in, stock Caffe's"), ("---", *["---:"] * 4))
    lines = []
    for ours in rows("first-losses", kernel_initializer="authors"):
        case = {key: ours[key] for key in ("model", "input_scale")}
        stock = row("first-losses", kernel_initializer="lecun_uniform", **case)
        losses = (f"{float(r['mean']):.2f} ± {float(r['std']):.2f}" for r in (ours, stock))
        logged = f"{float(ours['authors']):.2f}"
        lines.append((f"`{ours['model']}`", ours["input_scale"], logged, *losses))
    return table(header, lines)


def starts():
    """Return the table of the losses from every start, of both biases and of plain networks."""
    settings = {
        "bias -4": ("highway", -4.0),
        "bias -10": ("highway", -10.0),
        "plain": ("plain", ""),
    }
    header = ("activation", "start", *(f"{s}, x {scale:g}" for s in settings for scale in SCALES))
    lines = []
    for activation, start in itertools.product(STARTED, ("uniform", "normal", "orthogonal")):
        case = {"depth": 50, "activation": activation, "start": start}
        cells = (
            row("starts", **case, kind=kind, transform_bias=bias, scale=scale)["loss"]
            for kind, bias in settings.values()
            for scale in SCALES
        )
        lines.append((activation, start, *(_loss(float(cell)) for cell in cells)))
    return table((header, ("---", "---", *["---:"] * 9)), lines)


def _loss(loss):
    return f"{loss:.2f}" if math.isfinite(loss) else "diverged"


def range_of_two_layers():
    """Return the range of the losses of plain networks with two hidden layers, over the starts."""
    losses = [float(r["loss"]) for r in rows("starts", kind="plain", depth=2)]
    return f"{min(losses):.2f} to {max(losses):.2f}"


def gradients():
    """Return the table of the gradient's norm at 10 and 100 layers, the mean over the layers."""
    header = ("network", "activation", *(f"{d} layers, x {s:g}" for d in (10, 100) for s in SCALES))
    lines = []
    for kind in ("highway", "plain", "residual"):
        lines += [(kind, a, *_norms(kind, a)) for a in STARTED]
    return table((header, ("---", "---", *["---:"] * 6)), lines)


def _norms(kind, activation):
    for depth, scale in itertools.product((10, 100), SCALES):
        case = {"kind": kind, "activation": activation, "depth": depth, "scale": scale}
        norms = [float(n) for n in row("gradient-norms", **case)["by_layer"].split()]
        mean = statistics.geometric_mean(norms) if all(map(math.isfinite, norms)) else math.inf
        yield f"{mean:.0e}" if math.isfinite(mean) else "overflows"


NUMBERS = {
    "first-losses": first_losses,
    "starts": starts,
    "starts.two": range_of_two_layers,
    "gradients": gradients,
    "zoo": zoo,
    "figure1": figure1,
    "thin100": speed_of_100_layers,
    "thin1000.first": speed("thin-highway-1000 train", "ours", "first_step_s", ".1f"),
    "thin1000.ms": speed("thin-highway-1000 train", "ours", "ms_a_step", ".0f"),
    "thin1000.mb": speed("thin-highway-1000 train", "ours", "peak_mb", ".0f"),
    "b.two": speed("highway-b train", "two_convolutions", "ours_over_peer", ".2f"),
    "b.maxout": speed("highway-b train", "maxout", "ours_over_peer", ".2f"),
    "b.torch": speed("highway-b train", "torch_eager", "ours_over_peer", ".2f"),
    "table1.16": of_runs("mnist-highway-16", "modern", 30),
    "table1.32": of_runs("mnist-highway-32", "modern", 30),
    "table1.32.short": of_runs("mnist-highway-32", "modern", 15),
}
