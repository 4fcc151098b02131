"""The analysis of two networks, layer by layer, beside what the paper says of its own."""

import functools
import statistics

import numpy as np

from tools.numbers.rows import NONE, columns, rows, table


def _layers(dataset):
    return [r for r in rows("analysis", dataset=dataset) if r["layer"] != "0"]


def mean(dataset, column, form, first=0, last=None, factor=1):
    """Return the mean of a column over some layers, counted from 0."""
    found = [float(r[column]) for r in _layers(dataset)[first:last] if r[column]]
    return format(factor * statistics.fmean(found), form) if found else NONE


def share_of_change(dataset, first, last=None):
    """Return the share of some layers in all change of block outputs."""
    changes = [float(r["change"] or 0) for r in _layers(dataset)]
    return f"{100 * sum(changes[first:last]) / sum(changes):.0f} %" if changes else NONE


def whole(dataset, column, form, factor=1):
    """Return a figure of the network as it is."""
    found = rows("analysis", dataset=dataset, layer=0)
    return format(factor * float(found[0][column]), form) if found else NONE


def trend(dataset, column):
    """Return the rank correlation of a column with depth, from -1 to 1."""
    values = [float(r[column]) for r in _layers(dataset) if r[column]]
    if len(values) < 2:
        return NONE
    ranks = np.argsort(np.argsort(values))
    return f"{np.corrcoef(range(len(ranks)), ranks)[0, 1]:+.2f}"


def matter(dataset):
    """Return the layers that matter, as ranges."""
    layers = [int(r["layer"]) for r in _layers(dataset) if r["matters"] == "1"]
    ranges = []
    for layer in layers:
        if ranges and layer == ranges[-1][1] + 1:
            ranges[-1][1] = layer
        else:
            ranges.append([layer, layer])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in ranges) or "none"


def idle(dataset):
    """Return the share of the layers that can be closed one at a time."""
    layers = _layers(dataset)
    still = sum(r["matters"] == "0" for r in layers)
    return f"{still} of {len(layers)}, {100 * still / len(layers):.0f} %" if layers else NONE


def rises(dataset):
    """Return the largest rise of the error that one closed layer causes, and the last rise."""
    intact = rows("analysis", dataset=dataset, layer=0)
    if not intact:
        return NONE
    error = float(intact[0]["lesion_error"])
    rise = {int(r["layer"]): float(r["lesion_error"]) - error for r in _layers(dataset)}
    most = max(rise, key=rise.get)
    last = max((layer for layer in rise if rise[layer] > 0), default="none")
    return f"{100 * rise[most]:.2f} points, layer {most}; {last}"


def statements(dataset, classes):
    """Return what the table says of one network: texts by what they are about."""
    of = functools.partial(mean, dataset)
    error, loss = whole(dataset, "lesion_error", ".2f", 100), whole(dataset, "lesion_loss", ".3f")
    changes = [share_of_change(dataset, *part) for part in ((0, 15), (0, 40), (-5, None))]
    return {
        "error and loss on all training images": f"{error} %, {loss} nats",
        "test accuracy": f"{whole(dataset, 'test_accuracy', '.2f', 100)} %",
        "epochs": whole(dataset, "epochs", ".0f"),
        "biases at the start": of("start", ".2f"),
        "after training; mean distance moved": f"{of('mean_bias', '.2f')}; {of('moved', '.2f')}",
        "below their start": f"{of('below_start', '.0f', factor=100)} %",
        "in the first and the last ten layers": (
            f"{of('mean_bias', '.2f', last=10)}, {of('mean_bias', '.2f', first=-10)}"
        ),
        "rank correlation of depth with the mean bias, with the mean gate": (
            f"{trend(dataset, 'mean_bias')}, {trend(dataset, 'mean_gate')}"
        ),
        "mean gate; mean distance moved": f"{of('mean_gate', '.3f')}; {of('gate_moved', '.3f')}",
        "gates above 0.5 for a sample; in the first seven layers": (
            f"{of('open', '.1f', factor=100)} %; {of('open', '.1f', last=7, factor=100)} %"
        ),
        "gates above 0.5 for any of 2,000 samples": f"{of('ever_open', '.0f', factor=100)} %",
        "change of block outputs in the first 15, first 40, last 5 layers": ", ".join(changes),
        **{
            f"gates of the {order} class: layers 1 to 15, 16 to 44, last 5": ", ".join(
                of(f"routing_{number}", ".3f", *part) for part in ((0, 15), (15, 44), (-5, None))
            )
            for order, number in zip(("first", "second"), classes, strict=True)
        },
        "largest rise of the error by one closed layer; last layer with a rise": rises(dataset),
        "numbers of the layers that matter": matter(dataset),
        "layers that can be closed, one at a time": idle(dataset),
    }


NETWORKS = {"MNIST": ("mnist", (0, 7)), "CIFAR-100": ("cifar100", (0, 1))}


def networks():
    """Return the networks beside each other, as far as they were analysed."""
    titles = [title for title, (dataset, _) in NETWORKS.items() if _layers(dataset)]
    found = [statements(*NETWORKS[title]) for title in titles]
    lines = [(what, *(network[what] for network in found)) for what in found[0]]
    return table((("", *titles), ("---",) * (1 + len(titles))), lines)


def layers(model):
    """Return a network of the zoo layer by layer, with the error once its gates are closed."""
    found = rows("layers", model=model)
    if not found:
        return NONE
    names = ("gated layer", "bias at the start", "mean bias", "mean gate", "error if closed")
    lines = []
    for r in found:
        error = f"{100 * float(r['lesion_error']):.2f} %"
        if r["layer"] == "0":
            lines.append(("none: the intact network", "", "", "", error))
            continue
        name, means = r["name"].replace("_", ", "), (r["mean_bias"], r["mean_gate"])
        numbers = (f"{float(r['start']):.2f}", *(f"{float(mean):.2f}" for mean in means))
        lines.append((name, *numbers, error))
    return table(columns(names), lines)


def least_rise(model):
    """Return by how much closing a layer raises the error, in points, where it does so least."""
    intact, *closed = [100 * float(r["lesion_error"]) for r in rows("layers", model=model)] or [0]
    return f"{min(closed) - intact:.1f}" if closed else NONE


NUMBERS = {
    "look": networks,
}
for _name in ("highway-a", "highway-b"):
    NUMBERS |= {
        f"layers.{_name}": functools.partial(layers, _name),
        f"layers.{_name}.least": functools.partial(least_rise, _name),
    }
