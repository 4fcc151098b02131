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

__all__ = ["batches", "data_parallel", "install_train_function", "steps_per_execution"]


def steps_per_execution(steps, planned):
    """Return how many steps one call of the train function takes: all of an epoch."""
    return steps


def data_parallel():
    """Return what `Devices` are made of: scope, number of replicas, whether this is the chief."""
    if "KERAS_DISTRIBUTION_JOB_ADDRESSES" in os.environ and not jax.distributed.is_initialized():
        keras.distribution.initialize()
    # Every process reads the whole data set: there is nothing for Keras to divide.
    parallel = keras.distribution.DataParallel(auto_shard_dataset=False)
    return parallel.scope, parallel.num_model_replicas, jax.process_index() == 0


def install_train_function(model, x, y, plan, replicas=1, weights=None):
    """Give a compiled `model` a train function that runs an epoch, not a step, at every call.

    The step is the model's `train_step`, so loss, optimizer, dropout and augmentation are those of
    `fit` without it. It is compiled once; weights, optimizer and metrics are updated in place.
    Under a `keras.distribution.DataParallel` every device holds all images and works on its share
    of each batch. Images that are streamed, and convolutions on a CPU, stay with Keras's function.

    On a GPU JAX multiplies float32 matrices in TF32, unless `jax_default_matmul_precision` says
    otherwise; a policy such as `mixed_bfloat16` is followed as everywhere in Keras.

    Args:
        model: A Keras model, compiled with the steps of an epoch as `steps_per_execution`.
        x, y: Images `(n, ...)` and labels `(n,)`.
        plan: Steps an epoch, images a step, seed and first epoch, as for `batches.orders`.
        replicas: Devices that share a batch.
        weights: Each image's weight in the loss, `(n,)`.
    """
    if not isinstance(x, np.ndarray) or slow_in_a_loop(model):
        return
    distribution = keras.distribution.distribution()

    def on_every_device(array):
        if distribution is None:
            return jax.device_put(array)
        whole = keras.distribution.TensorLayout([None] * np.ndim(array), distribution.device_mesh)
        return keras.distribution.distribute_tensor(array, whole)

    def share(batch):
        if distribution is None:
            return batch
        layout = distribution.get_data_layout(batch.shape)
        return keras.distribution.distribute_tensor(batch, layout)

    def all_steps(state, data, order):
        def step(state, chosen):
            logs, state = model.train_step(state, tuple(share(array[chosen]) for array in data))
            return state, logs

        state, logs = jax.lax.scan(step, state, order)
        return jax.tree.map(lambda log: log[-1], logs), state

    compiled, epochs = jax.jit(all_steps, donate_argnums=0), orders(len(x), *plan)
    data = [on_every_device(array) for array in (x, y, weights) if array is not None]
    # `fit` passes the batches that it would read, which are cut from the arrays here.
    model.train_function = lambda state, batches: compiled(state, data, next(epochs))


def slow_in_a_loop(model):
    """Return whether steps are faster compiled one by one than in a loop.

    On a CPU XLA computes the gradients of convolutions some 40 times slower in a loop than outside
    (github.com/jax-ml/jax/issues/12868).
    """
    convolutional = any(len(weight.shape) > 3 for weight in model.trainable_weights)
    return convolutional and jax.default_backend() == "cpu"
