"""A batch cut into shares that run through the loop side by side, one per core.

The matrices of a thin network are too small for XLA to divide among the cores of a CPU. TensorFlow
runs independent compiled operations at the same time, so a loop for each share of the rows keeps
all cores busy. Automatic differentiation sums the gradients of the weights.

Within one compiled program, such as a step on JAX, loops run one after another, so the batch stays
whole. On JAX, a step of 99 blocks took 1.4 times as long in two shares.
"""

import math

from keras import ops

from highway_keras.layers.backends import shim

# The minimum rows and forward multiplications of a share: on two cores, shares of 64 rows gain from
# 20 blocks of 50 units (6 million) upward, and lose a tenth of the time at 9 blocks.
ROWS = 32
MULTIPLICATIONS = 6_000_000
USUAL_BATCH = 128  # what a batch of unknown size is taken for


def split_over_cores(run, x, kernel):
    """Return `run(x)`, computed on shares of the rows of `x`; with a trial axis, in one piece.

    `run` returns a tuple of tensors with the same rows on their axis -2. The size of `kernel`, that
    of all blocks, says how much work a row is.
    """
    loops = shim.parallel_loops()
    if len(x.shape) > 2 or loops < 2:  # before the size is used: JAX exports a symbolic one
        return run(x)
    size = USUAL_BATCH if x.shape[0] is None else x.shape[0]
    enough = min(size // ROWS, size * math.prod(kernel.shape) // MULTIPLICATIONS)
    count = min(loops, enough)
    if count < 2:
        return run(x)
    rows, width = ops.shape(x)
    # Copies of the last row make the shares equal, so XLA compiles for one shape. Zeros would not
    # work: the gradient of an activation that divides by the norm of a row is not finite there.
    missing = ops.broadcast_to(x[-1:], (-rows % count, width))
    shares = ops.split(ops.concatenate([x, missing]), count)
    outputs = zip(*map(run, shares), strict=True)
    return tuple(ops.concatenate(y, axis=-2)[..., :rows, :] for y in outputs)
