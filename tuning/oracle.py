"""keras-tuner's random search, safe to kill at any moment."""

import os

from highway_keras.extras import extra
from highway_keras.io import write_json
from highway_keras.tuning.settings import fingerprint

with extra("tune"):
    import keras_tuner

ENDED = ("COMPLETED", "FAILED")


class ResumableOracle(keras_tuner.oracles.RandomSearchOracle):
    """A `RandomSearchOracle` that draws the same trials as the stock one and survives a kill.

    The stock one saves a trial and the list of trials one after the other, and overwrites files in
    place. Killed in between, it loses trials or runs them twice. Here every file is replaced as a
    whole, and `reload` trusts the trials' own files more than the list.

    An interrupted trial starts again with the same hyperparameters, so its curve reaches the disk
    only when it ends.

    Attributes:
        settings: What decides the search, a dictionary; `None` until known.
    """

    settings = None

    @keras_tuner.synchronized
    def create_trial(self, tuner_id):
        trial = super().create_trial(tuner_id)
        trial.metrics = type(trial.metrics)()  # what a killed worker had reported so far
        return trial

    @keras_tuner.synchronized
    def end_trial(self, trial):
        # After a restart of the chief, two workers can finish the same trial.
        if trial.trial_id not in self.end_order:
            if trial.trial_id in self._retry_queue:
                self._retry_queue.remove(trial.trial_id)
            # A worker has half their digits: the protocol between processes uses float32.
            trial.hyperparameters = self.trials[trial.trial_id].hyperparameters
            super().end_trial(trial)

    def save(self):
        write_json(self._get_oracle_fname(), self.get_state(), indent=None)

    def _save_trial(self, trial):
        if trial.status == "RUNNING" and trial.metrics.metrics:
            return
        path = os.path.join(self._get_trial_dir(trial.trial_id), "trial.json")
        made_with = self.settings and fingerprint(self.settings)
        write_json(path, {**trial.get_state(), "settings": made_with}, indent=None)

    def get_state(self):
        return {**super().get_state(), "settings": self.settings}

    def reload(self):
        super().reload()
        # In the order in which they were drawn, which breaks ties between the best.
        ids = sorted(self.trials, key=int)
        self.trials = {i: self.trials[i] for i in ids}
        ended = [i for i in ids if self.trials[i].status in ENDED]
        self.start_order += [i for i in ids if i not in self.start_order]
        self.end_order = [i for i in self.end_order if i in ended]
        self.end_order += [i for i in ended if i not in self.end_order]
        self.ongoing_trials = {}
        # The oracle takes trials from its end, so this way the first one comes first.
        self._retry_queue = [i for i in reversed(ids) if i not in ended]
        # A trial that was missing from the list must not be drawn again.
        for trial in self.trials.values():
            self._record_values(trial)
