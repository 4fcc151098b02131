"""The line that says how far a search is: trials done, time left, the best so far."""

import math
import sys
import time

from highway_keras.util.extras import extra

with extra("tune"):
    from tqdm import tqdm

QUIET = 600  # seconds after which a log shows where a long round is
LINE = "{desc} trials, {elapsed} elapsed, {remaining} left{postfix}"


class Progress(tqdm):
    """A line that is redrawn on a terminal, and printed elsewhere.

    Elsewhere it is printed whenever trials have ended, and about every ten minutes in a long round.
    The time left is estimated from the epochs that trials have trained. `rounds` is what
    `oracle.rounds_of` returns; `ended` is how many trials, of all processes, have ended each round.
    """

    def __init__(self, name, rounds, ended, objective, verbose="auto"):
        self.name, self.rounds, self.ended = name, rounds, ended
        self.objective, self.is_terminal = objective, sys.stdout.isatty()
        self.printed = time.monotonic()
        super().__init__(
            total=sum((last - first) * count for first, last, count in rounds),
            initial=self._done(),
            smoothing=0,
            bar_format=LINE,
            desc=f"{name}: {ended[0]}/{rounds[0][2]}",
            file=sys.stdout,
            disable=verbose == 0,
            delay=0 if self.is_terminal else math.inf,  # elsewhere only `report` prints
        )
        self.initial = self.n  # epochs trained elsewhere or before; a disabled tqdm lacks it

    def _done(self):
        lengths = [last - first for first, last, _ in self.rounds]
        return sum(n * length for n, length in zip(self.ended, lengths, strict=True))

    def report(self, number, best, epochs=0, ended=None):
        """Show the progress in round `number`, and `best`, the best value so far.

        `epochs` is the sum over the trials that run here; `ended` is given once they have ended.
        """
        self.ended = ended or self.ended
        self.n = self._done() + epochs
        first, last, count = self.rounds[number]
        done = self.ended[number] + epochs / (last - first)
        rung = f"round {number + 1} of {len(self.rounds)} to epoch {last}, "
        rung = rung if len(self.rounds) > 1 else ""
        self.set_description_str(f"{self.name}: {rung}{done:.0f}/{count}", refresh=False)
        text = "" if best is None else f"best {self.objective} {best:.4g}"
        self.set_postfix_str(text, refresh=False)
        if self.is_terminal:
            self.refresh()
        elif not self.disable and (ended or time.monotonic() - self.printed > QUIET):
            self.printed = time.monotonic()
            print(self, flush=True)
