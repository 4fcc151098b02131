"""Which picture files a user means: files, folders and patterns."""

import glob
import os

from highway_keras import checks

SUFFIXES = (".png", ".jpg", ".jpeg")


def find_pictures(names):
    """Return the paths of the picture files that names stand for, in their order.

    A folder stands for the PNG and JPEG files in it and below, sorted, hidden ones left out. A
    pattern (`*`, `?`, `[…]`; `**` for folders at any depth) stands for what it matches. Any other
    name stands for itself, whether or not there is such a file.

    Args:
        names: Paths and patterns.

    Returns:
        A list of strings, no path twice.

    Raises:
        ValueError: If a folder or a pattern stands for no picture.
        TypeError: If `names` is not a list of paths.

    Example:

    >>> from highway_keras import data
    >>> data.find_pictures(["seven.png", "scans/", "photos/*.jpg"])  # doctest: +SKIP
    """
    names = map(os.fspath, checks.paths("names", names))
    found = (path for name in names for path in _expand(os.path.expanduser(name)))
    return list(dict.fromkeys(found))


def _expand(name):
    if os.path.isdir(name):
        found, kind = pictures_below(name), "a folder without PNG or JPEG files"
    elif glob.has_magic(name) and not os.path.exists(name):
        found, kind = _matches(name), "a pattern that no file matches"
    else:
        return [name]
    if not found:
        raise ValueError(f"`images` must name pictures. Received: {name}, {kind}.")
    return found


def _matches(pattern):
    matches = sorted(glob.glob(pattern, recursive=True))
    folders = [pictures_below(path) if os.path.isdir(path) else [path] for path in matches]
    return [path for paths in folders for path in paths]


def pictures_below(folder):
    """Return the paths of the PNG and JPEG files in a folder and below, in a fixed order."""
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        names = [name for name in sorted(files) if not name.startswith(".")]
        found += [os.path.join(parent, n) for n in names if n.lower().endswith(SUFFIXES)]
    return found
