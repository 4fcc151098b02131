"""One writer at a time: locks of the operating system, which a dead process does not keep."""

import contextlib
import os
import pathlib
import platform

from highway_keras.extras import extra
from highway_keras.files import make_folder

with extra("train"):
    from filelock import FileLock, Timeout

SECONDS = 1.0  # to wait for a writer that is about to end


class BusyError(RuntimeError):
    """Another process is writing to the same place."""


@contextlib.contextmanager
def folder_lock(path, seconds=SECONDS):
    """Make a folder and keep other processes from writing to it: `with folder_lock(path): ...`.

    If an exception ends it before anything is written, the folder is removed.

    Args:
        path: The folder.
        seconds: How long to wait for another process.

    Raises:
        BusyError: If another process, or another thread, holds the lock. It says which.
        OSError: If the folder cannot be made, or cannot be written.
    """
    is_new = not os.path.lexists(path)
    path = make_folder(path)
    try:
        with _lock(path, path / ".lock", seconds):
            yield
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):  # not empty
                path.rmdir()
        raise


@contextlib.contextmanager
def file_lock(path, seconds=SECONDS):
    """Keep others from writing a file or folder that does not exist yet; see `folder_lock`.

    The lock is next to it.
    """
    path = pathlib.Path(path)
    with _lock(path, path.with_name(f".{path.name}.lock"), seconds):
        yield


@contextlib.contextmanager
def _lock(path, file, seconds):
    lock = FileLock(file)
    owner = file.with_name(f"{file.name}-owner")
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        if not file.exists():  # a file system that makes no files
            raise OSError(f"{path} cannot be written.") from None
        raise BusyError(
            f"{path} is being written by {_read(owner)}. Wait until that has ended, or name "
            "another place."
        ) from None
    except OSError as error:
        raise OSError(f"{path} cannot be written ({error.strerror}).") from error
    try:
        with contextlib.suppress(OSError):  # a full disk: others will not learn who it is
            owner.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        for path in (owner, file):
            with contextlib.suppress(OSError):  # Windows keeps files that are open
                path.unlink()
        lock.release()


def _read(owner):
    with contextlib.suppress(OSError, ValueError):
        return owner.read_text(encoding="utf-8") or "another process"
    return "another process"
