"""Batches in an order that depends on the seed and the epoch alone, so training can resume."""

import functools
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
    candidates = range(steps - steps // 100, steps + 1)
    steps = max(candidates, key=lambda n: (min(_largest_divisor(n), ENOUGH_STEPS), n))
    return steps, _largest_divisor(steps), batch_size


def _largest_divisor(steps):
    return max(d for d in range(1, min(steps, MOST_STEPS) + 1) if steps % d == 0)


def batches(arrays, steps, batch_size, seed, first_epoch=0):
    """Return endless batches of arrays, such as `(x, y)`, from an epoch on, `steps` an epoch."""
    if keras.backend.backend() == "tensorflow":
        return _tensor_batches(arrays, steps, batch_size, seed, first_epoch)
    return _array_batches(arrays, steps, batch_size, seed, first_epoch)


def _array_batches(arrays, steps, batch_size, seed, first_epoch=0):
    for epoch in itertools.count(first_epoch):
        for chosen in epoch_order(len(arrays[0]), steps, batch_size, seed, epoch):
            yield tuple(array[chosen] for array in arrays)


def epoch_order(count, steps, batch_size, seed, epoch):
    """Return the indices of each step's images, `(steps, batch_size)`."""
    if keras.backend.backend() == "tensorflow":
        order = _tensor_order(count, seed, epoch).numpy()
    else:
        order = np.random.default_rng([seed, epoch]).permutation(count)
    return order[: steps * batch_size].reshape(steps, batch_size)


def _tensor_order(count, seed, epoch):
    import tensorflow as tf

    seeds = [seed, tf.cast(epoch, tf.int32)]
    return tf.random.experimental.stateless_shuffle(tf.range(count), seeds)


def _tensor_batches(arrays, steps, batch_size, seed, first_epoch):
    import tensorflow as tf

    with tf.device("CPU"):  # where tf.data runs
        tensors = [tf.constant(array) for array in arrays]

    def one_epoch(epoch):
        order = _tensor_order(len(arrays[0]), seed, epoch)
        chosen = tf.data.Dataset.from_tensor_slices(order[: steps * batch_size])
        return chosen.batch(batch_size, drop_remainder=True)

    epochs = tf.data.Dataset.range(first_epoch, np.iinfo(np.int32).max)
    chosen = epochs.flat_map(one_epoch)
    return chosen.map(lambda i: tuple(tf.gather(tensor, i) for tensor in tensors)).prefetch(2)


class PictureBatches(keras.utils.PyDataset):
    """Batches of pictures that are read as they are needed, because they do not fit in memory.

    Args:
        arrays: The pictures and what goes with each, such as `(x, y)`.
        indices: Function from the number of a batch to the indices of its pictures.
        count: Number of batches, over all epochs: Keras calls `on_epoch_end` more often than
            epochs end, so that a batch could not know its epoch.
    """

    def __init__(self, arrays, indices, count):
        super().__init__(workers=2)
        self.arrays, self.indices, self.count = arrays, indices, count

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        chosen = self.indices(number)
        return tuple(array[chosen] for array in self.arrays)


def shuffled_pictures(arrays, epochs, steps, batch_size, seed, first_epoch=0):
    """Return the `PictureBatches` of `batches`, up to the epoch `epochs`."""
    order = functools.lru_cache(maxsize=2)(
        lambda epoch: epoch_order(len(arrays[0]), steps, batch_size, seed, epoch)
    )

    def indices(number):
        epoch, step = divmod(number, steps)
        return order(first_epoch + epoch)[step]

    return PictureBatches(arrays, indices, steps * (epochs - first_epoch))


def pictures_in_turn(arrays, batch_size):
    """Return the `PictureBatches` that take all pictures once, as they come."""
    count = len(arrays[0])

    def indices(number):
        return np.arange(number * batch_size, min((number + 1) * batch_size, count))

    return PictureBatches(arrays, indices, -(-count // batch_size))
