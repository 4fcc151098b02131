"""Processes that take turns.

The measuring process has a `Worker` for each peer. A peer is a generator function: it prepares,
yields, builds, and yields again each time that it has done its work, its own figures if it has any.
"""

import concurrent.futures
import importlib
import math
import multiprocessing
import os
import pathlib
import re
import time


class Worker:
    """A process that takes turns, seen from the measuring one.

    `peer` names a generator function, as `"module:function"`. It is called in the new process with
    `arguments`.

    `turns` has a dictionary for each turn: its seconds, processor seconds and megabytes, and the
    figures that the peer yields. The first turn includes compiling. `absent` says why the worker
    takes no more turns.
    """

    def __init__(self, name, peer, *arguments):
        self.name, self.turns, self.absent = name, [], None
        self._peer, self._arguments = peer, arguments
        # Not forked: a library that this process has imported would be shared.
        context = multiprocessing.get_context("spawn")
        self._process = concurrent.futures.ProcessPoolExecutor(1, context)

    def values(self, figure):
        """Return a figure of each turn but the first."""
        return [turn[figure] for turn in self.turns[1:]]

    def turn(self):
        """Let the worker take a turn, and wait for its figures."""
        if self.absent:
            return
        first = not self.turns
        try:
            figures = self._process.submit(_turn, first, self._peer, self._arguments).result()
            self.turns.append(figures)
        except Exception as error:
            self.absent = f"{type(error).__name__}: {error}"
            print(f"without {self.name}: {self.absent}", flush=True)

    def close(self):
        """End the worker's process."""
        self._process.shutdown()


def take_turns(workers, count):
    """Let each worker take a first turn, which compiles, and then `count` turns in alternation.

    Return the workers that took all turns.
    """
    try:
        for index in range(count + 1):
            print(f"turn {index} of {count}" if index else "first turn", flush=True)
            for worker in workers:
                worker.turn()
    finally:
        for worker in workers:
            worker.close()
    return [worker for worker in workers if not worker.absent]


# In the process of a worker: its peer, and the most memory that it held before it built anything
_works = None
_memory = 0.0


def _turn(first, peer, arguments):
    """Let the peer of this process do its work; return what it cost, and the peer's own figures.

    In each turn but the first the work is done twice, and only the second time counts: while a
    worker waits for the others, the system may reclaim its memory and its caches.
    """
    global _works, _memory
    if first:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        module, _, function = peer.partition(":")
        _works = getattr(importlib.import_module(module), function)(*arguments)
    next(_works)
    if first:
        _memory = _peak_megabytes()
    seconds, cpu = time.perf_counter(), time.process_time()
    figures = next(_works) or {}
    cost = {"seconds": time.perf_counter() - seconds, "cpu": time.process_time() - cpu}
    cost["megabytes"] = _peak_megabytes() - _memory
    # A peer may time its steps alone, but the first turn is to include compiling.
    return {**figures, **cost} if first else {**cost, **figures}


def _peak_megabytes():
    """Return the most memory that this process has held, on Linux; NaN elsewhere."""
    # Not `ru_maxrss`, which starts at the peak of the process that started this one.
    status = pathlib.Path("/proc/self/status")
    peak = re.search(r"VmHWM:\s+(\d+)", status.read_text() if status.exists() else "")
    return int(peak[1]) / 1024 if peak else math.nan
