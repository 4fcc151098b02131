"""Measuring a classifier, and stating what several runs reached."""

import keras

from highway_keras import results

EVALUATION_BATCH = 500


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
    """Return cross-entropy (nats) and accuracy on the test images of a `data.Dataset`."""
    if not model.compiled:
        compile_classifier(model)
    measured = model.evaluate(images.x_test, images.y_test, EVALUATION_BATCH, verbose=0)
    return tuple(float(value) for value in measured)


def summary(accuracies):
    """Return the accuracies of several runs as the paper states them: "best (mean ± std)" in %."""
    return results.text(results.spread([100 * accuracy for accuracy in accuracies]))
