"""`live_page`: one HTML file with the network in it."""

import keras

from highway_keras import checks
from highway_keras.analysis.batches import as_arrays, as_labels
from highway_keras.analysis.gating import observer
from highway_keras.analysis.graph import Graph
from highway_keras.analysis.live import examples
from highway_keras.analysis.live.steps import network_steps
from highway_keras.analysis.live.template import fill, texts
from highway_keras.analysis.live.weights import Weights
from highway_keras.io import write_text

MOST_BYTES = 4 * 2**20


def live_page(model, x, y, path, class_names=None, title=None):
    """Write a page to draw on, which shows gates, block outputs and probabilities live.

    The network runs in the page itself, in single precision whatever the model's dtype policy. A
    click closes a layer (T = 0). The file works offline.

    Args:
        model: A built functional or Sequential Keras model, a chain of layers from images to a
            softmax over classes: `Highway`, `HighwayStack`, `ConvHighway2D`, `Dense`, `Conv2D`,
            pooling, `Dropout`, `Flatten`, `Rescaling`, `Activation`, and the preprocessing of
            `highway_keras.data`. It takes images of gray levels 0 to 255: a scaling of them is
            part of it.
        x: Images to step through, such as test images, `(n, height, width, 1 or 3)`; the page
            holds the first few of each class, 20 in all.
        y: Their class numbers, integers `(n,)`.
        path: The HTML file to write.
        class_names: Names of the classes, in the order of their numbers. Default: the numbers.
        title: A line that says which network it is. Default: the model's name.

    Raises:
        TypeError: If `model` is not a functional or Sequential model.
        ValueError: If the page cannot compute one of its layers, its weights take more than 4 MiB,
            `x` or `y` does not fit it, or `x` is not of gray levels.
        OSError: If the file cannot be written.

    Example:

    >>> from highway_keras import analysis, data, training
    >>> digits = data.load("digits")  # doctest: +SKIP
    >>> network = training.SavedNetwork("runs/thin/best.keras").model  # doctest: +SKIP
    >>> analysis.live_page(network, digits.x_test, digits.y_test, "live.html")  # doctest: +SKIP
    """
    graph = Graph(model)
    shape = _image_shape(graph)
    (images,) = as_arrays(x, graph.inputs)
    labels = as_labels(y, len(images))
    names = _names(model, labels, class_names)
    weights = Weights()
    steps = network_steps(graph, weights)
    _check_size(model, weights)
    number_format, numbers = weights.encode()
    chosen = examples.choose(labels)
    examples.check_gray_levels(images[chosen])
    description = {
        "inputShape": shape,
        "classes": names,
        "layers": graph.blocks,
        "steps": steps,
        "format": number_format,
        **_of_examples(graph, images[chosen], labels[chosen]),
    }
    said = texts(graph, shape, names, title or model.name, weights)
    write_text(path, fill(said, description, numbers))


def _of_examples(graph, images, labels):
    """Return the examples, and the drawing area and color scales that follow from them."""
    return {
        "guide": examples.drawn_box(images),
        "scales": {
            "gates": examples.scale(_observed(graph, "gates", images), reach=1),
            "outputs": examples.scale(_observed(graph, "outputs", images)),
        },
        "examples": examples.encode(images, labels),
    }


def _image_shape(graph):
    shapes = [tuple(x.shape) for x in graph.inputs]
    if (
        len(shapes) != 1
        or len(shapes[0]) != 4
        or None in shapes[0][1:]
        or shapes[0][3] not in (1, 3)
    ):
        raise ValueError(
            "The live page supports networks of one image, (height, width, 1 or 3 channels). "
            f"Received: inputs of shape {', '.join(map(str, shapes))}."
        )
    return shapes[0][1:]


def _names(model, labels, class_names):
    classes = model.output_shape[-1]
    names = list(map(str, range(classes))) if class_names is None else class_names
    checks.class_names("class_names", names, classes)
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(
            f"`y` must be class numbers from 0 to {classes - 1}. "
            f"Received: {labels.min()} to {labels.max()}."
        )
    return list(names)


def _check_size(model, weights):
    if weights.bytes > MOST_BYTES:
        raise ValueError(
            f"The live page holds up to {MOST_BYTES / 2**20:g} MiB of weights, so that it opens at "
            f"once and follows the pen. Received: {model.name!r} with "
            f"{weights.bytes / 2**20:.1f} MiB."
        )


def _observed(graph, what, images):
    """Return the `"gates"` or `"outputs"` of all blocks for a few images, one array each."""
    # Called, not predicted: a compiled function for a single batch costs more than it saves.
    inputs = keras.ops.convert_to_tensor(images, graph.inputs[0].dtype)
    blocks = keras.tree.flatten(observer(graph, what, per_position=True)(inputs))
    return [keras.ops.convert_to_numpy(block) for block in blocks]
