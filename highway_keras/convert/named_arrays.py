"""Read what sources call their arrays: states of whole models, and HDF5 files."""

import contextlib
import os
import re
from collections.abc import Mapping

import h5py
import numpy as np

from highway_keras import checks

_NUMBER = "(0|[1-9][0-9]{0,5})"  # of a layer


def layers_of_state(argument, state, convention, prefix=""):
    """Return the weights of each layer in a state, from the first to the last.

    They are dictionaries from a weight's own name to its label, for errors, and its array. With a
    prefix, `state` may also hold other weights, and TensorFlow's optimizer slots for these.
    """
    scope, weights = _scope(convention), convention.weights
    layers, others = {}, []
    for name, value in state.items():
        # TensorFlow's variables end in ":0"; the entries of its checkpoints do not.
        found = re.fullmatch(rf"{re.escape(prefix)}{scope}(.+?)(?::0)?", name)
        slot = found and found[2].startswith(tuple(f"{weight}/" for weight in weights))
        if not found or (prefix and slot):
            others.append(name)
            continue
        layer, label = layers.setdefault(int(found[1]), {}), f"`{argument}[{name!r}]`"
        if found[2] not in weights or found[2] in layer:
            raise ValueError(
                f"{label} must be one of a layer's weights, {_listed(weights)}, each once. "
                "Leave out everything else."
            )
        layer[found[2]] = label, finite_array(label, value)
    if not layers or (others and not prefix):
        prefixes = [found for found in prefixes_in(state, convention) if found != prefix]
        remedy = f" Pass prefix={' or prefix='.join(map(repr, prefixes))}." if prefixes else ""
        raise ValueError(
            f"`{argument}` must hold the weights of highway layers, such as "
            f"{prefix + convention.example!r}{'' if prefix or prefixes else ' and nothing else'}. "
            f"Received: {_listed(others)}.{remedy}"
        )
    first = convention.first
    if sorted(layers) != list(range(first, first + len(layers))):
        raise ValueError(
            f"`{argument}` must number its layers {first}, {first + 1}, … without a gap. "
            f"Received: {_listed(sorted(layers))}."
        )
    for number, layer in layers.items():
        missing = [weight for weight in weights if weight not in layer]
        if missing:
            raise ValueError(
                f"`{argument}` must hold {_listed(weights)} of each layer. "
                f"Received: layer {number} without {_listed(missing)}."
            )
    return [layers[number] for number in sorted(layers)]


def prefixes_in(names, convention):
    """Return what comes before the names of highway weights, for each network in `names`."""
    weights = "|".join(map(re.escape, convention.weights))
    pattern = re.compile(rf"(.*?){_scope(convention)}(?:{weights})(?::0)?")
    return sorted({found[1] for found in map(pattern.fullmatch, names) if found})


def check_state(argument, state, prefix):
    """Raise unless `state` is a dictionary from names, and `prefix` a string."""
    if not isinstance(prefix, str):
        raise TypeError(f"`prefix` must be a string. {checks.received('prefix', prefix)}")
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise TypeError(
            f"`{argument}` must be a dictionary from names to arrays. "
            f"Received: a {type(state).__name__}."
        )


def finite_array(label, value):
    """Return `value` as a float64 array of finite numbers; `label` names it in errors."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{label} must be an array of real numbers. Received: dtype={array.dtype}.")
    with np.errstate(over="ignore"):
        broken = array.size - np.count_nonzero(np.isfinite(array.astype("float32")))
    if broken:
        raise ValueError(
            f"{label} must be finite in float32. Received: {broken} of {array.size} numbers NaN or "
            "infinite. Take weights from before the training diverged."
        )
    return array.astype("float64")


@contextlib.contextmanager
def opened(path):
    """Open an HDF5 file. Only read in this context: every error in it is taken for the file's."""
    path = checks.existing_file("weights", path)
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (PermissionError, BlockingIOError):
        raise  # the file may be fine: this process is not let in, or another one holds it
    except Exception as error:  # h5py raises errors of many kinds on damaged bytes
        raise ValueError(
            f"`weights` must be a whole HDF5 file. Received: {os.fspath(path)!r}, which is of "
            "another format, damaged or cut short. Copy or save it again."
        ) from error


def read_array(file, name):
    """Return the array of that name in an open file, or raise if it is not in the file itself."""
    item = file[name]
    elsewhere = item.file.filename != file.filename or item.external or item.is_virtual
    if elsewhere or (item.size and not item.id.get_storage_size()):
        raise KeyError(name)  # declared but never written, it would read as zeros
    return item[()]


def _scope(convention):
    return convention.scope.replace("{number}", _NUMBER)


def _listed(values, most=5):
    listed = ", ".join(map(repr, list(values)[:most])) or "nothing"
    return listed if len(values) <= most else f"{listed}, … ({len(values)} in all)"
