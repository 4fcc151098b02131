"""The highway operation on given tensors, and the loss of the probability of a class."""

from __future__ import annotations

from typing import Any, TypeAlias

import keras
from keras import ops

__all__ = ["highway"]

Tensor: TypeAlias = Any  # of the backend, symbolic, or what Keras converts to one


def highway(x: Tensor, h: Tensor, t: Tensor, c: Tensor | None = None) -> Tensor:
    """Mix a block state into its input through a transform and a carry gate.

    Eq. 2 of the paper, `y = h * t + x * c`; without `c`, its coupled form, Eq. 3,
    `y = h * t + x * (1 - t)`, computed as `x + t * (h - x)`: one multiplication less, and
    exactly `x` where the gate is 0.

    Args:
        x: Input, a floating-point tensor of any shape.
        h: Block state H(x), of the shape of `x`.
        t: Transform gate T(x), of the shape of `x`; 0 carries, 1 transforms.
        c: Carry gate C(x), of the shape of `x`. `None` couples it: C = 1 - T.

    Returns:
        The block output, a tensor of the shape of `x`.

    Raises:
        ValueError: If the shapes differ. Nothing is broadcast.

    Examples:
        >>> from highway_keras import ops
        >>> float(ops.highway(x=1.0, h=3.0, t=0.25))
        1.5

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), Eq. 2 and 3.
    """
    x, h, t = ops.convert_to_tensor(x), ops.convert_to_tensor(h), ops.convert_to_tensor(t)
    c = None if c is None else ops.convert_to_tensor(c)
    shapes = [tuple(z.shape) for z in (x, h, t, c) if z is not None]
    if not agree(*shapes):
        raise ValueError(
            "`x`, `h`, `t` and `c` must have one shape; change the size before, and let H, T and C "
            'keep it, by padding="same" or return_sequences=True. '
            f"Received: shapes {', '.join(map(str, shapes))}."
        )
    # Not `ops.add`: on TensorFlow it takes an empty batch, of shape (0, d), for a bias.
    if c is None:
        return ops.subtract(x, ops.multiply(t, ops.subtract(x, h)))
    return ops.subtract(ops.multiply(h, t), ops.multiply(ops.negative(x), c))


def agree(*shapes):
    """Return whether shapes can be equal: an unknown size (`None`) agrees with any."""
    if len({len(shape) for shape in shapes}) > 1:
        return False
    return all(len(set(sizes) - {None}) <= 1 for sizes in zip(*shapes, strict=True))


@keras.saving.register_keras_serializable(package="highway_keras")
def cross_entropy(labels: Tensor, probabilities: Tensor) -> Tensor:
    """Return the cross-entropy (nats) of each sample, for training under JAX and PyTorch.

    Keras's own has no gradient there below a probability of 1e-7, so a sample that is wrong for
    certain teaches nothing; here the gradient reaches down to 1e-38. Under TensorFlow, Keras goes
    back to the logits.
    """
    labels = ops.cast(ops.reshape(labels, (-1, 1)), "int32")
    likelihoods = ops.take_along_axis(probabilities, labels, axis=-1)[..., 0]
    return -ops.log(ops.maximum(likelihoods, 1.2e-38))  # the smallest normal number of float32


# What a classifier is trained with.
LOSS = cross_entropy
if keras.backend.backend() == "tensorflow":
    LOSS = "sparse_categorical_crossentropy"
