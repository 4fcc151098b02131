"""The machine's own rate of multiplication: one large product on all cores, and nothing else."""

import time

from keras import ops, random

SIDE = 4096
SECONDS = 0.2  # a turn lasts at least


def run(case, turns, dtype="float32"):
    """Report with every turn how many operations per second a product of that type reaches."""
    matrix = ops.cast(random.normal((SIDE, SIDE), stddev=SIDE**-0.5, seed=0), dtype)
    count, z = 1, matrix
    while turns.wait():
        seconds = 0
        while seconds < SECONDS:
            count = count if seconds == 0 else 2 * count
            begun = time.perf_counter()
            for _ in range(count):
                z = ops.matmul(z, matrix)
            float(z[0, 0])  # waits for the last of them
            seconds = time.perf_counter() - begun
        turns.end(rate=2 * SIDE**3 * count / seconds)
