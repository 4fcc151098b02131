"""Layers that pass lesioned copies of a batch through a network along with the intact one.

A batch of n samples grows to k * n: the intact copy first, then one for each lesion so far. All
copies run through every layer together, so whatever comes before a lesion is computed once.
"""

import functools
import os

import keras
from keras import ops

from highway_keras.analysis.blocks import closed, stacked_weights
from highway_keras.backends.current import shim
from highway_keras.depth_loop.block import Block

# XLA runs the loop of a `LesionedChain` on one core; TensorFlow runs several of them at once.
PARTS = min(os.cpu_count(), 4) if keras.backend.backend() == "tensorflow" else 1


class Copies(keras.Layer):
    """Base of the layers that change the number of copies.

    Args:
        copies: Number of copies in the input.
        sources: For each copy of the output, the number of the input's copy that it comes from and
            whose mask it has.
    """

    def __init__(self, copies, sources, **kwargs):
        super().__init__(**kwargs)
        self.copies, self.sources = copies, tuple(sources)
        self.supports_masking = True

    def compute_output_spec(self, inputs):
        return keras.KerasTensor((None, *inputs.shape[1:]), inputs.dtype)

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else self.pick(mask)

    def pick(self, x):
        """Return the copies of `x` that `sources` names."""
        count = ops.shape(x)[0] // self.copies
        return ops.concatenate([x[i * count : (i + 1) * count] for i in self.sources])


class Pick(Copies):
    """A selection of the copies, in any order and with repetitions."""

    def call(self, inputs):
        return self.pick(inputs)


class LesionedBlock(Copies):
    """A gated layer on all copies, plus a new copy: the intact one with the gates closed."""

    def __init__(self, layer, copies):
        super().__init__(copies, (*range(copies), 0), dtype=layer.compute_dtype)
        self.layer = layer

    def call(self, inputs):
        intact = inputs[: ops.shape(inputs)[0] // self.copies]
        return ops.concatenate([self.layer(inputs), closed(self.layer, intact)])

    def compute_output_spec(self, inputs):
        return super().compute_output_spec(self.layer.compute_output_spec(inputs))


class LesionedChain(Copies):
    """A chain of dense gated layers on all copies, plus a new copy for each of its blocks.

    It computes what a `LesionedBlock` for each layer would, as one compiled loop over stacked
    weights. The loop runs the copies one after another, each starting at its lesion: a matrix of
    one batch stays in a CPU's cache, a matrix of all copies does not. The number of samples
    must be a multiple of `PARTS`.
    """

    def __init__(self, layers, copies):
        self.depth = sum(getattr(layer, "depth", 1) for layer in layers)
        sources = (*range(copies), *[0] * self.depth)
        super().__init__(copies, sources, dtype=layers[0].compute_dtype)
        self.layers = list(layers)

    def call(self, inputs):
        first = self.layers[0]
        gates = [first.transform_activation] * (2 if first.learned_carry else 1)
        block = Block("highway", tuple(_CHEAPER.get(f, f) for f in (first.activation, *gates)))
        kernel, bias = (ops.cast(w, inputs.dtype) for w in stacked_weights(self.layers))
        rows = ops.reshape(inputs, (self.copies, PARTS, -1, inputs.shape[-1]))
        run = _lesioned_chain(block)
        parts = [run(rows[:, part], kernel, bias[..., None]) for part in range(PARTS)]
        return ops.reshape(ops.concatenate(parts, axis=1), (-1, *ops.shape(inputs)[1:]))


def _sigmoid(z):
    return 0.5 + 0.5 * ops.tanh(0.5 * z)


_CHEAPER = {keras.activations.sigmoid: _sigmoid}  # measured on a CPU under XLA: 7 % of the chain


@functools.lru_cache(maxsize=16)
def _lesioned_chain(block):
    """Return the compiled chain of a block: copies `(k, n, d)` in, those and the lesioned out."""

    def run(copies, kernel, bias):
        depth = kernel.shape[0]
        no_share = ops.zeros((), copies.dtype)

        def forward(x, index):
            weights = (ops.take(w, index, axis=0) for w in (kernel, bias))
            return block.forward(x, *weights, no_share)

        def from_block(index, x):
            return ops.while_loop(
                lambda i, _: i < depth, lambda i, x: (i + 1, forward(x, i)[0]), (index, x)
            )[1]

        def step(x, index):
            y, parts = forward(x, index)
            skipped = x[0] if len(parts) == 2 else x[0] * parts[2][0]
            return y, from_block(index + 1, skipped)

        columns = ops.swapaxes(copies, -1, -2)
        intact, lesioned = _scan(step, columns, ops.arange(depth))
        return ops.swapaxes(ops.concatenate([intact, lesioned]), -1, -2)

    return shim.compiled(run)


_scan = shim.scan if shim.HAS_LOOPS else ops.scan


class Scores(keras.Layer):
    """Loss, wrong classes and sum of the probabilities, by sample and copy, `(n, copies, 3)`.

    Each is summed over the positions of a sample.
    """

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
