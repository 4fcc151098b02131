"""`analyze`: all figures, a table, and a page that holds them."""

import base64
import dataclasses
import html
import importlib.resources
import pathlib
import string

import keras
import numpy as np

from highway_keras import plots
from highway_keras.analysis import gating, lesioning
from highway_keras.util import checks
from highway_keras.util.files import folder_lock, write_picture, write_rows, write_text

DOTS_PER_INCH = 110
FIGURES = {
    "figure2": "Gates and block outputs",
    "figure3": "Routing by class",
    "figure4": "Error with each layer closed",
}


@dataclasses.dataclass(frozen=True)
class Analysis:
    """What `analyze` measured and wrote.

    The folder holds `figure2.png`, `figure3.png`, `figure4.png`, `layers.csv` with a row for each
    layer, and `index.html` with all pictures in it, which needs no internet.

    Attributes:
        biases, mean, gates, outputs: What `transform_biases`, `mean_gates`, `gates` and
            `block_outputs` returned, the last two for the first sample.
        lesions, needed: What `lesions` and `needed_layers` returned.
        page: Path of the HTML page.
    """

    biases: dict
    mean: gating.MeanGates
    gates: dict
    outputs: dict
    lesions: lesioning.Lesions
    needed: lesioning.NeededLayers
    page: pathlib.Path


def analyze(
    model,
    x,
    y,
    out,
    *,
    class_names=None,
    title=None,
    threshold=lesioning.THRESHOLD,
    batch_size=None,
    verbose="auto",
):
    """Measure and draw the paper's Figures 2, 3 and 4 for a trained classifier.

    Args:
        model: As for `lesions`; it returns class probabilities `(batch_size, classes)`.
        x: Samples as `model` takes them, an array, or a list or dictionary of them; the paper uses
            the training images.
        y: Class numbers, integers `(samples,)`.
        out: Folder to write to; it is created if it does not exist.
        class_names: Names of the classes, in the order of their numbers.
        title: Heading of the page. Default: the model's name.
        threshold: As for `needed_layers`.
        batch_size, verbose: As for `gates`.

    Returns:
        An `Analysis`, which says what is in the folder.

    Raises:
        ValueError: As `lesions` does.
        OSError: If the folder cannot be written.
        BusyError: If another process is writing to it.

    Examples:
        >>> from highway_keras import analysis
        >>> analysis.analyze(network, x_train, y_train, "look").page  # doctest: +SKIP
    """
    out = pathlib.Path(out).expanduser()
    checks.number("threshold", threshold, least=0, below=1)
    if class_names is not None:
        checks.class_names("class_names", class_names, model.output_shape[-1])
    first = keras.tree.map_structure(lambda array: array[:1], x)
    with folder_lock(out):
        lesions = lesioning.lesions(model, x, y, batch_size=batch_size, verbose=verbose)
        analysis = Analysis(
            biases=gating.transform_biases(model),
            mean=gating.mean_gates(model, x, y, batch_size, verbose),
            gates=gating.gates(model, first),
            outputs=gating.block_outputs(model, first),
            lesions=lesions,
            needed=lesioning.needed_layers(lesions, threshold),
            page=out / "index.html",
        )
        write_rows(out / "layers.csv", layer_rows(analysis))
        mean, sample = analysis.mean, keras.tree.flatten(first)[0][0]
        maps = analysis.biases, mean.overall, analysis.gates, analysis.outputs
        draw = {
            "figure2": lambda: plots.plot_gates(*maps, sample),
            "figure3": lambda: plots.plot_routing(mean.by_class, class_names=class_names),
            "figure4": lambda: plots.plot_lesions(lesions, analysis.needed),
        }
        for name in FIGURES:
            write_picture(out / f"{name}.png", draw[name], DOTS_PER_INCH)
        write_text(analysis.page, render(analysis, title or model.name))
    return analysis


def layer_rows(analysis):
    """Return the rows of `layers.csv`, dictionaries, of an `Analysis`."""
    lesions = analysis.lesions
    return [
        {
            "layer": layer,
            "mean_bias": float(analysis.biases[layer].mean()),
            "mean_gate": float(analysis.mean.overall[layer].mean()),
            "lesion_loss": float(lesions.loss[i]),
            "lesion_error": float(lesions.error[i]),
            "matters": int(layer in analysis.needed.layers),
        }
        for i, layer in enumerate(lesions.layers)
    ]


def render(analysis, title):
    """Return the page of an `Analysis` and its pictures as HTML."""
    lesions, mean = analysis.lesions, analysis.mean
    worst = int(np.argmax(lesions.error))
    texts = {
        "title": title,
        "layers": len(lesions.layers),
        "samples": f"{lesions.samples:,}",
        "error": f"{100 * lesions.intact_error:.2f}",
        "loss": f"{lesions.intact_loss:.4f}",
        "needed": analysis.needed,
        "bias": f"{np.concatenate(list(analysis.biases.values())).mean():.2f}",
        "mean_gate": f"{np.concatenate(list(mean.overall.values())).mean():.2f}",
        "worst": f"{worst + 1} ({lesions.layers[worst]})",
        "worst_error": f"{100 * lesions.error[worst]:.2f}",
    }
    parts = {name: html.escape(str(text)) for name, text in texts.items()}
    for name, alt in FIGURES.items():
        file = analysis.page.with_name(f"{name}.png")
        picture = base64.b64encode(file.read_bytes()).decode() if file.is_file() else ""
        parts[name] = f'<img alt="{alt}" src="data:image/png;base64,{picture}">'
    page = importlib.resources.files(__package__).joinpath("page.html").read_text("utf-8")
    return string.Template(page).substitute(parts)
