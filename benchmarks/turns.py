"""Processes that take turns.

The measuring process has a `Worker` for each peer. A peer is a generator function: it prepares,
yields, builds, and yields again each time that it has done its work, its own figures if it has any.
"""

import importlib
import itertools
import math
import multiprocessing
import os
import pathlib
import re
import time

from benchmarks.measurements import say

ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # Several processes share a GPU.
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    # Or a first step would be one that compiles only where the disk has no earlier one.
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
}


class Worker:
    """A process that takes turns, seen from the measuring one.

    `peer` names a generator function, as `"module:function"`. It is called in the new process with
    `arguments`.

    `turns` has a dictionary for each turn: its seconds, processor seconds and megabytes, and the
    figures that the peer yields. The first turn includes compiling. `absent` says why the worker
    takes no more turns.
    """

    def __init__(self, name, peer, *arguments, backend=None):
        self.name, self.turns, self.absent = name, [], None
        # Not forked: a library that this process has imported would be shared.
        context = multiprocessing.get_context("spawn")
        self._pipe, self._theirs = context.Pipe()
        settings = (self._theirs, peer, arguments, backend)
        self._process = context.Process(target=_work, args=settings)

    def values(self, figure):
        """Return a figure of each turn but the first."""
        return [turn[figure] for turn in self.turns[1:]]

    def turn(self):
        """Let the worker take a turn, and wait for its figures."""
        if self.absent:
            return
        if self._process.pid is None:
            self._process.start()
            self._theirs.close()  # so that the end of the process ends the conversation
        try:
            self._pipe.send("go")
            answer = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            answer = f"ended with code {self._process.exitcode} and without an answer"
        if isinstance(answer, dict):
            self.turns.append(answer)
        else:
            self.absent = answer
            say(f"without {self.name}: {answer}")

    def close(self):
        """Tell the worker that there are no more turns, and wait for its end."""
        self._pipe.close()
        if self._process.pid:
            self._process.join()


def take_turns(workers, count):
    """Let each worker take a first turn, which compiles, and then `count` turns in alternation.

    Return the workers that took all turns.
    """
    try:
        for index in range(count + 1):
            say(f"turn {index} of {count}" if index else "first turn")
            for worker in workers:
                worker.turn()
    finally:
        for worker in workers:
            worker.close()
    return [worker for worker in workers if not worker.absent]


def _work(pipe, peer, arguments, backend):
    """Run a peer in the process of a `Worker`.

    In each turn but the first the work is done twice, and only the second time counts: while a
    worker waits for the others, the system may reclaim its memory and its caches.
    """
    os.environ.update({**ENVIRONMENT, **os.environ})
    if backend:
        os.environ["KERAS_BACKEND"] = backend
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    module, _, function = peer.partition(":")
    try:
        works = getattr(importlib.import_module(module), function)(*arguments)
        next(works)
        memory = _peak_megabytes()
        for index in itertools.count():
            try:
                pipe.recv()
            except EOFError:
                return
            if index:
                next(works)
            seconds, cpu = time.perf_counter(), time.process_time()
            figures = next(works) or {}
            usage = {"seconds": time.perf_counter() - seconds, "cpu": time.process_time() - cpu}
            usage["megabytes"] = _peak_megabytes() - memory
            pipe.send({**usage, **figures} if index else {**figures, **usage})
    except (Exception, SystemExit) as error:
        pipe.send(f"{type(error).__name__}: {error}")


def _peak_megabytes():
    """Return the most memory that this process has held, on Linux; NaN elsewhere."""
    # Not `ru_maxrss`, which starts at the peak of the process that started this one.
    status = pathlib.Path("/proc/self/status")
    peak = re.search(r"VmHWM:\s+(\d+)", status.read_text() if status.exists() else "")
    return int(peak[1]) / 1024 if peak else math.nan
