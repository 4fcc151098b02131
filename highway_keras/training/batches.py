"""Batches in an order that depends on the seed and the epoch alone, so that training can resume."""

import itertools

import keras
import numpy as np

ENOUGH_STEPS_AT_ONCE, MOST_STEPS_AT_ONCE = 20, 32


def plan_steps(images, batch_size):
    """Cuts an epoch into equal pieces of steps that run as one call each.

    Keras's own work between steps costs as much as a step of a thin network. An epoch gives up
    at most 1 % of its steps so that pieces of many steps fit; what is left out differs by epoch.

    Returns:
        Steps an epoch, steps a call (a divisor of the former), images a step.
    """
    batch_size = min(batch_size, images)
    steps = images // batch_size
    fits = range(steps - steps // 100, steps + 1)
    steps = max(fits, key=lambda n: (min(_largest_divisor(n), ENOUGH_STEPS_AT_ONCE), n))
    return steps, _largest_divisor(steps), batch_size


def _largest_divisor(steps):
    return max(d for d in range(1, min(steps, MOST_STEPS_AT_ONCE) + 1) if steps % d == 0)


def batches(x, y, steps, batch_size, seed, first_epoch=0):
    """Endless batches `(images, labels)` from `first_epoch` on, `steps` an epoch.

    With TensorFlow a `tf.data.Dataset` over tensors that stay on the device, elsewhere a
    generator of NumPy arrays in the order of `orders`.
    """
    if keras.backend.backend() == "tensorflow":
        return _tensorflow(x, y, steps, batch_size, seed, first_epoch)
    return _numpy(x, y, steps, batch_size, seed, first_epoch)


def orders(images, steps, batch_size, seed, first_epoch=0):
    """Endless indices of images `(steps, batch_size)`, those of `first_epoch` first."""
    for epoch in itertools.count(first_epoch):
        order = np.random.default_rng([seed, epoch]).permutation(images)
        yield order[: steps * batch_size].reshape(steps, batch_size)


def _numpy(x, y, steps, batch_size, seed, first_epoch):
    for order in orders(len(x), steps, batch_size, seed, first_epoch):
        for chosen in order:
            yield x[chosen], y[chosen]


def _tensorflow(x, y, steps, batch_size, seed, first_epoch):
    import tensorflow as tf

    images, labels = tf.constant(x), tf.constant(y)

    def one_epoch(epoch):
        order = tf.random.experimental.stateless_shuffle(tf.range(len(x)), [seed, int32(epoch)])
        chosen = tf.data.Dataset.from_tensor_slices(order[: steps * batch_size])
        return chosen.batch(batch_size, drop_remainder=True)

    def int32(epoch):
        return tf.cast(epoch, tf.int32)

    epochs = tf.data.Dataset.range(first_epoch, np.iinfo(np.int32).max)
    chosen = epochs.flat_map(one_epoch)
    return chosen.map(lambda i: (tf.gather(images, i), tf.gather(labels, i))).prefetch(2)
