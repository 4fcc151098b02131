"""Highway layers with the weights that another library trained.

`docs/convert.md` says what each library means by its weights, and how to bring them to these.
"""

import keras
import numpy as np

from highway_keras.layers import Highway, HighwayStack

__all__ = ["from_arrays"]


def from_arrays(
    kernel,
    transform_kernel,
    bias=None,
    transform_bias=None,
    *,
    activation,
    transform_activation="sigmoid",
    carry_kernel=None,
    carry_bias=None,
    name=None,
) -> keras.Layer:
    """Return a built highway layer with these weights.

    ```
    H = activation(x @ kernel + bias)
    T = transform_activation(x @ transform_kernel + transform_bias)
    C = transform_activation(x @ carry_kernel + carry_bias), or 1 - T
    y = H * T + x * C
    ```

    Args:
        kernel: Kernel of H, an array of shape `(d, d)`; or the kernels of `depth` layers that
            follow one another, `(depth, d, d)`. The other arrays are then stacked, too.
        transform_kernel: Kernel of T, of the same shape.
        bias: Bias of H, `(d,)` or `(depth, d)`. `None` for a layer whose H has none.
        transform_bias, carry_bias: Biases of T and C. Default: zeros.
        activation: Activation of H that the layer was trained with, as in Keras.
        transform_activation: Activation of the gates.
        carry_kernel: Kernel of C. Default: C = 1 - T.
        name: Name of the layer.

    Returns:
        A `Highway`, or a `HighwayStack` if the arrays are stacked.

    Raises:
        ValueError: If the shapes of the arrays do not fit.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import convert
        >>> kernels = {"kernel": np.eye(3), "transform_kernel": np.zeros((3, 3))}
        >>> layer = convert.from_arrays(**kernels, activation="linear")
        >>> layer.units, layer.use_bias
        (3, False)
    """
    arrays = {
        "kernel": kernel,
        "transform_kernel": transform_kernel,
        "bias": bias,
        "transform_bias": transform_bias,
        "carry_kernel": carry_kernel,
        "carry_bias": carry_bias,
    }
    arrays = {weight: np.asarray(array) for weight, array in arrays.items() if array is not None}
    *stacked, width, _ = arrays["kernel"].shape
    options = {
        "units": width,
        "activation": activation,
        "transform_activation": transform_activation,
        "transform_bias_initializer": "zeros",  # of T, and so of C, which starts negated
        "use_bias": bias is not None,
        "carry": "coupled" if carry_kernel is None else "learned",
        "name": name,
    }
    layer = HighwayStack(*stacked, **options) if stacked else Highway(**options)
    layer.build((None, width))
    for weight, array in arrays.items():
        getattr(layer, weight).assign(array)
    return layer
