"""Processes that take turns.

A peer is a generator function: it prepares, yields, builds, and yields again each time that it has
done its work, its own figures if it has any.
"""

import contextlib
import importlib
import math
import multiprocessing
import os
import pathlib
import re
import time
from concurrent.futures import ProcessPoolExecutor


def take_turns(peers, count):
    """Let each peer take a first turn, which compiles, and then `count` turns in alternation.

    Args:
        peers: By name, a generator function as `"module:function"`, followed by its arguments. Each
            has a process of its own.
        count: Number of turns after the first.

    Returns:
        By name of the peers that took all turns, a list with a dictionary for each turn: its
        seconds, processor seconds and megabytes, and the figures that the peer yields.
    """
    turns = {name: [] for name in peers}
    # Not forked: a library that this process has imported would be shared.
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        processes = {name: stack.enter_context(ProcessPoolExecutor(1, context)) for name in peers}
        for index in range(count + 1):
            print(f"turn {index} of {count}" if index else "first turn", flush=True)
            for name in list(turns):
                try:
                    turn = processes[name].submit(_turn, index == 0, *peers[name]).result()
                    turns[name].append(turn)
                except Exception as error:
                    print(f"without {name}: {type(error).__name__}: {error}", flush=True)
                    del turns[name]
    return turns


def values(turns, figure):
    """Return a figure of each turn of a peer but the first."""
    return [turn[figure] for turn in turns[1:]]


# In the process of a peer: its generator, and the most memory held before it built anything
_works = None
_memory = 0.0


def _turn(first, peer, *arguments):
    """Let the peer of this process do its work; return what it cost, and the peer's own figures.

    In each turn but the first the work is done twice, and only the second time counts: while a
    peer waits for the others, the system may reclaim its memory and its caches.
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
