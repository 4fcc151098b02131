"""What each layer is worth: the network's loss and error with that layer's gates forced to 0."""

import dataclasses

import numpy as np

from highway_keras.analysis.batches import as_arrays, as_labels, run
from highway_keras.analysis.graph import Graph
from highway_keras.analysis.lesion_layers import PARTS
from highway_keras.analysis.lesion_model import largest_batch, lesion_model


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

    Args:
        model: As for `gate_model`; it returns class probabilities `(batch_size, ..., classes)`.
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
    if any(None in x.shape[1:] for x in graph.inputs):  # how many fit depends on the samples
        graph = Graph(model, [a.shape[1:] for a in arrays])
    scored = lesion_model(graph, labels.shape[1:], from_logits)
    batch_size = largest_batch(graph) if batch_size is None else batch_size
    batches = run(scored, [*arrays, labels], batch_size, verbose, PARTS)
    totals = sum(scores.sum(axis=0, dtype="float64") for _, (scores,) in batches)
    loss, wrong, probability = totals.T
    if not from_logits:
        _check_probabilities(probability / labels.size)
    loss, wrong = loss / labels.size, wrong.astype(int)
    return Lesions(graph.blocks, loss[1:], wrong[1:], float(loss[0]), int(wrong[0]), labels.size)


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


def _check_probabilities(sums):
    if not np.allclose(sums, 1, atol=0.01):
        raise ValueError(
            "`model` must return class probabilities, which sum to 1. Received: sums of "
            f"{sums[0]:.3g} on average. If it returns logits, pass from_logits=True."
        )
