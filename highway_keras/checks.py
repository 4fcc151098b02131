"""Checks of what a user passes. Each returns the value as the code wants it, or raises one line.

NumPy's integers and floats pass wherever Python's do; `True` is neither.
"""

import math
import numbers
import pathlib


def is_integer(value):
    """Return whether `value` is an integer, NumPy's included; neither `True` nor 2.0 is one."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_positive(value):
    """Return whether `value` is an integer of at least 1."""
    return is_integer(value) and value > 0


def is_number(value):
    """Return whether `value` is a finite real number, NumPy's included; `True` is none."""
    right = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return right and math.isfinite(value)


def integer(name, value, least=None, most=None):
    """Return `value` as an `int` within the bounds."""
    bounds = _bounds({"at least": least, "at most": most})
    if not is_integer(value) or not _within(value, least=least, most=most):
        raise ValueError(f"`{name}` must be an integer{bounds}. Received: {name}={value!r}.")
    return int(value)


def positive_integer(name, value, none=None):
    """Return `value` as an `int` of at least 1, or `None` where `none` says what that means."""
    if value is None and none:
        return None
    if not is_positive(value):
        also = f", or None for {none}" if none else ""
        raise ValueError(f"`{name}` must be a positive integer{also}. Received: {name}={value!r}.")
    return int(value)


def number(name, value, least=None, above=None, below=None, most=None, none=None):
    """Return `value` if it is a number within the bounds, or `None` where `none` says its sense."""
    if value is None and none:
        return None
    within = is_number(value) and _within(value, least, above, below, most)
    if not within:
        limits = {"at least": least, "above": above, "below": below, "at most": most}
        also = f", or None for {none}" if none else ""
        raise ValueError(
            f"`{name}` must be a number{_bounds(limits)}{also}. Received: {name}={value!r}."
        )
    return value


def seed(value, name="seed"):
    """Return `value` as an `int` that every backend takes as a seed."""
    if not is_integer(value) or not 0 <= value < 2**31:
        raise ValueError(
            f"`{name}` must be an integer from 0 to 2**31 - 1. Received: {name}={value!r}."
        )
    return int(value)


def one_of(name, value, choices):
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"`{name}` must be one of {listed}. Received: {name}={value!r}.")
    return value


def flag(name, value):
    """Return `value` if it is `True` or `False`."""
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be True or False. Received: {name}={value!r}.")
    return value


def text(name, value):
    """Return `value` if it is a string that is not empty."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string. Received: {name}={value!r}.")
    if not value.strip():
        raise ValueError(f"`{name}` must not be empty. Received: {name}={value!r}.")
    return value


def existing_file(name, path):
    """Return `path` as a `pathlib.Path` of a file that is there."""
    path = pathlib.Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"`{name}` must be an existing file. Received: {name}={path}.")
    return path


def _within(value, least=None, above=None, below=None, most=None):
    return not (
        (least is not None and value < least)
        or (above is not None and value <= above)
        or (below is not None and value >= below)
        or (most is not None and value > most)
    )


def _bounds(limits):
    stated = " and ".join(f"{word} {bound}" for word, bound in limits.items() if bound is not None)
    return f" {stated}" if stated else ""
