"""Work on every CPU core."""

import concurrent.futures
import os


def cores():
    """Return how many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def on_every_core(function, items):
    """Return `[function(item) for item in items]`, several at a time."""
    with concurrent.futures.ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(function, items))
