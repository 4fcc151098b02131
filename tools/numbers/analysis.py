"""The analysis of one network, layer by layer, beside what the paper says of its own."""

import statistics

from tools.numbers.rows import NONE, rows


def _layers():
    return [r for r in rows("analysis") if r["layer"] != "0"]


def of(column, form, first=1, last=None, factor=1):
    """Return a function that gives the mean of a column over some layers."""

    def text():
        found = [float(r[column]) for r in _layers()[first - 1 : last] if r[column]]
        return format(factor * statistics.mean(found), form) if found else NONE

    return text


def last_layers(column, form, count=5, factor=1):
    """Return a function that gives the mean of a column over the last layers."""

    def text():
        found = [float(r[column]) for r in _layers()[-count:]]
        return format(factor * statistics.mean(found), form) if found else NONE

    return text


def share_of_change(first, last=None):
    """Return a function that gives the share of some layers in all change of block outputs."""

    def text():
        changes = [float(r["change"] or 0) for r in _layers()]
        if not changes:
            return NONE
        return f"{100 * sum(changes[first:last]) / sum(changes):.0f} %"

    return text


def intact(column, form, factor=1):
    """Return a function that gives a figure of the network as it is."""

    def text():
        found = rows("analysis", layer=0)
        return format(factor * float(found[0][column]), form) if found else NONE

    return text


def tested():
    """Return the test accuracy of the analysed network, from the rows of its training."""
    network = rows("analysis", layer=0)
    epochs = rows("training-curves", command=network[0]["network"]) if network else []
    found = [r["test_accuracy"] for r in epochs if r["test_accuracy"]]
    return f"{100 * float(found[0]):.2f} %" if found else NONE


def matter():
    """Return the layers that matter, as ranges."""
    layers = [int(r["layer"]) for r in _layers() if r["matters"] == "1"]
    ranges = []
    for layer in layers:
        if ranges and layer == ranges[-1][1] + 1:
            ranges[-1][1] = layer
        else:
            ranges.append([layer, layer])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in ranges) or NONE


def idle():
    """Return the share of the layers that can be closed one at a time."""
    count, still = len(_layers()), sum(r["matters"] == "0" for r in _layers())
    return f"{still} of {count}, {100 * still / count:.0f} %" if count else NONE


NUMBERS = {
    "look.error": intact("lesion_error", ".2f", 100),
    "look.loss": intact("lesion_loss", ".3f"),
    "look.accuracy": tested,
    "look.below": of("below_start", ".0f", factor=100),
    "look.bias": of("mean_bias", ".2f"),
    "look.open": of("open", ".1f", factor=100),
    "look.open.first": of("open", ".1f", last=7, factor=100),
    "look.change.first": share_of_change(0, 15),
    "look.change.last": share_of_change(-5),
    "look.idle": idle,
    "look.matter": matter,
}
for _digit in (0, 7):
    _column = f"routing_{_digit}"
    NUMBERS |= {
        f"look.{_digit}.first": of(_column, ".3f", last=15),
        f"look.{_digit}.middle": of(_column, ".3f", first=16, last=44),
        f"look.{_digit}.last": last_layers(_column, ".3f"),
    }
