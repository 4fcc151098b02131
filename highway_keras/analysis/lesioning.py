"""What each layer is worth: the network's loss and error with that layer's gates forced to 0."""

import collections
import dataclasses
import math

import keras
import numpy as np

from highway_keras.analysis.batches import as_arrays, as_labels, run
from highway_keras.analysis.graph import Graph
from highway_keras.analysis.lesion_layers import (
    PARTS,
    LesionedBlock,
    LesionedChain,
    Pick,
    Scores,
)
from highway_keras.layers import Highway, HighwayStack

# Chosen by measurement: numbers at once in the largest tensor, and samples at once. 576 columns of
# 50 units fit into a CPU's cache, and fill the tiles of its matrix product: 500 take 15 % longer.
_MOST_NUMBERS, _MOST_SAMPLES = 2**23, 576 * PARTS
INTACT = (None,)  # the copies of a tensor before any lesion: one, without a lesion


@dataclasses.dataclass(frozen=True, eq=False)
class Lesions:
    """The cost of closing the gates of one layer, for every layer (Figure 4).

    Attributes:
        layers: The names of the gated layers, in order.
        loss: Cross-entropy in nats with the gates of each layer closed, an array `(layers,)`.
        wrong: Number of wrong classifications, the same, integers.
        error: Share of wrong classifications, the same.
        intact_loss, intact_wrong, intact_error: Those of the network as it is.
        samples: Number of classifications: of samples, or where each position of a sample has a
            class, of all positions.
    """

    layers: tuple
    loss: np.ndarray
    wrong: np.ndarray
    intact_loss: float
    intact_wrong: int
    samples: int

    @property
    def error(self):
        return self.wrong / self.samples

    @property
    def intact_error(self):
        return self.intact_wrong / self.samples


def lesions(model, x, y, from_logits=False, batch_size=None, verbose="auto"):
    """Measures a classifier with the gates of each layer forced to 0, in one pass over the data.

    ```
    T = 0:    y = x              carry="coupled"
              y = x * C(x)       carry="learned"
    ```

    What lies before a lesion is computed once for all of them. The rest runs for all lesions
    together, in the memory of one batch; chains of dense layers as one compiled loop.

    Args:
        model: A built functional or Sequential Keras model with gated layers that returns class
            probabilities `(batch_size, ..., classes)`.
        x: Samples as `model` takes them: an array, or a list of them.
        y: Class numbers, integers `(samples, ...)`.
        from_logits: Whether `model` returns logits instead of probabilities.
        batch_size: Samples at once. Default: what the memory of the copies suggests.
        verbose: 1 shows a progress bar, 0 none, `"auto"` one on a terminal.

    Returns:
        A `Lesions`.

    Raises:
        TypeError: If `model` is a subclassed model, or none.
        ValueError: If `model` has no gated layers or does not return probabilities, or `x` or `y`
            do not fit it.

    Example:

    >>> import numpy as np
    >>> from highway_keras import analysis, models
    >>> network = models.thin_mlp(depth=4, input_shape=(8,))
    >>> analysis.lesions(network, np.zeros((5, 8)), np.zeros(5, int)).error.shape
    (3,)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 4.2.
    """
    graph = Graph(model)
    arrays = as_arrays(x, graph.inputs)
    labels = _check_classifier(model, graph, as_labels(y, len(arrays[0])))
    copies = len(graph.blocks) + 1
    scored = lesion_model(graph, labels.shape[1:], from_logits)
    totals = np.zeros((copies, 3))
    batch_size = _batch_size(graph) if batch_size is None else batch_size
    for _, (scores,) in run(scored, [*arrays, labels], batch_size, verbose, PARTS):
        totals += scores.sum(axis=0, dtype="float64")
    loss, wrong, total = totals.T
    if not from_logits and not np.allclose(total / labels.size, 1, atol=0.01):
        raise ValueError(
            "`model` must return class probabilities, which sum to 1. Received: sums of "
            f"{total[0] / labels.size:.3g} on average. If it returns logits, pass from_logits=True."
        )
    loss, wrong = loss / labels.size, wrong.astype(int)
    return Lesions(graph.blocks, loss[1:], wrong[1:], float(loss[0]), int(wrong[0]), labels.size)


def lesion_model(graph, label_shape, from_logits):
    """A model from samples and labels to the `Scores` of the intact network and all lesions."""
    chains = {id(call): chain for chain in _chains(graph) for call in chain}
    copies = {}  # by tensor: which lesion each of its copies has

    def align(x, wanted):
        return _aligned(x, copies.get(id(x), INTACT), wanted)

    def visit(call, *args, **kwargs):
        inputs = keras.tree.flatten((args, kwargs))
        wanted = _union(copies.get(id(x), INTACT) for x in inputs)
        args, kwargs = keras.tree.map_structure(lambda x: align(x, wanted), (args, kwargs))
        chain = chains.get(id(call))
        if chain and chain[0] is not call:
            return args[0]  # the first of the chain has done the work of all
        if not call.blocks:
            outputs = call.layer(*args, **kwargs)
        elif chain:
            outputs = LesionedChain([c.layer for c in chain], len(wanted))(args[0])
        else:
            outputs = LesionedBlock(call.layer, len(wanted))(args[0])
        wanted += tuple(n for c in chain or [call] for n in c.blocks)
        copies.update((id(y), wanted) for y in keras.tree.flatten(outputs))
        return outputs

    every = (*INTACT, *range(len(graph.blocks)))
    predictions = align(graph.repeat(visit)[0], every)
    labels = keras.Input(label_shape, dtype="int32", name="labels")
    scores = Scores(len(every), from_logits)([predictions, labels])
    return keras.Model([*graph.inputs, labels], scores)


def _union(copies):
    return (*INTACT, *sorted(set().union(*copies) - {*INTACT}))


def _aligned(x, copies, wanted):
    """`x` with the copies `wanted`; where it comes from before a lesion, its copy is the intact."""
    if copies == wanted or not isinstance(x, keras.KerasTensor):
        return x
    after = [copies.index(lesion) if lesion in copies else 0 for lesion in wanted]
    return Pick(len(copies), after)(x)


def _chains(graph):
    """The runs of dense gated layers of equal options, each fed by the one before and no other."""
    tensors = (x for call in graph.calls for x in keras.tree.flatten((call.args, call.kwargs)))
    uses = collections.Counter(map(id, [*tensors, *graph.outputs]))
    chains = []
    for call in graph.calls:
        if type(call.layer) not in (Highway, HighwayStack):
            continue
        before = chains[-1][-1] if chains else None
        fed = before and before.outputs is call.args[0] and uses[id(before.outputs)] == 1
        if fed and _options(before.layer) == _options(call.layer):
            chains[-1].append(call)
        else:
            chains.append([call])
    return [c for c in chains if len(c) > 1 or isinstance(c[0].layer, HighwayStack)]


def _options(layer):
    activations = layer.activation, layer.transform_activation, layer.carry_activation
    return layer.carry, layer.dtype_policy.name, *activations


def _batch_size(graph):
    largest = max(
        math.prod(n or 1 for n in y.shape[1:]) * (call.blocks.stop + 1)
        for call in graph.calls
        for y in keras.tree.flatten(call.outputs)
    )
    return min(max(_MOST_NUMBERS // largest, 1), _MOST_SAMPLES)


def _check_classifier(model, graph, labels):
    shapes = [tuple(y.shape) for y in graph.outputs]
    if len(shapes) != 1 or len(shapes[0]) != labels.ndim + 1:
        raise ValueError(
            f"`model` must return one prediction, (batch_size, ..., classes), and `y` a class for "
            f"each. Received: outputs of shape {', '.join(map(str, shapes))}, labels of shape "
            f"{labels.shape}."
        )
    if any(call.blocks and call.kwargs.get("return_gate") for call in graph.calls):
        raise ValueError(
            "`model` must not use the gates of its layers itself (`return_gate=True`). "
            f"Received: model={model.name!r}. Lesion the model without that use."
        )
    classes = shapes[0][-1]
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(
            f"`y` must be class numbers from 0 to {classes - 1}. "
            f"Received: {labels.min()} to {labels.max()}."
        )
    return labels.astype("int32")
