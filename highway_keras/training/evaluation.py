"""Measure a classifier, and state the results of several runs."""

import dataclasses

import keras
import numpy as np

from highway_keras import results
from highway_keras.data.dataset import inference_batch_size
from highway_keras.data.preprocessing import preprocessed, preprocessor
from highway_keras.ops import LOSS
from highway_keras.training.batches import SequentialBatches
from highway_keras.util.messages import shows_progress

ROUNDING = 0.01  # by which a row of probabilities may miss 1, as in half precision


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """What `evaluate` measures.

    Attributes:
        loss: Cross-entropy (nats).
        accuracy: Share of the images that the model classifies correctly.
        confusion: Integers `(classes, classes)`: row i, column j counts the images of class i that
            the model assigns to class j.
        predicted: The class number that the model assigns to each image, integers `(n,)`.
    """

    loss: float
    accuracy: float
    confusion: np.ndarray
    predicted: np.ndarray

    @property
    def class_accuracy(self):
        """Accuracy by class, a list; `None` for a class without images."""
        totals = self.confusion.sum(axis=1)
        right = np.diagonal(self.confusion)
        return [float(r / n) if n else None for r, n in zip(right, totals, strict=True)]


def compile_classifier(model, optimizer=None, steps_per_execution=1):
    """Compile `model` to train or, without an optimizer, to be measured; return it."""
    # A metric given by its name would be made within a replica, where several devices train.
    model.compile(
        optimizer or "sgd",
        LOSS if optimizer else "sparse_categorical_crossentropy",
        metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")],
        steps_per_execution=steps_per_execution,
        jit_compile=None,  # "auto", but files do not hold its value on this backend
        auto_scale_loss=False,
    )
    return model


def evaluate(model, images, verbose=0) -> Evaluation:
    """Measure a model on the test images of a data set.

    Args:
        model: A `keras.Model` from raw images, 0 to 255, to class probabilities.
        images: A `data.Dataset`.
        verbose: 1 shows a progress bar, 0 none, `"auto"` one on a terminal.

    Returns:
        An `Evaluation`: `loss`, `accuracy`, `class_accuracy`, `confusion` and `predicted`.

    Raises:
        ValueError: If the model does not return a probability for each class.
    """
    rows, labels = probabilities(model, images.x_test, verbose), images.y_test
    if rows.shape[-1] != images.classes:
        raise ValueError(
            f"`model` must return a probability for each of the {images.classes} classes of "
            f"{images.name!r}. Received: {rows.shape[-1]} of them."
        )
    likelihoods = rows[np.arange(len(rows)), labels]
    loss = -np.log(np.maximum(likelihoods, np.finfo("float32").tiny), dtype="float64").mean()
    confusion, predicted = np.zeros((rows.shape[-1],) * 2, int), rows.argmax(-1)
    np.add.at(confusion, (labels, predicted), 1)
    return Evaluation(float(loss), float((predicted == labels).mean()), confusion, predicted)


def probabilities(model, x, verbose=0):
    """Return the class probabilities, `(n, classes)`, of raw images, an array or `PictureArray`.

    Raises:
        ValueError: If the model returns something else.
    """
    batches = SequentialBatches([x], inference_batch_size(x.shape[1:]))
    rows = model.predict(batches, verbose=shows_progress(verbose))
    return check_probabilities(model.name, rows, model.output_shape[-1])


def check_probabilities(name, rows, classes):
    """Return an array if each of its rows holds the probabilities of so many classes."""
    sums = np.sum(rows, axis=-1, dtype="float64")
    is_sum = np.allclose(sums, 1, rtol=0, atol=ROUNDING)
    if np.shape(rows) != (len(rows), classes) or not is_sum or np.min(rows) < -ROUNDING:
        raise ValueError(
            f"{name!r} must return a probability for each of {classes} classes, with a sum of 1: "
            f"end it in a softmax. Received: shape {np.shape(rows)}, {np.min(rows):.3g} to "
            f"{np.max(rows):.3g}."
        )
    return rows


def summary(accuracies):
    """Return the accuracies of several runs as the paper states them: "best (mean ± std)" in %."""
    return results.text(results.spread([100 * accuracy for accuracy in accuracies]))


class TestCurve(keras.callbacks.Callback):
    """Add `test_loss` and `test_accuracy` to the history after every epoch, for the record.

    They decide nothing, not even which network is best.

    Args:
        images: The `data.Dataset` in memory whose test images are used.
        preprocessing: The recipe's steps. The mean image is that of `images.x_train`, so
            `images` must be what the network is trained on.
    """

    def __init__(self, images, preprocessing):
        super().__init__()
        self.x = preprocessed(preprocessor(preprocessing, images.x_train), images.x_test)
        self.y = images.y_test

    def on_epoch_end(self, epoch, logs=None):
        measured = self.model.evaluate(self.x, self.y, batch_size=500, verbose=0, return_dict=True)
        logs |= {f"test_{name}": value for name, value in measured.items()}
