"""Section 3.1: thin, fully connected networks for MNIST, highway, plain and residual."""

import math

from highway_keras.models import parts
from highway_keras.models.cards import Card
from highway_keras.util import checks

NAME = "thin-{kind}-{depth}"
# About 5000 parameters per layer each: 2 * (50 * 50 + 50) = 5100 and 71 * 71 + 71 = 5112.
UNITS = {"highway": 50, "plain": 71, "residual": 71}
DEPTHS, KINDS = (10, 20, 50, 100), ("highway", "plain")  # of Figure 1
# The depth from which highway layers are one stack. Measured: a step of the stack takes 1.2 times
# as long as a step of the chain at 5 and 7 layers, and as long at 10; at 100 layers it takes 0.6
# times as long as a step of a chain with two Dense layers per block.
STACK_FROM = 10


def thin_mlp(
    depth,
    kind="highway",
    units=None,
    *,
    input_shape=(28, 28, 1),
    classes=10,
    activation="tanh",
    transform_bias=None,
    kernel_initializer=None,
    name=None,
):
    """Build a thin network: a plain layer, `depth - 1` highway, plain or residual ones, a softmax.

    ```
    highway   y = H(x) * T(x) + x * (1 - T(x))        50 units
    plain     y = H(x)                                71 units
    residual  y = x + H(x)                            71 units
    ```

    From depth 10 on, the highway layers are one `HighwayStack`.

    Args:
        depth: Number of hidden layers, including the plain first one.
        kind: `"highway"`, `"plain"` or `"residual"`.
        units: Width. Default: 50 for highway, 71 otherwise, about 5000 parameters per layer.
        input_shape: Shape of one input, of any rank; it is flattened.
        classes: Number of classes.
        activation: Activation of H; the paper searches `"relu"` and `"tanh"`.
        transform_bias: Initial bias of the transform gates; the paper searches -1 to -10.
            Default: `-log(depth)`, a gate of `1 / (depth + 1)`. At any depth, the carry path then
            passes on more than a third of the amplitude, `(1 - 1 / (depth + 1)) ** (depth - 1)`.
        kernel_initializer: Initializer of the kernels of H and of the plain layer. Default:
            "normalized" as in the paper: Glorot for tanh, He for ReLU. The gates always use it.
        name: Name of the model. Default: the name under which it is registered.

    Returns:
        An uncompiled `keras.Model`.

    Raises:
        ValueError: If an argument is out of its range.

    Examples:
        >>> from highway_keras.models import thin_mlp
        >>> thin_mlp(depth=10).count_params()
        85660

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.1.
    """
    import keras

    from highway_keras.layers import Highway, HighwayStack

    checks.positive_integer("depth", depth)
    checks.one_of("kind", kind, UNITS)
    if kind != "highway" and transform_bias is not None:
        raise ValueError(
            "`transform_bias` is for kind='highway': other networks have no gates. "
            f"{checks.received('transform_bias', transform_bias)}"
        )
    is_relu = keras.activations.get(activation) is keras.activations.relu
    normalized = "he_uniform" if is_relu else "glorot_uniform"
    layer = {
        "units": UNITS[kind] if units is None else units,
        "activation": activation,
        "kernel_initializer": parts.unshared(kernel_initializer or normalized),
    }
    if transform_bias is None:
        transform_bias = -math.log(depth)
    gate = {
        "transform_kernel_initializer": normalized,
        "transform_bias_initializer": transform_bias,
    }
    images = keras.Input(input_shape, name="images")
    x = keras.layers.Flatten("channels_last", name="flatten")(images)
    x = keras.layers.Dense(**layer, name="plain")(x)
    if kind == "highway" and depth >= STACK_FROM:
        x = HighwayStack(depth - 1, **layer, **gate, name=f"highway_x{depth - 1}")(x)
    else:
        for index in range(1, depth):
            if kind == "highway":
                x = Highway(**layer, **gate, name=f"highway_{index}")(x)
            elif kind == "plain":
                x = keras.layers.Dense(**layer, name=f"plain_{index}")(x)
            else:
                h = keras.layers.Dense(**layer, name=f"residual_{index}")(x)
                x = keras.layers.Add(name=f"add_{index}")([x, h])
    x = parts.predictions(x, classes, "glorot_uniform")
    return keras.Model(images, x, name=name or NAME.format(kind=kind, depth=depth))


def _card(kind, depth):
    units = UNITS[kind]
    kernels_per_layer = 2 if kind == "highway" else 1
    products = 784 * units + (depth - 1) * kernels_per_layer * units * units + units * 10
    biases = units + (depth - 1) * kernels_per_layer * units + 10
    return Card(
        NAME.format(kind=kind, depth=depth),
        thin_mlp,
        {"depth": depth, "kind": kind},
        dataset="mnist",
        input_shape=(28, 28, 1),
        classes=10,
        recipe="thin",
        layers=depth,
        parameters=products + biases,
        multiplications=products,
        table="" if kind == "residual" else "Figure 1",
    )


CARDS = [_card(kind, depth) for kind in UNITS for depth in DEPTHS]
