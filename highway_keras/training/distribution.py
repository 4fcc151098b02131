"""Training on several devices, data-parallel, through the engines of TensorFlow and JAX.

Every replica holds the network and takes an equal share of each batch; gradients are averaged.
"""

import contextlib
import dataclasses
import functools
import os
import shutil
import tempfile
from collections.abc import Callable

import keras

from highway_keras.training.run_folder import RunFolder


@dataclasses.dataclass(frozen=True)
class Engine:
    """Where a run is built and trained; by default on the backend's one device.

    Attributes:
        scope: Function that returns a context for building and training.
        replicas: Devices that share a batch, over all processes.
        is_chief: Whether this process is the one that writes the run's files.
    """

    scope: Callable = contextlib.nullcontext
    replicas: int = 1
    is_chief: bool = True

    def check_batch(self, batch_size):
        """Raises a `ValueError` unless the devices get equal shares of a batch."""
        if batch_size % self.replicas:
            raise ValueError(
                f"`batch_size` must be divisible by the number of devices, here {self.replicas}. "
                f"Received: batch_size={batch_size}. "
                f"Try batch_size={batch_size - batch_size % self.replicas or self.replicas}."
            )

    def equal_shares(self, *arrays):
        """The arrays without the last rows, at most `replicas - 1`, that leave unequal shares."""
        return tuple(array[: len(array) - len(array) % self.replicas] for array in arrays)

    @contextlib.contextmanager
    def own(self, folder):
        """The folder that this process writes to: in all but the chief a copy that vanishes.

        All save alike, since saving may read weights that lie on several of them.
        """
        if self.is_chief:
            yield folder
            return
        with tempfile.TemporaryDirectory() as temporary:
            for file in (folder.best, folder.history, folder.state):
                if file.exists():
                    shutil.copy(file, temporary)
            yield RunFolder(temporary)


@functools.cache  # an engine is started once a process
def data_parallel():
    """The `Engine` over all devices that this process and its peers see.

    Raises:
        ValueError: With a backend that has none.
    """
    backend = keras.backend.backend()
    if backend not in _ENGINES:
        raise ValueError(
            "`distribute` needs the TensorFlow or the JAX backend. Received: distribute=True with "
            f"KERAS_BACKEND={backend}."
        )
    return _ENGINES[backend]()


def summed(gradients):
    """The gradients of a whole batch, where TensorFlow's replicas have those of their shares."""
    if keras.backend.backend() != "tensorflow":
        return gradients
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return gradients
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients)


def _tensorflow():
    import tensorflow as tf

    if "TF_CONFIG" in os.environ:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    else:
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        strategy = tf.distribute.MirroredStrategy([device.name for device in devices])
    return Engine(strategy.scope, strategy.num_replicas_in_sync, _is_chief(strategy))


def _is_chief(strategy):
    cluster = strategy.cluster_resolver
    if cluster is None:
        return True
    chief = "chief" if "chief" in cluster.cluster_spec().jobs else "worker"
    return (cluster.task_type, cluster.task_id) == (chief, 0)


def _jax():
    import jax

    if "KERAS_DISTRIBUTION_JOB_ADDRESSES" in os.environ and not jax.distributed.is_initialized():
        keras.distribution.initialize()
    # Every process reads the whole data set: there is nothing for Keras to divide.
    parallel = keras.distribution.DataParallel(auto_shard_dataset=False)
    return Engine(parallel.scope, parallel.num_model_replicas, jax.process_index() == 0)


_ENGINES = {"tensorflow": _tensorflow, "jax": _jax}
