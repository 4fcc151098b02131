"""`analyze`: all figures, a table, and self-contained pages."""

import dataclasses
import io
import pathlib

import numpy as np

from highway_keras import checks
from highway_keras.analysis import gating, lesioning, plots
from highway_keras.analysis.batches import as_arrays
from highway_keras.analysis.blocks import block_starts
from highway_keras.analysis.graph import Graph
from highway_keras.analysis.live import live_page
from highway_keras.analysis.needed import THRESHOLD, NeededLayers, needed_layers
from highway_keras.analysis.page import page
from highway_keras.io import folder_lock, optional_picture, write_rows, write_text

DOTS_PER_INCH = 110


@dataclasses.dataclass(frozen=True)
class Analysis:
    """What `analyze` measured and wrote.

    The folder holds `figure2.png`, `figure3.png`, `figure4.png`, `layers.csv` with a row for each
    layer, `index.html` with all pictures in it, and for networks that `live_page` can draw
    `live.html`. The pages need no internet.

    Attributes:
        biases, mean, gates, outputs: What `transform_biases`, `mean_gates`, `gates` and
            `block_outputs` returned, the last two for the first sample.
        lesions, needed: What `lesions` and `needed_layers` returned.
        page: Path of the HTML page.
        live: Path of the live page; `None` where there is none.
        no_live: Why there is none, in one line.
    """

    biases: object
    mean: gating.MeanGates
    gates: object
    outputs: object
    lesions: lesioning.Lesions
    needed: NeededLayers
    page: pathlib.Path
    live: pathlib.Path | None = None
    no_live: str = ""


def analyze(
    model,
    x,
    y,
    out,
    class_names=None,
    title=None,
    threshold=THRESHOLD,
    verbose="auto",
    examples=None,
):
    """Measure and draw the paper's Figures 2, 3 and 4 for a trained classifier.

    Args:
        model: As for `lesions`; it returns class probabilities `(batch_size, classes)`.
        x: Samples as `model` takes them, an array, or a list of them; the paper uses the training
            images.
        y: Class numbers, integers `(samples,)`.
        out: Folder to write to; it is created if it does not exist.
        class_names: Names of the classes, in the order of their numbers.
        title: Heading of the page. Default: the model's name.
        threshold: As for `needed_layers`.
        verbose: 1 shows progress bars, 0 none, `"auto"` shows them on a terminal.
        examples: `(images, labels)` for the live page, such as test images. Default: `x` and `y`.

    Returns:
        An `Analysis`, which says what is in the folder.

    Raises:
        TypeError, ValueError: As `lesions` does.
        OSError: If the folder cannot be written.
        BusyError: If another process is writing to it.

    Example:

    >>> from highway_keras import analysis
    >>> found = analysis.analyze(network, x_train, y_train, "look")  # doctest: +SKIP
    """
    out, graph = checks.path("out", out), Graph(model)
    if class_names is not None:
        checks.class_names("class_names", class_names, graph.outputs[0].shape[-1])
    x = as_arrays(x, graph.inputs)
    with folder_lock(out):
        found = _measure(model, x, y, threshold, out / "index.html", verbose)
        write_rows(out / "layers.csv", layer_rows(found))
        images = _draw(found, out, sample=x[0][0], class_names=class_names)
        live = _write_live(out / "live.html", model, *(examples or (x, y)), class_names, title)
        found = dataclasses.replace(found, **live)
        write_text(found.page, page(found, images, title or model.name, block_starts(graph)))
        return found


def _measure(model, x, y, threshold, page, verbose):
    lesions = lesioning.lesions(model, x, y, verbose=verbose)
    first = [array[:1] for array in x]
    return Analysis(
        biases=gating.transform_biases(model),
        mean=gating.mean_gates(model, x, y, verbose=verbose),
        gates=gating.gates(model, first),
        outputs=gating.block_outputs(model, first),
        lesions=lesions,
        needed=needed_layers(lesions, threshold),
        page=page,
    )


def _draw(found, out, sample, class_names):
    """Write the figures that can be drawn; return them as the bytes of PNG files, by name."""
    shown = found.biases, found.mean.overall, found.gates, found.outputs
    figures = {
        "figure2": lambda: plots.plot_gates(*shown, sample=sample),
        "figure3": lambda: plots.plot_routing(found.mean.by_class, names=class_names),
        "figure4": lambda: plots.plot_lesions(found.lesions, found.needed),
    }
    images = {}
    for name, plot in figures.items():
        path = out / f"{name}.png"
        with optional_picture(path):
            path.unlink(missing_ok=True)  # it may show another network
            image = _png(plot())
            path.write_bytes(image)
            images[name] = image
    return images


def _png(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DOTS_PER_INCH, pil_kwargs={"optimize": True})
    return file.getvalue()


def layer_rows(found):
    """Return the rows of `layers.csv`, dictionaries, of an `Analysis`."""
    lesions = found.lesions
    columns = {
        "layer": lesions.layers,
        "mean_bias": np.nanmean(found.biases.values, axis=1).tolist(),
        "mean_gate": np.nanmean(found.mean.overall.values, axis=1).tolist(),
        "lesion_loss": lesions.loss.tolist(),
        "lesion_error": lesions.error.tolist(),
        "matters": [int(layer in found.needed.layers) for layer in lesions.layers],
    }
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _write_live(path, model, x, y, class_names, title):
    """Write the live page; return what to note about it. If it fails, the rest must not be lost."""
    try:
        path.unlink(missing_ok=True)  # it may show another network
        live_page(model, x, y, path, class_names, title)
    except Exception as error:
        reason = str(error) or type(error).__name__
        return {"no_live": reason.splitlines()[0]}
    return {"live": path}
