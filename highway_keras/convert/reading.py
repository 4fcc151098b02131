"""Read what sources call their arrays: states of whole models, and HDF5 files."""

import contextlib
import os
import re

import h5py
import numpy as np

from highway_keras.util import checks
from highway_keras.util.files import is_transient

_NUMBER = "(0|[1-9][0-9]{0,5})"  # of a layer
MOST = 5  # mistakes that a message lists


def layers_of_state(argument, state, convention, prefix):
    """Return the weights of each layer in a state, from the first to the last.

    Each is a dictionary from a name in `convention.weights` to `(label, array)`; errors use the
    label. With a prefix, `state` may also hold other weights and TensorFlow's optimizer slots.
    """
    scope, weights, first = _scope(convention), convention.weights, convention.first
    layers, wrong = {}, []
    for name, value in state.items():
        # TensorFlow's variables end in ":0"; the entries of its checkpoints do not.
        found = re.fullmatch(rf"{re.escape(prefix)}{scope}(.+?)(?::0)?", name)
        layer = layers.setdefault(int(found[1]), {}) if found else {}
        if found and found[2] in weights and found[2] not in layer:
            label = f"`{argument}[{name!r}]`"
            layer[found[2]] = label, finite_array(label, value)
            continue
        slot = found and found[2].startswith(tuple(f"{weight}/" for weight in weights))
        if not prefix or (found and not slot):
            wrong.append(repr(name))
    numbers = range(first, first + max(1, len(layers)))
    for number in numbers:  # with a gap, at least one of them is not there
        lacks = [weight for weight in weights if weight not in layers.get(number, {})]
        wrong += [f"layer {number} without {_listed(lacks)}"] if lacks else []
    if wrong:
        prefixes = [found for found in prefixes_in(state, convention) if found != prefix]
        remedy = f" Pass prefix={' or prefix='.join(map(repr, prefixes))}." if prefixes else ""
        raise ValueError(
            f"`{argument}` must hold {_listed(weights)} of each highway layer, once, the layers "
            f"numbered from {first} on as in {prefix + convention.example!r}"
            f"{'' if prefix or prefixes else ', and nothing else'}. "
            f"Received: {'; '.join(wrong[:MOST])}{'; …' if len(wrong) > MOST else ''}.{remedy}"
        )
    return [layers[number] for number in numbers]


def prefixes_in(names, convention):
    """Return what comes before the names of highway weights, for each network in `names`."""
    weights = "|".join(map(re.escape, convention.weights))
    pattern = re.compile(rf"(.*?){_scope(convention)}(?:{weights})(?::0)?")
    return sorted({found[1] for found in map(pattern.fullmatch, names) if found})


def finite_array(label, value):
    """Return `value` as a float64 array of finite numbers; `label` names it in errors."""
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # which NumPy lacks
        value = value.float()
    array = np.asarray(value).astype("float64", casting="same_kind")
    with np.errstate(over="ignore"):
        broken = array.size - np.count_nonzero(np.isfinite(array.astype("float32")))
    if broken:
        raise ValueError(
            f"{label} must be finite in float32. Received: {broken} of {array.size} numbers NaN or "
            "infinite. Take weights from before the training diverged."
        )
    return array


@contextlib.contextmanager
def opened(path):
    """Open an HDF5 file; any error inside the `with` block counts as the file's, so only read."""
    path = checks.existing_file("weights", path)
    try:
        with h5py.File(path, "r") as file:
            yield file
    except Exception as error:  # h5py raises errors of many kinds on damaged bytes
        if is_transient(error):  # the file may be fine
            raise
        raise ValueError(
            f"`weights` must be a whole HDF5 file. Received: {os.fspath(path)!r}, which is of "
            "another format, damaged or cut short. Copy or save it again."
        ) from error


def read_array(file, name):
    """Return an array of an open file by name; raise if its data are not in the file itself."""
    item = file[name]
    elsewhere = item.file.filename != file.filename or item.external or item.is_virtual
    if elsewhere or (item.size and not item.id.get_storage_size()):
        raise KeyError(name)  # declared but never written, it would read as zeros
    return item[()]


def _scope(convention):
    return convention.scope.replace("{number}", _NUMBER)


def _listed(values):
    return ", ".join(map(repr, values))
