"""The page of an analysis: its pictures, each with a sentence, in one HTML file."""

import base64
import html
import string

import numpy as np


def page(found, images, title, starts):
    """Return the page as HTML.

    Args:
        found: An `Analysis`.
        images: The bytes of the PNG files by name, `figure2` to `figure4`; those that could not
            be drawn are missing.
        title: Heading of the page.
        starts: Where the biases of each block started, as `block_starts` returns it.
    """
    sections = (
        ("Gates and block outputs", "figure2", _sentence_on_gates(found, starts)),
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


def _sentence_on_gates(found, starts):
    biases = found.biases.values
    last = found.outputs.values[0]
    return (
        f"The biases of the transform gates average {np.nanmean(biases):.2f}"
        f"{_compared_with_starts(biases, starts)}. Over all samples the mean gate is "
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
