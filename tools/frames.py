"""Rows of `results/` as pandas frames, for pages, pictures and tests."""

import functools
import io
import math

import pandas as pd

from benchmarks.measurements import RESULTS
from highway_keras.results import DIVERGED


@functools.cache
def read(name):
    """Return all rows of `results/NAME.csv`, a `DataFrame`; what diverged is infinite."""
    text = (RESULTS / f"{name}.csv").read_text(encoding="utf-8")
    text = text.replace(f",{DIVERGED}", ",inf")
    # A copy is in one piece: pandas warns of each column that is added to many.
    return pd.read_csv(io.StringIO(text), dtype={"trial": str}).copy()


def rows(name, *, command="", **values):
    """Return the rows of `results/NAME.csv` with these values; `command` is a regular expression.

    Raises:
        LookupError: If there is no such row.
    """
    frame = select(read(name), **values)
    if command:
        frame = frame[frame["command"].str.contains(command)]
    if frame.empty:
        raise LookupError(f"No row of {name}.csv has {values} and a command with {command!r}.")
    return frame


def select(frame, **values):
    """Return the rows of a frame with these values."""
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


def shown(value, form=""):
    """Format a number; what is missing is blank, and what is infinite diverged."""
    if isinstance(value, float) and not math.isfinite(value):
        return "" if math.isnan(value) else DIVERGED
    return format(value, form)


def listed(values, form=""):
    """Return several numbers as text; those that are infinite diverged."""
    return ", ".join(shown(value, form) for value in values)


def summary(values, form=".2f"):
    """Return the mean and deviation of several runs as text; of one or two, their values."""
    if len(values) < 3:
        return listed(values, form)
    return f"{values.mean():{form}} ± {values.std():{form}}"
