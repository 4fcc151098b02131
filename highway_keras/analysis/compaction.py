"""Remove the gated layers that a network can do without: close their gates, then leave them out."""

import contextlib
import dataclasses

import keras
import numpy as np

from highway_keras.analysis import blocks
from highway_keras.analysis.lesioning import blocks_and_labels, measure
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
            `parameters` the network has without the closed layers.
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
        layers: Number of gated layers to keep, fewer than `model` has, however much the error
            rises. Default: as few as the budget allows.
        batch_size, verbose: As for `gates`.

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
    original = blocks.rebuild(model)
    copy = keras.models.clone_model(original)
    copy.set_weights(original.get_weights())
    gated_blocks, labels = blocks_and_labels(copy, x, y, batch_size=batch_size)
    names = {}  # by (layer, index): a layer that is used several times counts once
    for block in gated_blocks:
        names.setdefault((block.layer, block.index), block.name)
    if layers is not None:
        checks.integer("layers", layers, least=0, most=len(names) - 1)
    for layer, _ in names:
        if layer.learned_carry:
            raise ValueError(
                "`model` must have coupled carry gates: with a learned one, a closed layer still "
                f"scales its input. Received: layer {layer.name!r}."
            )

    def row(closed, loss, errors):
        left_out = [
            layer.count_params() // (1 if index is None else layer.depth) for layer, index in closed
        ]
        return {
            "layers": len(names) - len(closed),
            "closed": names[closed[-1]] if closed else "",
            "error": float(errors / labels.size),
            "loss": float(loss / labels.size),
            "parameters": copy.count_params() - sum(left_out),
        }

    closed, curve, to_close = [], [], len(names) - (layers or 0)
    bar = keras.utils.Progbar(to_close, verbose=shows_progress(verbose), unit_name="layer")
    with contextlib.ExitStack() as stack:
        while len(closed) < to_close:
            candidates = [site for site in names if site not in closed]
            before, *after = measure(copy, x, labels, candidates, batch_size=batch_size)
            if not curve:
                curve.append(row(closed, *before))
            best = int(np.argmin([loss for loss, _ in after]))
            step = row([*closed, candidates[best]], *after[best])
            allowed = curve[0]["error"] + budget + 1e-9  # for rounding
            if layers is None and step["error"] > allowed:
                break
            closed.append(candidates[best])
            curve.append(step)
            stack.enter_context(blocks.closed(*candidates[best]))
            bar.update(len(closed), finalize=False)
        bar.update(len(closed), finalize=True)
    small = leave_out(copy, closed)
    return Compacted(small, tuple(names[site] for site in closed), curve)


def leave_out(model, closed):
    """Return a model without the blocks `closed`, pairs of layer and index; it shares the rest."""
    smaller = {}  # what is left of each layer, for all its calls

    def call(layer, *args, **kwargs):
        if layer not in smaller:
            smaller[layer] = without(layer, closed)
        if smaller[layer] is None:
            return args[0] if args else kwargs["inputs"]
        return smaller[layer](*args, **kwargs)

    return blocks.rebuild(model, call)


def without(layer, closed):
    """Return what is left of a layer or model: itself, a smaller one, or `None` for nothing."""
    if blocks.is_model(layer):
        if {gated for gated, _ in closed}.isdisjoint(blocks.gated_layers(layer)):
            return layer
        small = leave_out(layer, closed)
        return None if small.inputs[0] is small.outputs[0] else small
    if not isinstance(layer, HighwayStack):
        return None if (layer, None) in closed else layer
    chain = [block for i, block in enumerate(layer.unstack()) if (layer, i) not in closed]
    if len(chain) == layer.depth:
        return layer
    if not chain:
        return None
    name = layer.name.removesuffix(f"_x{layer.depth}") + f"_x{len(chain)}"
    short = HighwayStack.from_layers(chain, name=name)
    short.rematerialize = layer.rematerialize
    short.activity_regularizer = layer.activity_regularizer
    return short
