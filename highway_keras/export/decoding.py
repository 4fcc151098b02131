"""Picture files to pixels in TensorFlow's operations, as `data.read_image` reads them.

Unscaled pixels are equal; scaled ones differ by at most one gray level. Pillow reads PNG files of 2
or 4 gray bits with a transparent color differently.
"""

import tensorflow as tf

JPEG, PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"  # how a file begins
EXIF = b"Exif\0\0"
# What comes before the value of an EXIF orientation entry, in either byte order
ORIENTATION_BIG = b"\1\x12\0\3\0\0\0\1\0"
ORIENTATION_LITTLE = b"\x12\1\3\0\1\0\0\0"
# Gray level of an RGB pixel (ITU-R 601), in 1/65536, as Pillow computes it
LUMA = (19595, 38470, 7471)


def decode_all(pictures, shape):
    """Return the images, uint8 `(batch, *shape)`, that PNG or JPEG files `(batch,)` hold."""
    others = tf.where(~(is_jpeg(pictures) | is_png(pictures)))[:, 0]
    text = "`encoded` must hold PNG or JPEG files. Received: something else as element"
    with tf.control_dependencies([tf.debugging.Assert(tf.size(others) == 0, [text, others])]):
        pictures = tf.identity(pictures)
    image = tf.TensorSpec(shape, tf.uint8)
    return tf.map_fn(lambda file: decode(file, shape), pictures, fn_output_signature=image)


def is_jpeg(picture):
    return tf.strings.substr(picture, 0, len(JPEG)) == JPEG


def is_png(picture):
    """Whether a file begins as a PNG file; TensorFlow's decoder also takes GIF and BMP."""
    return tf.strings.substr(picture, 0, len(PNG)) == PNG


def decode(picture, shape):
    """Return the image of `shape`, uint8, that the bytes of a PNG or JPEG file hold."""
    height, width, channels = shape
    pixels = tf.cond(is_jpeg(picture), lambda: decode_jpeg(picture), lambda: decode_png(picture))
    if channels == 1:
        luma = tf.reduce_sum(tf.cast(pixels, tf.int32) * LUMA, axis=-1, keepdims=True)
        pixels = (luma + 32768) // 65536
    scaled = tf.image.resize(pixels, (height, width), antialias=True)
    return tf.cast(tf.round(scaled), tf.uint8)


def decode_jpeg(picture):
    """Return the pixels of a JPEG file, turned as its EXIF data say."""
    pixels = tf.io.decode_jpeg(picture, channels=3, dct_method="INTEGER_ACCURATE")
    turn = orientation(picture)
    pixels = tf.cond(turn >= 5, lambda: tf.transpose(pixels, (1, 0, 2)), lambda: pixels)
    mirrored = tf.reduce_any(turn == (2, 3, 6, 7))
    pixels = tf.cond(mirrored, lambda: pixels[:, ::-1], lambda: pixels)
    upside_down = tf.reduce_any(turn == (3, 4, 7, 8))
    return tf.cond(upside_down, lambda: pixels[::-1], lambda: pixels)


def orientation(picture):
    """Return the EXIF orientation of a JPEG file, 1 to 8; 1, upright, if it has none."""
    exif = after(EXIF, picture)
    is_big = tf.strings.substr(exif, 0, 2) == b"MM"
    entry = tf.where(is_big, ORIENTATION_BIG, ORIENTATION_LITTLE)
    turn = tf.cast(tf.io.decode_raw(after(entry, exif) + b"\1", tf.uint8)[0], tf.int32)
    return tf.where((turn >= 1) & (turn <= 8), turn, 1)


def decode_png(picture):
    """Return the pixels of a PNG file, white where it is transparent."""

    def on_white():
        pixels = tf.cast(tf.io.decode_png(picture, channels=4), tf.int32)
        colors, alpha = pixels[..., :3], pixels[..., 3:]
        return tf.cast((colors * alpha + 255 * (255 - alpha) + 127) // 255, tf.uint8)

    # The decoder garbles palettes and 1-bit gray if asked for an alpha channel that is not there.
    header = tf.io.decode_raw(tf.strings.substr(picture, 24, 2), tf.uint8)
    has_alpha = header[1] // 4 % 2 == 1
    # Pillow reads 8 bits of a pixel, and ignores a transparent color of 16.
    has_key = after(b"tRNS", tf.strings.split(picture, b"IDAT", maxsplit=1)[0]) != b""
    return tf.cond(
        has_alpha | (has_key & (header[0] != 16)),
        on_white,
        lambda: tf.io.decode_png(picture, channels=3),
    )


def after(mark, text):
    """Return what follows a mark in bytes, as `bytes.partition(mark)[2]`."""
    return tf.strings.reduce_join(tf.strings.split(text, mark, maxsplit=1)[1:])
