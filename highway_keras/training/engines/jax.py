"""JAX on several devices: Keras's `DataParallel`, and each process's share of the batches."""

import os

import jax
import keras

from highway_keras.training.engines.devices import Devices


def data_parallel():
    """Return the `Devices` of this process and its peers."""
    if "KERAS_DISTRIBUTION_JOB_ADDRESSES" in os.environ and not jax.distributed.is_initialized():
        keras.distribution.initialize()
    # Keras would divide only `tf.data`; `process_share` divides our batches.
    parallel = keras.distribution.DataParallel(auto_shard_dataset=False)
    return Devices(
        parallel.scope, parallel.num_model_replicas, jax.process_index() == 0, process_share
    )


def process_share(batches):
    """Yield this process's share of each batch: Keras puts those of all processes together."""
    for batch in batches:
        yield tuple(array[jax.process_index() :: jax.process_count()] for array in batch)
