"""Files that are written whole or not at all."""

import contextlib
import csv
import json
import os
import pathlib
import secrets

from highway_keras import checks
from highway_keras.text import cell

LEFTOVERS = ".tmp-*"  # what a killed process may leave of the files it was writing


@contextlib.contextmanager
def replacing(path):
    """Yield a path to write to, whose file then replaces the one at `path`.

    A process killed while it writes leaves `path` as it was, and so does a full disk.

    Args:
        path: Where the file is to be.

    Yields:
        A path next to `path`, with the same suffix, because Keras chooses the format by it.

    Raises:
        OSError: If the file cannot be written.
    """
    path = pathlib.Path(path)
    # A name that no other process draws: two may write the same file.
    temporary = path.with_name(f"{LEFTOVERS[:-1]}{secrets.token_hex(4)}-{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(
            f"{path} cannot be written ({error.strerror or error}). What was there is unharmed."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


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


def write_bytes(path, content):
    """Write bytes."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path, text):
    """Write `text` in UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path, content, indent=2):
    """Write `content` as JSON; `indent=None` puts it on one line."""
    write_text(path, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")


def write_rows(path, rows, columns=None, line_end="\n"):
    """Write dictionaries as CSV; `columns` default to the keys of the first row.

    Text that a spreadsheet would take for a formula is disarmed; see `text.cell`.
    """
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns or list(rows[0]), lineterminator=line_end)
        writer.writeheader()
        writer.writerows({key: cell(value) for key, value in row.items()} for row in rows)


def write_figure(path, figure, dpi=150):
    """Write a `matplotlib.figure.Figure` as PNG."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=dpi)
