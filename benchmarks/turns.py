"""The protocol of the benchmarks: processes that take turns.

The measuring process starts a `Worker` for each peer. A line in starts a turn; a line out ends it
and holds its figures as JSON. In the worker's process, `Turns` is the other end of that
conversation, which has its own channel: libraries print whatever they like.
"""

import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).parents[1]
LIMIT, NO_LIMIT = 600, threading.TIMEOUT_MAX  # seconds per turn
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
        module: Name of a module with a function `work(turns, *arguments)`, `turns` a `Turns`.
        *arguments: What `work` gets, as strings.
        library: Folder to import `highway_keras` and everything else in it from. Default: this
            clone.
        environment: Variables of its environment that differ from this process's.
        limit: Seconds that a turn may take.

    Attributes:
        turns: The figures of each turn, a dictionary; those of the first include compiling.
        absent: Why it takes no more turns; `None` while it does.
    """

    def __init__(self, name, module, *arguments, library="", environment=None, limit=LIMIT):
        self.name, self.limit, self.turns, self.absent = name, limit, [], None
        command = [sys.executable, "-m", "benchmarks.worker", library, module, *arguments]
        self._command = [str(part) for part in command]
        self._environment = {**ENVIRONMENT, **os.environ, **(environment or {})}
        self._process = None

    def turn(self):
        """Let the worker take a turn, and wait for its figures."""
        if self.absent:
            return
        self._process = self._process or self._start()
        begun = time.monotonic()
        alarm = threading.Timer(self.limit, self._process.kill)
        alarm.start()
        with contextlib.suppress(BrokenPipeError):  # it has died, and will not answer
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        alarm.cancel()
        if answer.endswith("\n"):
            self.turns.append(json.loads(answer))
        elif time.monotonic() - begun >= self.limit:
            self.absent = f"no answer within {self.limit:g} s"
        else:
            self.absent = self._last_words()

    def close(self):
        """Tell the worker that there are no more turns, and wait for its end."""
        if self._process:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
            self._errors.close()

    def _start(self):
        self._errors = tempfile.TemporaryFile("w+", errors="replace")
        return subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def _last_words(self):
        code = self._process.wait()
        if code < 0:
            return f"killed by signal {-code}"
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors if line.strip()]
        return lines[-1] if code and lines else f"ended with code {code} and without an answer"


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

    def __init__(self):
        self._channel = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._asks = self._counts = True
        self._memory = None

    def wait(self):
        """Wait until there is work to do; return whether there is any."""
        if self._asks and not sys.stdin.readline():
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
            answer = {
                "seconds": time.perf_counter() - self._seconds,
                "cpu": time.process_time() - self._cpu,
                "megabytes": _peak_megabytes() - self._memory,
                **figures,
            }
            print(json.dumps(answer), file=self._channel, flush=True)
            self._asks = True
        self._counts = not self._counts

    def repeat(self, work):
        """Do the work of this turn and of all that follow."""
        more = True
        while more:
            work()
            self.end()
            more = self.wait()


def _peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
