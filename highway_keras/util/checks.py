"""Checks of what a user passes: each raises, or returns the value in the form that the code needs.

NumPy integers and floats are accepted wherever Python's are; `True` is neither.
"""

import math
import numbers
import os
import pathlib
from collections.abc import Iterable, Mapping, Set, Sized
from operator import ge, gt, le, lt

from highway_keras.util.messages import did_you_mean

LONGEST_REPR = 200  # characters of a value that a message repeats


def is_integer(value):
    """Return whether `value` is an integer, NumPy's included; neither `True` nor 2.0 is one."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_positive_integer(value):
    """Return whether `value` is an integer of at least 1 that every backend can hold."""
    return is_integer(value) and 1 <= value < 2**63


def is_number(value):
    """Return whether `value` is a finite real number, NumPy's included; `True` is not one."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


_HOLDS = {"at least": ge, "above": gt, "below": lt, "at most": le}


def number(name, value, least=None, above=None, below=None, most=None, or_none=None):
    """Return `value` if it is a number in bounds; `or_none` says what `None` stands for."""
    return _bounded(is_number, "a number", name, value, least, above, below, most, or_none)


def integer(name, value, least=None, most=None):
    """Return `value` as an `int` within the bounds."""
    return int(_bounded(is_integer, "an integer", name, value, least, most=most))


def positive_integer(name, value, or_none=None):
    """Return `value` as an `int` of at least 1, or `None` if `or_none` says what it stands for."""
    found = _bounded(is_positive_integer, "a positive integer", name, value, or_none=or_none)
    return None if found is None else int(found)


def _bounded(is_kind, kind, name, value, least=None, above=None, below=None, most=None, or_none=""):
    if value is None and or_none:
        return None
    limits = given(**{"at least": least, "above": above, "below": below, "at most": most})
    if not is_kind(value) or not all(_HOLDS[word](value, at) for word, at in limits.items()):
        stated = " and ".join(f"{word} {at}" for word, at in limits.items())
        stated = f" of {stated}" if stated.startswith("at ") else f" {stated}".rstrip()
        also = f", or None for {or_none}" if or_none else ""
        raise ValueError(f"`{name}` must be {kind}{stated}{also}. {received(name, value)}")
    return value


def seed(value, name="seed"):
    """Return `value` as an `int` that every backend takes as a seed."""
    return integer(name, value, least=0, most=2**31 - 1)


def seeds(first, runs):
    """Return the seeds of `runs` runs, from the seed `first` on."""
    last = seed(seed(first) + positive_integer("runs", runs) - 1)
    return range(first, last + 1)


def floating(name, dtype):
    """Raise unless `dtype`, given by its name, is floating point."""
    if "float" not in dtype:
        raise TypeError(
            f"`{name}` must be floating point, because gates blend input and block state. "
            f"Received: dtype={dtype}. Cast first: `keras.ops.cast(x, 'float32')`."
        )


def one_of(name, value, choices):
    """Return `value` if it is one of `choices`."""
    if value not in list(choices):  # a dictionary raises if `value` has no hash
        listed = ", ".join(map(repr, choices))
        near = did_you_mean(value, [one for one in choices if isinstance(one, str)])
        raise ValueError(f"`{name}` must be one of {listed}. {received(name, value)}{near}")
    return value


def flag(name, value):
    """Return `value` if it is `True` or `False`."""
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be True or False. {received(name, value)}")
    return value


def serialized(name, value):
    """Return `value`, the name of a Keras object, its configuration, or `None`."""
    if not isinstance(value, str | dict | None):
        raise ValueError(f"`{name}` must be a name, such as 'he_normal'. {received(name, value)}")
    return value


def paths(name, value):
    """Return `value` as a list of paths, strings or `os.PathLike`; a single path is refused."""
    single = isinstance(value, str | bytes | os.PathLike)
    found = list(value) if isinstance(value, Iterable) and not single else [None]
    if not all(isinstance(one, str | os.PathLike) for one in found):
        raise TypeError(f"`{name}` must be a list of paths. {received(name, value)}")
    return found


def path(name, value):
    """Return `value` as a `pathlib.Path`; `~` is the user's home."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"`{name}` must be a path. {received(name, value)}")
    return pathlib.Path(os.path.expanduser(value))


def class_names(name, value, count):
    """Raise unless `value` names each of `count` classes, in their order."""
    # Sets and dictionaries are refused: their order need not be that of the classes.
    ordered = isinstance(value, Sized) and not isinstance(value, str | bytes | Set | Mapping)
    named = ordered and all(isinstance(one, str) and one.strip() for one in value)
    if not named or not len(value) == len(set(value)) == count:
        raise ValueError(
            f"`{name}` must be a list of the names of the {count} classes in their order, distinct "
            f"and not empty. {received(name, value)}"
        )


def existing_file(name, value):
    """Return `value` as a `pathlib.Path` if it is that of a file."""
    file = path(name, value)
    if not os.path.isfile(file):  # unlike `Path.is_file`, it never raises
        found = ", which is not a regular file" if os.path.exists(file) else ""
        raise FileNotFoundError(
            f"`{name}` must be an existing file. Received: {name}={file}{found}."
        )
    return file


def given(**options):
    """Return the options that are not `None`, which stands for one that was not given."""
    return {name: value for name, value in options.items() if value is not None}


def received(name, value):
    """Return the end of a message: what was passed for the argument `name`."""
    return f"Received: {name}={short_repr(value)}."


def short_repr(value):
    """Return how a message shows a value: as Python writes it, cut if that is long."""
    text = repr(value).replace("\n", " ")
    return text if len(text) <= LONGEST_REPR else f"{text[:LONGEST_REPR]}… ({len(text)} characters)"
