"""Several devices: a network made under `devices()` takes a share of every batch on each of them.

TensorFlow does it by `tf.distribute`, JAX by `keras.distribution`. Every device holds the network;
gradients are averaged.
"""

import contextlib
import os

import keras


def devices():
    """Return a function `scope`: networks for several devices are created in `with scope():`.

    The devices are all that this process sees. Other processes take part if `TF_CONFIG`
    (TensorFlow) or `KERAS_DISTRIBUTION_JOB_ADDRESSES` (JAX) names them. Call it before any other
    computation.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        if "TF_CONFIG" in os.environ:
            return tf.distribute.MultiWorkerMirroredStrategy().scope
        local = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([device.name for device in local]).scope
    if backend == "jax":
        if "KERAS_DISTRIBUTION_JOB_ADDRESSES" in os.environ:
            keras.distribution.initialize()
        return _data_parallel().scope
    raise ValueError(f"`distribute` needs TensorFlow or JAX. Received: KERAS_BACKEND={backend}.")


def _data_parallel():
    # Keras would divide only `tf.data` among processes; `share` divides our batches.
    return keras.distribution.DataParallel(auto_shard_dataset=False)


class Distribution:
    """How a network is distributed; by default it is on one device.

    Attributes:
        scope: Function that returns a context to compile and train in.
        replicas: Number of devices that share a batch, over all processes.
        is_chief: Whether this process is the one that writes files.
    """

    def __init__(self, network):
        self.scope = contextlib.nullcontext
        self.replicas, self.processes, self.index, self.is_chief = 1, 1, 0, True
        backend = keras.backend.backend()
        if backend == "tensorflow":
            strategy = network.distribute_strategy
            self.scope, self.run = strategy.scope, strategy.run
            self.replicas = strategy.num_replicas_in_sync
            self.is_chief = strategy.extended.should_checkpoint
        elif backend == "jax":
            import jax

            self.replicas = len(network.weights[0].value.sharding.device_set)
            if self.replicas > 1:
                self.scope = _data_parallel().scope
                self.processes, self.index = jax.process_count(), jax.process_index()
                self.is_chief = self.index == 0

    def share(self, batches):
        """Return this process's share of each batch: Keras joins the shares of all processes."""
        if self.processes == 1:
            return batches
        step = slice(self.index, None, self.processes)
        return (tuple(array[step] for array in batch) for batch in batches)

    def even_share(self, arrays):
        """Return this process's share of arrays, cut to a length that all devices can share."""
        length = len(arrays[0]) - len(arrays[0]) % self.replicas
        return next(iter(self.share([tuple(array[:length] for array in arrays)])))

    def install_steps(self, trainee):
        """Have a compiled model take TensorFlow's steps on all devices.

        Keras 3.15's own fail: they average scalar metrics over an axis (keras-team/keras#20585).
        """
        if keras.backend.backend() != "tensorflow" or self.replicas == 1:
            return
        import tensorflow as tf

        def on_all_devices(step):
            @tf.function
            def run(iterator):
                self.run(step, args=(next(iterator),))

            def function(iterator):
                run(iterator)
                return trainee.get_metrics_result()

            return function

        trainee.train_function = on_all_devices(trainee.train_step)
        trainee.test_function = on_all_devices(trainee.test_step)
