"""Batches in an order that depends on the seed and the epoch alone, so training can resume."""

import itertools

import keras
import numpy as np

from highway_keras.data.dataset import MAX_IN_MEMORY, inference_batch_size
from highway_keras.data.preprocessing import preprocessed
from highway_keras.util import checks

ENOUGH_STEPS, MAX_STEPS = 20, 32  # in one call


def plan_steps(images, batch_size):
    """Divide the steps of an epoch into calls that run equally many steps each.

    Keras's overhead per call costs as much as a step of a thin network. To allow longer calls, an
    epoch drops up to 1 % of its steps, and images that do not fill a batch; the dropped images
    differ from epoch to epoch.

    Returns:
        Steps per epoch, steps per call (a divisor of the former), images per step.
    """
    batch_size = min(batch_size, images)
    steps = images // batch_size
    candidates = range(steps - steps // 100, steps + 1)
    steps = max(candidates, key=lambda n: (min(_largest_divisor(n), ENOUGH_STEPS), n))
    return steps, _largest_divisor(steps), batch_size


def _largest_divisor(steps):
    return max(d for d in range(1, min(steps, MAX_STEPS) + 1) if steps % d == 0)


def batches(arrays, steps, batch_size, seed, first_epoch=0):
    """Return endless batches of arrays, such as `(x, y)`, from an epoch on, `steps` an epoch."""
    if keras.backend.backend() == "tensorflow":
        return _tensor_batches(arrays, steps, batch_size, seed, first_epoch)
    return array_batches(arrays, steps, batch_size, seed, first_epoch)


def array_batches(arrays, steps, batch_size, seed, first_epoch=0):
    """Yield batches by indexing, which also reads pictures that are not in memory."""
    for epoch in itertools.count(first_epoch):
        if keras.backend.backend() == "tensorflow":
            order = _tensor_order(len(arrays[0]), seed, epoch).numpy()
        else:
            order = np.random.default_rng([seed, epoch]).permutation(len(arrays[0]))
        for chosen in order[: steps * batch_size].reshape(steps, batch_size):
            yield tuple(array[chosen] for array in arrays)


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


class SequentialBatches(keras.utils.PyDataset):
    """Batches of all images in their order, read as they are needed."""

    def __init__(self, arrays, batch_size):
        super().__init__(workers=2)
        self.arrays, self.batch_size = arrays, batch_size

    def __len__(self):
        return -(-len(self.arrays[0]) // self.batch_size)

    def __getitem__(self, number):
        chosen = slice(number * self.batch_size, (number + 1) * self.batch_size)
        return tuple(array[chosen] for array in self.arrays)


class Feed:
    """The images of a run as they reach the model that trains.

    Images in memory are preprocessed once, before they are trained on. Pictures on the disk are
    read batch by batch, and the model preprocesses them.

    Attributes:
        layers: What the model begins with.
        steps: Steps per epoch.
        steps_per_execution: Steps that Keras runs per call.
    """

    def __init__(self, images, preprocess, batch_size, distribution):
        self.images, self.preprocess, self.distribution = images, preprocess, distribution
        x, replicas = images.x_train, distribution.replicas
        self.in_memory = isinstance(x, np.ndarray) and x.size <= MAX_IN_MEMORY
        self.layers = [] if self.in_memory else [preprocess]
        self.steps, self.steps_per_execution, self.batch_size = plan_steps(len(x), batch_size)
        if self.batch_size % replicas:
            raise ValueError(
                f"`batch_size` must be divisible by the number of devices, {replicas}. "
                f"{checks.received('batch_size', self.batch_size)}"
            )
        if keras.backend.backend() == "torch" or replicas > 1 or not self.in_memory:
            self.steps_per_execution = 1  # all that these can do

    def training(self, class_weights, seed, first_epoch):
        """Return this process's share of endless batches, from an epoch on."""
        x, y = self.images.x_train, self.images.y_train
        weights = [] if class_weights is None else [class_weights[y]]
        make_batches = array_batches
        if self.in_memory:
            x, make_batches = preprocessed(self.preprocess, x), batches
        examples = make_batches([x, y, *weights], self.steps, self.batch_size, seed, first_epoch)
        return self.distribution.share(examples)

    def validation(self):
        """Return the arguments of Keras's `fit` that hold the held-out images, if there are any."""
        x, y, replicas = self.images.x_val, self.images.y_val, self.distribution.replicas
        if not len(x):
            return {}
        batch_size = inference_batch_size(self.images.input_shape)
        if not self.in_memory:
            return {"validation_data": SequentialBatches([x, y], batch_size)}
        return {
            "validation_data": self.distribution.even_share([preprocessed(self.preprocess, x), y]),
            "validation_batch_size": max(batch_size // replicas, 1) * replicas,
        }
