"""keras-tuner's random search with rungs, saved as one file."""

import json
import math
import time

from highway_keras.training.machine import here
from highway_keras.tuning import states
from highway_keras.util import checks
from highway_keras.util.extras import extra
from highway_keras.util.files import write_json

with extra("tune"):
    import keras_tuner
    from keras_tuner.engine.trial import Trial

SEARCH = "search.json"  # the file of a search: its settings, the oracle's state, all trials
KEPT_MODELS = 10  # the number of the best trials whose states stay on disk
DRAW, WAIT, STOP = "draw", "wait", "stop"


class RungOracle(keras_tuner.oracles.RandomSearchOracle):
    """A `RandomSearchOracle` that draws the same trials as the stock one, and trains them in rungs.

    All trials train to the first rung, the best of them to the second, and so on. A trial's curve
    says how far it is: it grows when a round ends, and a trial that diverges fails. The whole
    search is one file in `folder`, `search.json`, replaced at every change.

    Args:
        objective, max_trials, seed: As for `keras_tuner.oracles.RandomSearchOracle`.
        rungs: A dictionary from epochs to the number of trials that continue there.
    """

    def __init__(self, objective, max_trials, seed, rungs):
        # A failed trial is a result, too.
        super().__init__(objective, max_trials, seed, max_consecutive_failed_trials=math.inf)
        self.rungs, self.verbose = rungs, 0
        self.folder, self.settings, self.sessions = None, {}, []

    def begin(self, settings):
        """Begin a session of the search, unless it has ended; return whether it has begun."""
        if self.settings:
            checks.same_settings(self.folder, self.settings, settings)
        if self.settings and self.has_ended:
            return False
        self.settings, self.began = settings, time.perf_counter()
        self.sessions.append({**here(), "seconds": 0})
        self.save()
        return True

    @property
    def rounds(self):
        """The first and the last epoch of each round, and how many trials train in it."""
        lasts = [*self.rungs, self.settings["epochs"]]
        counts = [self.max_trials, *self.rungs.values()]
        return list(zip([0, *self.rungs], lasts, counts, strict=True))

    def round_of(self, trial):
        """Return the round in which a trial trains."""
        return next(r for r in self.rounds if epochs_of(trial) < r[1])

    @property
    def has_ended(self):
        """Whether no trial is left to train."""
        return self._next() == STOP

    def _next(self):
        """Return a trial that waits to be trained, or what to do instead: draw, wait or stop."""
        ongoing = {trial.trial_id for trial in self.ongoing_trials.values()}
        for first, last, count in self.rounds:
            of_round = self._best(first, count) if first else self.trials.values()
            behind = [t for t in of_round if t.status != "FAILED" and epochs_of(t) < last]
            waiting = [trial for trial in behind if trial.trial_id not in ongoing]
            if waiting:
                return waiting[0]
            if len(self.trials) < self.max_trials:
                return DRAW
            # All must come to a rung before the best go on.
            if behind and last < self.settings["epochs"]:
                return WAIT
        return STOP

    @keras_tuner.synchronized
    def create_trial(self, tuner_id):
        if tuner_id in self.ongoing_trials:  # its worker was killed and has started again
            return self.ongoing_trials[tuner_id]
        step = self._next()
        if step in (DRAW, STOP):  # the stock oracle stops once it has `max_trials`
            trial = super().create_trial(tuner_id)
            if trial.status == "STOPPED" and len(self.trials) < self.max_trials:
                self.max_trials = len(self.trials)  # all values have been tried
                return self.create_trial(tuner_id)
            return trial
        self.tuner_ids.add(tuner_id)
        if step == WAIT:
            return Trial(keras_tuner.HyperParameters(), status="IDLE")
        # A copy, because the trial keeps its status and score until its next round has ended.
        trial = Trial.from_state({**step.get_state(), "status": "RUNNING"})
        self.ongoing_trials[tuner_id] = trial
        return trial

    @keras_tuner.synchronized
    def end_trial(self, trial):
        own = self.trials.get(trial.trial_id)
        # After a restart of the chief, two workers may end the same round of a trial.
        if own is None or own.status == "FAILED":
            return
        if trial.status == "COMPLETED" and epochs_of(trial) <= epochs_of(own):
            return
        own.metrics = trial.metrics
        if trial.status == "FAILED":
            own.score, trial.message = None, "The loss is no longer finite."
        trial.hyperparameters = own.hyperparameters  # the protocol of the chief loses their order
        super().end_trial(trial)
        states.delete(self.folder, keep=self._needed())

    def _best(self, epochs, count):
        """Return the best `count` of the trials that have come to a rung."""
        there = [trial for trial in self.trials.values() if epochs_of(trial) >= epochs]
        return sorted(there, key=lambda trial: self._rank(trial, epochs))[:count]

    def _rank(self, trial, epochs):
        """Return what a trial is ranked by after so many epochs: the lower, the better."""
        sign = -1 if self.objective.direction == "max" else 1
        points = [p for p in trial.metrics.get_history(self.objective.name) if p.step < epochs]
        values = [sign * point.value[0] for point in points]
        return min((value for value in values if math.isfinite(value)), default=math.inf)

    def _needed(self):
        """Return the ids of trials that go on, and of the best among the others."""
        going = {t.trial_id for t in self.trials.values() if t.status == "RUNNING"}
        for epochs, count in self.rungs.items():
            going |= {t.trial_id for t in self._best(epochs, count) if epochs_of(t) == epochs}
        ranked = [t.trial_id for t in self.get_best_trials(len(self.trials)) if t.score is not None]
        done = [trial_id for trial_id in ranked if trial_id not in going]
        return going.union(done[:KEPT_MODELS])

    def save(self):
        self.sessions[-1]["seconds"] = round(time.perf_counter() - self.began, 1)
        content = {
            "settings": self.settings,
            "sessions": self.sessions,
            "oracle": self.get_state(),
            "trials": [trial.get_state() for trial in self.trials.values()],
        }
        write_json(self.folder / SEARCH, content, indent=None)

    def reload(self):
        """Read the search in the folder, if there is one."""
        if not (self.folder / SEARCH).exists():
            return
        content = json.loads((self.folder / SEARCH).read_text(encoding="utf-8"))
        self.settings, self.sessions = content["settings"], content["sessions"]
        self.trials = {state["trial_id"]: Trial.from_state(state) for state in content["trials"]}
        self.set_state(content["oracle"])
        self.ongoing_trials, self.tuner_ids = {}, set()


def epochs_of(trial):
    """Return the number of epochs that a trial has trained for in rounds that have ended."""
    return len(trial.metrics.get_history("loss")) if trial.metrics.exists("loss") else 0
