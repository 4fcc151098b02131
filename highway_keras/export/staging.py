"""Give an export its name once it is complete and verified, and not before."""

import contextlib
import os
import pathlib
import shutil
import tempfile

from highway_keras.export.card import CARD, is_card
from highway_keras.export.formats import FORMATS
from highway_keras.io import file_lock


def check_place(path, format, overwrite):
    """Raise a `ValueError` if the export would replace what it must not."""
    places = [path, *map(path.with_suffix, FORMATS[format].beside)]
    existing = [file for file in places if os.path.lexists(file)]
    foreign = [file for file in existing if not _is_export(file, path, format)]
    if existing and not overwrite:
        file = (foreign or existing)[0]
        also = "" if file == path else f", and {file.name} next to it exists"
        remedy = "Name another." if foreign else "Name another, or pass overwrite=True."
        raise ValueError(f"`path` must not exist yet. Received: path={path}{also}. {remedy}")
    if foreign:
        raise ValueError(
            f"overwrite=True replaces only an earlier export. Received: path={path}, but "
            f"{foreign[0]} is something else. Name another."
        )


def _is_export(file, path, format):
    """Return whether a file, or the folder of a SavedModel, is part of an earlier export."""
    if not FORMATS[format].suffix:
        return is_card(path / "assets" / CARD)
    # Neither a network that a training saved nor a user's own labels.txt has a card beside it.
    return file.is_file() and is_card(path.with_suffix(".json"))


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
        for file in sorted(new.iterdir(), key=lambda file: _turn(file, path)):
            _move(file, path.parent / file.name, old)


def _turn(file, path):
    """Return when a file is moved: `path` last, and first the card, by which others are ours."""
    return file.name == path.name, file.suffix != ".json"


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
