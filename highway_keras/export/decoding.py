"""Picture files to pixels in TensorFlow's operations, as `data.read_image` reads them."""

import tensorflow as tf

from highway_keras.data.picture_files import EXIF, JPEG, ORIENTATION

# Gray level of an RGB pixel (ITU-R 601), in 1/65536, as Pillow computes it.
LUMA = (19595, 38470, 7471)
PNG = b"\x89PNG\r\n\x1a\n"  # how a file begins


def decode_all(pictures, shape):
    """Return the images, uint8 `(batch, *shape)`, that PNG or JPEG files `(batch,)` hold."""
    image = tf.TensorSpec(shape, tf.uint8)
    return tf.map_fn(lambda file: decode(file, shape), pictures, fn_output_signature=image)


def decode(picture, shape):
    """Return the image of `shape`, uint8, that the bytes of a PNG or JPEG file hold."""
    height, width, channels = shape
    is_jpeg = tf.strings.substr(picture, 0, len(JPEG)) == JPEG
    # TensorFlow's decoders also take other formats, such as GIF. Writing PNG's signature over the
    # first bytes makes them reject anything that is not a PNG.
    png = PNG + tf.strings.substr(picture, len(PNG), tf.strings.length(picture))
    pixels = tf.cond(is_jpeg, lambda: _jpeg(picture), lambda: _png(png))
    if channels == 1:
        luma = tf.reduce_sum(tf.cast(pixels, tf.int32) * LUMA, axis=-1, keepdims=True)
        pixels = (luma + 32768) // 65536
    scaled = tf.image.resize(pixels, (height, width), antialias=True)
    return tf.cast(tf.round(scaled), tf.uint8)


def _jpeg(picture):
    """Return the pixels of a JPEG file, rotated as its EXIF data say."""
    pixels = tf.io.decode_jpeg(picture, channels=3, dct_method="INTEGER_ACCURATE")
    turn = exif_orientation(picture)
    pixels = tf.cond(turn >= 5, lambda: tf.transpose(pixels, (1, 0, 2)), lambda: pixels)
    mirrored = tf.reduce_any(turn == (2, 3, 6, 7))
    pixels = tf.cond(mirrored, lambda: pixels[:, ::-1], lambda: pixels)
    upside_down = tf.reduce_any(turn == (3, 4, 7, 8))
    return tf.cond(upside_down, lambda: pixels[::-1], lambda: pixels)


def exif_orientation(picture):
    """Return what `data.picture_files.exif_orientation` returns, as a tensor."""
    exif = _after(EXIF, picture)
    big_endian = tf.strings.substr(exif, 0, 2) == b"MM"
    mark = tf.where(big_endian, ORIENTATION[b"MM"], ORIENTATION[b"II"])
    turn = tf.cast(tf.io.decode_raw(_after(mark, exif) + b"\1", tf.uint8)[0], tf.int32)
    return tf.where((turn >= 1) & (turn <= 8), turn, 1)


def _png(picture):
    """Return the pixels of a PNG file, white where it is transparent."""

    def on_white():
        pixels = tf.cast(tf.io.decode_png(picture, channels=4), tf.int32)
        colors, alpha = pixels[..., :3], pixels[..., 3:]
        return tf.cast((colors * alpha + 255 * (255 - alpha) + 127) // 255, tf.uint8)

    # The decoder garbles palettes and 1-bit gray if asked for an alpha channel that is not there.
    header = tf.io.decode_raw(tf.strings.substr(picture, 24, 2), tf.uint8)
    has_alpha = header[1] // 4 % 2 == 1
    # Ignore the transparent color of 16-bit RGB, as `read_image` does: Pillow reads 8 bits.
    can_tell = (header[0] != 16) | (header[1] != 2)
    has_key = _after(b"tRNS", tf.strings.split(picture, b"IDAT", maxsplit=1)[0]) != b""
    return tf.cond(
        has_alpha | (has_key & can_tell), on_white, lambda: tf.io.decode_png(picture, channels=3)
    )


def _after(mark, text):
    """Return what follows a mark in bytes, nothing if it is not there, as `bytes.partition`."""
    return tf.strings.reduce_join(tf.strings.split(text, mark, maxsplit=1)[1:])
