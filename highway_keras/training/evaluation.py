"""Measure a classifier, and state what several runs reached."""

import keras
import numpy as np

from highway_keras import data, results
from highway_keras.analysis.samples import by_batch
from highway_keras.ops import LOSS

_ROUNDING = 0.01  # by which a row of probabilities may miss 1, as in half precision


class NotProbabilities(ValueError):
    """A model returned something other than class probabilities."""


class Evaluation(tuple):
    """A pair, cross-entropy (nats) and accuracy, with the confusion matrix as an attribute.

    Attributes:
        loss, accuracy: The pair.
        confusion: Integers `(classes, classes)`: row i, column j counts the images of class i that
            the model assigns to class j.
    """

    def __new__(cls, loss, accuracy, confusion):
        pair = super().__new__(cls, (loss, accuracy))
        pair.loss, pair.accuracy, pair.confusion = loss, accuracy, confusion
        return pair

    def __getnewargs__(self):  # else it could be neither copied nor sent to another process
        return self.loss, self.accuracy, self.confusion

    @property
    def class_accuracy(self):
        """Accuracy by class, a list; `None` for a class without images."""
        totals = self.confusion.sum(axis=1)
        right = np.diagonal(self.confusion)
        return [float(r / n) if n else None for r, n in zip(right, totals, strict=True)]


def compile_classifier(model, optimizer=None, steps_per_execution=1):
    """Compile `model` to train or, without an optimizer, to be measured; return it."""
    # The metric as an object: see `install_replica_steps`.
    model.compile(
        optimizer or "sgd",
        LOSS if optimizer else "sparse_categorical_crossentropy",
        metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")],
        steps_per_execution=steps_per_execution,
        jit_compile=None,  # "auto", but files do not hold what that is on this backend
        auto_scale_loss=False,
    )
    return model


def evaluate(model, images, verbose=0) -> Evaluation:
    """Return cross-entropy (nats) and accuracy of a model on the test images of a `data.Dataset`.

    They do not depend on the loss and the metrics that the model was compiled with. `verbose`: 1
    shows a progress bar, 0 none, `"auto"` one on a terminal.

    Returns:
        An `Evaluation`: a pair that also has `confusion` and `class_accuracy`.

    Raises:
        NotProbabilities: If the model does not return class probabilities.
        ValueError: If images or labels are not as training takes them, or the model has another
            number of classes.
    """
    images = data.check_dataset(images)
    found = probabilities(model, images.x_test, verbose)
    if found.shape[-1] != images.classes:
        raise ValueError(
            f"`model` must return a probability for each of the {images.classes} classes of "
            f"{images.name!r}. Received: {found.shape[-1]} of them."
        )
    return compare(found, images.y_test)


def compare(found, y):
    """Return the `Evaluation` of a model's outputs, `(n, classes)`, given the labels `y`."""
    y = np.reshape(y, len(found))  # labels (n, 1) would broadcast
    right = found[np.arange(len(found)), y]
    loss = -np.log(np.maximum(right, np.finfo("float32").tiny), dtype="float64").mean()
    confusion = np.zeros((found.shape[-1],) * 2, int)
    np.add.at(confusion, (y, found.argmax(-1)), 1)
    return Evaluation(float(loss), float((found.argmax(-1) == y).mean()), confusion)


def probabilities(model, x, verbose=0):
    """Return the `outputs` of a model if they are class probabilities, `(n, classes)`."""
    found = outputs(model, x, verbose)
    check_probabilities(model.name, found)
    return found


def outputs(model, x, verbose=0):
    """Return what a model returns for raw images, an array or a `PictureArray`."""
    found = [found for _, found in by_batch(model, [x], None, verbose)]
    if [one.ndim for one in found[0]] != [2]:
        shapes = ", ".join(str((None, *one.shape[1:])) for one in found[0])
        raise NotProbabilities(
            f"{model.name!r} must return a probability for each class, of shape (None, classes). "
            f"Received: outputs of shape {shapes}."
        )
    return np.concatenate([one for (one,) in found])


def check_probabilities(name, found):
    """Raise `NotProbabilities` unless each row of an array holds class probabilities."""
    sums = np.sum(found, axis=-1, dtype="float64")
    wrong = ~(np.abs(sums - 1) <= _ROUNDING) | (np.min(found, axis=-1) < -_ROUNDING)
    if wrong.any():
        row = np.argmax(wrong)
        raise NotProbabilities(
            f"{name!r} must return class probabilities, each from 0 to 1, with a sum of 1: end it "
            f"in a softmax. Received: {found[row].min():.3g} to {found[row].max():.3g}, with a sum "
            f"of {sums[row]:.3g}."
        )


def summary(accuracies):
    """Return the accuracies of several runs as the paper states them: "best (mean ± std)" in %."""
    return results.text(results.spread([100 * accuracy for accuracy in accuracies]))
