"""Every picture of the package, in one style.

A function takes numbers and returns a `matplotlib.figure.Figure` made without pyplot, which needs
no display and changes no global state. All colors can be told apart with any color vision. Nothing
in this module calls Keras.
"""

import math
from typing import NamedTuple

import numpy as np

from highway_keras.util.extras import extra
from highway_keras.util.messages import in_picture

with extra("plot"):
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

# Okabe and Ito's palette. Maps: perceptually uniform where numbers have a direction, diverging
# where they have a center.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
LINE, ACCENT, MUTED = COLORS[0], COLORS[1], "#777777"
SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"
KIND_STYLES = {"highway": "-", "plain": "--", "residual": ":"}
ACTIVATION_STYLES = {"tanh": "-", "relu": "--"}
MAPS_PER_ROW = 5
FAILED = 20  # nats: where trials that diverged are drawn, above all others


# Curves


class Line(NamedTuple):
    """A line or some points for `plot_lines`.

    Attributes:
        y: The values; None or NaN leaves a gap.
        label: What the legend calls it.
        style: Matplotlib's format of line and marker, such as `"o-"`.
        color: Number of its color, from 0.
        x: Where the values are. Default: 1, 2, ..., as epochs count.
    """

    y: list
    label: str
    style: str = "o-"
    color: int = 0
    x: list | None = None


def plot_lines(lines, title, ylabel, xscale="linear"):
    """Draw each `Line` over epochs."""
    figure, (axes,) = _panels((6.4, 3.8))
    for line in lines:
        x = range(1, len(line.y) + 1) if line.x is None else line.x
        style = {"color": COLORS[line.color % len(COLORS)], "alpha": 0.8, "lw": 1, "ms": 4}
        axes.plot(x, line.y, line.style, label=line.label, **style)
    axes.set(xscale=xscale, yscale="log")
    _finish(axes, title, "epoch", ylabel)
    _legend_below(figure, axes, 2)
    return figure


def plot_figure1(curves, tops):
    """Draw Figure 1: training loss by epoch, and the mean of the ten best trials by depth.

    `curves` is a dictionary from `(kind, depth)` to losses by epoch, `tops` are rows with `kind`,
    `depth` and `top10_mean`. The kind of network sets the line style, the depth the color.
    """
    figure, (left, right) = _panels((9.6, 4.8), 1, 2)
    depths = sorted({depth for _, depth in curves})
    for (kind, depth), losses in sorted(curves.items()):
        style = {"color": COLORS[depths.index(depth) % len(COLORS)], "ls": KIND_STYLES[kind]}
        left.semilogy(range(1, len(losses) + 1), losses, label=f"{kind} {depth}", **style)
    for kind, style in KIND_STYLES.items():
        rows = [row for row in tops if row["kind"] == kind and row["top10_mean"] != ""]
        points = [row["depth"] for row in rows], [row["top10_mean"] for row in rows]
        if rows:
            right.semilogy(*points, f"o{style}", color="k", label=kind)
            right.legend(frameon=False)
    _finish(left, "best trial", "epoch", "training loss (nats)")
    _finish(right, "mean of the top 10", "hidden layers", "training loss (nats)")
    right.set_xticks(depths)
    # Up to twelve curves leave no room for their names: they go below, a column per kind.
    _legend_below(figure, left, len({kind for kind, _ in curves}))
    return figure


def plot_biases(trials):
    """Draw the loss of each trial by transform bias, with the median of each unit interval.

    There is a row of panels per activation and a column per depth. `trials` are the rows of
    `figure1-trials.csv`, as numbers or text; crosses are trials that diverged.
    """
    trials = [row for row in trials if row["kind"] == "highway"]
    depths = sorted({int(row["depth"]) for row in trials})
    shape = len(ACTIVATION_STYLES), len(depths)
    figure, panels = _panels((9.6, 4.8), *shape, sharex=True, sharey=True)
    cases = [(activation, depth) for activation in ACTIVATION_STYLES for depth in depths]
    for axes, (activation, depth) in zip(panels, cases, strict=True):
        dots = [r for r in trials if (r["activation"], int(r["depth"])) == (activation, depth)]
        ended = [(float(r["transform_bias"]), float(r["score"])) for r in dots if r["score"] != ""]
        failed = [float(r["transform_bias"]) for r in dots if r["score"] == ""]
        axes.plot(*np.reshape(ended, (-1, 2)).T, "o", ms=3, alpha=0.6, color=LINE)
        axes.plot(failed, [FAILED] * len(failed), "x", ms=4, color=ACCENT)
        for low in {math.floor(bias) for bias, _ in ended}:
            median = np.median([score for bias, score in ended if math.floor(bias) == low])
            axes.plot([low, low + 1], [median] * 2, color="k", lw=1.5)
        axes.set_yscale("log")
        _finish(axes, f"{activation}, {depth} layers", "transform bias", "loss (nats)")
        axes.label_outer()
    return figure


def plot_gradient_norms(rows):
    """Draw the norm of the gradient by layer, from rows of `gradient-norms.csv` or their text.

    There is a panel for each kind of network and scale of its start.
    """
    kinds, scales, depths = (
        list(dict.fromkeys(row[key] for row in rows)) for key in ("kind", "scale", "depth")
    )
    size = (9.6, 2.4 * len(scales) + 0.6)
    figure, panels = _panels(size, len(scales), len(kinds), sharex=True, sharey=True)
    for row in rows:
        axes = panels[scales.index(row["scale"]) * len(kinds) + kinds.index(row["kind"])]
        norms = [float(norm) for norm in row["by_layer"].split()]
        style = {"ls": ACTIVATION_STYLES[row["activation"]], "lw": 1}
        style["color"] = COLORS[depths.index(row["depth"]) % len(COLORS)]
        label = f"{row['depth']} layers, {row['activation']}"
        axes.semilogy(range(2, len(norms) + 2), norms, label=label, **style)
        title = f"{row['kind']}, start x {float(row['scale']):g}"
        _finish(axes, title, "hidden layer", "norm of the gradient")
        axes.label_outer()
    _legend_below(figure, panels[0], 4)
    return figure


# Figures 2 to 4


def plot_gates(biases, mean, gates, outputs, sample=None):
    """Draw Figure 2: biases, mean gates, and gates and block outputs of one sample.

    Args:
        biases: What `transform_biases` returned.
        mean: The `overall` of what `mean_gates` returned.
        gates: What `gates` returned; the first sample is shown.
        outputs: What `block_outputs` returned; the first sample is shown.
        sample: That sample, shown next to them if it is an image `(height, width, 1 or 3)`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    biases, mean = _matrix(biases), _matrix(mean)
    gates, outputs = (_matrix({k: v[0] for k, v in x.items()}) for x in (gates, outputs))
    maps = [
        ("Mean gates, all samples", mean, 0, np.nanquantile(mean, 0.998)),
        ("Gates, one sample", gates, 0, np.nanquantile(gates, 0.998)),
        ("Outputs, one sample", outputs, None, _reach(outputs)),
    ]
    if not np.isnan(biases).all():  # gates of the user's own may have none
        low, high = np.nanquantile(biases, (0.002, 0.998))
        maps.insert(0, ("Transform gate biases", biases, low, high))
    figure = Figure(figsize=(12, _height(len(gates))), layout="constrained")
    left = figure
    if np.ndim(sample) == 3 and np.shape(sample)[-1] in (1, 3):
        left, right = figure.subfigures(1, 2, width_ratios=(len(maps), 0.5))
        axes, sample = right.subplots(), np.asarray(sample, "float32")
        low, high = sample.min(), sample.max()
        axes.imshow((sample - low) / ((high - low) or 1), cmap="gray", vmin=0, vmax=1)
        axes.set_title("The sample")
        axes.set(xticks=[], yticks=[], anchor="N")
    panels = left.subplots(1, len(maps), sharey=True)
    for axes, (title, values, low, high) in zip(panels, maps, strict=True):
        image = _map(axes, title, values, low, high)
        bar = left.colorbar(image, ax=axes, location="bottom", pad=0.02, aspect=30)
        bar.ax.locator_params(nbins=4)
        axes.label_outer()
    return figure


def plot_routing(by_class, classes=None, class_names=None):
    """Draw Figure 3: for each class, its mean gates minus those of all samples.

    Args:
        by_class: The `by_class` of what `mean_gates` returned with labels.
        classes: Which classes to show. Default: the first ten.
        class_names: Names of all classes, in the order of their numbers.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    classes = list(by_class)[: 2 * MAPS_PER_ROW] if classes is None else list(classes)
    maps = [_matrix(by_class[number]) for number in classes]
    columns = min(MAPS_PER_ROW, len(classes))
    rows = -(-len(classes) // columns)
    size = (2.2 * columns + 0.8, rows * 0.7 * _height(len(maps[0])))
    figure, panels = _panels(size, rows, columns, sharex=True, sharey=True)
    reach = _reach(np.stack(maps))
    for axes, number, values in zip(panels, classes, maps, strict=False):
        name = str(number if class_names is None else class_names[number])
        title = f"Class {name}" if name.isdigit() else name
        image = _map(axes, title, values, None, reach)
        axes.label_outer()
    for axes in panels[len(classes) :]:
        axes.set_visible(False)
    label = "Mean gate of the class minus mean gate of all"
    figure.colorbar(image, ax=panels, location="right", aspect=40, pad=0.02, label=label)
    return figure


def plot_lesions(lesions, needed):
    """Draw Figure 4: the error with the gates of one layer closed, for each layer.

    The dashed line is the intact network, the dotted one the threshold above which a layer counts.
    The axis is logarithmic, as in the paper, if errors differ by more than a factor of 4.

    Args:
        lesions: What `highway_keras.analysis.lesions` returned.
        needed: What `needed_layers` returned.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    error, intact = 100 * lesions.error, 100 * lesions.intact_error
    floor = 50 / lesions.samples  # half a sample: on a logarithmic axis, 0 needs a place
    is_logarithmic = max(error.max(), floor) > 4 * max(error.min(), floor)
    floor = floor if is_logarithmic else 0
    error = np.maximum(error, floor)
    matters = np.isin(lesions.layers, needed.layers)
    numbers = np.arange(1, len(error) + 1)
    figure, (axes,) = _panels((8, 4))
    axes.plot(numbers, error, color=LINE, lw=1, zorder=1)
    for chosen, fill, label in ((matters, LINE, "matters"), (~matters, "white", "idle")):
        style = {"s": 22, "facecolor": fill, "edgecolor": LINE, "linewidth": 1, "zorder": 2}
        axes.scatter(numbers[chosen], error[chosen], label=f"{label} ({chosen.sum()})", **style)
    threshold = max(intact + 100 * needed.threshold, floor)
    label = f"threshold (+{100 * needed.threshold:g} points)"
    axes.axhline(max(intact, floor), color=ACCENT, ls="--", label=f"intact ({intact:.2f} %)")
    axes.axhline(threshold, color=MUTED, ls=":", lw=1, label=label)
    ylabel = f"Error on {lesions.samples:,} samples (%{', logarithmic' if is_logarithmic else ''})"
    if is_logarithmic:
        axes.set_yscale("log")
    title = f"{len(needed.layers)} of {needed.of} gated layers matter"
    _finish(axes, title, "Layer whose gates are closed", ylabel)
    axes.legend(frameon=False)
    return figure


def plot_confusion(confusion, names):
    """Draw a confusion matrix: what share of the images of each class is taken for which class.

    `confusion` holds numbers of images, integers `(classes, classes)`, the true class first.
    """
    confusion, names = np.asarray(confusion), [in_picture(name) for name in names]
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    figure, (axes,) = _panels((6.4, 5.6))
    image = axes.imshow(shares, cmap=SEQUENTIAL, vmin=0, vmax=1)
    if len(names) <= 20:  # more have no room for texts
        for (true, taken), count in np.ndenumerate(confusion):
            is_dark = shares[true, taken] < 0.5  # in `SEQUENTIAL`, low values are dark
            color = "white" if is_dark else "black"
            axes.text(taken, true, count, ha="center", va="center", color=color)
        turned = max(map(len, names)) > 3
        axes.set_xticks(range(len(names)), names, rotation=90 if turned else 0)
        axes.set_yticks(range(len(names)), names)
    _label(axes, "Test images", "Taken for", "Class")
    figure.colorbar(image, ax=axes, label="Share of the class")
    return figure


def _matrix(by_block):
    """Stack an array `(units,)` for each block; NaN fills up those of narrower blocks."""
    values = np.full((len(by_block), max(map(len, by_block.values()))), np.nan)
    for row, units in zip(values, by_block.values(), strict=True):
        row[: len(units)] = units
    return values


def _map(axes, title, values, low, high):
    """Draw the units of all layers; `low=None` puts white, in the middle of the colors, at 0."""
    depth, units = values.shape
    if low is None:
        colors, low = DIVERGING, -high
    else:
        colors, high = SEQUENTIAL, high if high > low else low + 1
    image = axes.imshow(
        values,
        cmap=colors,
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="nearest",
        extent=(0.5, units + 0.5, depth + 0.5, 0.5),
    )
    _label(axes, title, "Block", "Gated layer")
    for ticks in (axes.xaxis, axes.yaxis):
        ticks.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    return image


def _reach(values):
    """Return a color limit that a few extreme numbers do not stretch."""
    return float(np.nanquantile(np.abs(values), 0.995)) or 1.0


def _height(layers):
    return 2.2 + 0.055 * max(layers, 20)


# Style


def _panels(size, rows=1, columns=1, **options):
    """Return a figure, and its axes in a flat list."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def _label(axes, title, xlabel, ylabel):
    axes.set(title=in_picture(title), xlabel=xlabel, ylabel=ylabel)


def _finish(axes, title, xlabel, ylabel):
    """Give axes with curves their texts, grid and ticks."""
    _label(axes, title, xlabel, ylabel)
    axes.grid(which="both", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "linear":
            if axis is axes.xaxis:
                axis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        elif limits[1] < 1000 * limits[0]:  # powers of 10 alone would be too few
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())


def _legend_below(figure, axes, columns):
    options = {"loc": "outside lower center", "frameon": False}
    figure.legend(*axes.get_legend_handles_labels(), ncols=columns, **options)
