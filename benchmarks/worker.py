"""One peer as a process: `worker.py PEER CASE` waits for a turn, runs it, reports its time."""

import importlib
import json
import os
import resource
import sys
import time

from benchmarks.cases import CASES


class Turns:
    """The worker's end of the conversation: a line in starts a turn, a line out ends it.

    A turn is the work done twice, and only the second time counts: while a worker waits for the
    others, the system takes back its memory and clears its caches, seconds of work at times.
    """

    def __init__(self, channel):
        self.channel = channel
        self.begun = self.memory = None
        self.warm = True  # the first turn counts as it is: it shows what compiling takes

    def wait(self):
        """Blocks until the next turn; `False` when there is none."""
        if self.begun is None:
            self.memory = _peak_megabytes()
            more = True
        else:
            more = self.warm or sys.stdin.readline().strip() == "go"
        self.begun = time.perf_counter()
        return more

    def end(self):
        seconds = time.perf_counter() - self.begun
        if self.warm:
            answer = {"seconds": seconds, "megabytes": _peak_megabytes() - self.memory}
            print(json.dumps(answer), file=self.channel, flush=True)
        self.warm = not self.warm


def _peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(peer, case):
    # Libraries print as they like; the conversation has a channel of its own.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        module = importlib.import_module(f"benchmarks.peers.{peer}")
    except ImportError as error:
        print(json.dumps({"absent": str(error)}), file=channel, flush=True)
        return
    module.run(CASES[case], Turns(channel))


if __name__ == "__main__":
    main(*sys.argv[1:])
