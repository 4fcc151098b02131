"""What each layer is worth: the network's loss and error with that layer's gates forced to 0."""

import contextlib
import dataclasses
import math

import keras
import numpy as np

from highway_keras.analysis import blocks
from highway_keras.util import checks

THRESHOLD = 0.001  # a tenth of a percentage point


@dataclasses.dataclass(frozen=True, eq=False)
class Lesions:
    """The cost of closing the gates of one layer, for every layer (Figure 4).

    Attributes:
        layers: The names of the gated blocks, in order, as `transform_biases` has them.
        loss: Cross-entropy in nats with the gates of each layer closed, an array `(layers,)`.
        wrong: Number of wrong classifications with the gates of each layer closed, integers
            `(layers,)`.
        error: The same, as a share of `samples`.
        intact_loss, intact_wrong, intact_error: The same for the intact network.
        samples: Number of classifications: one for each sample, or one for each position of a
            sample if every position has a class.
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
    """Measure a classifier with the gates of each layer forced to 0, one layer after another.

    A lesioned layer returns only its carry: `y = x`, or `y = x * C(x)` with `carry="learned"`. The
    bias of its gate is set to -10,000 and back, see `closed`; a layer that is used several times is
    closed in all its calls. Masked positions count like all others, unlike in `model.evaluate`.

    Args:
        model: As for `gate_model`, with gates that a low bias closes; it returns class
            probabilities, or logits, `(batch_size, ..., classes)`.
        x, batch_size, verbose: As for `gates`.
        y: Class numbers, integers `(samples, ...)`.
        from_logits: Whether `model` returns logits instead of probabilities.

    Returns:
        A `Lesions`.

    Raises:
        ValueError: If `model` has no gates, one that no bias closes, or returns no probabilities,
            or `y` holds no class numbers.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import analysis, models
        >>> network = models.thin_mlp(depth=4, input_shape=(8,))
        >>> analysis.lesions(network, np.zeros((5, 8)), np.zeros(5, int)).error.shape
        (3,)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 4.2.
    """
    gated_blocks, labels = blocks_and_labels(model, x, y, from_logits, batch_size)
    sites = [(block.layer, block.index) for block in gated_blocks]
    loss, wrong = measure(model, x, labels, sites, from_logits, batch_size, verbose).T
    return Lesions(
        layers=tuple(block.name for block in gated_blocks),
        loss=loss[1:] / labels.size,
        wrong=wrong[1:].astype(int),
        intact_loss=float(loss[0] / labels.size),
        intact_wrong=int(wrong[0]),
        samples=labels.size,
    )


def blocks_and_labels(model, x, y, from_logits=False, batch_size=None):
    """Return the gated blocks of a classifier and its labels, after a check on one batch.

    The labels have the shape of the predictions without the axis of classes. The check closes all
    gates at once: each must then be 0.
    """
    _, batch = next(blocks.in_batches(x, batch_size, verbose=0))
    gates, gated_blocks = blocks.observe(model)
    with contextlib.ExitStack() as stack:
        for layer in {block.layer for block in gated_blocks}:
            stack.enter_context(blocks.closed(layer))
        values = keras.tree.flatten(gates.predict_on_batch(batch))
    for block, gate in zip(gated_blocks, values, strict=True):
        if np.any(gate):
            raise ValueError(
                "`model` must have transform gates that a low bias closes: T = 0. Received: layer "
                f"{block.name!r}, whose gates are up to {np.abs(gate).max():.3g} with a bias of "
                f"{blocks.CLOSED:g}."
            )
    predicted = model.predict_on_batch(batch)
    sums = np.sum(predicted, axis=-1)
    if not from_logits and not np.allclose(sums, 1, atol=0.01):
        raise ValueError(
            "`model` must return class probabilities, which sum to 1; `lesions` takes logits "
            f"with from_logits=True. Received: sums from {sums.min():.3g} to {sums.max():.3g}."
        )
    _, *positions, classes = predicted.shape
    shape = (len(keras.tree.flatten(x)[0]), *positions)
    return gated_blocks, checks.class_numbers("y", np.reshape(y, shape), classes)


def measure(model, x, labels, sites, from_logits=False, batch_size=None, verbose=0):
    """Return loss and number of errors, summed over the labels, as an array `(1 + sites, 2)`.

    The first row is of the network as it is. A site is `(layer, index)`, the arguments of
    `closed`.
    """
    scores = np.zeros((1 + len(sites), 2))
    for samples, batch in blocks.in_batches(x, batch_size, verbose):
        scores[0] += score(model.predict_on_batch(batch), labels[samples], from_logits)
        for row, site in enumerate(sites, start=1):
            with blocks.closed(*site):
                predicted = model.predict_on_batch(batch)
            scores[row] += score(predicted, labels[samples], from_logits)
    return scores


def score(predicted, labels, from_logits):
    """Return loss and number of errors of a batch."""
    shares = np.asarray(predicted, "float64")
    if from_logits:
        shares = np.exp(shares - shares.max(axis=-1, keepdims=True))
        shares = shares / shares.sum(axis=-1, keepdims=True)
    likelihoods = np.take_along_axis(shares, labels[..., None], axis=-1)
    loss = -np.log(np.maximum(likelihoods, np.finfo("float32").tiny)).sum()
    return loss, (shares.argmax(axis=-1) != labels).sum()


@dataclasses.dataclass(frozen=True)
class NeededLayers:
    """The layers whose lesion raises a network's error; as a string, a sentence about them.

    Attributes:
        layers: Their names, in order.
        of: Number of gated layers.
        threshold: The share of the samples that the error must rise by for a layer to count.
        limit: The same as a number of samples: a layer counts if its lesion adds more errors.
        samples: Number of samples.
    """

    layers: tuple
    of: int
    threshold: float
    limit: int
    samples: int

    def __str__(self):
        limit = f"{self.limit:,}" if self.limit else "less than one"
        return (
            f"{len(self.layers)} of {self.of} gated layers matter: closing one of them raises the "
            f"error by more than {100 * self.threshold:g} points ({limit} of "
            f"{self.samples:,} samples). Idle: {self.of - len(self.layers)}."
        )


def needed_layers(lesions, threshold=THRESHOLD):
    """Return the layers whose lesion raises the error: how deep the problem needs the network.

    Each layer is judged alone, with all others intact; several idle ones may still matter together.

    Args:
        lesions: What `lesions` returned.
        threshold: Rise of the error, as a share of the samples, above which a layer counts.

    Returns:
        A `NeededLayers`, which prints as a sentence.

    Raises:
        ValueError: If `threshold` is not in [0, 1).

    Examples:
        >>> import numpy as np
        >>> from highway_keras.analysis import Lesions, needed_layers
        >>> lesions = Lesions(("a", "b", "c"), np.zeros(3), np.array([500, 25, 20]), 0.0, 10, 1000)
        >>> needed_layers(lesions, threshold=0.01).layers
        ('a', 'b')
    """
    checks.number("threshold", threshold, least=0, below=1)
    # Compare counts, because with shares, 0.019 - 0.018 > 0.001. A millionth of a sample makes up
    # for rounding: 0.0029 * 10000 falls just short of 29.
    limit = math.floor(threshold * lesions.samples + 1e-6)
    matters = lesions.wrong - lesions.intact_wrong > limit
    names = tuple(name for name, needed in zip(lesions.layers, matters, strict=True) if needed)
    return NeededLayers(names, len(lesions.layers), float(threshold), limit, lesions.samples)
