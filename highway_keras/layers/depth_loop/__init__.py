"""Depth as one loop: a chain of identical blocks over stacked weights, with its exact gradient.

Unrolled, a chain costs compile time with every block, and XLA re-fuses the carry path again and
again. As one loop over weights stacked along a leading depth axis it compiles in a second at any
depth. `block.py` holds the mathematics of one block, forward and backward, `chain.py` the two loops
over blocks, and `shares.py` cuts a batch so that every core of a CPU has a loop to run.
"""

from highway_keras.layers.depth_loop.chain import apply_blocks

__all__ = ["apply_blocks"]
