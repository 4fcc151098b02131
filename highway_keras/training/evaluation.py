"""Measure a classifier, and state what several runs reached."""

import keras
import numpy as np

from highway_keras import results

EVALUATION_BATCH = 500
_ROUNDING = 0.01  # by which a row of probabilities may miss 1, as in half precision


class NotProbabilities(ValueError):
    """A model returned something other than class probabilities."""


def compile_classifier(model, optimizer="sgd", steps_per_execution=1):
    """Compile `model` for cross-entropy and accuracy; return it."""
    # The metric as an object: see `replica_steps`.
    model.compile(
        optimizer,
        "sparse_categorical_crossentropy",
        metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")],
        steps_per_execution=steps_per_execution,
    )
    return model


def evaluate(model, images):
    """Return cross-entropy (nats) and accuracy of a model on the test images of a `data.Dataset`.

    They do not depend on the loss and the metrics that the model was compiled with.

    Raises:
        NotProbabilities: If the model does not return class probabilities.
    """
    return measure(model, images.x_test, images.y_test)


def measure(model, x, y):
    """Return the same on raw images `x` and labels `y`."""
    found = probabilities(model, x)
    y = np.reshape(y, len(found))  # of labels (n, 1), each would be compared with all
    right = found[np.arange(len(found)), y]
    loss = -np.log(np.maximum(right, np.finfo("float32").tiny), dtype="float64").mean()
    return float(loss), float((found.argmax(-1) == y).mean())


def probabilities(model, x):
    """Return the class probabilities that a model returns for raw images, `(n, classes)`.

    Raises:
        NotProbabilities: If it returns something else.
    """
    if isinstance(x, np.ndarray):
        found = model.predict(x, batch_size=EVALUATION_BATCH, verbose=0)
    else:  # a `PictureArray`, which reads what it is asked for
        starts = range(0, len(x), EVALUATION_BATCH)
        found = [model.predict_on_batch(x[start : start + EVALUATION_BATCH]) for start in starts]
        found = np.concatenate(found)
    check_probabilities(model.name, found)
    return found


def check_classifier(network, inputs, classes):
    """Raise unless a network returns `classes` class probabilities for `inputs`, a few images."""
    takes, gives = network.input_shape, network.output_shape
    if takes != (None, *inputs.shape[1:]) or gives != (None, classes):
        raise ValueError(
            f"{network.name!r} must take images of shape {tuple(inputs.shape[1:])} and return a "
            f"probability for each of {classes} classes. Received: a network from {takes} to "
            f"{gives}. Leave `input_shape`, `classes`, `include_top` and `pooling` to `fit`."
        )
    outputs = network(inputs, training=False)
    check_probabilities(
        network.name, keras.ops.convert_to_numpy(keras.ops.cast(outputs, "float32"))
    )


def check_probabilities(name, found):
    """Raise unless each row of an array is one of class probabilities."""
    sums = np.sum(found, axis=-1, dtype="float64")
    wrong = ~(np.abs(sums - 1) <= _ROUNDING) | (np.min(found, axis=-1) < -_ROUNDING)
    if wrong.any():
        row = np.argmax(wrong)
        raise NotProbabilities(
            f"{name!r} must return class probabilities, each from 0 to 1, with a sum of 1, as a "
            "softmax does (`classifier_activation='softmax'`). "
            f"Received: {found[row].min():.3g} to {found[row].max():.3g}, {sums[row]:.3g} together."
        )


def summary(accuracies):
    """Return the accuracies of several runs as the paper states them: "best (mean ± std)" in %."""
    return results.text(results.spread([100 * accuracy for accuracy in accuracies]))
