"""Preprocessing: normalization layers that Keras lacks, and the model that a saved network carries.

A step is an entry of `STEPS`. Images are `channels_last` throughout.
"""

import functools
import re

import keras
import numpy as np
from keras import ops

from highway_keras.data.dataset import inference_batch_size
from highway_keras.util import checks

PREPROCESSOR = "preprocessor"  # name of the model before the network in what `fit` saves


@keras.saving.register_keras_serializable(package="highway_keras")
class GlobalContrastNormalization(keras.layers.Layer):
    """Give every image mean 0 and standard deviation 1 over all its pixels and channels.

    `y = (x - mean(x)) / max(std(x), epsilon)`

    The usual CIFAR pipeline divides by the norm and multiplies by 55 instead (pylearn2's
    `global_contrast_normalize(scale=55)`). A norm is `sqrt(3072)` = 55.4 standard deviations of a
    32x32x3 image, so the two agree to 0.8 %. The paper does not say which constant it used.

    Args:
        epsilon: Floor of the divisor, so an image of one color becomes 0 instead of amplified
            rounding noise. The default, 1e-3, is far below the deviation of any image that is not
            practically constant, for gray levels of 0..255 and of 0..1.

    Input shape:
        `(batch, height, width, channels)`, any numeric dtype.

    Output shape:
        The same, in the layer's compute dtype. Statistics are taken in float32 at least.

    Examples:
        >>> tuple(GlobalContrastNormalization()(images).shape)
        (100, 32, 32, 3)

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.3.2, which names it.
    """

    def __init__(self, epsilon=1e-3, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = checks.number("epsilon", epsilon, above=0)

    def call(self, inputs):
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        images = ops.cast(inputs, dtype)
        axes = tuple(range(1, len(images.shape)))
        images = images - ops.mean(images, axes, keepdims=True)  # `-=` is in place on PyTorch
        deviation = ops.sqrt(ops.mean(ops.square(images), axes, keepdims=True))
        return ops.cast(images / ops.maximum(deviation, self.epsilon), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}


@keras.saving.register_keras_serializable(package="highway_keras")
class MeanImage(keras.layers.Layer):
    """Subtract the mean image: `y = x - mean`, the mean over images for each pixel and channel.

    The mean is 0 until `adapt` sets it, and is saved with the model as a non-trainable weight.
    `keras.layers.Normalization` would also divide by the standard deviation.

    Input shape:
        `(batch, height, width, channels)`, any numeric dtype.

    Output shape:
        The same, in the layer's compute dtype.

    Examples:
        >>> layer = MeanImage()
        >>> layer.adapt(x_train)
        >>> centered = layer(x_train)
    """

    def build(self, input_shape):
        self.mean = self.add_weight(
            name="mean", shape=tuple(input_shape[1:]), initializer="zeros", trainable=False
        )

    def adapt(self, data):
        """Set the mean to that of `data`.

        Args:
            data: An array of images `(n, height, width, channels)`, or an iterable of such arrays.
        """
        count, total = 0, 0.0
        for batch in [data] if hasattr(data, "shape") else data:
            batch = ops.convert_to_numpy(batch)
            count += len(batch)
            total = total + batch.sum(axis=0, dtype="float64")
        if not self.built:
            self.build((None, *total.shape))
        self.mean.assign(total / count)

    def call(self, inputs):
        return ops.cast(inputs, self.compute_dtype) - ops.cast(self.mean, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape


STEPS = {  # N stands for a number, the layer's first argument
    "scale": functools.partial(keras.layers.Rescaling, scale=1 / 256),
    "gcn": GlobalContrastNormalization,
    "mean": MeanImage,
    "half": functools.partial(keras.layers.Rescaling, scale=1 / 2),
    "timesN": keras.layers.Rescaling,
    # RGB images of ImageNet then have mean 0 and deviation 1 by channel.
    "imagenet": functools.partial(
        keras.layers.Rescaling,
        scale=[1 / (255 * deviation) for deviation in (0.229, 0.224, 0.225)],
        offset=[-0.485 / 0.229, -0.456 / 0.224, -0.406 / 0.225],
    ),
}


def preprocessor(steps, x_train):
    """Build the model that turns raw images, gray levels 0 to 255, into a network's input.

    Args:
        steps: Names in the order they apply: `"scale"` (times 1/256, as the authors scale MNIST),
            `"gcn"` (`GlobalContrastNormalization`), `"mean"` (`MeanImage`), `"half"` (times 1/2),
            `"times0.8"` or any other factor, `"imagenet"` (means and deviations of ImageNet's
            channels, as usual for RGB images). `()` for a network that takes raw gray levels.
        x_train: Training images of shape `(n, height, width, channels)`. The mean image is
            computed from them, after the steps before it.

    Returns:
        A `keras.Sequential` named `"preprocessor"`, float32 out.

    Raises:
        ValueError: For an unknown step.

    Examples:
        >>> preprocess = preprocessor(("scale", "gcn", "mean"), data.x_train)
        >>> inputs = keras.Input(data.input_shape)
        >>> model = keras.Model(inputs, network(preprocess(inputs)))
    """
    # Without a step, the model only casts.
    layers = [] if steps else [keras.layers.Rescaling(1.0, name="as_is", dtype="float32")]
    for step in steps:
        layer = layer_of_step("preprocessing", step, STEPS)
        if hasattr(layer, "adapt"):
            size = inference_batch_size(x_train.shape[1:])
            parts = (x_train[start : start + size] for start in range(0, len(x_train), size))
            layer.adapt(functools.reduce(lambda x, each: each(x), layers, part) for part in parts)
        layers.append(layer)
    return keras.Sequential([keras.Input(x_train.shape[1:]), *layers], name=PREPROCESSOR)


def preprocessed(preprocess, x):
    """Return images as a `preprocessor` leaves them, an array."""
    return preprocess.predict(np.asarray(x), inference_batch_size(x.shape[1:]), verbose=0)


def layer_of_step(kind, step, table, **options):
    """Return the layer of a step: a name of `table`, with a number in the place of its N.

    The layer computes in float32 whatever the policy; the layer that follows casts to its own.
    """
    name, number = re.fullmatch(r"(.*?)(\d*\.?\d+)?", step).groups()
    name += "N" if number else ""
    checks.one_of(kind, name if name in table else step, table)
    arguments = [int(number) if number.isdecimal() else float(number)] if number else []
    return table[name](*arguments, name=step, dtype="float32", **options)
