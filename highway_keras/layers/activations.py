"""Activations as `keras.activations` has them, but never saved as another of the same name."""

import keras

get = keras.activations.get
# Not leaky_relu, whose slope is 0.01 there and 0.2 in Keras
SAME_IN_TORCH = {"relu", "relu6", "elu", "selu", "celu", "silu", "mish"}
SAME_IN_TORCH |= {"sigmoid", "softsign", "tanh"}


def serialize(activation):
    """Return the configuration of an activation."""
    config = keras.activations.serialize(activation)
    if not isinstance(config, str) or get(config) is activation:
        return config
    of_torch = activation.__module__ == "torch.nn.functional" and config in SAME_IN_TORCH
    if of_torch or activation.__module__.startswith("tensorflow.python.ops."):  # the same functions
        return config
    # By its name alone, Keras would find its own activation.
    is_op = getattr(keras.ops, config, None) is activation
    # The second as if registered, and found only then
    module, name = ("keras.ops", config) if is_op else ("builtins", f"Custom>{config}")
    return {"module": module, "class_name": "function", "config": name, "registered_name": name}
