"""Files written whole or not at all, one writer at a time."""

import contextlib
import csv
import errno
import hashlib
import json
import os
import pathlib
import platform
import secrets
import zipfile

from filelock import FileLock, Timeout

from highway_keras.util import checks
from highway_keras.util.messages import cell

SECONDS = 1.0  # to wait for a writer that is about to end
LEFTOVERS = ".tmp-*"  # what a killed process may leave of the files it was writing


@contextlib.contextmanager
def replacing(path):
    """Yield a temporary path; the file written there then replaces the one at `path`.

    If the process is killed or the disk is full, `path` stays as it was. The temporary path is in
    the same folder and has the same suffix, from which Keras infers the format.
    """
    path = checks.path("path", path)
    # A name that no other process draws: two may write the same file.
    temporary = path.with_name(f"{LEFTOVERS[:-1]}{secrets.token_hex(4)}-{path.name}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())  # or a power cut may leave the new name without its content
        os.replace(temporary, path)
    except OSError as error:
        if isinstance(error.__cause__, OSError):  # of another file, written meanwhile
            raise
        raise OSError(
            f"{path} cannot be written ({error.strerror or error}). The existing file is unchanged."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def is_out_of_memory(error):
    """Whether an error may mean that the computer or a device ran out of memory."""
    # TensorFlow's, PyTorch's and JAX's; the last two are also those of other failures in XLA.
    names = ("ResourceExhaustedError", "OutOfMemoryError", "XlaRuntimeError", "JaxRuntimeError")
    of_torch = isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)
    return isinstance(error, MemoryError) or type(error).__name__ in names or of_torch


def is_transient(error):
    """Whether an error is of memory, permissions, disk or network, and not of a file's content."""
    # For a damaged archive, NumPy and zipfile raise an `OSError` without a number, or EINVAL.
    of_disk = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
    return of_disk or is_out_of_memory(error)


def can_write(folder):
    """Return whether a folder, or the nearest above it that exists, can be written to."""
    parents = folder.absolute().parents
    there = next(path for path in (folder, *parents) if os.path.lexists(path))  # a link, too
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def make_folder(path):
    """Make a folder to write to, if it is not there; return its `pathlib.Path`."""
    path = checks.path("out", path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"`out` must be a folder that can be written. Received: out={path} ({error.strerror})."
        ) from error
    return path


def read_text(path):
    """Return the text of a UTF-8 file; a pipe is refused, because reading it could block."""
    return checks.existing_file("path", path).read_text(encoding="utf-8")


def write_text(path, text):
    """Write `text` in UTF-8; undecodable bytes of a file name become escapes that JSON reads."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path, content, indent=2):
    """Write `content` as JSON; `indent=None` puts it on one line."""
    write_text(path, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")


def digest(content):
    """Return 16 hexadecimal digits that identify `content`, anything that JSON can hold."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def write_rows(path, rows, columns=None):
    """Write dictionaries as CSV; `columns` default to the keys of the first row.

    Text that a spreadsheet would take for a formula is disarmed; see `messages.cell`.
    """
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns or list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: cell(value) for key, value in row.items()} for row in rows)


def compress(path):
    """Compress a `.keras` file, which Keras stores as it is.

    If weights are rounded to float16, LZMA leaves 0.45 to 0.5 of the size, deflate 0.55 to 0.65. In
    an int8 file it removes what HDF5 adds for each of many small arrays.
    """
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in sorted(archive.namelist())}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def write_figure(path, figure, dpi=150):
    """Write a `matplotlib.figure.Figure` as PNG."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=dpi, pil_kwargs={"optimize": True})


class BusyError(RuntimeError):
    """Another process is writing to the same place."""


def folder_lock(path, seconds=SECONDS):
    """Make a folder and keep other processes from writing to it: `with folder_lock(path): ...`.

    Raise a `BusyError` that names who holds the lock, if that is not released within `seconds`.
    """
    path = make_folder(path)
    return _lock(path, path / ".lock", seconds)


def file_lock(path):
    """Keep others from writing a file or folder, which need not exist yet; see `folder_lock`.

    The lock file is next to it.
    """
    path = pathlib.Path(path)
    return _lock(path, path.with_name(f".{path.name}.lock"), SECONDS)


@contextlib.contextmanager
def _lock(path, file, seconds):
    lock = FileLock(file)
    owner = file.with_name(f"{file.name}-owner")
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        if not file.exists():  # not held: no file can be created here, as in /proc
            raise OSError(f"{path} cannot be written.") from None
        by = "another process"
        with contextlib.suppress(OSError, ValueError):
            by = read_text(owner) or by
        here = by.endswith(f" on {platform.node()}")  # where the system releases locks
        gone = f" If it was killed, delete {file}." if " on " in by and not here else ""
        raise BusyError(
            f"{path} is being written by {by}. Wait until that has ended, or name another place."
            f"{gone}"
        ) from None
    except OSError as error:
        if not file.exists():
            raise OSError(f"{path} cannot be written ({error.strerror}).") from error
        raise OSError(
            f"{file} cannot be locked ({error.strerror}). Delete it if no process is writing to "
            f"{path}, or name a place on another disk."
        ) from error
    try:
        with contextlib.suppress(OSError):  # on a full disk, the owner stays unknown to others
            # `write_text` replaces a link at this place instead of following it.
            write_text(owner, f"process {os.getpid()} on {platform.node()}")
        yield
    finally:
        # Before the release, so that nobody deletes another's lock: filelock asks, once it has a
        # lock, whether the file is still there.
        for own in (owner, file):
            with contextlib.suppress(OSError):  # Windows cannot delete open files
                own.unlink()
        lock.release()
