"""Picture files of every kind: read as they are seen, the same by `predict` and by an export."""

import struct
import zlib

import numpy as np
import pytest
from helpers import needs_tensorflow
from picture_folders import as_file
from PIL import EpsImagePlugin, Image, ImageOps

from highway_keras import data
from highway_keras.data import read_image
from highway_keras.export import cards

ORIENTATION = 0x0112
RAMP = np.arange(256, dtype="uint8").reshape(16, 16)


def black_ink(picture, mode):
    """A picture that looks like a gray one on white paper: black, more or less transparent."""
    alpha = ImageOps.invert(picture)
    return Image.merge(mode, [Image.new("L", picture.size)] * (len(mode) - 1) + [alpha])


def turned(picture, orientation):
    exif = Image.Exif()
    exif[0x010F], exif[ORIENTATION] = "a maker", orientation
    return as_file(picture, "JPEG", quality=95, exif=exif)


def chunk(kind, content):
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def png(bits, color, samples, palette=None, transparent=None):
    """A PNG file of 16x16 random pixels, of any number of bits and type of color."""
    rng = np.random.default_rng(bits + color)
    rows = [rng.integers(0, 256, 16 * samples * bits // 8, "uint8").tobytes() for _ in range(16)]
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 16, 16, bits, color, 0, 0, 0))]
    parts += [(b"PLTE", rng.integers(0, 256, 3 << bits, "uint8").tobytes())] if palette else []
    if transparent:
        first = [*rows[0][:samples]] if bits == 8 else [int.from_bytes(rows[0][:2], "big")]
        parts.append((b"tRNS", transparent(bits, first if bits >= 8 else [1])))
    parts += [(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def kinds():
    def key(bits, first):
        return b"".join(struct.pack(">H", value) for value in first)

    for bits in (1, 2, 4, 8, 16):
        # Pillow knows the transparent color of gray pictures only where they have 1 or 8 bits.
        for transparent in (None, key) if bits in (1, 8) else (None,):
            yield f"gray {bits} {transparent and 'key'}", png(bits, 0, 1, None, transparent)
    for bits in (1, 2, 4, 8):
        for transparent in (None, lambda bits, first: bytes([0, 128])):
            yield f"palette {bits} {transparent and 'key'}", png(bits, 3, 1, True, transparent)
    for bits in (8, 16):
        for name, color, samples in [("RGB", 2, 3), ("LA", 4, 2), ("RGBA", 6, 4)]:
            yield f"{name} {bits}", png(bits, color, samples)
    yield "RGB 8 key", png(8, 2, 3, None, key)
    yield "RGB 16 key", png(16, 2, 3, None, lambda bits, first: key(bits, 3 * first))
    picture = Image.fromarray(RAMP)
    yield "gray 2 by Pillow", as_file(picture, bits=2, transparency=85)  # which counts in 8 bits
    yield "interlaced", as_file(picture.convert("RGB"), interlace=1)
    yield "gray JPEG", as_file(picture, "JPEG", quality=95)
    yield "progressive JPEG", as_file(picture.convert("RGB"), "JPEG", progressive=True)
    yield "CMYK JPEG", as_file(picture.convert("CMYK"), "JPEG", quality=95)
    for orientation in range(1, 9):
        yield f"JPEG turned {orientation}", turned(picture, orientation)


KINDS = dict(kinds())


@needs_tensorflow
@pytest.mark.parametrize("kind", KINDS)
def test_predict_an_export_and_its_card_read_the_same(kind, tmp_path):
    """To the last bit; up to a gray level where it is scaled."""
    from highway_keras.export.decoding import decode

    (tmp_path / "picture").write_bytes(KINDS[kind])
    for size, most in ((16, 0), (7, 1)):
        for channels in (1, 3):
            shape = (size, size, channels)
            pixels = read_image(tmp_path / "picture", shape)
            assert pixels.std() > 5
            of_graph = decode(KINDS[kind], shape).numpy().astype(int)
            assert np.abs(pixels - of_graph).max() <= most
            if " 16" not in kind:  # the card says: 8 bits a channel
                names = {"file": tmp_path / "picture"}
                exec(cards.picture_code(shape), names)
                np.testing.assert_array_equal(names["images"][0], pixels)


@needs_tensorflow
@pytest.mark.parametrize("kind", ["GIF", "TIFF", "BMP"])
def test_other_formats_are_refused_by_both_with_their_place_in_the_batch(kind, tmp_path):
    import tensorflow as tf

    from highway_keras.export.decoding import decode_all

    decode = tf.function(lambda files: decode_all(files, (8, 8, 1)))
    good, other = (as_file(Image.fromarray(RAMP), name) for name in ("PNG", kind))
    (tmp_path / "picture.png").write_bytes(other)
    with pytest.raises(data.DataError, match=r"picture.png"):
        read_image(tmp_path / "picture.png", (8, 8, 1))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"element\] \[1 3\]"):
        decode(tf.constant([good, other, good, b""]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode(tf.constant([good[:60]]))


def test_no_interpreter_is_started(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *a, **k: called.append(a))
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    (tmp_path / "picture.png").write_bytes(script)
    with pytest.raises(data.DataError, match=r"picture.png"):
        read_image(tmp_path / "picture.png", (8, 8, 1))
    assert not called


def test_a_picture_of_too_many_pixels(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    Image.fromarray(RAMP).save(tmp_path / "large.png")
    with pytest.raises(data.DataError, match="limit of 200 pixels"):
        read_image(tmp_path / "large.png", (8, 8, 1))
    with pytest.raises(ValueError, match="channels"):
        read_image(tmp_path / "large.png", (8, 8, 2))


SEEN_AS_THE_RAMP = {
    "16 bits": Image.fromarray(RAMP.astype("uint16") * 257),
    "LA": black_ink(Image.fromarray(RAMP), "LA"),
    "RGBA": black_ink(Image.fromarray(RAMP), "RGBA"),
}


@pytest.mark.parametrize("kind", SEEN_AS_THE_RAMP)
def test_pictures_are_read_as_they_are_seen(kind, tmp_path):
    SEEN_AS_THE_RAMP[kind].save(tmp_path / "ramp.png")
    np.testing.assert_array_equal(read_image(tmp_path / "ramp.png", (16, 16, 1))[..., 0], RAMP)
