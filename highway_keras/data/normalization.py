"""Normalization layers that Keras lacks: global contrast, and the mean image."""

import keras
from keras import ops

from highway_keras.util import checks


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

    Raises:
        ValueError: If `epsilon` is not a positive number.

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

        Raises:
            ValueError: If `data` is empty.
        """
        count, total = 0, 0.0
        for batch in [data] if hasattr(data, "shape") else data:
            batch = ops.convert_to_numpy(batch)
            count += len(batch)
            total = total + batch.sum(axis=0, dtype="float64")
        if not count:
            raise ValueError("`data` must hold at least one image. Received: none.")
        if not self.built:
            self.build((None, *total.shape))
        self.mean.assign(total / count)

    def call(self, inputs):
        return ops.cast(inputs, self.compute_dtype) - ops.cast(self.mean, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape
