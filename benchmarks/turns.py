"""Processes that take turns.

The measuring process has a `Worker` for each peer; in the worker's process, `Turns` is the other
end of the conversation. What libraries print there is not shown: the last error is reported.
"""

import importlib
import multiprocessing
import os
import resource
import sys
import time

LIMIT = 600  # seconds per turn
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # Several processes share a GPU.
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}


class Worker:
    """A process that takes turns, seen from the measuring one. It starts with its first turn.

    Args:
        name: What reports call it.
        peer: `"module:function"`. The function gets `*arguments` and a `Turns`, in the new process.
        *arguments: What can be pickled without the library that is measured.
        library: Folder to import `highway_keras` from. Default: this clone.
        backend: Keras's backend. Default: as in this process.
        limit: Seconds that a turn may take; `None` for no limit.

    Attributes:
        turns: The figures of each turn, a dictionary; those of the first include compiling.
        absent: Why it takes no more turns; `None` while it does.
    """

    def __init__(self, name, peer, *arguments, library=None, backend=None, limit=LIMIT):
        self.name, self.limit, self.turns, self.absent = name, limit, [], None
        # Not forked: a library that this process has imported would be shared.
        context = multiprocessing.get_context("spawn")
        self._pipe, self._theirs = context.Pipe()
        settings = (peer, arguments, library, backend)
        self._process = context.Process(target=_work, args=(self._theirs, *settings))

    def turn(self):
        """Let the worker take a turn, and wait for its figures."""
        if self.absent:
            return
        if self._process.pid is None:
            self._process.start()
            self._theirs.close()  # so that the end of the process ends the conversation
        try:
            self._pipe.send("go")
            answer = f"no answer within {self.limit} s"
            if self._pipe.poll(self.limit):
                answer = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            answer = f"ended with code {self._process.exitcode} and without an answer"
        if isinstance(answer, dict):
            self.turns.append(answer)
        else:
            self.absent = answer
            self._process.kill()

    def close(self):
        """Tell the worker that there are no more turns, and wait for its end."""
        self._pipe.close()
        if self._process.pid:
            self._process.join()


def take_turns(workers, count, say):
    """Let each worker take a first turn, which compiles, and then `count` turns in alternation.

    Args:
        workers: A list of `Worker`.
        count: Number of turns of each after the first.
        say: Function called with lines of progress.

    Returns:
        The workers that took all turns. The others are named through `say`.
    """
    try:
        for worker in workers:
            say(f"{worker.name}: first turn")
            worker.turn()
        for index in range(count):
            say(f"turn {index + 1} of {count}")
            for worker in workers:
                worker.turn()
    finally:
        for worker in workers:
            worker.close()
    for worker in workers:
        if worker.absent:
            say(f"without {worker.name}: {worker.absent}")
    return [worker for worker in workers if not worker.absent]


class Turns:
    """The worker's end of the conversation: prepare, `wait`, build, and `repeat` the work.

    In a turn, the work is done twice, and only the second time counts: while a worker waits for the
    others, the system takes back its memory and clears its caches, at times seconds of work. The
    first turn is done once and counts: it shows what compiling takes.
    """

    def __init__(self, pipe):
        self._pipe = pipe
        self._asks = self._counts = True
        self._memory = None

    def wait(self):
        """Wait until there is work to do; return whether there is any."""
        if self._asks:
            try:
                self._pipe.recv()
            except EOFError:
                return False
        self._asks = False
        self._memory = self._memory or _peak_megabytes()
        self.start()
        return True

    def start(self):
        """Start the clock again: what was done since `wait` does not count."""
        self._seconds, self._cpu = time.perf_counter(), time.process_time()

    def end(self, **figures):
        """End the work; if it counts, report its seconds, memory and `figures`."""
        if self._counts:
            seconds, cpu = time.perf_counter() - self._seconds, time.process_time() - self._cpu
            megabytes = _peak_megabytes() - self._memory
            self._pipe.send({"seconds": seconds, "cpu": cpu, "megabytes": megabytes, **figures})
            self._asks = True
        self._counts = not self._counts

    def repeat(self, work):
        """Do the work of this turn and of all that follow."""
        more = True
        while more:
            work()
            self.end()
            more = self.wait()


def _work(pipe, peer, arguments, library, backend):
    """Be the process of a `Worker`."""
    os.environ.update({**ENVIRONMENT, **os.environ})
    if backend:
        os.environ["KERAS_BACKEND"] = backend
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    if library:
        sys.path.insert(0, str(library))  # before the clone, which is the working directory
    module, _, function = peer.partition(":")
    try:
        getattr(importlib.import_module(module), function)(*arguments, Turns(pipe))
    except (Exception, SystemExit) as error:
        pipe.send(f"{type(error).__name__}: {error}")


def _peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
