"""Give an export its name once it is complete and verified, and not before."""

import contextlib
import os
import pathlib
import shutil
import tempfile

from highway_keras.export.formats import FORMATS
from highway_keras.locks import file_lock


def check_place(path, format, overwrite):
    """Raise a `ValueError` if the export would replace what it must not."""
    for file in [path, *map(path.with_suffix, FORMATS[format].beside)]:
        if not os.path.lexists(file):
            continue
        if not overwrite:
            also = "" if file == path else f", and {file.name} next to it exists"
            raise ValueError(
                f"`path` must not exist yet. Received: path={path}{also}. Name another, or pass "
                "overwrite=True."
            )
        if not _is_export(file, format):
            kind = "a file" if FORMATS[format].suffix else "the folder of a SavedModel"
            raise ValueError(f"overwrite=True replaces {kind} only. Received: path={file}.")


def _is_export(path, format):
    if FORMATS[format].suffix:
        return path.is_file()
    return (path / "saved_model.pb").is_file()


@contextlib.contextmanager
def staged(path, format, overwrite):
    """Yield a path to write an export to; then move it, and what is next to it, to `path`.

    It is in a new folder next to `path`, on the same disk, so moving is renaming. An exception
    removes that folder. A killed process leaves it, and whatever was at `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(path), _aside(path) as folder:
        new, old = folder / "new", folder / "old"
        new.mkdir()
        yield new / path.name
        check_place(path, format, overwrite)  # what does not lock may have been faster
        for file in sorted(new.iterdir(), key=lambda file: file.name == path.name):  # `path` last
            _move(file, path.parent / file.name, old)


@contextlib.contextmanager
def _aside(path):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move(source, target, old):
    if not target.is_dir():
        os.replace(source, target)
        return
    try:
        # No portable call replaces a folder: between these two there is none, for microseconds.
        os.rename(target, old)
        os.rename(source, target)
    except BaseException:
        if not target.exists():
            os.rename(old, target)
        raise
