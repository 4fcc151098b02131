"""Remove the gated layers that a network can do without: close their gates, then leave them out."""

import collections
import contextlib
import dataclasses
import math

import keras

from highway_keras.analysis import blocks
from highway_keras.analysis.lesioning import measurement
from highway_keras.layers import HighwayStack
from highway_keras.util import checks
from highway_keras.util.messages import shows_progress


@dataclasses.dataclass(frozen=True, eq=False)
class Compacted:
    """What `compact` returns.

    Attributes:
        model: The network without the closed layers, a functional `keras.Model`. Its other layers,
            and models within it, keep their names.
        closed: Names of the closed layers, in the order in which they were closed.
        curve: A list of dictionaries, one for each step: the number of gated `layers` left, which
            one was `closed`, the `error` and `loss` (nats) on the samples, and how many
            `parameters` and `multiplications` per sample the network has without the closed layers.
            Multiplications are those by kernels, at every position of a layer's output.
    """

    model: keras.Model
    closed: tuple
    curve: list


def compact(model, x, y, budget=0.002, layers=None, batch_size=None, verbose="auto"):
    """Leave out the gated layers that a classifier can do without, greedily and without training.

    Each step closes the transform gates of every remaining layer in turn, with those already closed
    kept closed; the layer whose closing gives the lowest loss stays closed. A layer with `T = 0`
    returns its input, so the network without it computes the same. `needed_layers` judges each
    layer alone; the layers that it calls idle cannot always be removed together.

    Args:
        model: As for `lesions`, with coupled carry gates. It stays as it is.
        x: Samples as `model` takes them: training images, so that test images stay unseen.
        y: Class numbers, integers `(samples, ...)`.
        budget: By how much the error on these samples may rise, as a share of them.
        layers: How many gated layers to leave, fewer than there are, whatever that costs. Default:
            as few as the budget allows.
        batch_size: As for `lesions`.
        verbose: 1 shows a progress bar, 0 none, `"auto"` one on a terminal.

    Returns:
        A `Compacted`.

    Raises:
        ValueError: As `lesions` does, or if a layer has a learned carry gate.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import analysis, models
        >>> network = models.thin_mlp(depth=4, input_shape=(8,))
        >>> compacted = analysis.compact(network, np.zeros((5, 8)), np.zeros(5, int), layers=1)
        >>> [row["layers"] for row in compacted.curve]
        [3, 2, 1]

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 4.2, closes one layer
        at a time.
    """
    checks.number("budget", budget, least=0, below=1)
    original = blocks.rebuild(model, lambda layer, *args, **kwargs: layer(*args, **kwargs))
    copy = keras.models.clone_model(original)
    copy.set_weights(original.get_weights())
    names = {}  # by (layer, index): a layer that is used several times counts once
    for block in blocks.observe(copy)[1]:
        names.setdefault((block.layer, block.index), block.name)
    if layers is not None:
        checks.integer("layers", layers, least=0, most=len(names) - 1)
    for layer, _ in names:
        if layer.learned_carry:
            raise ValueError(
                "`model` must have coupled carry gates: with a learned one, a closed layer still "
                f"scales its input. Received: layer {layer.name!r}."
            )
    measure, samples = measurement(copy, x, y, batch_size=batch_size)
    parameters, products = copy.count_params(), multiplications(copy)
    total = sum(products.values())

    def row(closed, loss, errors):
        left_out = [(layer, getattr(layer, "depth", 1)) for layer, _ in closed]
        return {
            "layers": len(names) - len(closed),
            "closed": names[closed[-1]] if closed else "",
            "error": float(errors / samples),
            "loss": float(loss / samples),
            "parameters": round(parameters - sum(n.count_params() / d for n, d in left_out)),
            "multiplications": round(total - sum(products[n] / d for n, d in left_out)),
        }

    closed, curve, most = [], [], len(names) - (layers or 0)
    bar = keras.utils.Progbar(most, verbose=int(shows_progress(verbose)), unit_name="layer")
    with contextlib.ExitStack() as lesions:
        while len(closed) < most:
            intact, lesioned = measure(names.keys() - set(closed))
            if not curve:
                curve.append(row(closed, *intact))
            best = min(names.keys() & lesioned.keys(), key=lambda lesion: lesioned[lesion][0])
            step = row([*closed, best], *lesioned[best])
            if layers is None and step["error"] > curve[0]["error"] + budget + 1e-9:
                break
            closed.append(best)
            curve.append(step)
            lesions.enter_context(blocks.closed(*best))
            bar.update(len(closed), finalize=False)
        bar.update(len(closed), finalize=True)
    small = leave_out(copy, closed)
    return Compacted(small, tuple(names[lesion] for lesion in closed), curve)


def leave_out(model, closed):
    """Return a model without the blocks `closed`, pairs of layer and index; it shares the others.

    A `HighwayStack` that loses some of its layers is replaced by a shorter copy.
    """
    remaining = {
        layer: [i for i in range(getattr(layer, "depth", 1)) if (layer, i) not in closed]
        for layer, _ in closed
    }
    taken, smaller = {layer.name for layer in model.layers}, {}

    def call(layer, *args, **kwargs):
        stays = remaining.get(layer)
        is_nested = blocks.is_model(layer) and any(
            gated in remaining for gated in blocks.gated_layers(layer)
        )
        if layer not in smaller:
            if is_nested:
                smaller[layer] = leave_out(layer, closed)
            elif stays and len(stays) < layer.depth:
                smaller[layer] = shorter(layer, stays, taken)
            else:
                smaller[layer] = layer
        small = smaller[layer]
        is_empty = is_nested and small.inputs[0] is small.outputs[0]
        if stays == [] or is_empty:
            return args[0] if args else kwargs["inputs"]
        return small(*args, **kwargs)

    return blocks.rebuild(model, call)


def shorter(stack, indices, taken):
    """Return a `HighwayStack` of some layers of another, under a name that is not `taken`."""
    name = stack.name.removesuffix(f"_x{stack.depth}") + f"_x{len(indices)}"
    if name in taken:
        name = stack.name
    taken.add(name)
    chain = stack.unstack()
    short = HighwayStack.from_layers([chain[i] for i in indices], name=name)
    short.rematerialize = stack.rematerialize
    short.activity_regularizer = stack.activity_regularizer
    return short


def multiplications(model):
    """Return how many multiplications by its kernels each layer does for a sample, by layer."""
    products = collections.Counter()

    def call(layer, *args, **kwargs):
        outputs = layer(*args, **kwargs)
        if blocks.is_model(layer):
            products.update(multiplications(layer))
            return outputs
        weights = getattr(layer, "weights", ())
        kernels = sum(math.prod(w.shape) for w in weights if w.path.endswith("kernel"))
        shape = keras.tree.flatten(outputs)[0].shape
        of_kernel = getattr(layer, "transform", layer)
        channels_first = getattr(of_kernel, "data_format", None) == "channels_first"
        positions = shape[2:] if channels_first else shape[1:-1]
        products[layer] += kernels * math.prod(n or 1 for n in positions)
        return outputs

    blocks.rebuild(model, call)
    return products
