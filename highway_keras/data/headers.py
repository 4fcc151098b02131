"""What the headers of picture files say: how to turn a JPEG, and whether a PNG is transparent.

The functions are plain Python over numbers, so TensorFlow can also turn them into a part of a
graph (AutoGraph): an exported network then reads the same from the same bytes.
"""

SHORT, ORIENTATION = 3, 0x0112  # a type and a tag of TIFF, which EXIF is
EXIF, LITTLE_ENDIAN = 0x45786966, 0x4949  # "Exif", "II"
TRANSPARENCY, IMAGE_DATA = 0x74524E53, 0x49444154  # "tRNS", "IDAT"
RGB = 2  # a color type of PNG
APP1, START_OF_SCAN = 0xE1, 0xDA  # markers of JPEG segments


def exif_orientation(data):
    """Return the orientation of a JPEG file, 1 to 8 as in EXIF; 1, upright, if it has none.

    Args:
        data: The bytes of the file, a sequence of integers or an integer tensor.
    """
    size, found = len(data), 1
    start = _exif_start(data)
    if start > 0 and start + 8 <= size:
        little = _number(data, start, False) == LITTLE_ENDIAN
        entry = start + _long(data, start + 4, little) + 2
        # Offsets that point backwards or far away are those of damaged files.
        if start + 8 < entry and entry <= size:
            last = entry + 12 * _number(data, entry - 2, little)
            while entry < last and entry + 12 <= size:
                if _number(data, entry, little) == ORIENTATION:
                    if _number(data, entry + 2, little) == SHORT:
                        found = _number(data, entry + 8, little)
                    last = entry
                entry = entry + 12
    if found < 1 or found > 8:
        found = 1
    return found


def png_is_transparent(data):
    """Return whether a PNG file has an alpha channel or names transparent colors.

    A transparent color of 16 bits per channel is left out: Pillow cannot tell it.

    Args:
        data: The bytes of the file, a sequence of integers or an integer tensor.
    """
    size, chunk, found = len(data), 8, False
    while chunk >= 8 and chunk + 18 <= size:
        kind = _long(data, chunk + 4, False)
        if chunk == 8:
            found = data[25] // 4 % 2 == 1  # the color type in the header
        if kind == TRANSPARENCY and (data[24] != 16 or data[25] != RGB):
            found = True
        if kind == IMAGE_DATA:
            chunk = size
        else:
            chunk = chunk + 12 + _long(data, chunk, False)
    return found


def _exif_start(data):
    """Return where the EXIF data begin, 0 if there are none."""
    start, segment, size = 0, 2, len(data)
    while start == 0 and segment + 10 <= size and data[segment] == 0xFF:
        if data[segment + 1] == START_OF_SCAN:
            segment = size
        else:
            if data[segment + 1] == APP1 and _long(data, segment + 4, False) == EXIF:
                start = segment + 10
            segment = segment + 2 + _number(data, segment + 2, False)
    return start


def _number(data, at, little):
    """Return the number in two bytes."""
    first, second = data[at], data[at + 1]
    if little:
        first, second = second, first
    return 256 * first + second


def _long(data, at, little):
    """Return the number in four bytes."""
    first, second = _number(data, at, little), _number(data, at + 2, little)
    if little:
        first, second = second, first
    return 65536 * first + second
