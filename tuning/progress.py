"""One line that says how far a search is: trials done, the best so far, time left."""

import sys
import time


class Progress:
    """Redraws its line on a terminal; elsewhere prints a line whenever trials have ended.

    Args:
        name: What is searched.
        trials: Number of trials to come to.
        done: Trials that had ended before, in an earlier run.
        objective: Name of what "best" is about.
        verbose: `"auto"`, or 0 for silence.
    """

    def __init__(self, name, trials, done, objective, verbose="auto", stream=None):
        self.name, self.trials, self.done, self.objective = name, trials, done, objective
        self.stream = stream or sys.stdout
        self.silent, self.terminal = verbose == 0, self.stream.isatty()
        self.started, self.earlier = time.perf_counter(), done

    def update(self, best, running=0.0, ended=0):
        """Reports the best value so far (or None), after `ended` more trials.

        Args:
            best: A number or None.
            running: What the unfinished trials have behind them, in trials.
            ended: How many trials have ended since the last call.
        """
        self.done += ended
        if self.silent or not (self.terminal or ended):
            return
        line = f"{self.name}  trials {self.done}/{self.trials}"
        if best is not None:
            line += f"  best {self.objective} {best:.4g}"
        line += self._time_left(self.done + running)
        print(f"\r{line:<79}" if self.terminal else line, end=self._end(), file=self.stream)
        self.stream.flush()

    def _time_left(self, reached):
        progress = reached - self.earlier
        if progress <= 0 or reached >= self.trials:
            return ""
        seconds = (time.perf_counter() - self.started) * (self.trials - reached) / progress
        minutes, seconds = divmod(round(seconds), 60)
        return f"  {minutes // 60}:{minutes % 60:02d}:{seconds:02d} left"

    def _end(self):
        return "" if self.terminal and self.done < self.trials else "\n"
