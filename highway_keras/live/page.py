"""Assemble the live page from a network and example images."""

import base64
import html
import importlib.resources
import json
import math
import string

import keras
import numpy as np

from highway_keras.data import edge_brightness
from highway_keras.live.steps import network_steps

MOST_BYTES = 4 * 2**20
MOST_MULTIPLICATIONS = 250_000_000  # a third of a second
MOST_EXAMPLES = 20
SCRIPTS = "elements weights operations network colors pad maps chart sentences page controls"


def render(graph, images, labels, class_names, title, observe):
    """Return the page as HTML; the arguments are those of `highway_keras.analysis.live_page`.

    `graph` is that of the model. `observe(what, images)` returns what `what` names, `"gates"` or
    `"outputs"`, as a list of arrays, one for each block.
    """
    shape, steps = tuple(graph.inputs[0].shape[1:]), network_steps(graph)
    size = 3 / 4 * len(json.dumps(steps))  # base64, but for a little
    if size > MOST_BYTES:
        raise ValueError(
            f"The live page holds up to {MOST_BYTES / 2**20:g} MiB of weights, so that it opens at "
            f"once and follows the pen. Received: {size / 2**20:.1f} MiB."
        )
    operations = sum(call.multiplications for call in graph.calls)
    if operations > MOST_MULTIPLICATIONS:
        raise ValueError(
            f"The live page runs networks of up to {MOST_MULTIPLICATIONS / 1e6:g} million "
            "multiplications, so that it follows the pen. Received: "
            f"{operations / 1e6:,.0f} million."
        )
    chosen = choose(labels)[: max(1, MOST_BYTES // math.prod(shape))]
    images, labels = images[chosen], labels[chosen]
    least, most = float(images.min()), float(images.max())
    whole = most > 1 and np.array_equal(images, np.rint(images))
    if not (0 <= least and most <= 255 and whole):
        raise ValueError(
            "`x` of a live page must hold gray levels, whole numbers from 0 to 255. Received: "
            f"{least:.3g} to {most:.3g}, {images.dtype}. For a network that takes scaled images, "
            "put the scaling into the model, as a `Rescaling` layer, and pass gray levels."
        )
    paper = 255 if (edge_brightness(images) or 0) > 127 else 0  # one draws as the images are drawn
    description = {
        "inputShape": shape,
        "classes": class_names,
        "layers": graph.blocks,
        "steps": steps,
        "paper": paper,
        "guide": drawn_box(np.abs(images - float(paper))),
        "scales": {
            "gates": scale(observe("gates", images), reach=1),
            "outputs": scale(observe("outputs", images)),
        },
        "examples": {
            "labels": labels.tolist(),
            "images": base64.b64encode(images.astype("uint8").tobytes()).decode(),
        },
    }
    description = json.dumps(description, ensure_ascii=False, separators=(",", ":"))
    act = "Paint over a picture" if shape[2] == 3 else "Draw"
    learned = any(call.layer.learned_carry for call in graph.gated)
    carried = "<i>C</i> · <i>x</i>" if learned else "(1 &minus; <i>T</i>) · <i>x</i>"
    weights = sum(call.layer.count_params() for call in graph.calls)
    maps = any(len(keras.tree.flatten(call.outputs)[0].shape) == 4 for call in graph.gated)
    stripes = "Stripes from top to bottom are values that layers carry unchanged."
    folder = importlib.resources.files(__package__)
    scripts = ((folder / f"{name}.js").read_text("utf-8") for name in SCRIPTS.split())
    return string.Template((folder / "page.html").read_text("utf-8")).substitute(
        title=html.escape(title),
        heading=f"{act} and watch the gates",
        depth=len(graph.blocks),
        cells="feature maps, shown as a small image" if maps else "units",
        formula=f"<i>y</i> = <i>T</i> · <i>H</i>(<i>x</i>) + {carried}",
        outputs_note="" if maps else stripes,
        footer=f"This file holds {weights:,} weights, and your browser runs the network.",
        style=(folder / "style.css").read_text("utf-8"),
        description=description.replace("<", "\\u003c"),  # or `</script>` would end it
        scripts="\n".join(f"<script>\n{script}</script>" for script in scripts),
    )


def check_shapes(graph):
    """Raise a `ValueError` unless a network classifies one image, which the page can show."""
    inputs, outputs = ([tuple(x.shape) for x in side] for side in (graph.inputs, graph.outputs))
    size = inputs[0][1:]
    is_image = len(inputs) == 1 and len(size) == 3 and None not in size and size[2] in (1, 3)
    if not is_image or [len(shape) for shape in outputs] != [2]:
        raise ValueError(
            "The live page supports networks from one image, (height, width, 1 or 3 channels), to "
            f"one class. Received: inputs of shape {', '.join(map(str, inputs))}, outputs of shape "
            f"{', '.join(map(str, outputs))}."
        )


def choose(labels):
    """Return indices of the first image of each class, then of the second of each, and so on."""
    order = np.argsort(labels, kind="stable")
    _, counts = np.unique(labels, return_counts=True)
    turn = np.concatenate([np.arange(n) for n in counts])  # how many of its class lie before
    return order[np.argsort(turn, kind="stable")][:MOST_EXAMPLES]


def drawn_box(images):
    """Return the box `[top, left, bottom, right]`, in pixels, that gray images are drawn in.

    Return `None` if it is most of the image, or if the images have color or are empty.
    """
    if images.shape[-1] != 1 or not images.any():
        return None
    ink = np.mean(images, axis=(0, 3))
    sums = ink.sum(axis=1), ink.sum(axis=0)  # of each row, of each column
    rows, columns = (np.flatnonzero(s > 0.1 * s.max()).tolist() for s in sums)
    top, left, bottom, right = rows[0], columns[0], rows[-1] + 1, columns[-1] + 1
    share = (bottom - top) * (right - left) / ink.size
    return [top, left, bottom, right] if share < 0.8 else None


def scale(blocks, reach=None):
    """Return the color scale of some arrays: its end, `reach`, and its power.

    The end is the first of ..., 0.5, 1, 2, 5, 10, ... that few of the numbers exceed. The power
    moves the median of those that are not 0 towards a quarter of the scale: without it, most gates
    of a deep network would be too close to 0 to tell apart.
    """
    sizes = np.abs(np.concatenate([block.ravel() for block in blocks]))
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return {"reach": 1, "power": 1}
    if reach is None:
        end = float(np.quantile(sizes, 0.998))
        power = 10.0 ** np.floor(np.log10(end))
        reach = float(f"{next(n for n in (1, 2, 5, 10) if n * power >= end) * power:g}")
    middle = np.clip(np.median(sizes) / reach, 1e-6, 1 - 1e-6)
    power = np.clip(np.log(0.25) / np.log(middle), 0.2, 1)
    return {"reach": reach, "power": round(float(power), 2)}
