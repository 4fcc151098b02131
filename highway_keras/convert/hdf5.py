"""Open and read other people's HDF5 files, with errors turned into one line."""

import contextlib
import os

import h5py

from highway_keras import checks


def is_path(value):
    return isinstance(value, str | os.PathLike)


@contextlib.contextmanager
def opened(argument, path):
    """Open the HDF5 file at `path`, which errors call `argument`.

    Only read in this context: every error in it is taken for the file's fault.
    """
    path = checks.existing_file(argument, path)
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (PermissionError, BlockingIOError):
        raise  # the file may be fine: this process is not let in, or another one holds it
    except Exception as error:  # h5py raises errors of many kinds on damaged bytes
        raise ValueError(
            f"`{argument}` must be a whole HDF5 file. Received: {os.fspath(path)!r}, which is of "
            "another format, damaged or cut short. Copy or save it again."
        ) from error


def get_group(parent, name):
    """Return the group of that name in `parent`."""
    return _get(parent, name, h5py.Group)


def read_array(parent, name):
    """Return the array of that name in `parent`."""
    item = _get(parent, name, h5py.Dataset)
    if item.size and not item.id.get_storage_size():
        raise KeyError(name)  # declared but never written: it would read as zeros
    return item[()]


def _get(parent, name, kind):
    item = parent[name]
    if not isinstance(item, kind):
        raise KeyError(name)
    return item


def text(value):
    """Return the string in an attribute: bytes in old files, perhaps not UTF-8 in damaged ones."""
    if not isinstance(value, bytes):
        value = str(value).encode("utf-8", "surrogateescape")
    return value.decode("utf-8", "replace")
