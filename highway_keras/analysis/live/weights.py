"""The weights of a network as text in a page."""

import base64

import numpy as np


class Weights:
    """The arrays of a page, one after another.

    They are written in half precision if that loses nothing, as for weights that were stored in
    half precision, and in single precision otherwise.
    """

    def __init__(self):
        self._arrays, self.count = [], 0

    def add(self, values, shape=None):
        """Append an array and return its place: `{"at": offset, "shape": [...]}`."""
        array = np.asarray(values, "float32").reshape(shape or np.shape(values))
        self._arrays.append(array)
        self.count += array.size
        return {"at": self.count - array.size, "shape": list(array.shape)}

    @property
    def bytes(self):
        """Bytes of all numbers, before they become text."""
        return self.count * np.dtype(self._format).itemsize

    def encode(self):
        """Return `(format, text)`: `"float16"` or `"float32"`, and little-endian base64."""
        numbers = self._numbers.astype(np.dtype(self._format).newbyteorder("<"))
        return self._format, base64.b64encode(numbers.tobytes()).decode()

    @property
    def _numbers(self):
        return np.concatenate([np.zeros(0, "float32"), *(a.ravel() for a in self._arrays)])

    @property
    def _format(self):
        with np.errstate(over="ignore"):
            halves = self._numbers.astype("float16")
        return "float16" if np.array_equal(halves, self._numbers) else "float32"
