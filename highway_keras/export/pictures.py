"""PNG and JPEG files as a network's images, by TensorFlow: part of a SavedModel."""

import tensorflow as tf

# Grey level of an RGB pixel (ITU-R 601), in 1/65536, as `data.read_image` computes it.
LUMA = (19595, 38470, 7471)


def read_pictures(encoded, shape):
    """Return files as bytes `(batch,)` as images uint8 `(batch, *shape)`."""
    image = tf.TensorSpec(shape, tf.uint8)
    return tf.map_fn(lambda file: read_picture(file, shape), encoded, fn_output_signature=image)


def read_picture(file, shape):
    """Return the bytes of a picture as `data.read_image` returns the picture."""
    height, width, channels = shape
    # It reads PNG, too, and unlike `decode_image` can be told to transform accurately.
    pixels = tf.io.decode_jpeg(file, channels=3, dct_method="INTEGER_ACCURATE")
    if channels == 1:
        luma = tf.reduce_sum(tf.cast(pixels, tf.int32) * LUMA, axis=-1, keepdims=True)
        pixels = (luma + 32768) // 65536
    scaled = tf.image.resize(pixels, (height, width), antialias=True)
    return tf.cast(tf.round(scaled), tf.uint8)
