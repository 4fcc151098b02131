"""JAX: several devices, and a whole epoch as one compiled loop with the data set on the device.

TensorFlow does not need this loop: its `tf.data` set is already on the device, and
`steps_per_execution` puts many steps into one call.
"""

import os

import jax
import keras
import numpy as np

from highway_keras.training.batches import array_batches as batches
from highway_keras.training.batches import orders

__all__ = [
    "batches",
    "callbacks",
    "compiled_epoch",
    "data_parallel",
    "steps_per_execution",
    "take_over",
]


def steps_per_execution(steps, planned):
    """Return how many steps one call of the train function takes: see `compiled_epoch`."""
    return steps


def take_over(model, x, y, plan, replicas):
    """Give `model` a train function that runs an epoch per call, if the images are in memory."""
    if isinstance(x, np.ndarray):
        model.train_function = compiled_epoch(model, x, y, orders(len(x), *plan))


def callbacks(folder, seed):
    """Return the callbacks that this backend needs besides those of every run."""
    return []


def data_parallel():
    """Return what an `Engine` is made of: scope, number of replicas, whether this is the chief."""
    if "KERAS_DISTRIBUTION_JOB_ADDRESSES" in os.environ and not jax.distributed.is_initialized():
        keras.distribution.initialize()
    # Every process reads the whole data set: there is nothing for Keras to divide.
    parallel = keras.distribution.DataParallel(auto_shard_dataset=False)
    return parallel.scope, parallel.num_model_replicas, jax.process_index() == 0


def compiled_epoch(model, images, labels, orders):
    """Return a `train_function` for `model.fit` that runs an epoch, not a step, at every call.

    The step is the model's `train_step`, so loss, optimizer, dropout and augmentation are
    those of `fit` without it. Assign it after `compile`, which resets it, and compile with
    `steps_per_execution` equal to the steps of an epoch. It is compiled once; weights, optimizer
    and metrics are updated in place. Under a `keras.distribution.DataParallel` every device holds
    all images and works on its share of each batch.

    On a GPU JAX multiplies float32 matrices in TF32, unless `jax_default_matmul_precision` says
    otherwise; a policy such as `mixed_bfloat16` is followed as everywhere in Keras.

    Args:
        model: A compiled Keras model.
        images: Array `(n, ...)`.
        labels: Array `(n,)`.
        orders: Iterator over the epochs' indices of images, `(steps, batch)`; see
            `batches.orders`.

    Returns:
        A function of the state and of the batches that `fit` would read, which it ignores.
    """
    distribution = keras.distribution.distribution()

    def share(batch):
        if distribution is None:
            return batch
        layout = distribution.get_data_layout(batch.shape)
        return keras.distribution.distribute_tensor(batch, layout)

    def one_step(state, images, labels, chosen):
        return model.train_step(state, (share(images[chosen]), share(labels[chosen])))

    def all_steps(state, images, labels, order):
        def body(state, chosen):
            logs, state = one_step(state, images, labels, chosen)
            return state, logs

        state, logs = jax.lax.scan(body, state, order)
        return jax.tree.map(lambda log: log[-1], logs), state

    compiled_loop = jax.jit(all_steps, donate_argnums=0)
    compiled_step = jax.jit(one_step, donate_argnums=0)
    data = [_on_every_device(array, distribution) for array in (images, labels)]

    def epoch(state, batches):
        order = next(orders)
        if not _slow_in_a_loop(model):
            return compiled_loop(state, *data, order)
        for chosen in order:
            logs, state = compiled_step(state, *data, chosen)
        return logs, state

    return epoch


def _slow_in_a_loop(model):
    """Return whether steps are faster compiled one by one than in a loop.

    On a CPU XLA computes the gradients of convolutions some 40 times slower in a loop than outside
    (github.com/jax-ml/jax/issues/12868).
    """
    convolutional = any(len(weight.shape) > 3 for weight in model.trainable_weights)
    return convolutional and jax.default_backend() == "cpu"


def _on_every_device(array, distribution):
    if distribution is None:
        return jax.device_put(array)
    whole = keras.distribution.TensorLayout([None] * np.ndim(array), distribution.device_mesh)
    return keras.distribution.distribute_tensor(array, whole)
