"""The model that runs a network intact and with every lesion, in one pass.

A batch of n samples grows to k * n on its way: the intact copy first, then one for each lesion so
far. All copies run through a layer together, and whatever comes before a lesion is computed once.
The layers of a `HighwayStack` are lesioned together, in one compiled loop.
"""

import functools
import math

import keras
from keras import ops

from highway_keras.analysis.graph import of_gated
from highway_keras.layers import HighwayStack
from highway_keras.layers.backends import shim
from highway_keras.layers.depth_loop.block import Block
from highway_keras.layers.highway_stack import joint_weights
from highway_keras.ops import log_loss
from highway_keras.util.cores import cores

# XLA runs the loop of a `LesionedStack` on one core; TensorFlow runs several of them at once.
SHARES = min(cores(), 4) if keras.backend.backend() == "tensorflow" else 1
# Chosen by measurement: numbers in the largest tensor, and samples per batch. 576 columns of
# 50 units fit into a CPU's cache, and fill the tiles of its matrix product: 500 take 15 % longer.
MOST_NUMBERS, MOST_SAMPLES = 2**23, 576 * SHARES
# This saves 7 % of the time of a chain on a CPU under XLA, and in 16 bits costs exactness.
_CHEAPER = {keras.activations.sigmoid: lambda z: 0.5 + 0.5 * ops.tanh(0.5 * z)}


def lesion_model(graph, label_shape, from_logits):
    """Return a model from samples and labels to the scores of the intact network and all lesions.

    The scores are the loss, the number of wrong classes and the sum of the probabilities, each
    summed over the positions of a sample, `(n, 1 + blocks, 3)`. `label_shape` is the shape of one
    sample's labels.
    """
    copies = {}  # from the id of a tensor to the number of its copies: 1 + lesions before it

    def repeated(x, wanted):
        """Return `x` with `wanted` copies, adding intact ones: later lesions do not change it."""
        more = wanted - copies.get(id(x), 1)
        if not more or not isinstance(x, keras.KerasTensor):
            return x
        return Copies(wanted - more, more, autocast=False)(x)  # whatever the global policy is

    def visit(call, *args, **kwargs):
        known = [copies.get(id(x), 1) for x in keras.tree.flatten((args, kwargs))]
        count = max(1 + call.blocks.start if call.blocks else 1, *known)
        args, kwargs = keras.tree.map_structure(lambda x: repeated(x, count), (args, kwargs))
        if call.blocks:
            x, passed = of_gated(args, kwargs)
            if isinstance(call.layer, HighwayStack):
                outputs = LesionedStack(call.layer, count)(x)
            else:
                outputs = LesionedLayer(call.layer, count)(x, **passed)
        else:
            outputs = call.run(*args, **kwargs)
        copies.update((id(y), count + len(call.blocks)) for y in keras.tree.flatten(outputs))
        return outputs

    every = 1 + len(graph.blocks)
    predictions = repeated(graph.repeat(visit)[0], every)
    # Names that no layer of the analyzed model has.
    labels = keras.Input(label_shape, dtype="int32", name="lesions_labels")
    scores = Scores(every, from_logits)([predictions, labels])
    return keras.Model([*graph.inputs, labels], scores)


def largest_batch(graph):
    """Return how many samples to run at once so that their copies fit into memory."""
    largest = max(
        math.prod(n or 1 for n in y.shape[1:]) * (call.blocks.stop + 1)
        for call in graph.calls
        for y in keras.tree.flatten(call.outputs)
    )
    return min(max(MOST_NUMBERS // largest, 1), MOST_SAMPLES)


class Copies(keras.Layer):
    """Append to the copies of a batch `more` of the first, the intact one; likewise to its mask."""

    def __init__(self, copies, more, **options):
        super().__init__(**options)
        self.copies, self.more, self.supports_masking = copies, more, True

    def call(self, inputs):
        return ops.concatenate([inputs] + [self.intact(inputs)] * self.more)

    def intact(self, inputs):
        return inputs[: ops.shape(inputs)[0] // self.copies]

    def compute_mask(self, inputs, mask=None):
        if isinstance(mask, keras.KerasTensor):
            return keras.KerasTensor((None, *mask.shape[1:]), mask.dtype)
        return None if mask is None else Copies.call(self, mask)

    def compute_output_spec(self, inputs, **passed):
        return keras.KerasTensor((None, *inputs.shape[1:]), inputs.dtype)


class LesionedLayer(Copies):
    """Run a gated layer on all copies, and append the intact one with T = 0: `x` or `x * C`."""

    def __init__(self, layer, copies):
        super().__init__(copies, 1, dtype=layer.compute_dtype)
        self.layer = layer

    def call(self, inputs, **passed):
        carried = self.intact(inputs)
        if self.layer.learned_carry:  # on all copies: a slice would lose its mask
            carried = carried * self.intact(ops.cast(self.layer.carry(inputs), inputs.dtype))
        return ops.concatenate([self.layer(inputs, **passed), carried])

    def compute_output_spec(self, inputs, **passed):
        return super().compute_output_spec(self.layer.compute_output_spec(inputs))


class LesionedStack(Copies):
    """Run a stack on all copies, and append a lesioned copy for each of its blocks.

    It is one compiled loop over stacked weights. The loop runs the lesioned copies one after
    another, each starting at its lesion: a matrix of one batch stays in a CPU's cache, a matrix of
    all copies does not. The number of samples must be a multiple of `SHARES`.
    """

    def __init__(self, layer, copies):
        super().__init__(copies, layer.depth, dtype=layer.compute_dtype)
        self.layer = layer

    def call(self, inputs):
        layer, width = self.layer, inputs.shape[-1]
        gates = [layer.transform_activation] * (2 if layer.learned_carry else 1)
        cheaper = _CHEAPER if layer.compute_dtype == "float32" else {}
        block = Block("highway", tuple(cheaper.get(f, f) for f in (layer.activation, *gates)))
        kernel, bias = (ops.cast(w, inputs.dtype) for w in joint_weights(layer))
        rows = ops.reshape(inputs, (self.copies, SHARES, -1, width))
        run = _lesioned_chain(block)
        shares = [run(rows[:, n], kernel, bias[..., None]) for n in range(SHARES)]
        return ops.reshape(ops.concatenate(shares, axis=1), (-1, *ops.shape(inputs)[1:]))


@functools.lru_cache(maxsize=16)
def _lesioned_chain(block):
    """Return a compiled chain, which runs copies `(k, n, d)` and appends the lesioned ones."""

    def run(rows, kernel, bias):
        depth = kernel.shape[0]
        unused = ops.zeros((), rows.dtype)

        def forward(x, index):
            weights = (ops.take(w, index, axis=0) for w in (kernel, bias))
            return block.forward(x, *weights, unused)

        def from_block(index, x):
            return ops.while_loop(
                lambda i, _: i < depth, lambda i, x: (i + 1, forward(x, i)[0]), (index, x)
            )[1]

        def step(x, index):
            y, parts = forward(x, index)
            carried = x[0] if len(parts) == 2 else x[0] * parts[2][0]
            return y, from_block(index + 1, carried)

        copies, lesioned = shim.scan(step, ops.swapaxes(rows, -1, -2), ops.arange(depth))
        return ops.swapaxes(ops.concatenate([copies, lesioned]), -1, -2)

    return shim.compiled(run)


class Scores(keras.Layer):
    """Loss, wrong classes and sum of the probabilities of copies of a batch, `(n, copies, 3)`."""

    def __init__(self, copies, from_logits):
        super().__init__(name="lesions_scores", dtype="float32")
        self.copies, self.from_logits = copies, from_logits

    def call(self, inputs):
        predictions, labels = inputs
        truth = ops.concatenate([labels] * self.copies)
        loss = keras.losses.sparse_categorical_crossentropy(truth, predictions, self.from_logits)
        if not self.from_logits:  # Keras clips probabilities at 1e-7, on some backends
            exact = log_loss(truth, predictions)
            loss = ops.where(exact > -math.log(1e-6), exact, loss)
        wrong = ops.not_equal(ops.argmax(predictions, axis=-1), ops.cast(truth, "int32"))
        scores = ops.stack([loss, ops.cast(wrong, "float32"), ops.sum(predictions, -1)], axis=-1)
        count = ops.shape(labels)[0]
        scores = ops.sum(ops.reshape(scores, (self.copies, count, -1, 3)), axis=2)
        return ops.swapaxes(scores, 0, 1)

    def compute_output_spec(self, inputs):
        return keras.KerasTensor((None, self.copies, 3), "float32")
