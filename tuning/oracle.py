"""keras-tuner's random search, with rungs, and safe to kill at any moment."""

import contextlib
import functools
import json
import math
import pathlib

from highway_keras.runs.folder import check_same_settings
from highway_keras.util.extras import extra
from highway_keras.util.files import digest, is_transient, read_text, write_json
from highway_keras.util.messages import notice

with extra("tune"):
    import keras_tuner
    from keras_tuner.engine.trial import Trial

ENDED = ("COMPLETED", "FAILED")
WEIGHTS = "checkpoint.keras"  # a trial's weights after its best epoch
STATE, STATES = "state-{}.npz", "state-*.npz"  # a trial's state after that many epochs
SEARCH = "tuner/search"  # a value of the space, which says which search it is of


def _until_it_fails(method):
    """Refuse calls after one that raised an error: memory and disk may differ since."""

    @functools.wraps(method)
    def checked(self, *arguments):
        if self.error:
            raise RuntimeError("The search has failed.") from self.error
        try:
            return method(self, *arguments)
        except Exception as error:
            self.error = error
            raise

    return checked


class PopulationOracle(keras_tuner.oracles.RandomSearchOracle):
    """A `RandomSearchOracle` that draws the same trials as the stock one and survives a kill.

    The stock oracle saves a trial and the list of trials one after the other, and overwrites files
    in place. If it is killed in between, it loses trials or runs them twice. Here every file is
    replaced as a whole, and the trials' own files alone decide what to train next. While a trial
    trains, its curve is part of its last state on disk, from which it resumes; `trial.json` gets
    the curve when the round ends.

    With rungs, a trial trains in rounds, from rung to rung, and only the best at each rung
    continue. Its hyperparameters then record where it is, under the names of keras-tuner's
    Hyperband: `tuner/round`, `tuner/initial_epoch` and `tuner/epochs`.

    `rungs` maps the epoch of each rung to the number of trials that continue there. `epochs`, the
    length of a trial that is never stopped, and `settings`, which determine the search, are set
    once they are known.
    """

    epochs, settings, error = math.inf, None, None

    def __init__(self, objective, max_trials, seed, rungs, keep_models):
        super().__init__(
            objective,
            max_trials,
            seed=seed,
            max_consecutive_failed_trials=math.inf,  # a failed trial is a result, too
        )
        self.rungs, self.keep_models, self.verbose = rungs, keep_models, 0

    @property
    def rounds(self):
        """What `rounds_of` returns for this search."""
        return rounds_of(self.rungs, self.epochs, self.max_trials)

    @property
    def has_ended(self):
        """Whether no trial is left to train; only meaningful while none is being trained."""
        return len(self.trials) >= self.max_trials and self._next()[1] == []

    @_until_it_fails
    @keras_tuner.synchronized
    def create_trial(self, tuner_id):
        if tuner_id in self.ongoing_trials:  # its worker was killed and is back
            return self.ongoing_trials[tuner_id]
        number, waiting = self._next()
        if waiting is None:
            self.tuner_ids.add(tuner_id)
            return Trial(keras_tuner.HyperParameters(), status="IDLE")
        self._retry_queue = waiting[:1]  # the stock way to train one again
        trial = super().create_trial(tuner_id)
        if trial.status == "STOPPED" and len(self.trials) < self.max_trials:
            self.max_trials = len(self.trials)
            notice(f"The search ends after {self.max_trials} trials: no new values were found.")
            return self.create_trial(tuner_id)
        if trial.status == "RUNNING" and self.rungs:
            first, last, _ = self.rounds[number]
            values = {"tuner/round": number, "tuner/initial_epoch": first, "tuner/epochs": last}
            trial.hyperparameters.values |= values
            self._save_trial(trial)
        return trial

    def _compute_values_hash(self, values):  # tells whether these values were drawn before
        return super()._compute_values_hash(
            {name: value for name, value in values.items() if not name.startswith("tuner/")}
        )

    def _next(self):
        """Return the round to train now, and the ids of the trials that wait to train in it.

        An empty list means that a new trial is next, if any is left; `None` means to wait for other
        workers.
        """
        ongoing = {trial.trial_id for trial in self.ongoing_trials.values()}
        for number, (first, last, count) in enumerate(self.rounds):
            of_round = self._best(first, count) if first else list(self.trials.values())
            behind = [t.trial_id for t in of_round if not has_ended_round(t, last)]
            waiting = [i for i in behind if i not in ongoing]
            if waiting or len(self.trials) < self.max_trials:
                return number, waiting
            if behind and number < len(self.rungs):
                return number, None
        return number, []

    def _best(self, epochs, count):
        """Return the best `count` of the trials that have come to a rung."""
        come = [trial for trial in self.trials.values() if _trained(trial) >= epochs]
        return sorted(come, key=lambda trial: rank_key(trial, self.objective, epochs))[:count]

    @_until_it_fails
    @keras_tuner.synchronized
    def end_trial(self, trial):
        mine = self.trials[trial.trial_id]
        if trial is not mine:  # it comes from a worker
            # After a restart of the chief, two workers can finish the same round.
            if mine.status in ENDED or _round(mine) != _round(trial):
                self._drop_files()  # the second one has saved states of its own
                return
            # Take all epochs: a restarted chief has lost the metrics of running trials.
            mine.metrics = trial.metrics
            # Keep our hyperparameters: the protocol between processes loses their order.
            trial.hyperparameters = mine.hyperparameters
        if trial.status == "FAILED":
            trial.message, mine.score = "A metric is no longer finite.", None
        super().end_trial(trial)
        self._drop_files()

    def _drop_files(self):
        """Delete states that no trial resumes from, and weights that are not among the best."""
        going = {(t.trial_id, e) for e, n in self.rungs.items() for t in self._best(e, n)}
        done = [t for t in self.get_best_trials(len(self.trials)) if t.status == "COMPLETED"]
        done = [t for t in done if (t.trial_id, _trained(t)) not in going]
        failed = [t for t in self.trials.values() if t.status == "FAILED"]
        for trial in [*done[self.keep_models :], *failed]:
            self.file(trial, WEIGHTS).unlink(missing_ok=True)
        for path in pathlib.Path(self._project_dir).glob(f"trial_*/{STATES}"):
            trial = self.trials[path.parent.name.removeprefix("trial_")]
            goes_on = trial.status == "RUNNING" or (trial.trial_id, _trained(trial)) in going
            if not goes_on or epochs_of(path) < _trained(trial):
                path.unlink(missing_ok=True)

    def file(self, trial, name):
        """Return the path of a file of a trial."""
        return pathlib.Path(self._get_trial_dir(trial.trial_id)) / name

    def save(self):
        write_json(self._get_oracle_fname(), self.get_state(), indent=None)

    def _save_trial(self, trial):
        if trial.status == "RUNNING" and trial.metrics.metrics:
            return
        write_json(self.file(trial, "trial.json"), trial.get_state(), indent=None)

    def get_state(self):
        return {**super().get_state(), "settings": self.settings}

    def set_state(self, state):
        super().set_state(state)
        self.settings = state.get("settings")

    def get_space(self):
        """Return the space; its values also have `SEARCH`, which workers compare with their own."""
        space = super().get_space()
        space.values[SEARCH] = digest(self.settings)
        return space

    def reload(self):
        # Not by keras-tuner, for whom brackets in the path of a folder are a pattern.
        files = pathlib.Path(self._project_dir).glob("trial_*/trial.json")
        trials = [Trial.from_state(read_json(file)) for file in files]
        self.trials = {trial.trial_id: trial for trial in trials}
        self.set_state(read_json(pathlib.Path(self._get_oracle_fname())))
        # In the order in which they were drawn, which breaks ties between the best.
        ids = sorted(self.trials, key=int)
        states = pathlib.Path(self._project_dir).glob(f"trial_*/{STATES}")
        owners = {state.parent.name.removeprefix("trial_") for state in states}
        if [*map(int, ids)] != [*range(len(ids))] or owners - {*ids}:
            raise ValueError("a trial is missing: the next one would take its number")
        self.trials = {i: self.trials[i] for i in ids}
        self.start_order, self.end_order, self.ongoing_trials, self._retry_queue = [], [], {}, []
        for trial in self.trials.values():
            # One that was missing from the list must not be drawn again.
            self._record_values(trial)
            if trial.status == "COMPLETED" and not math.isfinite(trial.score):
                raise ValueError(f"trial {trial.trial_id} has no score")
        self._next()  # fails here, not after hours, if a file is damaged


def _trained(trial):
    """Return the number of epochs that a trial has trained for in rounds that have ended."""
    values = trial.hyperparameters.values
    if trial.status == "COMPLETED":
        return values.get("tuner/epochs", math.inf)
    return values.get("tuner/initial_epoch", 0)


def has_ended_round(trial, last):
    """Return whether a trial has ended the round to the epoch `last`."""
    return trial.status == "FAILED" or _trained(trial) >= last


def epochs_of(state):
    """Return the number of epochs after which a state file was saved."""
    return int(state.stem.removeprefix("state-"))


def rank_key(trial, objective, epochs):
    """Return what a trial is ranked by after so many epochs: the lower, the better.

    This is its best value of the objective, negated if higher is better; infinite without one.
    """
    name, sign = objective.name, -1 if objective.direction == "max" else 1
    points = trial.metrics.get_history(name) if trial.metrics.exists(name) else []
    return min((sign * p.value[0] for p in points if p.step < epochs), default=math.inf)


def _round(trial):
    return trial.hyperparameters.values.get("tuner/round", 0)


def rounds_of(rungs, epochs, trials):
    """Return the first and the last epoch of each round, and how many trials it has at most."""
    return list(zip([0, *rungs], [*rungs, epochs], [trials, *rungs.values()], strict=True))


def count_ended(trials, rounds):
    """Return how many trials have ended each round."""
    return [
        sum(_trained(t) >= last or (t.status == "FAILED" and _round(t) == n) for t in trials)
        for n, (_, last, _) in enumerate(rounds)
    ]


def check_recorded(folder, settings):
    """Raise a `ValueError` if a search in `folder` was started with other settings.

    Return whether there is a search.
    """
    folder = pathlib.Path(folder)
    before = read_json(folder / "oracle.json")
    with readable(folder):
        recorded = dict(before.get("settings") or {})
        if not recorded and any(folder.glob("trial_*/trial.json")):
            raise ValueError("its oracle.json is lost")
    if recorded:
        check_same_settings(recorded, settings, f"the search in {folder}")
    return bool(before)


def read_json(path):
    """Return what a file of a search holds, a dictionary; an empty one if it is not there."""
    if not path.exists():
        return {}
    with readable(path.parent):
        return dict(json.loads(read_text(path)))


@contextlib.contextmanager
def readable(folder):
    """Turn what damaged files of a search raise into a `ValueError`: `with readable(folder):`."""
    try:
        yield
    except Exception as error:  # of many kinds
        if is_transient(error) and not isinstance(error, FileNotFoundError):
            raise
        raise ValueError(
            f"The search in {folder} cannot be read: one of its files is missing or damaged, or "
            "another process has just written one. Try again, and if that does not help, restore "
            "it, or delete the folder to search anew."
        ) from error
