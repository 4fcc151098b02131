"""Section 3.3: the networks of Tables 2 and 3, and the Fitnets they are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras

from highway_keras import checks
from highway_keras.models.cards import name_of
from highway_keras.models.parts import (
    AUTHORS_KERNEL,
    check_pooling,
    dropout,
    first_images,
    fresh,
    given,
    network,
    normal,
    pool_features,
    predictions,
)
from highway_keras.models.stages import (
    average_head,
    dense_head,
    highway_stages,
    maxout_head,
    maxout_stages,
)
from highway_keras.models.types import CifarArguments

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The widths of the layers, stage by stage; between stages there is 2x2 max-pooling.
HIGHWAY_A = ((16,) * 3, (32,) * 3, (64,) * 3)
HIGHWAY_B = ((32,) * 5, (80,) * 6, (128,) * 6)
HIGHWAY_C = ((32,) * 10, (64,) * 10, (96,) * 10)
FITNET_A = ((16, 16, 16), (32, 32, 32), (48, 48, 64))
FITNET_B = ((32, 32, 32, 48, 48), (80,) * 6, (128,) * 6)
MAXOUT_KERNEL = "lecun_uniform"


def highway_a(transform_bias=None, **arguments: Unpack[CifarArguments]):
    """Build Highway A of Table 2, 11 layers; arguments as for `highway_b`.

    A reconstruction: the paper gives only the depth and parameter count (~236 K).
    """
    stages = highway_stages(HIGHWAY_A, given(transform_bias, -1.0))
    return cifar_network(stages, dense_head(250), **_named(arguments, "highway_a"))


def highway_b(transform_bias=None, **arguments: Unpack[CifarArguments]):
    """Build Highway B of Table 2, 19 layers.

    Args:
        transform_bias: Initial bias of the transform gates. Default: -1 in Highway A, -2 in
            Highway B and the network of Table 3, -3 in Highway C.
        **arguments: As for every CIFAR network; see `highway_keras.models.types.CifarArguments`.

    Returns:
        An uncompiled `keras.Model`.

    Raises:
        ValueError: If an argument is out of its range.

    Example:

    >>> from highway_keras.models import highway_b
    >>> highway_b(classes=3, include_top=False, pooling="avg").output_shape
    (None, 128)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.3.
    """
    stages = highway_stages(HIGHWAY_B, given(transform_bias, -2.0))
    return cifar_network(stages, dense_head(500), **_named(arguments, "highway_b"))


def highway_c(transform_bias=None, **arguments: Unpack[CifarArguments]):
    """Build Highway C of Table 2, 32 alternating 1x1 and 3x3 layers; arguments as for `highway_b`.

    A reconstruction: the paper gives only the depth, kernels and parameter count (~1.25 M).
    """
    stages = highway_stages(HIGHWAY_C, given(transform_bias, -3.0), kernel_sizes=(1, 3))
    return cifar_network(stages, dense_head(100), **_named(arguments, "highway_c"))


def highway_gap(classes=10, transform_bias=None, **arguments: Unpack[CifarArguments]):
    """Build the 19-layer network of Table 3, with average pooling; arguments as for `highway_b`.

    `classes` also decides how the classifier starts: the authors' start for CIFAR-10 is normal.
    """
    # Their first kernel is "gaussian" without a `std`, which Caffe takes as 1.
    bias = given(transform_bias, -2.0)
    stages = highway_stages(HIGHWAY_B, bias, first_kernel=normal(1.0))
    top = None if classes == 100 else normal(0.05)
    arguments = {"classifier_kernel": top, **_named(arguments, "highway_gap", classes=classes)}
    return cifar_network(stages, average_head, any_size=True, classes=classes, **arguments)


def fitnet_a(**arguments: Unpack[CifarArguments]):
    """Build Fitnet A of Table 2, 11 maxout layers, without hints; arguments as for `highway_b`.

    It is not the authors' network, so its kernels do not start like theirs: by default they are
    uniform with variance 1 / fan-in. The larger of two such units has the second moment of one, so
    a signal keeps its size; with 2 / fan-in it doubles in every layer.
    """
    return _fitnet(FITNET_A, **_named(arguments, "fitnet_a"))


def fitnet_b(**arguments: Unpack[CifarArguments]):
    """Build Fitnet B of Table 2, 19 maxout layers, without hints; see `fitnet_a`."""
    return _fitnet(FITNET_B, **_named(arguments, "fitnet_b"))


def _named(arguments, factory, **fixed):
    """Return the arguments, with the registered name for none."""
    return {**arguments, "name": arguments.get("name") or name_of(factory, **fixed)}


def _fitnet(widths, kernel_initializer=None, **arguments):
    kernel = given(kernel_initializer, MAXOUT_KERNEL)
    return cifar_network(maxout_stages(widths), maxout_head, kernel_initializer=kernel, **arguments)


def cifar_network(
    stages,
    head,
    dropout_rate=0.2,
    input_shape=(32, 32, 3),
    classes=10,
    classifier_activation="softmax",
    kernel_initializer=None,
    classifier_kernel=None,
    include_top=True,
    pooling=None,
    weights=None,
    name=None,
    input_tensor=None,
    any_size=False,
):
    """Build a CIFAR network: stages with max-pooling between them, a head, a softmax.

    Args:
        stages: Functions from a tensor, a name and the initializer of kernels to a tensor.
        head: Function from the last stage's maps and the initializer of kernels to the features
            that are classified.
        input_shape: (height, width, channels), sides of at least 32; `None` with `any_size` or
            without the top.
        classifier_kernel: Initializer of the classifier's kernel; default: as the others.
        any_size: Whether the head takes maps of any size.
        dropout_rate, kernel_initializer, pooling, classes, classifier_activation, include_top,
            weights, name, input_tensor: As for every CIFAR network; see
            `highway_keras.models.types.CifarArguments`.

    Returns:
        An uncompiled `keras.Model`.
    """
    any_size = any_size or not include_top
    inputs = first_images(input_shape, input_tensor, least=32, any_size=any_size)
    kernel = fresh(given(kernel_initializer, AUTHORS_KERNEL))
    x = dropout(inputs, dropout_rate, "input_dropout")
    for index, stage in enumerate(stages, start=1):
        if index > 1:
            x = keras.layers.MaxPooling2D(2, name=f"stage{index - 1}_pool")(x)
            x = dropout(x, dropout_rate, f"stage{index - 1}_dropout")
        x = stage(x, f"stage{index}", kernel)
    check_pooling(pooling)
    if checks.flag("include_top", include_top):
        x = dropout(head(x, kernel), dropout_rate, "head_dropout")
        x = predictions(x, classes, classifier_activation, classifier_kernel or kernel)
    else:
        x = pool_features(x, pooling)
    return network(inputs, x, name, weights)
