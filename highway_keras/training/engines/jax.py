"""JAX on several devices: Keras's `DataParallel`, and each process's share of the batches."""

import os

import jax
import keras
import numpy as np
from jax.experimental import multihost_utils

from highway_keras.training.engines.devices import Devices


def data_parallel():
    """Return the `Devices` of this process and its peers."""
    if "KERAS_DISTRIBUTION_JOB_ADDRESSES" in os.environ and not jax.distributed.is_initialized():
        keras.distribution.initialize()
    # Keras would divide only `tf.data`; `process_share` divides our batches.
    parallel = keras.distribution.DataParallel(auto_shard_dataset=False)
    is_chief, replicas = jax.process_index() == 0, parallel.num_model_replicas
    return Devices(parallel.scope, replicas, is_chief, process_share, same_on_all=same_on_all)


def same_on_all(number):
    """Return whether a number is the same in every process."""
    return bool((multihost_utils.process_allgather(np.array(number)) == number).all())


def process_share(batches):
    """Yield this process's share of each batch: Keras puts those of all processes together."""
    for batch in batches:
        yield tuple(array[jax.process_index() :: jax.process_count()] for array in batch)
