"""Steps on several devices under `tf.distribute`, for `model.fit`.

Keras 3's own functions fail under `MultiWorkerMirroredStrategy`
(github.com/keras-team/keras/issues/20585), and under `MirroredStrategy` where
`steps_per_execution` is above 1; these do both.
"""


def replica_steps(model):
    """A `train_function` and a `test_function` for `fit` under the current strategy.

    Each runs `steps_per_execution` steps a call, a share of the batch on every replica. Loss,
    metrics and optimizer are those of the model's `train_step` and `test_step`. Assign them behind
    `compile`, which resets them.

    Args:
        model: A Keras model compiled in the scope of the strategy that made its weights, with
            metrics that are objects: those given by name are made too late, within a replica. The
            model itself was built outside the scope: within, `fit` tries a batch, and fails.
    """
    import tensorflow as tf

    strategy = tf.distribute.get_strategy()

    def repeated(step):
        @tf.function
        def run(iterator):
            for _ in tf.range(model.steps_per_execution):
                batch = iterator.get_next_as_optional()
                if batch.has_value():
                    strategy.run(step, args=(batch.get_value(),))

        def function(iterator):
            run(iterator)
            return model.get_metrics_result()

        return function

    return repeated(model.train_step), repeated(model.test_step)
