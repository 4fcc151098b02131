"""Files written whole or not at all, one writer at a time."""

import contextlib
import csv
import json
import os
import pathlib
import secrets
import zipfile

from filelock import FileLock, Timeout

from highway_keras.util.messages import notice, reason, spreadsheet_text

LOCK_TIMEOUT_S = 1.0  # to wait for a writer that is about to end
LEFTOVERS = ".tmp-*"  # a killed process may leave these of the files it was writing


@contextlib.contextmanager
def replacing(path):
    """Yield a temporary path; the file written there then replaces the one at `path`.

    If the process is killed or the disk is full, `path` stays as it was. The temporary path is in
    the same folder and has the same suffix, from which Keras infers the format.
    """
    path = pathlib.Path(path).expanduser()
    # A name that no other process draws: two may write the same file.
    temporary = path.with_name(f"{LEFTOVERS[:-1]}{secrets.token_hex(4)}-{path.name}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())  # or a power cut may leave the new name without its content
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path, text):
    """Write `text` in UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path, content, indent=2):
    """Write `content` as JSON; `indent=None` puts it on one line."""
    write_text(path, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")


def write_rows(path, rows, columns=None):
    """Write dictionaries as CSV; `columns` default to the keys of all rows.

    Text that a spreadsheet would take for a formula is disarmed; see `messages.spreadsheet_text`.
    """
    columns = columns or dict.fromkeys(key for row in rows for key in row)
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: spreadsheet_text(value) for k, value in row.items()} for row in rows)


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


def write_picture(path, draw, dpi=150):
    """Write the Matplotlib figure that `draw()` returns as PNG; a failure is only a notice."""
    try:
        figure = draw()
        with replacing(path) as temporary:
            figure.savefig(temporary, dpi=dpi, pil_kwargs={"optimize": True})
    except Exception as error:  # of Matplotlib, its fonts, Pillow and the disk: of many kinds
        notice(f"{path} could not be drawn: {reason(error)}")


class BusyError(RuntimeError):
    """Another process is writing to the same place."""


def folder_lock(path, seconds=LOCK_TIMEOUT_S):
    """Make a folder and keep other processes from writing to it: `with folder_lock(path): ...`.

    Raise a `BusyError` if another process does not release the lock within `seconds`.
    """
    path = pathlib.Path(path).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    return _lock(path, path / ".lock", seconds)


def file_lock(path):
    """Keep others from writing a file or folder, which need not exist yet; see `folder_lock`.

    The lock file is next to it.
    """
    path = pathlib.Path(path)
    return _lock(path, path.with_name(f".{path.name}.lock"), LOCK_TIMEOUT_S)


@contextlib.contextmanager
def _lock(path, file, seconds):
    lock = FileLock(file)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        raise BusyError(
            f"{path} is being written by another process. Wait until that has ended, or name "
            "another place."
        ) from None
    try:
        yield
    finally:
        # Before the release, so that nobody deletes another's lock: filelock asks, once it has a
        # lock, whether the file is still there.
        with contextlib.suppress(OSError):  # Windows cannot delete open files
            file.unlink()
        lock.release()
