"""Biases as a hint: trained ones are often near their start, which only the gate has off 0.

The weights of H and of the gate have the same shapes, so no other check sees them swapped.
"""

import numpy as np

FEWEST_UNITS = 4  # fewer numbers lie close together by chance


def check_order(argument, bias, gate_bias, start):
    """Raise if the biases of H lie where those of the gate start, and the gate's do not."""
    if _lie_about(start, bias) and not _lie_about(start, gate_bias):
        raise ValueError(
            f"`{argument}` must not have H and gate swapped: the gate's biases start at {start:g}, "
            f"those of H at 0. Received: means of {_mean(gate_bias)} for the gate and "
            f"{_mean(bias)} for H. Swap them back, or pass check_biases=False if they are right."
        )


def check_sign(argument, gate_bias, start):
    """Raise if the biases of the gate lie on the opposite side of 0 from their start."""
    if _lie_about(-start, gate_bias):
        raise ValueError(
            f"`{argument}` must have the gate's biases on the side of 0 where its source starts "
            f"them, at {start:g}. Received: a mean of {_mean(gate_bias)}. Negate the gate's "
            "weights if they are those of the opposite gate, or pass check_biases=False if they "
            "are right."
        )


def _lie_about(start, biases):
    """Return whether the numbers cluster on the side of `start`, at least half as far out."""
    mean = np.mean(biases)
    return len(biases) >= FEWEST_UNITS and mean / start > 0.5 and np.std(biases) < abs(mean) / 3


def _mean(biases):
    return f"{np.mean(biases):.2f}"
