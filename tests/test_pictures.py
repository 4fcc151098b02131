"""Picture files of every kind: read as they are seen, the same by `predict` and by an export."""

import io
import struct
import zlib

import keras
import numpy as np
import pytest
from PIL import EpsImagePlugin, Image, ImageOps

from highway_keras import data, models, training
from highway_keras.data.headers import exif_orientation
from highway_keras.data.images import read_image
from highway_keras.training.classification import classify

TENSORFLOW = keras.backend.backend() == "tensorflow"
needs_tensorflow = pytest.mark.skipif(not TENSORFLOW, reason="exports are traced by TensorFlow")
SIZE, DIGITS = 40, 8
ORIENTATION = 0x0112


def sees(images, channels):
    """A classifier of digits by the nearest mean of a class: real, and made without training."""
    means = np.stack([images.x_train[images.y_train == n].mean(0) for n in range(10)])
    means = np.repeat(means, channels, axis=-1).reshape(10, -1) / 256
    model = keras.Sequential(
        [
            keras.Input((8, 8, channels)),
            keras.layers.Rescaling(1 / 256),
            keras.layers.Flatten(),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.set_weights([means.T, -np.square(means).sum(-1) / 2])
    return model


@pytest.fixture(scope="module")
def images():
    return data.load("digits")


@pytest.fixture(scope="module", params=[1, 3], ids=["grey", "rgb"])
def networks(request, images, tmp_path_factory):
    """The saved network, and what its export makes of encoded pictures."""
    from highway_keras.export import runtimes
    from highway_keras.export.writers import classifier, write_saved_model

    folder, model = tmp_path_factory.mktemp("pictures"), sees(images, request.param)
    model.save(folder / "best.keras")
    names = list(map(str, range(10)))
    write_saved_model(classifier(model), folder / "served", names)
    return training.SavedNetwork(folder / "best.keras"), runtimes.load_saved_model(
        folder / "served"
    )[1]


def as_file(picture, kind="PNG", **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def grey(pixels, size=(SIZE, SIZE)):
    return Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)


def black_ink(picture, mode):
    """A picture that looks like a grey one on white paper: black, more or less transparent."""
    alpha = ImageOps.invert(picture)
    return Image.merge(mode, [Image.new("L", picture.size)] * (len(mode) - 1) + [alpha])


def rotated(picture, turn):
    """A JPEG file stored so that its orientation has to be undone."""
    undone = {3: 180, 6: 90, 8: 270}[turn]
    exif = Image.Exif()
    exif[ORIENTATION] = turn
    return as_file(picture.rotate(undone, expand=True), "JPEG", quality=95, exif=exif)


def palette_with_transparency(picture):
    """Two colours: black, and a transparent one that shows the paper."""
    paletted = picture.point(lambda v: int(v > 127)).convert("P")
    paletted.putpalette([0, 0, 0, 200, 30, 30])
    return as_file(paletted, transparency=1)


KINDS = {
    "grey of 8 bits": lambda p: as_file(p),
    "grey of 16 bits": lambda p: as_file(Image.fromarray(np.asarray(p).astype("uint16") * 257)),
    "RGB": lambda p: as_file(p.convert("RGB")),
    "RGBA": lambda p: as_file(black_ink(p, "RGBA")),
    "LA": lambda p: as_file(black_ink(p, "LA")),
    "palette": lambda p: as_file(p.convert("RGB").quantize(16)),
    "palette with transparency": palette_with_transparency,
    "1 bit": lambda p: as_file(p.point(lambda v: 255 * (v > 127)).convert("1")),
    "4 bits": lambda p: as_file(p.convert("P", palette=Image.Palette.ADAPTIVE, colors=8), bits=4),
    "CMYK JPEG": lambda p: as_file(p.convert("CMYK"), "JPEG", quality=95),
    "progressive JPEG": lambda p: as_file(p.convert("RGB"), "JPEG", quality=95, progressive=True),
    "grey JPEG": lambda p: as_file(p, "JPEG", quality=95),
    "JPEG turned right": lambda p: rotated(p, 6),
    "JPEG turned left": lambda p: rotated(p, 8),
    "JPEG upside down": lambda p: rotated(p, 3),
    "large": lambda p: as_file(p.resize((1500, 1000), Image.Resampling.BICUBIC)),
    "interlaced": lambda p: as_file(p.convert("RGB"), interlace=1),
}


@needs_tensorflow
@pytest.mark.parametrize("kind", KINDS)
def test_predict_and_the_export_see_the_same_digit(kind, networks, images, tmp_path):
    saved, encoded = networks
    expected = saved.model.predict(
        np.repeat(images.x_test[:DIGITS], saved.model.input_shape[-1], -1), verbose=0
    ).argmax(-1)
    files = [KINDS[kind](grey(image[..., 0])) for image in images.x_test[:DIGITS]]
    paths = [tmp_path / f"{number}.picture" for number in range(DIGITS)]
    for path, file in zip(paths, files, strict=True):
        path.write_bytes(file)
    predicted = list(saved.classify(paths))
    served = encoded(np.array(files, object))
    labels, probabilities = zip(*(one.classes[0] for one in predicted), strict=True)
    assert list(labels) == [str(n) for n in served["class_id"]]
    np.testing.assert_allclose(probabilities, served["probabilities"].max(-1), atol=0.03)
    # Thresholds and a squeezed shape change a digit here and there, and nothing changes most.
    assert np.mean(served["class_id"] == expected) >= 0.8


def chunk(kind, content):
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def png(bits, colour, samples, palette=None, transparent=None):
    """A PNG file of 16x16 random pixels, of any number of bits and type of colour."""
    rng = np.random.default_rng(bits + colour)
    rows = [rng.integers(0, 256, 16 * samples * bits // 8, "uint8").tobytes() for _ in range(16)]
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 16, 16, bits, colour, 0, 0, 0))]
    parts += [(b"PLTE", rng.integers(0, 256, 3 << bits, "uint8").tobytes())] if palette else []
    if transparent:
        first = [*rows[0][:samples]] if bits == 8 else [int.from_bytes(rows[0][:2], "big")]
        parts.append((b"tRNS", transparent(bits, first if bits >= 8 else [1])))
    parts += [(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def png_kinds():
    def key(bits, first):
        return b"".join(struct.pack(">H", value) for value in first)

    for bits in (1, 2, 4, 8, 16):
        for transparent in (None, key):
            yield f"grey {bits} {transparent and 'key'}", png(bits, 0, 1, None, transparent)
    for bits in (1, 2, 4, 8):
        for transparent in (None, lambda bits, first: bytes([0, 128])):
            yield f"palette {bits} {transparent and 'key'}", png(bits, 3, 1, True, transparent)
    for bits in (8, 16):
        for name, colour, samples in [("RGB", 2, 3), ("LA", 4, 2), ("RGBA", 6, 4)]:
            yield f"{name} {bits}", png(bits, colour, samples)
    yield "RGB 8 key", png(8, 2, 3, None, key)
    yield "RGB 16 key", png(16, 2, 3, None, lambda bits, first: key(bits, 3 * first))


PNG = dict(png_kinds())


@needs_tensorflow
@pytest.mark.parametrize("kind", PNG)
def test_every_kind_of_png_is_read_alike(kind, tmp_path):
    from highway_keras.export.decoding import decode

    (tmp_path / "picture.png").write_bytes(PNG[kind])
    for shape in ((16, 16, 1), (16, 16, 3)):
        found = read_image(tmp_path / "picture.png", shape)
        assert found.std() > 10
        np.testing.assert_array_equal(found, decode(PNG[kind], shape).numpy())


@needs_tensorflow
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (1, 40)])
def test_tiny_pictures(size, networks, images, tmp_path):
    saved, encoded = networks
    file = as_file(grey(images.x_test[0, ..., 0], size))
    (tmp_path / "tiny.png").write_bytes(file)
    (found,) = saved.classify([tmp_path / "tiny.png"])
    assert found.classes[0][0] == str(encoded(np.array([file], object))["class_id"][0])


@needs_tensorflow
@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF", "PPM"])
def test_other_formats_are_refused_by_both(kind, networks, images, tmp_path):
    import tensorflow as tf

    saved, encoded = networks
    file = as_file(grey(images.x_test[0, ..., 0]), kind)
    (tmp_path / "picture.png").write_bytes(file)
    (found,) = saved.classify([tmp_path / "picture.png"])
    assert "is not a PNG or JPEG picture" in found.error and not found.classes
    with pytest.raises(tf.errors.InvalidArgumentError):
        encoded(np.array([file], object))


def test_no_interpreter_is_started(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *a, **k: called.append(a))
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    (tmp_path / "picture.png").write_bytes(script)
    with pytest.raises(data.DataError, match="is not a PNG or JPEG picture"):
        read_image(tmp_path / "picture.png", (8, 8, 1))
    assert not called


def test_16_bits_are_scaled(tmp_path):
    ramp = np.arange(0, 65536, 257, dtype="uint16").reshape(16, 16)
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    expected = np.arange(256).reshape(16, 16)
    np.testing.assert_array_equal(read_image(tmp_path / "ramp.png", (16, 16, 1))[..., 0], expected)


@pytest.mark.parametrize("mode", ["LA", "RGBA"])
def test_transparent_parts_are_white(mode, tmp_path):
    ramp = np.arange(256, dtype="uint8").reshape(16, 16)
    black_ink(Image.fromarray(ramp), mode).save(tmp_path / "ink.png")
    np.testing.assert_array_equal(read_image(tmp_path / "ink.png", (16, 16, 1))[..., 0], ramp)


@pytest.mark.parametrize("turn", range(1, 9))
def test_orientation_is_that_of_a_viewer(turn, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 3), "uint8").repeat(8, 0).repeat(8, 1)
    exif = Image.Exif()
    exif[ORIENTATION] = turn
    Image.fromarray(pixels).save(tmp_path / "turned.jpeg", exif=exif, quality=95)
    with Image.open(tmp_path / "turned.jpeg") as picture:
        seen = np.asarray(ImageOps.exif_transpose(picture))
    np.testing.assert_array_equal(read_image(tmp_path / "turned.jpeg", seen.shape), seen)


def exif_files():
    """Files with EXIF data of either byte order, damaged ones too, and their orientation."""
    rng = np.random.default_rng(0)
    for order, turn in [(b"MM\0*", 6), (b"II*\0", 8)]:
        big = "big" if order[:1] == b"M" else "little"
        entries = [(0x010F, 2, 0), (ORIENTATION, 3, turn << 16 if big == "big" else turn)]
        body = order + (8).to_bytes(4, big) + len(entries).to_bytes(2, big)
        for tag, type_, value in entries:
            body += tag.to_bytes(2, big) + type_.to_bytes(2, big)
            body += (1).to_bytes(4, big) + value.to_bytes(4, big)
        segment = b"Exif\0\0" + body + bytes(4)
        head = b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(9) + b"\xff\xe1"
        whole = head + (len(segment) + 2).to_bytes(2, "big") + segment + b"\xff\xda" + bytes(20)
        yield whole, turn
        for length in range(0, len(whole), 7):
            yield whole[:length], None
        for _ in range(100):
            damaged = bytearray(whole)
            for place in rng.integers(2, len(whole), 3):
                damaged[place] = rng.integers(256)
            yield bytes(damaged), None


def test_damaged_exif_data_are_read_without_an_error():
    for file, turn in exif_files():
        found = exif_orientation(file)
        assert 1 <= found <= 8 and turn in (None, found)


@needs_tensorflow
def test_the_graph_reads_the_same_orientation():
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((), tf.string)], autograph=False)
    def read(picture):
        values = tf.cast(tf.io.decode_raw(picture, tf.uint8), tf.int32)
        return tf.autograph.to_graph(exif_orientation)(values)

    for file, _ in exif_files():
        assert int(read(file)) == exif_orientation(file)


@pytest.mark.parametrize("names", [None, 5, "abc", b"abc", [5], [None], [b"a.png"], [[]]])
def test_pictures_are_named_by_a_list_of_paths(names):
    with pytest.raises(TypeError, match=r"`names` must be a list of paths. Received: names="):
        data.find_pictures(names)
    model = models.thin_mlp(2, input_shape=(8, 8, 1))
    with pytest.raises(TypeError, match=r"`paths` must be a list of paths. Received: paths="):
        next(classify(model, list("0123456789"), names))


def test_names_of_pictures_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "photos").mkdir()
    picture = tmp_path / "photos" / "ant.png"
    Image.new("L", (8, 8)).save(picture)
    for name in ("~/photos", "~/photos/*.png", "~/photos/ant.png"):
        assert data.find_pictures([name]) == [str(picture)]


def test_a_picture_on_a_broken_disk(tmp_path, monkeypatch):
    def broken(path):
        raise OSError(5, "Input/output error")

    path = tmp_path / "picture.png"
    Image.new("L", (8, 8)).save(path)
    monkeypatch.setattr("pathlib.Path.read_bytes", broken)
    (found,) = classify(models.thin_mlp(2, input_shape=(8, 8, 1)), list("0123456789"), [path])
    assert found.error == f"{path} cannot be read: Input/output error."
