"""The model that runs a network intact and with every lesion, in one pass.

It repeats the layer calls of the network's graph on copies of the batch: the intact one, and one
for each lesion. A tensor has copies only for the lesions before it, so whatever comes before a
lesion is computed once for all of them.
"""

import collections
import math

import keras

from highway_keras.analysis.lesion_layers import (
    PARTS,
    LesionedBlock,
    LesionedChain,
    Pick,
    Scores,
)
from highway_keras.layers import Highway, HighwayStack

INTACT = (None,)  # the copies of a tensor before any lesion: one, without a lesion
# Chosen by measurement: numbers in the largest tensor, and samples per batch. 576 columns of
# 50 units fit into a CPU's cache, and fill the tiles of its matrix product: 500 take 15 % longer.
_MOST_NUMBERS, _MOST_SAMPLES = 2**23, 576 * PARTS


def lesion_model(graph, label_shape, from_logits):
    """Return a model from samples and labels to the `Scores` of the intact network and all lesions.

    Args:
        graph: A `Graph`.
        label_shape: Shape of a sample's labels.
        from_logits: As for `lesions`.
    """
    chains = {id(call): chain for chain in _chains(graph) for call in chain}
    copies = {}  # by tensor: which lesion each of its copies has

    def align(x, wanted):
        return _aligned(x, copies.get(id(x), INTACT), wanted)

    def visit(call, *args, **kwargs):
        inputs = keras.tree.flatten((args, kwargs))
        wanted = _union(copies.get(id(x), INTACT) for x in inputs)
        args, kwargs = keras.tree.map_structure(lambda x: align(x, wanted), (args, kwargs))
        chain = chains.get(id(call), [call])
        if chain[0] is not call:
            return args[0]  # the first of the chain has done the work of all
        if call.blocks:
            outputs = _lesioned([c.layer for c in chain], len(wanted))(args[0])
        else:
            outputs = call.layer(*args, **kwargs)
        wanted += tuple(n for c in chain for n in c.blocks)
        copies.update((id(y), wanted) for y in keras.tree.flatten(outputs))
        return outputs

    every = (*INTACT, *range(len(graph.blocks)))
    predictions = align(graph.repeat(visit)[0], every)
    labels = keras.Input(label_shape, dtype="int32", name="labels")
    scores = Scores(len(every), from_logits)([predictions, labels])
    return keras.Model([*graph.inputs, labels], scores)


def largest_batch(graph):
    """Return how many samples to run at once so that their copies fit into memory."""
    largest = max(
        math.prod(n or 1 for n in y.shape[1:]) * (call.blocks.stop + 1)
        for call in graph.calls
        for y in keras.tree.flatten(call.outputs)
    )
    return min(max(_MOST_NUMBERS // largest, 1), _MOST_SAMPLES)


def _union(copies):
    return (*INTACT, *sorted(set().union(*copies) - {*INTACT}))


def _aligned(x, copies, wanted):
    """Return `x` with the copies `wanted`; before its lesion, a copy is the intact one."""
    if copies == wanted or not isinstance(x, keras.KerasTensor):
        return x
    sources = [copies.index(lesion) if lesion in copies else 0 for lesion in wanted]
    return Pick(len(copies), sources)(x)


def _lesioned(layers, copies):
    if len(layers) > 1 or isinstance(layers[0], HighwayStack):
        return LesionedChain(layers, copies)
    return LesionedBlock(layers[0], copies)


def _chains(graph):
    """Return the runs of dense gated layers with equal options, each fed only by the last one."""
    tensors = (x for call in graph.calls for x in keras.tree.flatten((call.args, call.kwargs)))
    uses = collections.Counter(map(id, [*tensors, *graph.outputs]))
    chains = []
    for call in graph.calls:
        if type(call.layer) not in (Highway, HighwayStack) or _is_quantized(call.layer):
            continue
        last = chains[-1][-1] if chains else None
        fed = last and last.outputs is call.args[0] and uses[id(last.outputs)] == 1
        if fed and _options(last.layer) == _options(call.layer):
            chains[-1].append(call)
        else:
            chains.append([call])
    return chains


def _is_quantized(layer):
    return layer.block is not None and layer.block.quantization_mode is not None


def _options(layer):
    activations = layer.activation, layer.transform_activation
    return layer.learned_carry, layer.dtype_policy.name, *activations
