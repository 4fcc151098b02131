"""`analyze`: all figures, a table and one page that needs nothing but itself."""

import base64
import csv
import dataclasses
import html
import io
import pathlib
import string

import numpy as np

from highway_keras.analysis import gating, lesioning, plots
from highway_keras.analysis.batches import check_names
from highway_keras.analysis.blocks import block_starts
from highway_keras.analysis.graph import Graph
from highway_keras.analysis.live import live_page
from highway_keras.analysis.needed import THRESHOLD, NeededLayers, needed_layers
from highway_keras.pictures import optional_picture
from highway_keras.text import cell

DOTS_PER_INCH = 110


@dataclasses.dataclass(frozen=True)
class Analysis:
    """What `analyze` measured and wrote.

    Attributes:
        biases, mean, gates, outputs: What `transform_biases`, `mean_gates`, `gates` and
            `block_outputs` returned, the last two for the first sample.
        lesions, needed: What `lesions` and `needed_layers` returned.
        page: Path of the HTML page.
        live: Path of the live page; `None` where there is none.
        no_live: Why there is none, one line.
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
    """Measures and draws the paper's Figures 2, 3 and 4 for a trained classifier.

    It writes `figure2.png`, `figure3.png`, `figure4.png`, `layers.csv` with a row a layer,
    `index.html`, which holds the pictures itself and opens without a network, and for networks
    that `live_page` can draw `live.html`.

    Args:
        model: A built functional or Sequential Keras model with gated layers that returns class
            probabilities `(batch_size, classes)`.
        x: Samples as `model` takes them; the paper uses the training images.
        y: Class numbers, integers `(samples,)`.
        out: Folder to write to; it is made if it is not there.
        class_names: Names of the classes, in the order of their numbers.
        title: Heading of the page. Default: the model's name.
        threshold: Rise of the error above which a layer counts; see `needed_layers`.
        verbose: 1 shows progress bars, 0 none, `"auto"` shows them on a terminal.
        examples: `(images, labels)` to step through on the live page, such as test images.
            Default: `x` and `y`.

    Returns:
        An `Analysis`.

    Raises:
        TypeError, ValueError: As `lesions` does.
        OSError: If the folder cannot be written.

    Example:

    >>> from highway_keras import analysis, data, training
    >>> digits = data.load("digits")  # doctest: +SKIP
    >>> run = training.fit("thin-highway-10", "digits")  # doctest: +SKIP
    >>> network = training.SavedNetwork(run.folder.best).model  # doctest: +SKIP
    >>> analysis.analyze(network, digits.x_train, digits.y_train, "look")  # doctest: +SKIP
    """
    out, graph = pathlib.Path(out), Graph(model)
    check_names("class_names", class_names, graph.outputs[0].shape[-1])
    lesions = lesioning.lesions(model, x, y, verbose=verbose)
    found = Analysis(
        biases=gating.transform_biases(model),
        mean=gating.mean_gates(model, x, y, verbose=verbose),
        gates=gating.gates(model, x[:1]),
        outputs=gating.block_outputs(model, x[:1]),
        lesions=lesions,
        needed=needed_layers(lesions, threshold),
        page=out / "index.html",
    )
    out.mkdir(parents=True, exist_ok=True)
    _write_layers(found, out / "layers.csv")
    images = _draw(found, out, sample=x[0], class_names=class_names)
    live = _write_live(out / "live.html", model, *(examples or (x, y)), class_names, title)
    found = dataclasses.replace(found, **live)
    found.page.write_text(_page(found, images, title or model.name, graph), encoding="utf-8")
    return found


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
            image = _png(plot())
            path.write_bytes(image)
            images[name] = image
    return images


def _png(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DOTS_PER_INCH, pil_kwargs={"optimize": True})
    return file.getvalue()


def _write_live(path, model, x, y, class_names, title):
    """What to note of the live page. What keeps it from being drawn must not lose the rest."""
    try:
        live_page(model, x, y, path, class_names, title)
    except Exception as error:
        reason = str(error) or type(error).__name__
        return {"no_live": reason.splitlines()[0]}
    return {"live": path}


def _write_layers(found, path):
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("layer", "mean_bias", "mean_gate", "lesion_loss", "lesion_error", "matters"))
        columns = (
            map(cell, found.lesions.layers),
            np.nanmean(found.biases.values, axis=1).tolist(),
            np.nanmean(found.mean.overall.values, axis=1).tolist(),
            found.lesions.loss.tolist(),
            found.lesions.error.tolist(),
            [int(layer in found.needed.layers) for layer in found.lesions.layers],
        )
        rows.writerows(zip(*columns, strict=True))


def _page(found, images, title, graph):
    sections = (
        ("Gates and block outputs", "figure2", _sentence_on_gates(found, graph)),
        ("Routing by class", "figure3", _sentence_on_routing(found)),
        ("Worth of each layer", "figure4", _sentence_on_lesions(found)),
    )
    body = "\n".join(
        _SECTION.substitute(
            heading=heading,
            sentence=html.escape(sentence),
            picture=_picture(heading, images.get(name)),
        )
        for heading, name, sentence in sections
    )
    lesions = found.lesions
    summary = (
        f"{len(lesions.layers)} gated layers, measured on {lesions.samples:,} samples: error "
        f"{100 * lesions.intact_error:.2f} %, loss {lesions.intact_loss:.4f} nats. {found.needed}"
    )
    live = _LIVE if found.live else f"No live page. {html.escape(found.no_live)}"
    return _PAGE.substitute(
        title=html.escape(title), summary=html.escape(summary), live=live, body=body
    )


def _picture(heading, image):
    if image is None:
        return "<p>This picture could not be drawn.</p>"
    return _PICTURE.substitute(heading=heading, image=base64.b64encode(image).decode())


def _sentence_on_gates(found, graph):
    biases = found.biases.values
    last = found.outputs.values[0]
    return (
        f"The biases of the transform gates average {np.nanmean(biases):.2f}"
        f"{_compared_with_starts(biases, block_starts(graph))}. Over all samples the mean gate is "
        f"{np.nanmean(found.mean.overall.values):.2f}; of the gates of the one sample shown "
        f"{np.nanmean(np.where(np.isnan(last), np.nan, found.gates.values[0] > 0.5)):.0%} are open "
        "(above 0.5). Stripes in the block outputs are values that layers pass on unchanged."
    )


def _sentence_on_routing(found):
    differences = np.abs(found.mean.by_class.values)
    by_layer = np.nanmean(differences, axis=(0, 2))
    most = int(np.argmax(by_layer))
    return (
        "Each map is the mean gate of one class minus that of all samples: where it is not white, "
        "the way through the network depends on the class. The difference is "
        f"{np.nanmean(differences):.3f} on average and largest in layer {most + 1} "
        f"({by_layer[most]:.3f})."
    )


def _sentence_on_lesions(found):
    lesions = found.lesions
    worst = int(np.argmax(lesions.error))
    return (
        "The error with the gates of one layer forced to 0, so that the layer copies its input, "
        "for each layer in turn; the dashed line is the intact network. Layer "
        f"{worst + 1} ({lesions.layers[worst]}) is worth most: without it the error is "
        f"{100 * lesions.error[worst]:.2f} %."
    )


def _compared_with_starts(biases, starts):
    """Return the part of the sentence that says where biases moved; empty if starts are unknown."""
    if np.isnan(starts).any():
        return ""
    share = np.mean((biases < starts[:, None])[~np.isnan(biases)])
    one_start = len(set(starts.tolist())) == 1
    start = f"their start {starts[0]:g}" if one_start else "the start of their layer"
    return f", {share:.0%} of them below {start}"


_SECTION = string.Template("""<section>
<h2>$heading</h2>
<p>$sentence</p>
$picture
</section>""")

_PICTURE = string.Template(
    '<div class="picture"><img alt="$heading" src="data:image/png;base64,$image"></div>'
)

_LIVE = '<a href="live.html">Draw its input and watch the gates</a>: the network itself, in a page.'

_PAGE = string.Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto;
       padding: 0 1rem; }
h1, h2 { line-height: 1.2; font-weight: 600; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.15rem; margin-top: 2.5rem; }
p { max-width: 44rem; }
.picture { overflow-x: auto; }
img { max-width: 100%; min-width: 44rem; height: auto; }
footer { margin: 3rem 0 1rem; color: #777; font-size: 0.85rem; }
</style>
</head>
<body>
<h1>$title</h1>
<p>$summary</p>
<p>$live</p>
$body
<footer>After Figures 2, 3 and 4 of Srivastava, Greff and Schmidhuber, Training Very Deep Networks,
2015.</footer>
</body>
</html>
""")
