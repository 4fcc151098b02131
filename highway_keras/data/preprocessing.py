"""Preprocessing and augmentation as Keras models, so a saved network carries its own.

Images are `channels_last` throughout.
"""

import functools
import re

import keras

from highway_keras.data.augmentation import Mirror, PadAndCrop
from highway_keras.data.dataset import images_at_once
from highway_keras.data.normalization import GlobalContrastNormalization, MeanImage
from highway_keras.util import checks

PREPROCESSOR = "preprocessor"  # name of the model before the network in what `fit` saves
FACTORS = {"scale": 1 / 256, "half": 1 / 2}
NORMALIZATIONS = {"gcn": GlobalContrastNormalization, "mean": MeanImage}


def preprocessor(steps, x_train):
    """Build the model that turns raw images, gray levels 0 to 255, into a network's input.

    Args:
        steps: Names in the order they apply: `"scale"` (times 1/256, as the authors scale MNIST),
            `"gcn"` (`GlobalContrastNormalization`), `"mean"` (`MeanImage`), `"half"` (times 1/2),
            `"times0.8"` or any other factor. `()` for a network that takes raw gray levels.
        x_train: Training images of shape `(n, height, width, channels)`. The mean image is
            computed from them, after the steps before it.

    Returns:
        A `keras.Sequential` named `"preprocessor"`, float32 out.

    Raises:
        ValueError: For an unknown or repeated step.

    Examples:
        >>> preprocess = preprocessor(("scale", "gcn", "mean"), data.x_train)
        >>> inputs = keras.Input(data.input_shape)
        >>> model = keras.Model(inputs, network(preprocess(inputs)))
    """
    known = (*FACTORS, *NORMALIZATIONS, "times0.8")
    _check_steps("preprocessing", steps, known, r"times(?=.*[1-9])\d*\.?\d+")
    layers = [] if steps else [keras.layers.Rescaling(1.0, name="as_is", dtype="float32")]
    for step in steps:
        # float32 whatever the policy, for precision; the layer that follows casts to its own.
        options = {"name": step, "dtype": "float32"}
        if step in NORMALIZATIONS:
            layer = NORMALIZATIONS[step](**options)
        else:
            layer = keras.layers.Rescaling(FACTORS.get(step) or float(step[5:]), **options)
        if isinstance(layer, MeanImage):
            size = images_at_once(x_train.shape[1:])
            parts = (x_train[start : start + size] for start in range(0, len(x_train), size))
            layer.adapt(
                functools.reduce(lambda x, before: before(x), layers, part) for part in parts
            )
        layers.append(layer)
    return keras.Sequential([keras.Input(x_train.shape[1:]), *layers], name=PREPROCESSOR)


def augmenter(steps, input_shape, seed=None):
    """Build the model that alters images at random in training and leaves them alone otherwise.

    Args:
        steps: Names in the order they apply: `"crop4"` (`PadAndCrop(4)`) or with another number of
            pixels, `"mirror"` (`Mirror`).
        input_shape: `(height, width, channels)`.
        seed: Integer seed of the first step, incremented for the others; or None for random ones.

    Returns:
        A `keras.Sequential` named `"augmenter"`, float32 out, or None without steps.

    Raises:
        ValueError: For an unknown or repeated step.

    Examples:
        >>> augment = augmenter(("crop8", "mirror"), (32, 32, 3), seed=0)
        >>> altered = augment(images, training=True)
    """
    if steps in ((), []):
        return None
    _check_steps("augmentation", steps, ("crop4", "mirror"), r"crop[1-9]\d?")
    layers = []
    for number, step in enumerate(steps):
        options = {"name": step, "dtype": "float32"}
        options["seed"] = None if seed is None else seed + number
        is_mirror = step == "mirror"
        layers.append(Mirror(**options) if is_mirror else PadAndCrop(int(step[4:]), **options))
    return keras.Sequential([keras.Input(input_shape), *layers], name="augmenter")


def _check_steps(kind, steps, known, pattern):
    valid = isinstance(steps, tuple | list) and all(
        step in list(known) or re.fullmatch(pattern, str(step)) for step in steps
    )
    if not valid or len(set(steps)) < len(steps):
        raise ValueError(
            f"`{kind}` must be a sequence of steps such as {', '.join(map(repr, known))}, each at "
            f"most once. {checks.received(kind, steps)}"
        )
