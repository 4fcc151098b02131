"""The arguments that gated layers share: reading, checking and writing them in one place."""

import keras
from keras import ops

from highway_keras import initializers

# One row an option, with the Keras module that reads and writes it. An option stands for the block
# state H under this name, and for the gates T and C under their prefix.
_MODULES = {
    "activation": keras.activations,
    "kernel_initializer": keras.initializers,
    "bias_initializer": keras.initializers,
    "kernel_regularizer": keras.regularizers,
    "bias_regularizer": keras.regularizers,
    "kernel_constraint": keras.constraints,
    "bias_constraint": keras.constraints,
}
# A carry initializer of None starts the carry gate at C = 1 - T. The gate kernel starts in half of
# Glorot's range: on standardised input the mean gate then starts within 0.02 of sigmoid(bias),
# where the full range would turn 0.119, say, into 0.155.
_HALF_GLOROT = {
    "class_name": "VarianceScaling",
    "config": {"scale": 0.25, "mode": "fan_avg", "distribution": "uniform"},
}
_DEFAULTS = {
    "activation": "relu",
    "kernel_initializer": "glorot_uniform",
    "bias_initializer": "zeros",
    "transform_activation": "sigmoid",
    "transform_kernel_initializer": _HALF_GLOROT,
    "transform_bias_initializer": -2.0,
    "carry_activation": "sigmoid",
}
BLOCK, TRANSFORM, CARRY = PREFIXES = ("", "transform_", "carry_")


def split_options(kwargs, prefixes=PREFIXES):
    """Splits keyword arguments into the options of H, T and C, and the rest."""
    names = {prefix + option for prefix in prefixes for option in _MODULES}
    options = {name: value for name, value in kwargs.items() if name in names}
    return options, {name: value for name, value in kwargs.items() if name not in names}


def set_options(layer, options, prefixes=PREFIXES):
    """Sets every option on `layer`, read as Keras reads it, the absent ones to their defaults."""
    for prefix in prefixes:
        for option in _MODULES:
            name = prefix + option
            default = _DEFAULTS.get(name)
            setattr(layer, name, _read(option, options.get(name, default), default))


def option_config(layer, prefixes=PREFIXES):
    """The options of `layer` in serialized form, as its `get_config` needs them."""
    return {
        prefix + option: module.serialize(getattr(layer, prefix + option))
        for prefix in prefixes
        for option, module in _MODULES.items()
    }


def options_of(layer, prefix):
    """The options of H, T or C under the names that Keras's own layers use."""
    return {option: getattr(layer, prefix + option) for option in _MODULES}


def _read(option, value, default):
    if option.endswith("_initializer"):  # None means the default, as in Keras.
        return initializers.get(default if value is None else value)
    return _MODULES[option].get(value)


def negated(weight):
    """The carry gate's start: sigmoid(-z) = 1 - sigmoid(z), so that C = 1 - T."""

    def initializer(shape, dtype=None):
        return -ops.cast(weight, dtype)

    return initializer


def check_carry(carry):
    if carry not in ("coupled", "learned"):
        raise ValueError(
            "`carry` must be 'coupled' (C = 1 - T) or 'learned' (C has its own gate). "
            f"Received: carry={carry!r}."
        )
    return carry


def check_data_format(data_format):
    if data_format is None:
        return keras.config.image_data_format()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(
            "`data_format` must be 'channels_last', 'channels_first' or None. "
            f"Received: data_format={data_format!r}."
        )
    return data_format


def check_floating(inputs):
    dtype = keras.backend.standardize_dtype(inputs.dtype)
    if "float" not in dtype:
        raise TypeError(
            "`inputs` must be floating point, because gates blend them with the block state. "
            f"Received: dtype={dtype}. Cast them first: `keras.ops.cast(x, 'float32')`."
        )
