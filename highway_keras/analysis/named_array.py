"""Numbers with named axes: what the analyses return."""

import dataclasses
import itertools

import numpy as np

from highway_keras.util import files


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class NamedArray:
    """An array whose axes have names and whose positions have labels.

    Attributes:
        values: The numbers, a NumPy array. Blocks narrower than a model's widest one are padded
            with NaN.
        axes: A dictionary from the name of each axis, in order, to the labels along it.

    Examples:
        >>> import numpy as np
        >>> from highway_keras.analysis import NamedArray
        >>> gates = NamedArray(np.zeros((2, 3)), {"layer": ("first", "second"), "unit": range(3)})
        >>> gates.at(layer="second").axes
        {'unit': range(0, 3)}
    """

    values: np.ndarray
    axes: dict

    @property
    def shape(self):
        return self.values.shape

    def at(self, **labels):
        """Return the part at one label of each named axis, such as `at(layer="highway_1")`.

        Raises:
            ValueError: If there is no such axis, or no such label on it.
        """
        values, axes = self.values, dict(self.axes)
        for name, label in labels.items():
            axis = list(axes).index(name)
            values = np.take(values, list(axes.pop(name)).index(label), axis)
        return NamedArray(values, axes)

    def to_csv(self, path):
        """Write a row for each number, with its labels; leave out NaN."""
        columns = [*self.axes, "value"]
        cells = zip(itertools.product(*self.axes.values()), self.values.flat, strict=True)
        rows = ([*labels, float(value)] for labels, value in cells if not np.isnan(value))
        files.write_rows(path, (dict(zip(columns, row, strict=True)) for row in rows), columns)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=True if copy is None else copy)

    def __repr__(self):
        axes = ", ".join(f"{name}: {len(labels)}" for name, labels in self.axes.items())
        return f"NamedArray({axes})"


def by_layer(arrays, names, **leading):
    """Join one array `(..., units)` for each block of `names` into a `NamedArray`.

    Its axes are those of `leading`, a dictionary to the labels along them, then `layer`, `unit`.
    """
    widest = max(array.shape[-1] for array in arrays)
    values = np.full((*arrays[0].shape[:-1], len(arrays), widest), np.nan)
    for index, array in enumerate(arrays):
        values[..., index, : array.shape[-1]] = array
    return NamedArray(values, {**leading, "layer": tuple(names), "unit": range(widest)})
