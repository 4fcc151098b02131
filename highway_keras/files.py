"""Files that are written whole or not at all."""

import contextlib
import csv
import json
import os
import pathlib

from highway_keras.text import cell


@contextlib.contextmanager
def replacing(path):
    """Yield a path to write to, whose file then replaces the one at `path`.

    A process that is killed while it writes leaves `path` as it was.

    Args:
        path: Where the file is to be.

    Yields:
        A path beside `path`, with the same suffix, since Keras chooses the format by it.
    """
    path = pathlib.Path(path)
    # With the process in its name: another one may be writing the same file.
    temporary = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield temporary
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
    """Write dictionaries as CSV; `columns` default to the keys of the first row.

    Text that a spreadsheet would take for a formula is disarmed, see `text.cell`.
    """
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns or list(rows[0]))
        writer.writeheader()
        writer.writerows({key: cell(value) for key, value in row.items()} for row in rows)


def write_figure(path, figure, dpi=150):
    """Write a `matplotlib.figure.Figure` as PNG."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=dpi)
