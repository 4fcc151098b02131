"""Batches in an order that depends on the seed and the epoch alone, so training can resume."""

import contextlib
import itertools

import keras
import numpy as np

ENOUGH_STEPS, MOST_STEPS = 20, 32  # a call


def plan_steps(images, batch_size):
    """Divide the steps of an epoch into calls that run equally many steps each.

    Keras's overhead per call costs as much as a step of a thin network. To allow longer calls, an
    epoch drops up to 1 % of its steps, and images that do not fill a batch; which images that
    leaves out differs from epoch to epoch.

    Returns:
        Steps per epoch, steps per call (a divisor of the former), images per step.
    """
    batch_size = min(batch_size, images)
    steps = images // batch_size
    fits = range(steps - steps // 100, steps + 1)
    steps = max(fits, key=lambda n: (min(_largest_divisor(n), ENOUGH_STEPS), n))
    return steps, _largest_divisor(steps), batch_size


def _largest_divisor(steps):
    return max(d for d in range(1, min(steps, MOST_STEPS) + 1) if steps % d == 0)


def batches(x, y, steps, batch_size, seed, first_epoch=0, weights=None):
    """Return endless batches `(images, labels)` from `first_epoch` on, `steps` an epoch.

    The order depends on the seed and the epoch alone. With `weights`, each image's weight in the
    loss is the third part of a batch.
    """
    of_backend = array_batches
    if keras.backend.backend() == "tensorflow":
        from highway_keras.training.engines.tensorflow import batches as of_backend
    return of_backend(x, y, steps, batch_size, seed, first_epoch, weights)


def array_batches(x, y, steps, batch_size, seed, first_epoch=0, weights=None):
    """Yield the batches of `batches` as NumPy arrays."""
    arrays = (x, y) if weights is None else (x, y, weights)
    for epoch in itertools.count(first_epoch):
        order = np.random.default_rng([seed, epoch]).permutation(len(x))
        for chosen in order[: steps * batch_size].reshape(steps, batch_size):
            yield tuple(array[chosen] for array in arrays)


class PreprocessedImages:
    """Images that are read and preprocessed on indexing, because they do not all fit in memory.

    TensorFlow does not index them: it calls `read` and `preprocess` in a pipeline that prefetches.
    """

    error = None

    def __init__(self, images, preprocess):
        self.images, self.preprocess = images, preprocess
        self.shape = images.shape

    def __len__(self):
        return len(self.images)

    def __getitem__(self, chosen):
        return self.preprocess.predict_on_batch(self.read(chosen))

    def read(self, chosen):
        """Return images as they are; keep the error if they cannot be read."""
        try:
            return self.images[chosen]
        except Exception as error:
            self.error = error
            raise

    @contextlib.contextmanager
    def reading(self):
        """Raise the error of `read` instead of TensorFlow's own: `with x.reading():`."""
        try:
            yield
        except Exception:
            if self.error:
                raise self.error from None
            raise
