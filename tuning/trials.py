"""Trials that train together: what is reported after every epoch, and which weights are kept."""

import numpy as np

METRICS = ("loss", "accuracy")


class RunningTrials:
    """Trials of one population, from their first epoch on.

    Args:
        trials: keras-tuner's `Trial`s.
        population: A `Cohorts` of their networks.
        images: `Images` by the prefix of their metrics: `""` to train on, `"val_"` to measure on.
        oracle: The oracle to report to.

    Attributes:
        scores: The best objective of each trial so far, the lower the better; infinite for a trial
            that has failed.
    """

    def __init__(self, trials, population, images, oracle):
        self.trials, self.population, self.images, self.oracle = trials, population, images, oracle
        self.scores = np.full(len(trials), np.inf)

    def train(self, epoch, order):
        """Train for one epoch, measure and report; return whether any loss is still finite."""
        measured = self.population.train(self.images[""], epoch, order)
        logs = dict(zip(METRICS, measured, strict=True))
        if "val_" in self.images:
            measured = self.population.evaluate(self.images["val_"])
            logs |= {f"val_{name}": value for name, value in zip(METRICS, measured, strict=True)}
        sound = np.all([np.isfinite(column) for column in logs.values()], axis=0)
        self._report(logs, sound, epoch)
        self._keep_better(logs, sound)
        finite = np.isfinite(logs["loss"])
        self.scores[~finite] = np.inf
        return finite.any()

    def _report(self, logs, sound, epoch):
        for index in np.flatnonzero(sound):
            values = {name: float(column[index]) for name, column in logs.items()}
            self.oracle.update_trial(self.trials[index].trial_id, values, step=epoch)

    def _keep_better(self, logs, sound):
        """Have the population remember the trials whose objective is their best so far."""
        objective = self.oracle.objective
        new = -logs[objective.name] if objective.direction == "max" else logs[objective.name]
        improved = (new < self.scores) & sound
        self.population.keep(improved)
        self.scores = np.where(improved, new, self.scores)
