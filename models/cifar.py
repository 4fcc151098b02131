"""Section 3.3: the networks of Tables 2 and 3, and the Fitnets they are compared with."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Unpack

from highway_keras.models.card import Card
from highway_keras.util import checks

if TYPE_CHECKING:
    from highway_keras.models.types import CifarArguments

# The widths of the layers, stage by stage.
HIGHWAY_A = ((16,) * 3, (32,) * 3, (64,) * 3)
HIGHWAY_B = ((32,) * 5, (80,) * 6, (128,) * 6)
HIGHWAY_C = ((32,) * 10, (64,) * 10, (96,) * 10)
FITNET_A = ((16, 16, 16), (32, 32, 32), (48, 48, 64))
FITNET_B = ((32, 32, 32, 48, 48), (80,) * 6, (128,) * 6)


def highway_a(transform_bias=-1.0, activation="relu", **arguments: Unpack[CifarArguments]):
    """Build Highway A of Table 2, 11 layers; arguments as for `highway_b`.

    A reconstruction: the paper gives only the depth, the parameter count (~236 K), and Fitnet A as
    its model.
    """
    return cifar_network("highway-a", HIGHWAY_A, 250, transform_bias, activation, **arguments)


def highway_b(transform_bias=-2.0, activation="relu", **arguments: Unpack[CifarArguments]):
    """Build Highway B of Table 2, 19 layers.

    A reconstruction: the paper gives only the depth, the parameter count (~2.3 M), and Fitnet B as
    its model. The layers are those of `highway_gap`, which section 3.3.2 derives from it, below a
    layer of 500 as in Fitnet B.

    Args:
        transform_bias: Initial bias of the transform gates.
        activation: Activation of all layers but the classifier.
        **arguments: As for every CIFAR network; see `highway_keras.models.types.CifarArguments`.

    Returns:
        An uncompiled `keras.Model`.

    Raises:
        ValueError: If an argument is out of its range.

    Examples:
        >>> from highway_keras.models import highway_b
        >>> highway_b(classes=3, include_top=False, pooling="avg").output_shape
        (None, 128)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.3.
    """
    return cifar_network("highway-b", HIGHWAY_B, 500, transform_bias, activation, **arguments)


def highway_c(transform_bias=-3.0, activation="relu", **arguments: Unpack[CifarArguments]):
    """Build Highway C of Table 2, 32 alternating 1x1 and 3x3 layers; arguments as for `highway_b`.

    A reconstruction: the paper gives only the depth, kernels and parameter count (~1.25 M).
    """
    of_layers = transform_bias, activation, (1, 3)
    return cifar_network("highway-c", HIGHWAY_C, 100, *of_layers, **arguments)


def highway_gap(
    classes=10, transform_bias=-2.0, activation="relu", **arguments: Unpack[CifarArguments]
):
    """Build the 19-layer network of Table 3, with average pooling; arguments as for `highway_b`.

    `classes` also decides how the classifier's kernel starts: with 100, by `kernel_initializer`;
    otherwise normal with standard deviation 0.05, as in the authors' network for CIFAR-10.
    """
    first = 1.0  # "gaussian" without a `std`, which Caffe takes as 1
    last = None if classes == 100 else 0.05
    of_layers = transform_bias, activation, (3,), first, last
    name = f"highway-gap-{classes}"
    return cifar_network(name, HIGHWAY_B, "average", *of_layers, classes=classes, **arguments)


def fitnet_a(**arguments: Unpack[CifarArguments]):
    """Build Fitnet A of Table 2, 11 maxout layers, without hints; arguments as for `highway_b`.

    Its kernels do not start like those of the authors' networks: by default they are uniform with
    variance 1 / fan-in. The larger of two such units has the same second moment as one of them, so
    a signal keeps its power; with 2 / fan-in, the power would double in every layer.
    """
    return cifar_network("fitnet-a", FITNET_A, "maxout", **arguments)


def fitnet_b(**arguments: Unpack[CifarArguments]):
    """Build Fitnet B of Table 2, 19 maxout layers, without hints; see `fitnet_a`."""
    return cifar_network("fitnet-b", FITNET_B, "maxout", **arguments)


def cifar_network(
    default_name,
    stages,
    head,
    bias=None,
    activation="relu",
    kernel_sizes=(3,),
    first_stddev=None,
    classifier_stddev=None,
    /,
    *,
    dropout_rate=0.2,
    input_shape=(32, 32, 3),
    classes=10,
    classifier_activation="softmax",
    kernel_initializer=None,
    include_top=True,
    pooling=None,
    weights=None,
    name=None,
    input_tensor=None,
):
    """Build a network of three stages with max-pooling between them, a head and a softmax.

    In a highway network, the first layer of a stage is a plain convolution that changes the width.

    Args:
        default_name: Name of the network if `name` is `None`.
        stages: The widths of a stage's layers, a sequence for each stage.
        head: How the last maps become features: a number of units, for 8x8 max-pooling and a fully
            connected layer; `"average"`, for a 1x1 convolution and global average pooling of maps
            of any size; or `"maxout"`, for a Fitnet, all of whose layers are maxout.
        bias, activation: Initial bias of the transform gates, and activation of the layers. These
            and the next ones are positional-only: a factory refuses what it decides itself.
        kernel_sizes: Sizes that the highway layers of a stage cycle through.
        first_stddev, classifier_stddev: Standard deviations of the first and the last kernel, if
            they start as normal numbers of their own.
    """
    import keras

    from highway_keras.layers import ConvHighway2D, Maxout
    from highway_keras.models import parts

    checks.number("dropout_rate", dropout_rate, least=0, below=1)
    checks.flag("include_top", include_top)
    any_size, is_fitnet = head == "average" or not include_top, head == "maxout"
    least = 4 if any_size else 32  # two pools of 2, and one of 8 before a fully connected head
    inputs = parts.first_images(input_shape, input_tensor, least, any_size)
    default_kernel = "lecun_uniform" if is_fitnet else parts.AUTHORS_KERNEL
    kernel = parts.unshared(parts.or_default(kernel_initializer, default_kernel))
    normal = keras.initializers.RandomNormal
    convolution = functools.partial(keras.layers.Conv2D, padding="same")
    plain = functools.partial(convolution, activation=activation)
    x = parts.dropout(inputs, dropout_rate, "input_dropout")
    for number, widths in enumerate(stages, start=1):
        stage = f"stage{number}"
        for index, width in enumerate(widths):
            if is_fitnet:
                layer = f"{stage}_conv{index + 1}"
                x = convolution(2 * width, 3, kernel_initializer=kernel, name=layer)(x)
                x = Maxout(2, name=f"{stage}_maxout{index + 1}")(x)
            elif index == 0:
                is_first = number == 1 and first_stddev
                start = normal(stddev=first_stddev) if is_first else kernel
                x = plain(width, 3, kernel_initializer=start, name=f"{stage}_plain")(x)
            else:
                x = ConvHighway2D(
                    width,
                    kernel_sizes[(index - 1) % len(kernel_sizes)],
                    activation=activation,
                    kernel_initializer=kernel,
                    transform_bias_initializer=bias,
                    name=f"{stage}_highway{index}",
                )(x)
        if number < len(stages):
            x = keras.layers.MaxPooling2D(2, name=f"{stage}_pool")(x)
            x = parts.dropout(x, dropout_rate, f"{stage}_dropout")
    if not include_top:
        return parts.network(inputs, parts.pool_features(x, pooling), name or default_name, weights)
    if head == "average":
        x = plain(100, 1, kernel_initializer=kernel, name="head")(x)
        x = keras.layers.GlobalAveragePooling2D(name="head_pool")(x)
    else:
        x = keras.layers.Flatten(name="flatten")(keras.layers.MaxPooling2D(8, name="head_pool")(x))
        units, activation = (1000, None) if is_fitnet else (head, activation)
        x = keras.layers.Dense(units, activation, kernel_initializer=kernel, name="head")(x)
        x = Maxout(2, name="head_maxout")(x) if is_fitnet else x
    x = parts.dropout(x, dropout_rate, "head_dropout")
    last_kernel = normal(stddev=classifier_stddev) if classifier_stddev else kernel
    x = parts.predictions(x, classes, classifier_activation, last_kernel)
    return parts.network(inputs, x, name or default_name, weights)


def _spelled_out(factory):
    """Return the signature of a factory, with the names that its `**arguments` stand for."""
    *own, _ = inspect.signature(factory).parameters.values()
    names = [argument.name for argument in own]
    for argument in inspect.signature(cifar_network).parameters.values():
        if argument.kind is argument.KEYWORD_ONLY and argument.name not in names:
            own.append(argument)
    return inspect.Signature(own)


for _factory in (highway_a, highway_b, highway_c, highway_gap, fitnet_a, fitnet_b):
    _factory.__signature__ = _spelled_out(_factory)  # for `help` and `Card.takes`

RECONSTRUCTED = "a reconstruction: the paper does not give the widths of its layers"
FROM_TABLE_3 = "a reconstruction: the layers of Table 3's network below the head of Fitnet B"
ROMERO = (
    "by [Romero et al., 2014](https://arxiv.org/abs/1412.6550), who trained it with hints from a "
    "teacher; here it is trained without"
)
PAPER_B = "92.46 (92.28 ± 0.16)"
GAP_10, GAP_100 = "92.40 (92.31 ± 0.12)", "67.76 (67.61 ± 0.15)"


def _card(name, factory, recipe, layers, parameters, multiplications, paper, origin=""):
    """Return the card of a network, whose claims are the last four; the paper's is in percent."""
    gap = {"classes": int(name.rsplit("-", 1)[1])} if factory is highway_gap else {}
    classes = gap.get("classes", 10)
    return Card(
        name,
        factory,
        gap,
        dataset=f"cifar{classes}",
        input_shape=(32, 32, 3),
        classes=classes,
        recipe=recipe,
        layers=layers,
        parameters=parameters,
        multiplications=multiplications,
        paper=paper,
        table="Table 3" if gap else "Table 2",
        origin=origin,
    )


CARDS = [
    _card("highway-a", highway_a, "cifar", 11, 236_328, 31_131_716, "89.18", RECONSTRUCTED),
    _card("highway-b", highway_b, "cifar", 19, 2_312_438, 330_075_528, PAPER_B, FROM_TABLE_3),
    _card("highway-c", highway_c, "cifar", 32, 1_264_502, 229_484_904, "91.20", RECONSTRUCTED),
    _card("highway-gap-10", highway_gap, "cifar", 19, 2_256_838, 330_826_728, GAP_10),
    _card("highway-gap-100", highway_gap, "cifar", 19, 2_265_928, 330_835_728, GAP_100),
    _card("fitnet-a", fitnet_a, "fitnet", 11, 251_194, 30_150_024, "89.01 (with hints)", ROMERO),
    _card("fitnet-b", fitnet_b, "fitnet", 19, 2_548_602, 381_749_128, "91.61 (with hints)", ROMERO),
]
