"""The mathematics of one block of the depth loop: forward, and a hand-written backward pass.

Everything here works on columns: `x` is `(..., d, n)`, one sample per column. The parts H, T and C
are then blocks of rows, contiguous in memory, and XLA vectorizes over the batch. With rows, which
are `(n, 2 * d)`, a training step takes a third longer on a CPU.
"""

import dataclasses
from collections.abc import Callable

import keras
from keras import ops

from highway_keras.layers.backends import shim
from highway_keras.ops import highway


def relu_or_tanh(z, relu_mask):
    """Return relu for the networks of a population where `relu_mask` is 1, tanh where it is 0."""
    return ops.where(relu_mask > 0, ops.relu(z), ops.tanh(z))


# Gradient of an activation from its output `a` and the gradient `da` of that output.
_FROM_OUTPUT = {
    keras.activations.linear: lambda a, da, _: da,
    keras.activations.relu: lambda a, da, _: ops.where(a > 0, da, 0),
    keras.activations.tanh: lambda a, da, _: da * (1 - a * a),
    keras.activations.sigmoid: lambda a, da, _: da * a * (1 - a),
    relu_or_tanh: lambda a, da, mask: ops.where(
        mask > 0, ops.where(a > 0, da, 0), da * (1 - a * a)
    ),
}


@dataclasses.dataclass(frozen=True)
class Block:
    """`y = H * T + x * C` ("highway"), `y = H` ("plain") or `y = x + H` ("residual").

    Args:
        kind: One of these three.
        activations: The activations of H, T and C, as many as there are; two for the coupled
            C = 1 - T, one for the other kinds.
        rematerialize: Whether the backward pass recomputes H, T and C from `x`.
    """

    kind: str
    activations: tuple[Callable, ...]
    rematerialize: bool = False

    @property
    def recomputes(self):
        """Whether the backward pass recomputes H, T and C.

        It must where an activation's gradient cannot be computed from its output.
        """
        return self.rematerialize or not all(f in _FROM_OUTPUT for f in self.activations)

    def forward(self, x, w, b, relu_mask):
        """Return the block output and its parts (H, T and C, as far as it has them)."""
        zs = self._preactivations(x, w, b)
        # The cast is for Keras on JAX, whose `tanh` of float64 is float32: a loop keeps its dtype.
        parts = [
            ops.cast(_activation(f, relu_mask)(z), x.dtype)
            for f, z in zip(self.activations, zs, strict=True)
        ]
        if self.kind == "highway":
            return highway(x, *parts), parts
        return (x + parts[0] if self.kind == "residual" else parts[0]), parts

    def backward(self, dy, d_gate, x, parts, w, b, relu_mask):
        """Return the gradients of `x` and of `w^T x + b`.

        `d_gate` is the gradient that T receives where the gates are returned, otherwise 0.
        """
        zs = self._preactivations(x, w, b) if self.recomputes else [None] * len(self.activations)
        if self.recomputes:
            _, parts = self.forward(x, w, b, relu_mask)
        dx, d_parts = self._unmix(dy, d_gate, x, *parts)
        dzs = [
            _FROM_OUTPUT[f](a, da, relu_mask)
            if f in _FROM_OUTPUT
            else _pullback(_activation(f, relu_mask), z, da)
            for f, a, da, z in zip(self.activations, parts, d_parts, zs, strict=True)
        ]
        dz = ops.concatenate(dzs, axis=-2)
        return dx + ops.matmul(w, dz), dz

    def _preactivations(self, x, w, b):
        # One product per part. A single product for all parts is slightly less work, but if H and T
        # are not kept, XLA reads both from its rows in a scalar loop, and a forward pass takes
        # twice as long.
        parts = len(self.activations)
        ws, bs = ops.split(ops.swapaxes(w, -1, -2), parts, axis=-2), ops.split(b, parts, axis=-2)
        return [ops.matmul(w, x) + b for w, b in zip(ws, bs, strict=True)]

    def _unmix(self, dy, d_gate, x, h, t=None, c=None):
        """The gradients of x (by the carry path), H, T and C: Eq. 9, or those of Eq. 2."""
        if self.kind == "plain":
            return 0, [dy]
        if self.kind == "residual":
            return dy, [dy]
        dh = dy * t
        if c is None:
            return dy - dh, [dh, dy * (h - x) + d_gate]
        return dy * c, [dh, dy * h + d_gate, dy * x]


def _activation(f, relu_mask):
    """Return `f` for columns. Only elementwise functions can be applied to columns directly."""
    if f is relu_or_tanh:
        return lambda z: relu_or_tanh(z, relu_mask)
    if f in _FROM_OUTPUT:
        return f
    return lambda z: ops.swapaxes(f(ops.swapaxes(z, -1, -2)), -1, -2)


def _pullback(f, z, da):
    """Return the gradient of `z`, given the gradient `da` of `f(z)`."""
    return shim.gradients(lambda z: (ops.sum(ops.multiply(f(z), da)), None), z)[1]
