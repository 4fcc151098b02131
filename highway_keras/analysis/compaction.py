"""Remove the gated layers that a network can do without: close their gates, then leave them out."""

import dataclasses
import functools
import re

import keras
import numpy as np
from keras import ops

from highway_keras.analysis.graph import Graph, has_graph, of_gated
from highway_keras.analysis.lesioning import measurement
from highway_keras.data import PictureArray
from highway_keras.layers import HighwayStack
from highway_keras.models.weight_files import copy_weights
from highway_keras.util import checks
from highway_keras.util.messages import reason, shows_progress

CLOSED = -1e4  # a bias at which a sigmoid is exactly 0 in every floating-point type
SIGMOIDS = (keras.activations.sigmoid, keras.activations.hard_sigmoid)


@dataclasses.dataclass(frozen=True, eq=False)
class Compacted:
    """What `compact` returns.

    Attributes:
        model: The network without the closed layers, a functional `keras.Model`. Its other layers,
            and models within it, keep their names.
        closed: Names of the closed layers, in the order in which they were closed.
        curve: A list of dictionaries, one for each step: the number of gated `layers` left, which
            one was `closed`, the `error` and `loss` (nats) on the images, and how many `parameters`
            and `multiplications` per sample the network has without the closed layers.
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
        model: As for `lesions`, with coupled carry gates and sigmoids as transform gates. It stays
            as it is.
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
        TypeError: If `model` is not a functional or Sequential model.
        ValueError: If a layer has a learned carry gate, a gate that no bias closes, or is used
            twice; if `x` or `y` does not fit, or an argument is out of its range.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import analysis, models
        >>> network = models.thin_mlp(depth=4, input_shape=(8,))
        >>> found = analysis.compact(network, np.zeros((5, 8)), np.zeros(5, int), layers=1)
        >>> [row["layers"] for row in found.curve]
        [3, 2, 1]

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 4.2, closes one layer
        at a time.
    """
    checks.number("budget", budget, least=0, below=1)
    Graph(model)  # raises if the model cannot be analyzed, before it is copied
    # Clone an uncompiled model: the clone of a compiled one would need its custom loss registered.
    uncompiled = keras.Model(model.inputs, model.outputs, name=model.name)
    try:
        copy = keras.models.clone_model(uncompiled)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ValueError(
            "`model` must be one that Keras can save and load: register your own functions and "
            f"layers by `keras.saving.register_keras_serializable`. Received: {reason(error)}"
        ) from error
    if len(copy.weights) != len(model.weights):
        raise ValueError(
            "`model` must have no adapters (save it and load it first, which merges them), and "
            "share no layer with a model inside it."
        )
    copy_weights(model, copy)
    x = np.asarray(x) if isinstance(x, PictureArray) else x  # there are many passes
    graph, measure = measurement(copy, x, y, batch_size=batch_size)
    names, blocks = graph.blocks, range(len(graph.blocks))
    if layers is not None:
        checks.integer("layers", layers, least=0, most=len(blocks) - 1)
    gated = [call.layer for call in graph.gated]
    for layer in gated:  # a bias must close each gate for good
        what = None
        if layer.learned_carry:
            what = "coupled carry gates: with a learned one, a closed layer still scales its input"
        elif layer.activations[1] not in SIGMOIDS or layer.transform_bias is None:
            what = "transform gates that are sigmoids with a bias, which closes them"
        elif gated.count(layer) > 1:
            what = "gated layers that are used once, so that one use can be closed"
        if what:
            raise ValueError(f"`model` must have {what}. Received: layer {layer.name!r}.")

    whole = np.array([copy.count_params(), sum(call.multiplications for call in graph.calls)])
    cost = {}  # of a block: its parameters and multiplications
    for call in graph.gated:
        each = np.array([call.layer.count_params(), call.multiplications]) / len(call.blocks)
        cost |= dict.fromkeys(call.blocks, each)
    closed, curve = [], []

    def note(loss, error):
        parameters, multiplications = whole - sum(cost[block] for block in closed)
        row = {
            "layers": len(blocks) - len(closed),
            "closed": names[closed[-1]] if closed else "",
            "error": float(error),
            "loss": float(loss),
            "parameters": round(parameters),
            "multiplications": round(multiplications),
        }
        curve.append(row)

    most = len(blocks) - (layers or 0)
    bar = int(shows_progress(verbose))
    progress = keras.utils.Progbar(most, verbose=bar, unit_name="layer")
    while len(closed) < most:
        lesions = measure()
        if not curve:
            note(lesions.intact_loss, lesions.intact_error)
        best = min(set(blocks) - set(closed), key=lambda block: lesions.loss[block])
        if layers is None and lesions.error[best] - curve[0]["error"] > budget + 1e-9:
            break
        closed.append(best)
        note(lesions.loss[best], lesions.error[best])
        (call,) = (call for call in graph.gated if best in call.blocks)
        bias = ops.convert_to_numpy(call.layer.transform_bias).copy()
        bias.reshape(len(call.blocks), -1)[best - call.blocks.start] = CLOSED
        call.layer.transform_bias.assign(bias)
        progress.update(len(closed), finalize=False)
    progress.update(len(closed), finalize=True)
    found = tuple(names[block] for block in closed)
    return Compacted(leave_out(copy, found), found, curve)


def leave_out(model, closed):
    """Return a model without the gated layers of these names; it shares the others.

    A `HighwayStack` that loses some of its layers is replaced by a shorter copy.
    """
    graph = Graph(model)
    left = {}  # of a gated layer by its id: which of its blocks stay
    for call in graph.gated:
        of_layer = [graph.blocks[block] for block in call.blocks]
        left[id(call.layer)] = [i for i, name in enumerate(of_layer) if name not in closed]

    def shorter(layer, taken):
        if has_graph(layer):
            return without(layer)
        stay = left.get(id(layer), ())
        if not isinstance(layer, HighwayStack) or len(stay) in (0, layer.depth):
            return layer
        name = re.sub(rf"_x{layer.depth}(?=$|_)", f"_x{len(stay)}", layer.name)
        name = layer.name if name in taken else name
        taken.add(name)
        chain = layer.unstack()
        short = HighwayStack.from_layers([chain[i] for i in stay], name)
        for option in ("rematerialize", "output_regularizer"):  # which its layers do not all have
            setattr(short, option, getattr(layer, option))
        return short

    def call(layer, *args, **kwargs):
        out = left.get(id(layer)) == []
        if has_graph(layer):  # of which nothing may be left
            out = list(map(id, layer.inputs)) == list(map(id, layer.outputs))
        return of_gated(args, kwargs)[0] if out else layer(*args, **kwargs)

    def without(model):
        functional = keras.Model(model.inputs, model.outputs, name=model.name)
        replace = functools.partial(shorter, taken={layer.name for layer in model.layers})
        # Keras's public way to build a graph again, here with the very same layers.
        return keras.models.clone_model(functional, clone_function=replace, call_function=call)

    return without(model)
