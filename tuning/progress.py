"""The line that says how far a search is: trials done, time left, the best so far."""

import math
import sys

from highway_keras.extras import extra

with extra("tune"):
    from tqdm import tqdm


LINE = "{desc}: {n:.0f}/{total} trials, {elapsed} elapsed, {remaining} left{postfix}"


class Progress(tqdm):
    """A line that is redrawn on a terminal, and printed elsewhere whenever trials have ended.

    Args:
        name: Name of the search.
        trials: Number of its trials.
        ended: Trials that have ended already, in an earlier session.
        objective: Name of the metric that the best trial is best in.
        verbose: `"auto"`, or 0 for silence.
    """

    def __init__(self, name, trials, ended, objective, verbose="auto"):
        self.ended, self.objective, self.is_terminal = ended, objective, sys.stdout.isatty()
        super().__init__(
            desc=name,
            total=trials,
            initial=ended,
            smoothing=0,
            bar_format=LINE,
            file=sys.stdout,
            disable=verbose == 0,
            delay=0 if self.is_terminal else math.inf,  # elsewhere only `report` prints
        )

    def report(self, best, running=0.0, ended=0):
        """Show the best value so far (or `None`), after `ended` more trials.

        Args:
            best: A number or `None`.
            running: What is done of the running trials, in trials.
            ended: Number of trials that have ended since the last call.
        """
        self.ended += ended
        self.n = self.ended + running
        if best is not None:
            self.set_postfix_str(f"best {self.objective} {best:.4g}", refresh=False)
        if self.is_terminal:
            self.refresh()
        elif ended and not self.disable:
            print(self, flush=True)
