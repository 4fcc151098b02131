"""Arrays of another library, checked, and the built `Highway` layer that computes with them."""

import keras
import numpy as np

from highway_keras import checks
from highway_keras.layers import Highway

MATRIX, VECTOR = (1, 1), (1,)  # shapes in units of the layer's width


def check_activation(activation, redefined=None):
    """Raise unless the caller names an activation that means today what it meant to the source.

    Args:
        activation: What the caller says.
        redefined: Names that Keras 3 uses for a different function than the source does, each with
            what it computes from z.
    """
    if activation is None:
        raise ValueError(
            "`activation` must be the one the layer was trained with, which its weights do not "
            "tell; 'linear' if it had none. Received: activation=None."
        )
    try:
        keras.activations.get(activation)
    except Exception as error:  # configurations that are not Keras's raise errors of many kinds
        raise ValueError(
            "`activation` must be an activation of Keras, such as 'relu', or a function. "
            f"Received: activation={checks.short_repr(activation)}."
        ) from error
    for name, computed in (redefined or {}).items():
        if activation in (name, getattr(keras.activations, name)):
            raise ValueError(
                f"`activation` must be a function of your own here, because Keras 3 computes "
                f"{name!r} differently. Received: activation={activation!r}. Pass one that returns "
                f"{computed} of its argument z."
            )


def finite_array(label, value):
    """Return `value` as a float64 array of finite numbers; `label` names it in errors."""
    try:
        array = np.asarray(value)
    except Exception as error:  # each library's tensors have their own reasons to refuse
        raise TypeError(
            f"{label} must be an array. Received: a {type(value).__name__} that NumPy cannot read. "
            "Pass it as a NumPy array in main memory."
        ) from error
    if array.dtype.kind not in "fiu":
        raise TypeError(
            f"{label} must be an array of real numbers. Received: dtype={array.dtype}. Cast it to "
            "float32 first."
        )
    with np.errstate(over="ignore"):
        broken = array.size - np.count_nonzero(np.isfinite(array.astype("float32")))
    if broken:
        raise ValueError(
            f"{label} must be finite in float32. Received: {broken} of {array.size} numbers NaN or "
            "infinite. Take weights from before the training diverged."
        )
    return array.astype("float64")


def check_shapes(arrays, shapes):
    """Return the width of the layer, or raise if an array disagrees with it.

    Args:
        arrays: A dictionary from an array's label to the array, a matrix first.
        shapes: The shapes of the arrays in units of the width: `(2, 1)` is two times the width by
            the width.
    """
    first, matrix = next(iter(arrays.items()))
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"{first} must be the matrix of a highway layer. Received: shape={matrix.shape}."
        )
    width = matrix.shape[1]
    for (label, array), units in zip(arrays.items(), shapes, strict=True):
        expected = tuple(count * width for count in units)
        if array.shape != expected:
            raise ValueError(
                f"{label} must have shape {expected} in a highway layer of width {width}, the last "
                f"axis of {first}. Received: shape={array.shape}."
            )
    return width


def highway_layer(activation, kernel, transform_kernel, bias=None, transform_bias=None):
    """Return a built `Highway` with these weights. Without biases, H has none and T adds 0."""
    width = len(kernel)
    layer = Highway(width, activation=activation, use_bias=bias is not None)
    layer.build((None, width))
    layer.kernel.assign(kernel)
    layer.transform_kernel.assign(transform_kernel)
    layer.transform_bias.assign(np.zeros(width) if transform_bias is None else transform_bias)
    if bias is not None:
        layer.bias.assign(bias)
    return layer
