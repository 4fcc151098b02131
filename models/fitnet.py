"""The maxout Fitnets of Table 2, which its highway networks are compared with."""

from highway_keras.models import parts
from highway_keras.models.cards import cifar_card


def maxout_fitnet(
    stages,
    *,
    input_shape=(32, 32, 3),
    classes=10,
    kernel_initializer="lecun_uniform",
    name=None,
):
    """Build Fitnet A or B of Table 2, of maxout layers, without hints.

    Its kernels do not start like those of the authors' networks: by default they are uniform with
    variance 1 / fan-in. The larger of two such units has the same second moment as one of them, so
    a signal keeps its power; with 2 / fan-in, the power would double in every layer.

    Args:
        stages: Widths of the convolutions of each stage, each with two-piece maxout.
        input_shape, classes, kernel_initializer, name: As for `cifar_highway`.

    Returns:
        An uncompiled `keras.Model`.

    Examples:
        >>> from highway_keras.models import maxout_fitnet
        >>> maxout_fitnet(((16, 16, 16), (32, 32, 32), (48, 48, 64))).count_params()
        251194

    Reference:
        [Romero et al., 2014](https://arxiv.org/abs/1412.6550)
    """
    import keras

    from highway_keras.layers import Maxout

    kernel = parts.unshared(kernel_initializer)
    images = parts.images(input_shape)
    x = keras.layers.Dropout(parts.DROPOUT, name="input_dropout")(images)
    for number, widths in enumerate(stages, start=1):
        stage = f"stage{number}"
        for index, width in enumerate(widths, start=1):
            x = keras.layers.Conv2D(
                2 * width, 3, padding="same", kernel_initializer=kernel, name=f"{stage}_conv{index}"
            )(x)
            x = Maxout(2, name=f"{stage}_maxout{index}")(x)
        if number < len(stages):
            x = keras.layers.MaxPooling2D(2, name=f"{stage}_pool")(x)
            x = keras.layers.Dropout(parts.DROPOUT, name=f"{stage}_dropout")(x)
    x = keras.layers.MaxPooling2D(8, name="head_pool")(x)
    x = keras.layers.Flatten(name="flatten")(x)
    x = keras.layers.Dense(1000, kernel_initializer=kernel, name="head")(x)
    x = Maxout(2, name="head_maxout")(x)
    x = keras.layers.Dropout(parts.DROPOUT, name="head_dropout")(x)
    x = parts.predictions(x, classes, kernel)
    return keras.Model(images, x, name=name)


def _card(name, stages, **claims):
    return cifar_card(
        name,
        maxout_fitnet,
        {"stages": stages},
        recipe="fitnet",
        table="Table 2",
        origin="by [Romero et al., 2014](https://arxiv.org/abs/1412.6550), who trained it with "
        "hints from a teacher; here it is trained without",
        **claims,
    )


CARDS = [
    _card(
        "fitnet-a",
        ((16, 16, 16), (32, 32, 32), (48, 48, 64)),
        layers=11,
        parameters=251_194,
        multiplications=30_150_024,
        paper="89.01 (with hints)",
    ),
    _card(
        "fitnet-b",
        ((32, 32, 32, 48, 48), (80,) * 6, (128,) * 6),
        layers=19,
        parameters=2_548_602,
        multiplications=381_749_128,
        paper="91.61 (with hints)",
    ),
]
