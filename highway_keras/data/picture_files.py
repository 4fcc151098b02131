"""Picture files: which ones a user means, and their pixels as a data set has them."""

import contextlib
import glob
import io
import math
import os
import re

import numpy as np

from highway_keras.data.dataset import DataError
from highway_keras.util import checks
from highway_keras.util.cores import on_every_core
from highway_keras.util.extras import extra
from highway_keras.util.messages import notice

FORMATS = ("PNG", "JPEG")  # Pillow's other readers run programs or are seldom tested
SUFFIXES = (".png", ".jpg", ".jpeg")
JPEG, EXIF = b"\xff\xd8\xff", b"Exif\0\0"  # first bytes of a file, and of its EXIF data
# The bytes before the value of an EXIF orientation entry, for each byte order
ORIENTATION = {b"II": b"\x12\1\3\0\1\0\0\0", b"MM": b"\1\x12\0\3\0\0\0\1\0"}
# Regular expressions for the wildcards of a pattern, in the order in which they are replaced
SIGNS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def find_pictures(names):
    """Return the paths of the picture files that names stand for, in their order.

    A folder stands for the PNG and JPEG files in it and below, sorted, hidden ones left out. A
    pattern (`*`, `?`; `**` for folders at any depth) stands for what it matches. Any other name
    stands for itself, whether or not there is such a file.

    Args:
        names: Paths and patterns.

    Returns:
        A list of strings, no path twice.

    Raises:
        ValueError: If a folder or a pattern stands for no picture.
        OSError: If a folder cannot be read.
        TypeError: If `names` is not a list of paths.

    Examples:
        >>> from highway_keras import data
        >>> data.find_pictures(["seven.png", "scans/", "photos/*.jpg"])  # doctest: +SKIP
    """
    found = []
    for name in checks.paths("names", names):
        name = os.path.expanduser(os.fspath(name))
        is_folder = os.path.isdir(name)
        if not is_folder and (os.path.lexists(name) or not {"*", "?"} & {*name}):
            found.append(name)
            continue
        if is_folder:
            files = files_below(name)
            below = pictures_among(files)
            say_left_out(name, files)
        elif "**" in name:  # which `glob` would follow into links without end
            start = os.path.dirname(re.split(r"[*?]", name)[0]) or os.curdir
            everything = map(os.path.normpath, pictures_below(start))
            wanted = re.escape(os.path.normpath(name))
            for sign, meaning in SIGNS.items():
                wanted = wanted.replace(re.escape(sign), meaning)
            below = [path for path in everything if re.fullmatch(wanted, path)]
        else:
            matches = sorted(glob.glob(name.replace("[", "[[]")))  # common in names of files
            folders = [pictures_below(path) if os.path.isdir(path) else [path] for path in matches]
            below = [path for paths in folders for path in paths]
        if not below:
            kind = "a folder without PNG or JPEG files" if is_folder else "which no file matches"
            raise ValueError(f"`images` must name pictures. Received: {name}, {kind}.")
        found += below
    return list(dict.fromkeys(found))


def pictures_below(folder):
    """Return the paths of the PNG and JPEG files in a folder and below, in a fixed order."""
    return pictures_among(files_below(folder))


def pictures_among(files):
    """Return the paths that name a PNG or JPEG file."""
    return [path for path in files if path.lower().endswith(SUFFIXES)]


def say_left_out(folder, files):
    """Give a notice of how many files are not named like pictures, if there are any."""
    others = sorted({*files} - {*pictures_among(files)})
    if others:
        endings = ", ".join(sorted({os.path.splitext(path)[1] or "none" for path in others}))
        notice(
            f"{folder}: files other than PNG and JPEG pictures are left out: {len(others)} "
            f"(endings: {endings})."
        )


def files_below(folder):
    """Return the paths of all files in a folder and below, in a fixed order, no hidden ones.

    Links to folders are followed, once each.
    """

    def fail(error):
        raise error

    found, known = [], set()
    for parent, folders, files in os.walk(folder, onerror=fail, followlinks=True):
        real = os.path.realpath(parent)
        is_new = real not in known
        known.add(real)
        folders[:] = sorted(name for name in folders if is_new and not name.startswith("."))
        names = sorted(name for name in files if is_new and not name.startswith("."))
        found += [os.path.join(parent, name) for name in names]
    return found


def read_image(path, input_shape):
    """Read a PNG or JPEG file, scaled to the size and channels that a network expects.

    It is read as a viewer shows it: rotated as its EXIF data say (JPEG), transparent parts white,
    16-bit channels as their upper 8 bits. The signature `encoded` of an exported network does the
    same, up to one gray level where it scales.

    Args:
        path: Path of the file.
        input_shape: (height, width, channels) with one channel (gray levels) or three (RGB).

    Returns:
        A uint8 array of shape `input_shape`.

    Raises:
        FileNotFoundError: If there is no such file.
        DataError: If it is not a picture, or `channels` is neither 1 nor 3.
    """
    with extra("train"):
        from PIL import Image

    check_channels(input_shape)
    height, width, channels = input_shape
    with _opened(path) as (picture, turn, bits):
        pixels = _on_white(picture, bits)
    if turn >= 5:
        pixels = pixels.swapaxes(0, 1)
    if turn in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if turn in (3, 4, 7, 8):
        pixels = pixels[::-1]
    picture = Image.fromarray(pixels).convert("L" if channels == 1 else "RGB")
    if picture.size != (width, height):
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(picture, "uint8").reshape(input_shape)


def edge_brightness(images):
    """Return the mean of the outermost pixels of gray-level images, `None` for those in color."""
    edges = [images[:, [0, -1]], images[:, :, [0, -1]].swapaxes(1, 2)]
    return float(np.concatenate(edges, axis=2).mean()) if images.shape[-1] == 1 else None


def broken_pictures(paths):
    """Return `{path: reason}` for the picture files that cannot be read."""

    def why(path):
        try:
            read_image(path, (1, 1, 1))
        except (OSError, DataError) as error:
            return str(error)

    found = on_every_core(why, paths)
    return {path: error for path, error in zip(paths, found, strict=True) if error}


def picture_shape(path):
    """Return (height, width, channels) of a PNG or JPEG file as displayed, from its header.

    Raise what `read_image` raises, except for damage that only decoding the pixels reveals.
    """
    with _opened(path) as (picture, turn, _):
        width, height = picture.size
        is_gray = picture.mode in ("1", "L", "LA", "La") or picture.mode.startswith("I")
        return *((width, height) if turn >= 5 else (height, width)), 1 if is_gray else 3


@contextlib.contextmanager
def _opened(path):
    """Yield a picture as Pillow opens it, its EXIF orientation and the bits of a PNG's channel."""
    with extra("train"):
        from PIL import Image

    path = checks.existing_file("picture", path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OSError(f"{path} cannot be read ({error.strerror}).") from error
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            yield picture, exif_orientation(data) if data.startswith(JPEG) else 1, data[24]
    except Image.DecompressionBombError as error:
        raise DataError(f"{path} has too many pixels. Scale it down. {error}") from error
    except MemoryError:
        raise
    except Exception as error:  # Pillow's readers raise errors of many kinds
        raise DataError(f"{path} is not a PNG or JPEG picture that can be read.") from error


def exif_orientation(data):
    """Return the orientation of a JPEG file, 1 to 8 as in EXIF; 1, upright, if it has none."""
    exif = data.partition(EXIF)[2]
    value = exif.partition(ORIENTATION[b"MM" if exif[:2] == b"MM" else b"II"])[2][:1]
    return value[0] if b"\1" <= value <= b"\x08" else 1


def _on_white(picture, bits):
    """Return a picture of any mode as RGB `(height, width, 3)`, white where it is transparent."""
    transparent = picture.info.get("transparency")
    if picture.mode.startswith("I"):  # 16 bits of gray: Pillow would make all from 255 on white
        values = np.asarray(picture)
        gray = np.where(values == transparent, 255, values >> 8).astype("uint8")
        return np.stack(3 * [gray], axis=-1)
    if transparent is not None and picture.mode == "L":  # Pillow scales the pixels, but not this
        most = 2**bits - 1  # only these bits count, as in libpng
        picture.info["transparency"] = (transparent & most) * 255 // most
    if bits == 16 and picture.mode == "RGB":  # Pillow has cut the pixels to 8 bits, but not this
        picture.info.pop("transparency", None)
    if not picture.has_transparency_data:
        return np.asarray(picture.convert("RGB"))
    rgba = np.asarray(picture.convert("RGBA")).astype("uint16")
    colors, alpha = rgba[..., :3], rgba[..., 3:]
    return ((colors * alpha + 255 * (255 - alpha) + 127) // 255).astype("uint8")


def check_channels(input_shape):
    """Raise a `DataError` unless images of a shape have the channels of pictures."""
    shape = tuple(input_shape)
    if len(shape) != 3 or not all(map(checks.is_positive_integer, shape)) or shape[2] not in (1, 3):
        raise DataError(
            "`input_shape` must be (height, width, channels) with 1 or 3 channels, as pictures "
            f"have. Received: input_shape={shape}."
        )


class PictureArray:
    """Picture files as images uint8 `(n, height, width, channels)`, read on indexing.

    `pictures[3]` is an image, `pictures[:100]` and `pictures[[5, 2]]` are arrays of images.
    `read_image` reads them, as in `predict`, but on every core.

    Args:
        paths: Paths of PNG or JPEG files.
        input_shape: (height, width, channels) to scale each to.
    """

    dtype, ndim = np.dtype("uint8"), 4

    def __init__(self, paths, input_shape):
        self.paths = np.array([os.fspath(path) for path in paths], dtype=object)
        self.shape = (len(self.paths), *input_shape)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, chosen):
        paths = self.paths[chosen]
        if isinstance(paths, str):
            return read_image(paths, self.shape[1:])
        images = np.empty((len(paths), *self.shape[1:]), self.dtype)

        def read(index):
            images[index] = read_image(paths[index], self.shape[1:])

        on_every_core(read, range(len(paths)))
        return images

    def __array__(self, dtype=None, copy=None):
        return self[:].astype(dtype or self.dtype, copy=False)

    @property
    def size(self):
        """Number of values."""
        return math.prod(self.shape)
