"""Activations as `keras.activations` has them, but never saved as Keras's of the same name."""

import keras

get = keras.activations.get


def serialize(activation):
    """Return the configuration of an activation."""
    config = keras.activations.serialize(activation)
    if not isinstance(config, str) or get(config) is activation:
        return config
    name = keras.saving.get_registered_name(activation)
    # As Keras does for all other names; it finds one that is registered, and no other.
    name = name if ">" in name else f"Custom>{name}"
    return {**keras.saving.serialize_keras_object(activation), "config": name}
