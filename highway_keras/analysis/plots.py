"""The paper's Figures 2, 3 and 4, for any network.

Every function returns a `matplotlib.figure.Figure` made without pyplot, which needs no display and
changes no global state; `figure.savefig(path)` writes it. All color maps can be told apart with
any color vision.
"""

import numpy as np

from highway_keras.analysis.needed import needed_layers
from highway_keras.extras import extra
from highway_keras.messages import in_picture

with extra("plot"):
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

# Perceptually uniform where the numbers have a direction, diverging where they have a center.
SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"
LINE, ACCENT, MUTED = "#0072b2", "#d55e00", "#777777"  # of Okabe and Ito's palette
COLUMNS = 5
TITLE, LABEL, TICK = 12, 11, 10  # sizes of type, in points


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
    panels = (
        ("Transform gate biases", biases.values, SEQUENTIAL, _range(biases.values)),
        ("Mean gates, all samples", mean.values, SEQUENTIAL, _from_zero(mean.values)),
        ("Gates, one sample", gates.values[0], SEQUENTIAL, _from_zero(gates.values[0])),
        ("Outputs, one sample", outputs.values[0], DIVERGING, _symmetric(outputs.values[0])),
    )
    figure = Figure(figsize=(12, _height(len(biases.values))), layout="constrained")
    maps = figure
    if _is_image(sample):
        maps, beside = figure.subfigures(1, 2, width_ratios=(len(panels), 0.5))
        _show_sample(beside, sample)
    axes = maps.subplots(1, len(panels), sharey=True)
    for axis, (title, values, colours, limits) in zip(axes, panels, strict=True):
        image = _show_layers(axis, values, colours, limits)
        axis.set_title(title, fontsize=TITLE)
        axis.set_xlabel("Block", fontsize=LABEL)
        _colorbar(maps, image, axis, location="bottom", pad=0.02, aspect=30)
    axes[0].set_ylabel("Gated layer", fontsize=LABEL)
    return figure


def plot_routing(by_class, classes=None, names=None):
    """Draw Figure 3: for each class, its mean gates minus those of all samples.

    Args:
        by_class: The `by_class` of what `mean_gates` returned with labels.
        classes: Which classes to show. Default: the first ten.
        names: Names of all classes, in the order of their numbers.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If a class has no name.
    """
    shown = list(by_class.axes["class"])[: 2 * COLUMNS] if classes is None else list(classes)
    if names is not None and max(shown) >= len(names):
        raise ValueError(
            f"`names` must name all classes, up to class {max(shown)}. "
            f"Received: {len(names)} names."
        )
    maps = [by_class.at(**{"class": number}).values for number in shown]
    columns = min(COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    size = (2.2 * columns + 0.8, rows * (0.7 * _height(len(maps[0]))))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    limits = _symmetric(np.stack(maps))
    for axis, number, values in zip(grid.flat, shown, maps, strict=False):
        image = _show_layers(axis, values, DIVERGING, limits)
        name = f"{number if names is None else names[number]}"
        axis.set_title(f"Class {name}" if name.isdigit() else in_picture(name), fontsize=TITLE)
    for axis in grid.flat[len(shown) :]:
        axis.set_visible(False)
    for axis in grid[:, 0]:
        axis.set_ylabel("Gated layer", fontsize=LABEL)
    for axis in grid[-1]:
        axis.set_xlabel("Block", fontsize=LABEL)
    label = "Mean gate of the class minus mean gate of all"
    _colorbar(figure, image, grid, location="right", aspect=40, pad=0.02, label=label)
    return figure


def plot_lesions(lesions, needed=None):
    """Draw Figure 4: the error with the gates of one layer closed, for each layer.

    The dashed line is the intact network, the dotted one the threshold above which a layer counts.

    Args:
        lesions: What `highway_keras.analysis.lesions` returned.
        needed: What `needed_layers` returned. Default: `needed_layers(lesions)`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    needed = needed or needed_layers(lesions)
    floor = 50 / lesions.samples  # half a sample: on a logarithmic axis, 0 needs a place
    error = np.maximum(100 * lesions.error, floor)
    intact = 100 * lesions.intact_error
    figure = Figure(figsize=(8, 4), layout="constrained")
    axis = figure.subplots()
    _show_errors(axis, error, np.isin(lesions.layers, needed.layers))
    axis.axhline(max(intact, floor), color=ACCENT, linestyle="--", label=f"intact ({intact:.2f} %)")
    label = f"threshold (+{100 * needed.threshold:g} points)"
    limit = intact + 100 * needed.threshold
    axis.axhline(limit, color=MUTED, linestyle=":", linewidth=1, label=label)
    _scale_errors(axis, error, lesions.samples)
    axis.set_xlabel("Layer whose gates are closed", fontsize=LABEL)
    axis.set_title(f"{len(needed.layers)} of {needed.of} gated layers matter", fontsize=TITLE)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", which="both", color="#eeeeee", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.legend(frameon=False, fontsize=TICK)
    return figure


def _show_errors(axis, error, matters):
    """Draw a curve over the layers, with filled points for those that matter."""
    numbers = np.arange(1, len(error) + 1)
    axis.plot(numbers, error, color=LINE, linewidth=1, zorder=1)
    for chosen, fill, label in ((matters, LINE, "matters"), (~matters, "white", "idle")):
        label = f"{label} ({chosen.sum()})"
        style = {"s": 22, "facecolor": fill, "edgecolor": LINE, "linewidth": 1, "zorder": 2}
        axis.scatter(numbers[chosen], error[chosen], label=label, **style)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=(1, 2, 5, 10)))
    axis.tick_params(which="both", labelsize=TICK)


def _scale_errors(axis, error, samples):
    """Make the axis logarithmic, as in the paper, unless that leaves it without ticks."""
    label = f"Error on {samples:,} samples (%)"
    if error.max() > 4 * error.min():
        label = f"{label[:-1]}, logarithmic)"
        axis.set_yscale("log")
        axis.yaxis.set_minor_formatter(FuncFormatter(_first_digits))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_ylabel(label, fontsize=LABEL)


def _is_image(sample):
    return np.ndim(sample) == 3 and np.shape(sample)[-1] in (1, 3)


def _show_sample(figure, sample):
    """Draw the image that goes with maps of one sample."""
    axis = figure.subplots()
    low, high = np.min(sample), np.max(sample)
    shown = (np.asarray(sample, "float32") - low) / ((high - low) or 1)
    axis.imshow(shown.squeeze(-1) if shown.shape[-1] == 1 else shown, cmap="gray")
    axis.set_title("The sample", fontsize=TITLE)
    axis.set(xticks=[], yticks=[], anchor="N")


def _show_layers(axis, values, colours, limits):
    low, high = limits
    depth, units = values.shape
    image = axis.imshow(
        values,
        cmap=colours,
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="nearest",
        extent=(0.5, units + 0.5, depth + 0.5, 0.5),
    )
    axis.tick_params(labelsize=TICK)
    for ticks in (axis.xaxis, axis.yaxis):
        ticks.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    return image


def _colorbar(figure, image, axes, **options):
    """Draw a color bar, with an arrow at each end that some numbers exceed."""
    low, high = image.get_clim()
    below, above = np.nanmin(image.get_array()) < low, np.nanmax(image.get_array()) > high
    extend = {(True, True): "both", (True, False): "min", (False, True): "max"}
    extend = extend.get((bool(below), bool(above)), "neither")
    bar = figure.colorbar(image, ax=axes, extend=extend, extendfrac=0.03, **options)
    bar.ax.tick_params(labelsize=TICK)
    bar.ax.locator_params(nbins=4)


# Color limits that a few extreme numbers do not stretch.


def _range(values):
    low, high = np.nanquantile(values, (0.002, 0.998))
    return (low, high) if low < high else (low - 1, high + 1)


def _from_zero(values):
    return 0, float(np.nanquantile(values, 0.998)) or 1.0


def _symmetric(values):
    reach = float(np.nanquantile(np.abs(values), 0.995)) or 1.0
    return -reach, reach


def _height(layers):
    return 2.2 + 0.055 * max(layers, 20)


def _first_digits(value, _):
    first = value / 10 ** np.floor(np.log10(value))
    return f"{value:g}" if np.isclose(first, (2, 5)).any() else ""
