"""Checks of arguments: each raises, or returns the value in the form that the code needs.

NumPy's integers and floats are accepted wherever Python's are; `True` is neither.
"""

import math
import numbers

from highway_keras.util.messages import did_you_mean

MAX_REPR = 200  # characters of a value that a message repeats


def same_settings(folder, earlier, settings):
    """Raise a `ValueError` if the run or search in a folder was started with other settings."""
    differing = [
        f"{key}: {earlier.get(key)!r} → {settings.get(key)!r}"
        for key in earlier | settings
        if earlier.get(key) != settings.get(key)
    ]
    if differing:
        raise ValueError(
            f"Cannot continue {folder}: settings differ ({'; '.join(differing)}). Pass the earlier "
            "values, or name another folder."
        )


def number(
    name,
    value,
    least=-math.inf,
    above=-math.inf,
    below=math.inf,
    most=math.inf,
    or_none=False,
    kind=numbers.Real,
):
    """Return `value` if it is a finite number in bounds or, with `or_none`, `None`."""
    if value is None and or_none:
        return None
    is_of_kind = isinstance(value, kind) and not isinstance(value, bool)
    if not is_of_kind or not (least <= value <= most and above < value < below):
        bounds = {"at least": least, "above": above, "below": below, "at most": most}
        stated = [f"{word} {bound}" for word, bound in bounds.items() if math.isfinite(bound)]
        noun = "a number" if kind is numbers.Real else "an integer"
        expected = f"{noun} {' and '.join(stated)}".rstrip() + (", or None" if or_none else "")
        raise ValueError(f"`{name}` must be {expected}. {received(name, value)}")
    return value


def integer(name, value, least=-math.inf, most=math.inf, or_none=False):
    """Return `value` as an `int` in bounds or, with `or_none`, `None`."""
    value = number(name, value, least, most=most, or_none=or_none, kind=numbers.Integral)
    return value if value is None else int(value)


def positive_integer(name, value, or_none=False):
    """Return `value` as an `int` of at least 1 or, with `or_none`, `None`."""
    return integer(name, value, least=1, or_none=or_none)


def seed(value, name="seed"):
    """Return `value` as an `int` that every backend takes as a seed."""
    return integer(name, value, least=0, most=2**31 - 1)


def one_of(name, value, choices):
    """Return `value` if it is one of `choices`."""
    if value not in list(choices):  # a dictionary raises if `value` has no hash
        listed = ", ".join(map(repr, choices))
        near = did_you_mean(value, [choice for choice in choices if isinstance(choice, str)])
        raise ValueError(f"`{name}` must be one of {listed}. {received(name, value)}{near}")
    return value


def class_names(name, value, count):
    """Raise unless `value` names each of `count` classes, in their order."""
    are_texts = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    if not are_texts or not len(value) == len(set(value)) == count:
        raise ValueError(
            f"`{name}` must be a list of the names of the {count} classes in their order. "
            f"{received(name, value)}"
        )


def given(**options):
    """Return the options that are not `None`, which stands for one that was not given."""
    return {name: value for name, value in options.items() if value is not None}


def received(name, value):
    """Return the end of a message: the value that was passed for the argument `name`."""
    return f"Received: {name}={short_repr(value)}."


def short_repr(value):
    """Return how a message shows a value: as Python writes it, cut if that is long."""
    text = repr(value).replace("\n", " ")
    return text if len(text) <= MAX_REPR else f"{text[:MAX_REPR]}… ({len(text)} characters)"


def class_numbers(name, labels, count, error=ValueError):
    """Return an array of class numbers, checked: a negative one would count from the end."""
    if not set(labels.ravel().tolist()) <= set(range(count)):
        raise error(
            f"`{name}` must hold class numbers from 0 to {count - 1}. "
            f"Received: {labels.min()} to {labels.max()}."
        )
    return labels
