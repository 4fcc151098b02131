"""Starts: losses before the first step, gradients by layer, and training from other starts."""

import functools
import itertools
import math
import statistics

from tools.numbers.rows import columns, row, rows, table

SCALES = (0.5, 1.0, 2.0)  # of the starts
ACTIVATIONS = ("tanh", "relu")


def first_losses():
    """Return the table of the losses before the first step, beside the authors' logs."""
    names = ("network", "factor on the inputs", "authors' log", "N(0, 2 / fan-in), theirs")
    lines = []
    for ours in rows("first-losses", kernel_initializer="authors"):
        case = {key: ours[key] for key in ("model", "input_scale")}
        stock = row("first-losses", kernel_initializer="lecun_uniform", **case)
        losses = (f"{float(r['mean']):.2f} ± {float(r['std']):.2f}" for r in (ours, stock))
        logged = f"{float(ours['authors']):.2f}"
        lines.append((f"`{ours['model']}`", ours["input_scale"], logged, *losses))
    return table(columns((*names, "uniform, 1 / fan-in, stock Caffe's")), lines)


def starts():
    """Return the table of the losses from every start, of both biases and of plain networks."""
    settings = {
        "bias -4": ("highway", -4.0),
        "bias -10": ("highway", -10.0),
        "plain": ("plain", ""),
    }
    names = ("activation", "start", *(f"{s}, x {scale:g}" for s in settings for scale in SCALES))
    lines = []
    for activation, start in itertools.product(ACTIVATIONS, ("uniform", "normal", "orthogonal")):
        case = {"depth": 50, "activation": activation, "start": start}
        cells = (
            _loss(**case, kind=kind, transform_bias=bias, scale=scale)
            for kind, bias in settings.values()
            for scale in SCALES
        )
        lines.append((activation, start, *cells))
    return table(columns(names, left=2), lines)


def _loss(**case):
    """Return the loss from a start; blank if it has no row."""
    if not rows("starts", **case):
        return ""
    loss = float(row("starts", **case)["loss"])
    return f"{loss:.2f}" if math.isfinite(loss) else "diverged"


def range_of_losses(**networks):
    """Return the range of the losses of some networks over the starts."""
    losses = [float(r["loss"]) for r in rows("starts", **networks)]
    return f"{min(losses):.2f} to {max(losses):.2f}"


def gradients():
    """Return the table of the gradient's norm at 10 and 100 layers, the mean over the layers."""
    names = ("network", "activation", *(f"{d} layers, x {s:g}" for d in (10, 100) for s in SCALES))
    lines = []
    for kind in ("highway", "plain", "residual"):
        lines += [(kind, a, *_norms(kind, a)) for a in ACTIVATIONS]
    return table(columns(names, left=2), lines)


def _norms(kind, activation):
    for depth, scale in itertools.product((10, 100), SCALES):
        mean = _mean_norm(_by_layer(kind, activation, depth, scale))
        yield f"{mean:.0e}" if math.isfinite(mean) else "overflows"


def _by_layer(kind, activation, depth, scale):
    case = {"kind": kind, "activation": activation, "depth": depth, "scale": scale}
    return [float(norm) for norm in row("gradient-norms", **case)["by_layer"].split()]


def _mean_norm(norms):
    return statistics.geometric_mean(norms) if all(map(math.isfinite, norms)) else math.inf


def fall_of_plain_gradients():
    """Return the orders of magnitude for each ten layers, from 10 to 100, at half of the start."""
    falls = []
    for activation in ACTIVATIONS:
        shallow, deep = (_mean_norm(_by_layer("plain", activation, d, 0.5)) for d in (10, 100))
        falls.append(math.log10(shallow / deep) / 9)
    return f"{statistics.mean(falls):.0f}"


def growth_towards_the_images():
    """Return the orders from the last layer to the first: plain, tanh, twice the start."""
    norms = _by_layer("plain", "tanh", 100, 2.0)
    return f"{math.log10(norms[0] / norms[-1]):.0f}"


NUMBERS = {
    "first-losses": first_losses,
    "starts": starts,
    "starts.two": functools.partial(range_of_losses, kind="plain", depth=2),
    "starts.ten": functools.partial(
        range_of_losses, kind="highway", depth=50, transform_bias=-10.0
    ),
    "gradients": gradients,
    "gradients.fall": fall_of_plain_gradients,
    "gradients.growth": growth_towards_the_images,
}
