"""The line that says how far a search is: trials, the best so far, and the time left."""

import sys
import time

QUIET_S = 60  # after which a log gets a line within a round


class Progress:
    """A line of progress: redrawn on a terminal, elsewhere printed per round and per minute.

    Args:
        name: Name of the search.
        rounds: The first and the last epoch of each round, and its number of trials.
        initial: The sum of the epochs that all trials trained before, which say nothing about time.
        objective: Name of the metric that trials are ranked by.
        verbose: `"auto"` for progress, 0 for none.
    """

    def __init__(self, name, rounds, initial, objective, verbose="auto"):
        self.name, self.rounds, self.initial = name, rounds, initial
        self.objective, self.verbose = objective, verbose
        self.total = sum((last - first) * count for first, last, count in rounds)
        self.started = self.printed = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.verbose and sys.stdout.isatty():
            print()

    def report(self, number, ended, epochs, best, is_end=False):
        """Show where a round is.

        Args:
            number: Index of the round.
            ended: How many trials have ended it.
            epochs: The sum of the epochs that all trials of the search have trained.
            best: The best value so far.
            is_end: Whether trials have just ended the round.
        """
        now = time.monotonic()
        _, last, count = self.rounds[number]
        line = (
            f"{self.name}: {ended}/{count} trials to epoch {last}, best {self.objective} {best:.4g}"
        )
        if epochs > self.initial:
            left = (now - self.started) * (self.total - epochs) / (epochs - self.initial)
            line += f", {now - self.started:.0f} s elapsed, {max(left, 0):.0f} s left"
        if not self.verbose:
            return
        if sys.stdout.isatty():
            print(f"\r\x1b[K{line}", end="", flush=True)
        elif is_end or now - self.printed > QUIET_S:
            self.printed = now
            print(line, flush=True)
