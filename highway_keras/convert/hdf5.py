"""HDF5 files of others: opened and read, with their errors turned into one line."""

import contextlib
import json
import os

import h5py

# What h5py and json raise on bytes that they cannot read.
_UNREADABLE = (OSError, KeyError, RuntimeError, json.JSONDecodeError)


def is_path(value):
    return isinstance(value, str | os.PathLike)


@contextlib.contextmanager
def opened(argument, path):
    """Open the HDF5 file at `path` to read; `argument` names it in errors."""
    if not os.path.isfile(path):
        raise FileNotFoundError(f"There is no file {os.fspath(path)!r}.")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (PermissionError, BlockingIOError):
        raise  # the file may be fine: this process is not let in, or another one holds it
    except _UNREADABLE as error:
        raise ValueError(
            f"`{argument}` must be a whole HDF5 file. Received: {os.fspath(path)!r}, which is of "
            "another format, damaged or cut short. Copy or save it again."
        ) from error


def get_group(parent, name):
    """The group of that name in `parent`."""
    return _get(parent, name, h5py.Group)


def read_array(parent, name):
    """The array of that name in `parent`."""
    return _get(parent, name, h5py.Dataset)[()]


def _get(parent, name, kind):
    item = parent[name]
    if not isinstance(item, kind):
        raise KeyError(name)
    return item


def text(value):
    """The string in an attribute, which old files hold as bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
