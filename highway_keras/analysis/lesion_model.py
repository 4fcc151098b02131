"""The model that runs a network intact and with every lesion, in one pass.

Whatever comes before a lesion is computed once: a lesion takes what the intact network feeds to
its layer, and only the calls that depend on it are repeated. Dense gated layers in a chain are
lesioned together, in one compiled loop, and what comes after the chain runs once on a batch of all
their copies.
"""

import collections
import functools
import math
import os

import keras
from keras import ops

from highway_keras.analysis.graph import note, replaced
from highway_keras.backends.current import shim
from highway_keras.depth_loop.block import Block
from highway_keras.layers import Highway, HighwayStack
from highway_keras.layers.highway_stack import joint_weights

# XLA runs the loop of a `LesionedChain` on one core; TensorFlow runs several of them at once.
PARTS = min(os.cpu_count(), 4) if keras.backend.backend() == "tensorflow" else 1
# Chosen by measurement: numbers in the largest tensor, and samples per batch. 576 columns of
# 50 units fit into a CPU's cache, and fill the tiles of its matrix product: 500 take 15 % longer.
MOST_NUMBERS, MOST_SAMPLES = 2**23, 576 * PARTS


def lesion_model(graph, label_shape, from_logits):
    """Return a model from samples and labels to the scores of the intact network and all lesions.

    They are loss, wrong classes and sum of the probabilities, each summed over the positions of a
    sample, `(n, 1 + blocks, 3)`.

    Args:
        graph: A `Graph`.
        label_shape: Shape of a sample's labels.
        from_logits: As for `lesions`.
    """
    labels = keras.Input(label_shape, dtype="int32", name="labels")
    scores = [Scores(1, from_logits)([graph.outputs[0], labels])]
    for chain in chains(graph):
        inputs, last = chain[0].args[0], chain[-1]
        copies = sum(len(call.blocks) for call in chain)
        if len(chain) > 1 or type(chain[0].layer) is HighwayStack:
            lesioned = LesionedChain([call.layer for call in chain])(inputs)
        else:
            lesioned = Carried(chain[0].layer)(inputs)
        tensors = {}
        note(last.outputs, lesioned, tensors)
        for call in graph.calls[graph.calls.index(last) + 1 :]:
            if any(id(x) in tensors for x in call.inputs):
                # What does not come from the lesion is the same for each copy.
                same = {id(x): Repeated(copies)(x) for x in call.inputs if id(x) not in tensors}
                args, kwargs = replaced((call.args, call.kwargs), {**same, **tensors})
                note(call.outputs, call.run(*args, **kwargs), tensors)
        predictions = replaced(graph.outputs[0], tensors)
        if predictions is graph.outputs[0]:  # a lesion that leads nowhere
            predictions = Repeated(copies)(predictions)
        scores.append(Scores(copies, from_logits)([predictions, labels]))
    return keras.Model([*graph.inputs, labels], keras.layers.Concatenate(axis=1)(scores))


def chains(graph):
    """Return the calls of gated layers: runs of dense ones with equal options, and single others.

    In a run, each is fed only by the one before.
    """
    uses = collections.Counter(id(x) for call in graph.calls for x in call.inputs)
    uses.update(map(id, graph.outputs))
    found = []
    for call in graph.gated:
        last = found[-1][-1] if found else None
        fed = last and last.outputs is call.args[0] and uses[id(last.outputs)] == 1
        dense = fed and _is_dense(last.layer) and _is_dense(call.layer)
        if dense and _options(last.layer) == _options(call.layer):
            found[-1].append(call)
        else:
            found.append([call])
    return found


def _is_dense(layer):
    """Return whether a `LesionedChain` computes what a gated layer does."""
    return type(layer) is HighwayStack or (
        type(layer) is Highway and layer.block.quantization_mode is None
    )


def _options(layer):
    activations = layer.activation, layer.transform_activation
    return layer.learned_carry, layer.dtype_policy.name, *activations


def largest_batch(graph):
    """Return how many samples to run at once so that their copies fit into memory."""
    made = {id(chain[-1]): sum(len(call.blocks) for call in chain) for chain in chains(graph)}
    largest, copies = 1, 1
    for call in graph.calls:
        copies = max(copies, made.get(id(call), 1))  # of the batch, from here on
        sizes = [math.prod(n or 1 for n in y.shape[1:]) for y in keras.tree.flatten(call.outputs)]
        largest = max(largest, copies * max(sizes))
    return min(max(MOST_NUMBERS // largest, 1), MOST_SAMPLES)


class Repeated(keras.Layer):
    """A batch several times, one copy after the other; its mask, too."""

    def __init__(self, copies, **options):
        super().__init__(**options)
        self.copies, self.supports_masking = copies, True

    def call(self, inputs):
        return ops.concatenate([inputs] * self.copies)

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else ops.concatenate([mask] * self.copies)

    def compute_output_spec(self, inputs):
        return keras.KerasTensor((None, *inputs.shape[1:]), inputs.dtype)


class Carried(keras.Layer):
    """What a gated layer returns with transform gates of 0: `x`, or `x * C(x)`."""

    def __init__(self, layer):
        super().__init__(dtype=layer.compute_dtype)
        self.layer, self.supports_masking = layer, True

    def call(self, inputs):
        if not self.layer.learned_carry:
            return inputs
        return inputs * ops.cast(self.layer.carry(inputs), inputs.dtype)

    def compute_output_spec(self, inputs):
        return self.layer.compute_output_spec(inputs)


class LesionedChain(Repeated):
    """A chain of dense gated layers, with a copy of the batch for the lesion of each of its blocks.

    It is one compiled loop over stacked weights. The loop runs the copies one after another, each
    starting at its lesion: a matrix of one batch stays in a CPU's cache, a matrix of all copies
    does not. The number of samples must be a multiple of `PARTS`.
    """

    def __init__(self, layers):
        self.depth = sum(getattr(layer, "depth", 1) for layer in layers)
        super().__init__(self.depth, dtype=layers[0].compute_dtype)
        self.layers = list(layers)

    def call(self, inputs):
        first, width = self.layers[0], inputs.shape[-1]
        gates = [first.transform_activation] * (2 if first.learned_carry else 1)
        block = Block("highway", tuple(_CHEAPER.get(f, f) for f in (first.activation, *gates)))
        kernels, biases = zip(*map(joint_weights, self.layers), strict=True)
        kernel = ops.concatenate([ops.reshape(k, (-1, width, k.shape[-1])) for k in kernels])
        bias = ops.concatenate([ops.reshape(b, (-1, b.shape[-1], 1)) for b in biases])
        kernel, bias = (ops.cast(w, inputs.dtype) for w in (kernel, bias))
        rows = ops.reshape(inputs, (PARTS, -1, width))
        parts = [_lesioned_chain(block)(rows[part], kernel, bias) for part in range(PARTS)]
        return ops.reshape(ops.concatenate(parts, axis=1), (-1, *ops.shape(inputs)[1:]))


def _sigmoid(z):
    return 0.5 + 0.5 * ops.tanh(0.5 * z)


_CHEAPER = {keras.activations.sigmoid: _sigmoid}  # measured on a CPU under XLA: 7 % of the chain


@functools.lru_cache(maxsize=16)
def _lesioned_chain(block):
    """Return the compiled chain of a block: samples `(n, d)` in, lesioned `(depth, n, d)` out."""
    scan = shim.scan if shim.HAS_LOOPS else ops.scan

    def run(rows, kernel, bias):
        depth = kernel.shape[0]
        no_share = ops.zeros((), rows.dtype)

        def forward(x, index):
            weights = (ops.take(w, index, axis=0) for w in (kernel, bias))
            return block.forward(x, *weights, no_share)

        def from_block(index, x):
            return ops.while_loop(
                lambda i, _: i < depth, lambda i, x: (i + 1, forward(x, i)[0]), (index, x)
            )[1]

        def step(x, index):
            y, parts = forward(x, index)
            carried = x if len(parts) == 2 else x * parts[2]
            return y, from_block(index + 1, carried)

        _, lesioned = scan(step, ops.swapaxes(rows, -1, -2), ops.arange(depth))
        return ops.swapaxes(lesioned, -1, -2)

    return shim.compiled(run)


class Scores(keras.Layer):
    """Loss, wrong classes and sum of the probabilities of copies of a batch, `(n, copies, 3)`."""

    def __init__(self, copies, from_logits):
        super().__init__(dtype="float32")
        self.copies, self.from_logits = copies, from_logits

    def call(self, inputs):
        predictions, labels = inputs
        truth = ops.concatenate([labels] * self.copies)
        loss = keras.losses.sparse_categorical_crossentropy(truth, predictions, self.from_logits)
        wrong = ops.not_equal(ops.argmax(predictions, axis=-1), ops.cast(truth, "int32"))
        scores = ops.stack([loss, ops.cast(wrong, "float32"), ops.sum(predictions, -1)], axis=-1)
        count = ops.shape(labels)[0]
        scores = ops.sum(ops.reshape(scores, (self.copies, count, -1, 3)), axis=2)
        return ops.swapaxes(scores, 0, 1)

    def compute_output_spec(self, inputs):
        return keras.KerasTensor((None, self.copies, 3), "float32")
