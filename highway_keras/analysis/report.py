"""`analyze`: all figures, a table, and self-contained pages; `live_page`: one to draw on."""

import base64
import dataclasses
import html
import importlib.resources
import pathlib
import string

import keras
import numpy as np

from highway_keras.analysis import gating, lesioning
from highway_keras.analysis.graph import Graph
from highway_keras.analysis.named_array import by_layer
from highway_keras.analysis.pictures import write_picture
from highway_keras.analysis.samples import as_arrays, as_labels
from highway_keras.live.page import check_shapes, render
from highway_keras.util import checks
from highway_keras.util.files import folder_lock, write_rows, write_text
from highway_keras.util.messages import reason

DOTS_PER_INCH = 110
TABLE = "layers.csv"
LIVE = '<a href="live.html">Draw an input and watch the gates</a> in a page that runs the network.'


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
    needed: lesioning.NeededLayers
    page: pathlib.Path
    live: pathlib.Path | None = None
    no_live: str = ""


def analyze(
    model,
    x,
    y,
    out,
    *,
    class_names=None,
    title=None,
    threshold=lesioning.THRESHOLD,
    verbose="auto",
    examples=None,
    batch_size=None,
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
        batch_size: Samples per batch. Default: those of `lesions` and `mean_gates`.

    Returns:
        An `Analysis`, which says what is in the folder.

    Raises:
        TypeError: As `lesions` does.
        ValueError: As `lesions` does, or if `out` holds something else under one of the names that
            an analysis writes, such as `index.html`.
        OSError: If the folder cannot be written.
        BusyError: If another process is writing to it.

    Examples:
        >>> from highway_keras import analysis
        >>> found = analysis.analyze(network, x_train, y_train, "look")  # doctest: +SKIP
    """
    out = checks.path("out", out)
    checks.number("threshold", threshold, least=0, below=1)
    # Raises before any pass over the data
    graph, measure = lesioning.measurement(model, x, y, batch_size=batch_size)
    if len(graph.outputs[0].shape) != 2:
        raise ValueError(
            "`model` must return one class for each sample, (batch_size, classes). Received: "
            f"outputs of shape {tuple(graph.outputs[0].shape)}. `lesions` takes those."
        )
    if class_names is not None:
        checks.class_names("class_names", class_names, graph.outputs[0].shape[-1])
    x, title = as_arrays(x, graph.inputs), title or model.name
    page = out / "index.html"
    names = (TABLE, page.name, "live.html", "figure2.png", "figure3.png", "figure4.png")
    held = [name for name in names if (out / name).exists()]
    # The table is written first, so any folder of an analysis has one.
    table = (out / TABLE).read_bytes() if (out / TABLE).is_file() else b""
    if held and not table.startswith(b"layer,mean_bias,mean_gate,"):
        raise ValueError(
            "`out` must be a new folder or that of an analysis. "
            f"Received: out={out}, whose {held[0]} is something else."
        )
    with folder_lock(out):
        lesions = measure(verbose)  # first: it refuses logits after one batch
        mean = gating.mean_gates(model, x, y, batch_size, verbose)
        first = [array[:1] for array in x]
        single = gating.gates(model, first, per_position=True)
        means = [gate.mean(axis=tuple(range(1, gate.ndim - 1))) for gate in single.values()]
        found = Analysis(
            biases=gating.transform_biases(model),
            mean=mean,
            gates=by_layer(means, graph.blocks, sample=range(1)),
            outputs=gating.block_outputs(model, first),
            lesions=lesions,
            needed=lesioning.needed_layers(lesions, threshold),
            page=page,
        )
        write_rows(out / TABLE, layer_rows(found))
        figures = {
            "figure2": lambda plots: plots.plot_gates(
                found.biases, found.mean.overall, found.gates, found.outputs, sample=x[0][0]
            ),
            "figure3": lambda plots: plots.plot_routing(
                found.mean.by_class, class_names=class_names
            ),
            "figure4": lambda plots: plots.plot_lesions(found.lesions, found.needed),
        }
        for name, figure in figures.items():
            write_picture(out / f"{name}.png", figure, DOTS_PER_INCH)
        live, no_live = out / "live.html", ""
        try:
            live.unlink(missing_ok=True)  # it may show another network
            live_page(model, *(examples or (x, y)), live, class_names, title)
        except Exception as error:  # the rest must not be lost
            live, no_live = None, reason(error)
        found = dataclasses.replace(found, live=live, no_live=no_live)
        open_share = np.mean(np.concatenate([gate.ravel() > 0.5 for gate in single.values()]))
        write_text(found.page, _page(found, title, gating.block_starts(graph), open_share))
        return found


def layer_rows(found):
    """Return the rows of `layers.csv`, dictionaries, of an `Analysis`."""
    lesions = found.lesions
    biases = np.ma.masked_invalid(found.biases.values).mean(axis=1)  # a layer may have none
    columns = {
        "layer": lesions.layers,
        "mean_bias": biases.filled(np.nan).tolist(),
        "mean_gate": np.nanmean(found.mean.overall.values, axis=1).tolist(),
        "lesion_loss": lesions.loss.tolist(),
        "lesion_error": lesions.error.tolist(),
        "matters": [int(layer in found.needed.layers) for layer in lesions.layers],
    }
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def live_page(model, x, y, path, class_names=None, title=None):
    """Write a page to draw on, which shows gates, block outputs and probabilities live.

    The network runs in the page itself, in single precision whatever the model's dtype policy. A
    click closes a layer (T = 0). The file works offline.

    Args:
        model: A built functional or Sequential Keras model, a chain of layers from images to a
            softmax over classes: `Highway`, `HighwayStack`, `ConvHighway2D`, `Dense`, `Conv2D`,
            pooling, `Dropout`, `Flatten`, `Rescaling`, `Activation`, and the preprocessing of
            `highway_keras.data`. Its images have gray levels 0 to 255, so any scaling must be part
            of the model.
        x: Images to step through, such as test images, `(n, height, width, 1 or 3)`; the page
            holds the first few of each class, at most 20 in all.
        y: Their class numbers, integers `(n,)`.
        path: The HTML file to write.
        class_names: Names of the classes, in the order of their numbers. Default: the numbers.
        title: A line that says which network it is. Default: the model's name.

    Raises:
        TypeError: If `model` is not a functional or Sequential model.
        ValueError: If the page cannot compute one of its layers, its weights take more than 4 MiB,
            an image takes more than 250 million multiplications, `x` or `y` does not fit it, or
            `x` is not of gray levels.
        OSError: If the file cannot be written.

    Examples:
        >>> from highway_keras import analysis, data, training
        >>> digits = data.load("digits")  # doctest: +SKIP
        >>> network = training.SavedNetwork("runs/thin/best.keras").model  # doctest: +SKIP
        >>> analysis.live_page(network, digits.x_test, digits.y_test, "live.html")  # doctest: +SKIP
    """
    graph = Graph(model)
    check_shapes(graph)
    (images,), output = as_arrays(x, graph.inputs), graph.outputs[0].shape
    labels, classes = as_labels(y, len(images), output), output[-1]
    names = list(map(str, range(classes))) if class_names is None else list(class_names)
    checks.class_names("class_names", names, classes)

    def observe(what, images):
        # Called, not predicted: a compiled function for a single batch costs more than it saves.
        inputs = keras.ops.convert_to_tensor(images, graph.inputs[0].dtype)
        blocks = keras.tree.flatten(gating.observer(graph, what, per_position=True)(inputs))
        return [keras.ops.convert_to_numpy(block) for block in blocks]

    write_text(path, render(graph, images, labels, names, title or model.name, observe))


def _page(found, title, starts, open_share):
    """Return the page of an `Analysis`.

    `starts` are those of the biases, by `block_starts`; `open_share` is that of open gates.
    """
    lesions, biases, said = found.lesions, found.biases.values, ""
    if not np.isnan(biases).all():  # gates of the user's own may have none
        said = f"The biases of the transform gates average {np.nanmean(biases):.2f}"
        if not np.isnan(starts).any():
            share = np.mean((biases < starts[:, None])[~np.isnan(biases)])
            start = "the start of their layer" if np.ptp(starts) else f"their start {starts[0]:g}"
            said += f", {share:.0%} of them below {start}"
        said += ". "
    differences = np.abs(found.mean.by_class.values)
    routed = np.nanmean(differences, axis=(0, 2))
    most, worst = int(np.argmax(routed)), ""
    if lesions.error.max() > lesions.intact_error:
        layer = int(np.argmax(lesions.error))
        worst = (
            f" Layer {layer + 1} ({lesions.layers[layer]}) is worth most: without it the error is "
            f"{100 * lesions.error[layer]:.2f} %."
        )
    texts = {
        "title": title,
        "layers": len(lesions.layers),
        "samples": f"{lesions.samples:,}",
        "error": f"{100 * lesions.intact_error:.2f}",
        "loss": f"{lesions.intact_loss:.4f}",
        "needed": found.needed,
        "biases": said,
        "mean_gate": f"{np.nanmean(found.mean.overall.values):.2f}",
        "open": f"{open_share:.0%}",
        "difference": f"{np.nanmean(differences):.3f}",
        "largest": f"{most + 1} ({routed[most]:.3f})",
        "worst": worst,
    }
    parts = {name: html.escape(str(text)) for name, text in texts.items()}
    parts["live"] = LIVE if found.live else f"No live page. {html.escape(found.no_live)}"
    titles = ("Gates and block outputs", "Routing by class", "Error with each layer closed")
    for name, alt in zip(("figure2", "figure3", "figure4"), titles, strict=True):
        path = found.page.with_name(f"{name}.png")
        parts[name] = "<p>This picture could not be drawn.</p>"
        if path.is_file():
            source = f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
            parts[name] = f'<div class="picture"><img alt="{alt}" src="{source}"></div>'
    frame = importlib.resources.files(__package__).joinpath("page.html").read_text("utf-8")
    return string.Template(frame).substitute(parts)
