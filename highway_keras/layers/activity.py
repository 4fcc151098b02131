"""Penalties on the output of a layer that may return its gate as well."""

import keras
from keras import ops


class PenalizedOutput(keras.Layer):
    """Base of the layers whose `activity_regularizer` acts on their output alone.

    Keras applies its own to every tensor that a call returns, here also to the gate. So Keras is
    not told of it, and the layer keeps it as `output_regularizer`.
    """

    def __init__(self, *args, activity_regularizer=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.output_regularizer = keras.regularizers.get(activity_regularizer)

    def __call__(self, *args, **kwargs):
        results = super().__call__(*args, **kwargs)
        outputs = results[0] if isinstance(results, tuple) else results
        if self.output_regularizer is not None and not keras.utils.is_keras_tensor(outputs):
            loss = self.output_regularizer(outputs)
            # Per sample and 0 for an empty batch, as in Keras.
            self.add_loss(ops.divide_no_nan(loss, ops.cast(ops.shape(outputs)[0], loss.dtype)))
        return results

    def get_config(self):
        regularizer = keras.regularizers.serialize(self.output_regularizer)
        return {**super().get_config(), "activity_regularizer": regularizer}
