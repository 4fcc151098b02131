"""Assemble the live page from a network and example images."""

import base64
import html
import importlib.resources
import json
import math
import string

import numpy as np

from highway_keras import analysis
from highway_keras.live.steps import network_steps
from highway_keras.util import checks, files

MAX_BYTES = 4 * 2**20
MAX_EXAMPLES = 20
SCRIPTS = "elements weights operations network colors pad maps chart sentences page controls"


def live_page(model, x, y, path, class_names=None, title=None):
    """Write a page to draw on, which shows gates, block outputs and probabilities live.

    The network runs in the page itself, in single precision whatever the model's dtype policy. A
    click closes a layer (T = 0). The file works offline.

    Args:
        model: A built functional or Sequential Keras model, a chain of layers from images to a
            softmax over classes: `Highway`, `HighwayStack`, `ConvHighway2D`, `Dense`, `Conv2D`,
            pooling, `Dropout`, `Flatten`, `Rescaling`, `Activation`, and the preprocessing of
            `highway_keras.data` but `"imagenet"`. Its images have gray levels 0 to 255, so any
            scaling must be part of the model.
        x: Images to step through, such as test images, `(n, height, width, 1 or 3)`; the page
            holds the first few of each class, at most 20 in all.
        y: Their class numbers, integers `(n,)`.
        path: The HTML file to write.
        class_names: Names of the classes, in the order of their numbers. Default: the numbers.
        title: A line that says which network it is. Default: the model's name.

    Raises:
        ValueError: If the page cannot compute one of its layers, its weights take more than 4 MiB,
            or `x` or `y` does not fit.
        OSError: If the file cannot be written.
    """
    shape, steps = _image_shape(model), network_steps(model)
    size = 3 / 4 * len(json.dumps(steps))  # base64, but for a little
    if size > MAX_BYTES:
        raise ValueError(
            f"The live page holds up to {MAX_BYTES / 2**20:g} MiB of weights, so that it opens at "
            f"once. Received: {size / 2**20:.1f} MiB."
        )
    classes = model.output_shape[-1]
    names = list(map(str, range(classes))) if class_names is None else list(class_names)
    checks.class_names("class_names", names, classes)
    labels = checks.class_numbers("y", np.reshape(y, (len(x),)), classes)
    chosen = choose(labels)[: max(1, MAX_BYTES // math.prod(shape))]
    images, labels = np.asarray(x[chosen]), labels[chosen]
    if not np.array_equal(images, np.clip(np.rint(images), 0, 255)) or images.max() <= 1:
        raise ValueError(
            "`x` of a live page must hold gray levels, whole numbers from 0 to 255. Received: "
            f"{images.min():.3g} to {images.max():.3g}, {images.dtype}. For a network that takes "
            "scaled images, put the scaling into the model, as a `Rescaling` layer, and pass gray "
            "levels."
        )
    gates = analysis.gates(model, images, per_position=True)
    outputs = analysis.block_outputs(model, images, per_position=True)
    paper = 255 if is_on_white(images) else 0  # one draws as the images are drawn
    description = {
        "inputShape": shape,
        "classes": names,
        "layers": list(gates),
        "steps": steps,
        "paper": paper,
        "guide": drawn_box(np.abs(images - float(paper))),
        "scales": {
            "gates": scale(gates.values(), reach=1),
            "outputs": scale(outputs.values()),
        },
        "examples": {
            "labels": labels.tolist(),
            "images": base64.b64encode(images.astype("uint8").tobytes()).decode(),
        },
    }
    files.write_text(path, _render(model, description, title or model.name))


def _render(model, description, title):
    """Return the page as HTML."""
    text = json.dumps(description, ensure_ascii=False, separators=(",", ":"))
    folder = importlib.resources.files(__package__)
    scripts = ((folder / f"{name}.js").read_text("utf-8") for name in SCRIPTS.split())
    return string.Template((folder / "page.html").read_text("utf-8")).substitute(
        title=html.escape(title),
        depth=len(description["layers"]),
        weights=f"{model.count_params():,}",
        style=(folder / "style.css").read_text("utf-8"),
        description=text.replace("<", "\\u003c"),  # or `</script>` would end it
        scripts="\n".join(f"<script>\n{script}</script>" for script in scripts),
    )


def _image_shape(model):
    """Return the shape of one image that a network takes, if the page can show it."""
    inputs, outputs = ([tuple(x.shape) for x in side] for side in (model.inputs, model.outputs))
    size = inputs[0][1:]
    is_image = len(inputs) == 1 and len(size) == 3 and None not in size and size[2] in (1, 3)
    if not is_image or [len(shape) for shape in outputs] != [2]:
        raise ValueError(
            "The live page supports networks from one image, (height, width, 1 or 3 channels), to "
            f"one class. Received: inputs of shape {', '.join(map(str, inputs))}, outputs of shape "
            f"{', '.join(map(str, outputs))}."
        )
    return size


def choose(labels):
    """Return indices of the first image of each class, then of the second of each, and so on."""
    order = np.argsort(labels, kind="stable")
    _, counts = np.unique(labels, return_counts=True)
    turn = np.concatenate([np.arange(n) for n in counts])  # how many of its class lie before
    return order[np.argsort(turn, kind="stable")][:MAX_EXAMPLES]


def is_on_white(images):
    """Return whether the outermost pixels of gray images are bright."""
    border = np.ones(images.shape[1:3], bool)
    border[1:-1, 1:-1] = False
    return images.shape[-1] == 1 and images[:, border].mean() > 127


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

    Few of the numbers exceed the end. The power moves the median of those that are not 0 towards a
    quarter of the scale: without it, most gates of a deep network would be too close to 0 to tell
    apart.
    """
    sizes = np.abs(np.concatenate([block.ravel() for block in blocks]))
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return {"reach": 1, "power": 1}
    if reach is None:
        reach = float(f"{np.quantile(sizes, 0.998):.1g}")
    middle = np.clip(np.median(sizes) / reach, 1e-6, 1 - 1e-6)
    power = np.clip(np.log(0.25) / np.log(middle), 0.2, 1)
    return {"reach": reach, "power": round(float(power), 2)}
