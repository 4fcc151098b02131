"""TensorFlow: the input pipeline, and several devices by `tf.distribute`, with steps for `fit`.

Keras 3's own functions fail under `MultiWorkerMirroredStrategy`
(github.com/keras-team/keras/issues/20585), and under `MirroredStrategy` where
`steps_per_execution` is above 1; those defined here work under both.
"""

import json
import os

import numpy as np
import tensorflow as tf

from highway_keras.training.engines.devices import Devices
from highway_keras.util import checks


def batches(x, y, steps, batch_size, seed, first_epoch=0, weights=None):
    """Return the batches of `batches.batches` as a `tf.data.Dataset`.

    `x` is an array, which becomes a tensor, or `PreprocessedImages`, which are read ahead of the
    training.
    """
    with tf.device("CPU"):  # where tf.data runs
        others = [tf.constant(array) for array in (y, weights) if array is not None]
        if isinstance(x, np.ndarray):
            images = tf.constant(x)

    def picked(chosen):
        if isinstance(x, np.ndarray):
            return tf.gather(images, chosen)
        read = tf.numpy_function(x.read, [chosen], tf.uint8, stateful=False)
        read.set_shape((chosen.shape[0], *x.shape[1:]))
        return x.preprocess(read, training=False)

    def one_epoch(epoch):
        seeds = [seed, tf.cast(epoch, tf.int32)]
        order = tf.random.experimental.stateless_shuffle(tf.range(len(x)), seeds)
        chosen = tf.data.Dataset.from_tensor_slices(order[: steps * batch_size])
        return chosen.batch(batch_size, drop_remainder=True)

    epochs = tf.data.Dataset.range(first_epoch, np.iinfo(np.int32).max)
    chosen = epochs.flat_map(one_epoch)
    return chosen.map(lambda i: (picked(i), *(tf.gather(one, i) for one in others))).prefetch(2)


def data_parallel():
    """Return the `Devices` of this process and its peers."""
    if "TF_CONFIG" in os.environ:
        _check_cluster(os.environ["TF_CONFIG"])
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    else:
        found = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        strategy = tf.distribute.MirroredStrategy([device.name for device in found])
    is_chief, replicas = strategy.extended.should_checkpoint, strategy.num_replicas_in_sync

    def same_on_all(number):
        each = strategy.run(lambda: tf.constant([number, number**2], "int64"))
        total, of_squares = strategy.reduce("SUM", each, axis=None).numpy().tolist()
        # Cauchy-Schwarz: equal only if all numbers are. Every process gets the same answer.
        return total**2 == replicas * of_squares

    steps = {"install_steps": install_replica_steps} if replicas > 1 else {}
    return Devices(strategy.scope, replicas, is_chief, same_on_all=same_on_all, **steps)


def _check_cluster(text):
    """Raise a `ValueError` unless `TF_CONFIG` names this process among those of a cluster."""
    try:
        config = json.loads(text)
        if "cluster" in config.keys():  # only of a dictionary
            task = config["task"]
            hosts = config["cluster"][task["type"]]
            dict(enumerate(hosts))[int(task["index"])].encode()  # no index from the end
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            "`TF_CONFIG` must be JSON that lists the addresses of a `cluster` and names this "
            f"process as its `task`. Received: TF_CONFIG={checks.short_repr(text)}."
        ) from error


def install_replica_steps(model):
    """Give a model a `train_function` and a `test_function` for `fit` under the current strategy.

    Each runs `steps_per_execution` steps per call, a share of the batch on every replica. Loss,
    metrics and optimizer are those of the model's `train_step` and `test_step`.

    Args:
        model: A Keras model compiled in the scope of the strategy that made its weights, with
            metrics that are objects: Keras would make those given by name too late, within a
            replica. The model itself must be built outside the scope: for one that was built
            within, `fit` tries a batch first, and fails.
    """
    strategy = tf.distribute.get_strategy()

    def repeated(step):
        @tf.function
        def steps(iterator):
            for _ in tf.range(model.steps_per_execution):
                batch = iterator.get_next_as_optional()
                if batch.has_value():
                    strategy.run(step, args=(batch.get_value(),))

        def function(iterator):
            steps(iterator)
            return model.get_metrics_result()

        return function

    model.train_function = repeated(model.train_step)
    model.test_function = repeated(model.test_step)
