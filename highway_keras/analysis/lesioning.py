"""What each layer is worth: the network's loss and error with that layer's gates forced to 0."""

import dataclasses
import math

import numpy as np

from highway_keras.analysis.graph import Graph
from highway_keras.analysis.lesion_model import SHARES, largest_batch, lesion_model
from highway_keras.analysis.samples import as_arrays, as_labels, by_batch
from highway_keras.layers import HighwayStack
from highway_keras.util import checks

THRESHOLD = 0.001  # a tenth of a percentage point
FEW = 10  # samples: a count varies by about its square root, which for 10 is a third of it


@dataclasses.dataclass(frozen=True, eq=False)
class Lesions:
    """The cost of closing the gates of one layer, for every layer (Figure 4).

    Attributes:
        layers: The names of the gated layers, in order.
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
    """Measure a classifier with the gates of each layer forced to 0, in one pass over the data.

    A lesioned layer returns only its carry: `y = x`, or `y = x * C(x)` with `carry="learned"`.
    Masked positions count like all others, unlike in `model.evaluate`.

    Args:
        model: As for `gate_model`; it returns class probabilities, or logits, `(batch_size, ...,
            classes)`.
        x: Samples as `model` takes them: an array, or a list of them.
        y: Class numbers, integers `(samples, ...)`.
        from_logits: Whether `model` returns logits instead of probabilities.
        batch_size: Samples per batch. Default: as many as their copies leave memory for.
        verbose: As for `mean_gates`.

    Returns:
        A `Lesions`.

    Raises:
        TypeError: If `model` is not a functional or Sequential model.
        ValueError: If `model` has no gates or returns no probabilities, or `x` or `y` does not fit.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import analysis, models
        >>> network = models.thin_mlp(depth=4, input_shape=(8,))
        >>> analysis.lesions(network, np.zeros((5, 8)), np.zeros(5, int)).error.shape
        (3,)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 4.2.
    """
    _, measure = measurement(model, x, y, from_logits, batch_size)
    return measure(verbose)


def measurement(model, x, y, from_logits=False, batch_size=None):
    """Return the `Graph` of a classifier, and a function that measures its `Lesions`.

    The function takes `verbose`, and measures the network as it is when it is called. The other
    arguments are those of `lesions`.
    """
    graph = Graph(model)
    arrays = as_arrays(x, graph.inputs)
    shapes = [tuple(y.shape) for y in graph.outputs]
    if len(shapes) != 1 or len(shapes[0]) < 2 or shapes[0][-1] == 1:
        raise ValueError(
            "`model` must return one prediction, (batch_size, ..., classes), of two classes or "
            f"more: [1 - p, p] in place of a single sigmoid p. Received: outputs of shape "
            f"{', '.join(map(str, shapes))}."
        )
    labels = as_labels(y, len(arrays[0]), shapes[0])
    if any(call.kwargs.get("return_gate") for call in graph.gated):
        raise ValueError(
            "`model` must not use the gates of its layers itself (`return_gate=True`). "
            f"Received: model={model.name!r}. Lesion the model without that use."
        )
    if any(None in x.shape[1:] for x in graph.inputs):  # how many fit depends on the samples
        graph = Graph(model, [a.shape[1:] for a in arrays])
    scored = lesion_model(graph, labels.shape[1:], from_logits)
    batch_size = largest_batch(graph) if batch_size is None else batch_size
    stacks = [call for call in graph.gated if isinstance(call.layer, HighwayStack)]
    multiple = SHARES if stacks else 1

    def measure(verbose=0):
        totals = 0.0
        for part, (scores,) in by_batch(scored, [*arrays, labels], batch_size, verbose, multiple):
            sums = scores.sum(axis=0, dtype="float64")
            probability = sums[:, 2] / labels[part].size
            is_one = np.isclose(probability, 1, atol=0.01)
            if not from_logits and not is_one.all():
                first = int(np.argmin(is_one))
                closed = f" with {graph.blocks[first - 1]} closed" if first else ""
                raise ValueError(
                    "`model` must return class probabilities, which sum to 1. Received: sums of "
                    f"{probability[first]:.3g} on average{closed}. If it returns logits, put a "
                    "softmax at its end, or pass from_logits=True to `lesions`. Sigmoids of labels "
                    "that do not exclude one another are not measured."
                )
            totals = totals + sums
        loss, wrong = totals[:, 0] / labels.size, totals[:, 1].astype(int)
        intact = float(loss[0]), int(wrong[0])
        return Lesions(graph.blocks, loss[1:], wrong[1:], *intact, labels.size)

    return graph, measure


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
        few = "A threshold of so few samples leaves much to chance: measure on more."
        return (
            f"{len(self.layers)} of {self.of} gated layers matter: closing one of them raises the "
            f"error by more than {100 * self.threshold:g} points ({self.limit:,} of "
            f"{self.samples:,} samples). Idle: {self.of - len(self.layers)}."
            f"{f' {few}' if self.limit < FEW else ''}"
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
        >>> found = Lesions(("a", "b", "c"), np.zeros(3), np.array([500, 25, 20]), 0.0, 10, 1000)
        >>> needed_layers(found, threshold=0.01).layers
        ('a', 'b')
    """
    checks.number("threshold", threshold, least=0, below=1)
    # Compare counts, because with shares, 0.019 - 0.018 > 0.001. A millionth of a sample makes up
    # for rounding: 0.0029 * 10000 falls just short of 29.
    limit = math.floor(threshold * lesions.samples + 1e-6)
    matters = lesions.wrong - lesions.intact_wrong > limit
    names = tuple(name for name, needed in zip(lesions.layers, matters, strict=True) if needed)
    return NeededLayers(names, len(lesions.layers), float(threshold), limit, lesions.samples)
