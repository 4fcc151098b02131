"""The options of H, T and C: reading and writing them, in one place for all gated layers."""

import keras
from keras import ops

from highway_keras import checks, initializers

# One row per option, with the Keras module that reads and writes it. An option stands for the block
# state H under this name, and for the gates T and C under their prefix.
OPTIONS = {
    "activation": keras.activations,
    "kernel_initializer": keras.initializers,
    "bias_initializer": keras.initializers,
    "kernel_regularizer": keras.regularizers,
    "bias_regularizer": keras.regularizers,
    "kernel_constraint": keras.constraints,
    "bias_constraint": keras.constraints,
}
BLOCK, TRANSFORM, CARRY = PREFIXES = ("", "transform_", "carry_")
# What an initializer of None means, as `None` means a default in Keras. A carry gate's stays None:
# the gate then starts at C = 1 - T. The gate kernel starts in half of Glorot's range: on
# standardized input the mean gate then starts within 0.02 of sigmoid(bias), where the full range
# would turn 0.119, say, into 0.155.
_INITIALIZERS = {
    "kernel_initializer": "glorot_uniform",
    "bias_initializer": "zeros",
    "transform_kernel_initializer": {
        "class_name": "VarianceScaling",
        "config": {"scale": 0.25, "mode": "fan_avg", "distribution": "uniform"},
    },
    "transform_bias_initializer": -2.0,
}


def set_options(layer, arguments, prefixes=PREFIXES):
    """Set the options on `layer`, each read from `arguments` as Keras reads it.

    Args:
        layer: A layer after its `keras.Layer.__init__`.
        arguments: The `locals()` of its `__init__`, which has an argument for every option.
        prefixes: Those of H, T and C, or of some of them.
    """
    for prefix in prefixes:
        for option, module in OPTIONS.items():
            name = prefix + option
            setattr(layer, name, _read(name, module, arguments[name]))


def option_config(layer, prefixes=PREFIXES):
    """Return the options of `layer` in serialized form, as its `get_config` needs them."""
    return {
        prefix + option: module.serialize(getattr(layer, prefix + option))
        for prefix in prefixes
        for option, module in OPTIONS.items()
    }


def options_of(layer, prefix):
    """Return the options of H, T or C under the names that Keras's own layers use."""
    return {option: getattr(layer, prefix + option) for option in OPTIONS}


def _read(name, module, value):
    if module is keras.initializers:
        return initializers.get(_INITIALIZERS.get(name) if value is None else value)
    return module.get(value)


def negated(weight):
    """Return the start of a carry gate: sigmoid(-z) = 1 - sigmoid(z), so C = 1 - T."""

    def initializer(shape, dtype=None):
        return -ops.cast(weight, dtype)

    return initializer


def check_carry(carry):
    """Return `carry` if there is such a form of the carry gate."""
    if carry not in ("coupled", "learned"):
        raise ValueError(
            "`carry` must be 'coupled' (C = 1 - T) or 'learned' (C has its own gate). "
            f"Received: carry={carry!r}."
        )
    return carry


def check_data_format(data_format):
    """Return `data_format`, or Keras's setting for `None`."""
    if data_format is None:
        return keras.config.image_data_format()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(
            "`data_format` must be 'channels_last', 'channels_first' or None. "
            f"Received: data_format={data_format!r}."
        )
    return data_format


def check_floating(inputs):
    """Raise unless `inputs` is a floating-point tensor."""
    checks.floating("inputs", keras.backend.standardize_dtype(inputs.dtype))
