"""Sort a state into highway layers by the names of its arrays."""

import dataclasses
import re
from collections.abc import Mapping

from highway_keras.convert.arrays import finite_array

NUMBER = "(0|[1-9][0-9]{0,5})"  # of a layer


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How a source names the weights of its highway layers.

    Attributes:
        scope: Pattern of what comes before a weight's own name, with `NUMBER` in it.
        weights: The weights' own names.
        example: The name of a weight.
        first: The number of the first layer.
    """

    scope: str
    weights: tuple
    example: str
    first: int = 0

    def find(self, name, prefix):
        """Return the layer's number and the weight's own name in `name`, or `None`."""
        # TensorFlow's variables end in ":0"; the entries of its checkpoints do not.
        found = re.fullmatch(rf"{re.escape(prefix)}{self.scope}(.+?)(?::0)?", name)
        return found and (int(found[1]), found[2])

    def is_slot(self, weight):
        """Return whether a weight's own name is that of an optimizer's slot, `W_carry/Adagrad`."""
        return weight.startswith(tuple(f"{known}/" for known in self.weights))

    def prefixes(self, names):
        """Return what comes before the names of highway weights, for each network in `names`."""
        weights = "|".join(map(re.escape, self.weights))
        pattern = re.compile(rf"(.*?){self.scope}(?:{weights})(?::0)?")
        return sorted({found[1] for found in map(pattern.fullmatch, names) if found})


def check_state(argument, state, prefix):
    if not isinstance(prefix, str):
        raise TypeError(f"`prefix` must be a string. Received: prefix={prefix!r}.")
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise TypeError(
            f"`{argument}` must be a dictionary from names to arrays. "
            f"Received: a {type(state).__name__}."
        )


def numbered_layers(argument, state, scheme, prefix):
    """Return the weights of each layer, from the first to the last.

    Args:
        argument: What errors call the state.
        state: A dictionary from names to arrays.
        scheme: A `Scheme`.
        prefix: What comes before the scheme's names. If it is not empty, `state` may also hold
            other weights, and TensorFlow's optimizer slots for these.

    Returns:
        A list of dictionaries, one per layer, from a weight's own name to its label and its array.
    """
    layers, others = {}, []
    for name, value in state.items():
        number, weight = scheme.find(name, prefix) or (None, None)
        label = f"`{argument}[{name!r}]`"
        if number is None or (prefix and scheme.is_slot(weight)):
            others.append(name)
        elif weight not in scheme.weights:
            raise ValueError(
                f"{label} must be one of a layer's weights, {_listed(scheme.weights)}. "
                f"Received: {weight!r}. Leave out everything else."
            )
        elif weight in layers.setdefault(number, {}):
            raise ValueError(
                f"`{argument}` must name each weight once. Received: {weight!r} of layer {number} "
                f"again, as {name!r}. Leave one of them out."
            )
        else:
            layers[number][weight] = label, finite_array(label, value)
    _check_others(argument, state, scheme, prefix, layers, others)
    _check_complete(argument, scheme, layers)
    return [layers[number] for number in sorted(layers)]


def _check_others(argument, state, scheme, prefix, layers, others):
    if layers and (prefix or not others):
        return
    found = [p for p in scheme.prefixes(state) if p != prefix]
    remedy = f" Pass prefix={' or prefix='.join(map(repr, found))}." if found else ""
    rest = "" if prefix or found else " and nothing else"
    raise ValueError(
        f"`{argument}` must hold the weights of highway layers, such as "
        f"{prefix + scheme.example!r}{rest}. Received: {_listed(others)}.{remedy}"
    )


def _check_complete(argument, scheme, layers):
    numbers = range(scheme.first, scheme.first + len(layers))
    if sorted(layers) != list(numbers):
        raise ValueError(
            f"`{argument}` must number its layers {scheme.first}, {scheme.first + 1}, … without a "
            f"gap. Received: {_listed(sorted(layers))}."
        )
    for number, layer in layers.items():
        missing = [weight for weight in scheme.weights if weight not in layer]
        if missing:
            raise ValueError(
                f"`{argument}` must hold {_listed(scheme.weights)} of each layer. "
                f"Received: layer {number} without {_listed(missing)}."
            )


def _listed(values, most=5):
    shown = ", ".join(map(repr, list(values)[:most])) or "nothing"
    return shown if len(values) <= most else f"{shown}, … ({len(values)} in all)"
