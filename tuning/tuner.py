"""A keras-tuner tuner that trains many trials together."""

import os
import pathlib

import numpy as np

from highway_keras import checks
from highway_keras.extras import extra
from highway_keras.io import folder_lock, write_bytes, write_json
from highway_keras.runs.folder import weights_file
from highway_keras.tuning import chief
from highway_keras.tuning.arguments import check_data, check_hypermodel, check_objective
from highway_keras.tuning.cohorts import Cohorts
from highway_keras.tuning.memory import cores, population_size
from highway_keras.tuning.oracle import ResumableOracle
from highway_keras.tuning.population import Images
from highway_keras.tuning.progress import Progress
from highway_keras.tuning.settings import check_own, check_recorded, readable, search_settings
from highway_keras.tuning.trials import METRICS, RunningTrials
from highway_keras.tuning.weights import assign, draw

with extra("tune"):
    import keras_tuner


class PopulationRandomSearch(keras_tuner.Tuner):
    """Random search that trains its trials in populations: one compilation for all of them.

    Trials of one hypermodel share their shapes, so a population of them runs as one program with
    a trial axis; whole epochs are one compiled loop. Hyperparameters, curves, files and methods are
    those of keras-tuner. All trials see the same batches, drawn from `seed`; a trial starts from
    weights drawn from `seed` and its number. Its result is the same as if trained alone.

    The search can be killed at any moment. Called again with the same arguments, it continues:
    trials that were being trained start again, and none is lost or counted twice.

    With `KERASTUNER_TUNER_ID` and `KERASTUNER_ORACLE_PORT` set, several processes share a search,
    one as the `"chief"` that hands out trials, each of the others as a worker with an id; restart a
    killed worker under the same id. All use the same folder. The chief listens on
    `KERASTUNER_ORACLE_IP`, by default 127.0.0.1. It does not authenticate workers: give it another
    address only on a network that you trust.

    Args:
        hypermodel: A `HighwayHyperModel`.
        objective: What to minimize or maximize: `"loss"`, `"accuracy"` (over an epoch's batches),
            `"val_loss"` or `"val_accuracy"`, or a `keras_tuner.Objective` of one of them.
        max_trials: Number of trials.
        seed: Non-negative integer; decides hyperparameters, weights and order of images.
        population: Number of trials to train together. Default: what memory allows.
        keep_models: Number of the best trials whose weights are kept, for `get_best_models`.
        directory: Folder of searches; `None` for the current one.
        project_name: The search's own folder in it; `None` for keras-tuner's `untitled_project`.
        overwrite: Whether to delete what is there and search anew, instead of continuing. A worker
            leaves that to its chief.

    Raises:
        TypeError: If `hypermodel` is not a `HighwayHyperModel`.
        ValueError: If an argument is out of its range.
        BusyError: If another process is searching in the folder to be overwritten.
        ImportError: If the backend is PyTorch.

    Example:

    >>> from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch
    >>> tuner = PopulationRandomSearch(
    ...     HighwayHyperModel(depth=50), "val_loss", max_trials=100, project_name="depth-50"
    ... )
    >>> tuner.search(x, y, validation_data=(x_val, y_val), epochs=5)  # doctest: +SKIP
    >>> best = tuner.get_best_models()[0]  # doctest: +SKIP

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.1.
    """

    def __init__(
        self,
        hypermodel,
        objective="loss",
        max_trials=100,
        seed=0,
        population=None,
        keep_models=10,
        directory=None,
        project_name=None,
        overwrite=False,
    ):
        check_hypermodel(hypermodel)
        self.seed = checks.seed(seed)
        self.max_trials = checks.positive_integer("max_trials", max_trials)
        self.keep_models = checks.positive_integer("keep_models", keep_models)
        allowed = "what memory allows"
        self.population = checks.positive_integer("population", population, none=allowed)
        self._template = None
        if "KERASTUNER_ORACLE_PORT" in os.environ:
            os.environ.setdefault("KERASTUNER_ORACLE_IP", "127.0.0.1")
            chief.address()  # is one
        oracle = ResumableOracle(
            objective,
            self.max_trials,
            seed=self.seed + 1,  # the stock oracle takes 0 for "any"
            max_consecutive_failed_trials=self.max_trials + 1,  # a failed trial is a result, too
        )
        oracle.verbose = 0
        self.objective = oracle.objective
        self.tuner_id = os.environ.get("KERASTUNER_TUNER_ID", "tuner0")  # as keras-tuner sets it
        overwrite = overwrite and not self.is_worker  # the trials there are the chief's
        folder = checks.path("directory", directory or ".") / (project_name or "untitled_project")
        if overwrite and folder.exists():
            with folder_lock(folder):  # nobody else is searching there
                pass
        where = {"directory": folder.parent, "project_name": folder.name}
        super().__init__(oracle, hypermodel, overwrite=overwrite, **where)
        if self.is_worker:
            self.oracle = chief.Chief(self.oracle)

    @property
    def is_chief(self):
        """Whether this process hands out the trials of a search that several share."""
        return "KERASTUNER_ORACLE_IP" in os.environ and "chief" in self.tuner_id

    @property
    def is_worker(self):
        """Whether this process takes its trials from a chief."""
        return "KERASTUNER_ORACLE_IP" in os.environ and not self.is_chief

    def _populate_initial_space(self):
        # The stock way finds the space by building the model repeatedly.
        space = self.oracle.get_space()
        self.hypermodel.declare_hyperparameters(space)
        self.oracle.update_space(space)

    def get_state(self):
        # Killed workers ask for their trials by slot of the population, which must not shrink.
        return {"population": self.population}

    def set_state(self, state):
        self.population = self.population or state["population"]

    def reload(self):
        check_own(pathlib.Path(self._get_tuner_fname()), self.project_name)
        with readable(self.project_dir):
            super().reload()

    def save(self):
        if not self.is_worker:
            self.oracle.save()
        write_json(self._get_tuner_fname(), self.get_state(), indent=None)

    def search(self, x, y, validation_data=None, epochs=1, batch_size=128, verbose="auto"):
        """Train trials until `max_trials` of them have ended.

        Args:
            x: Images or flat inputs, an array `(n, ...)`, scaled as the network expects them.
            y: Class numbers, an array `(n,)`.
            validation_data: `(x, y)` to measure every trial on after every epoch.
            epochs: Epochs per trial.
            batch_size: Images per step.
            verbose: `"auto"` for a line of progress, 0 for none.

        Raises:
            ValueError: If the arrays do not fit the hypermodel or one another, or the folder
                holds another search.
            BusyError: If another process is searching there.
            RuntimeError: In a worker, if there is no chief.
        """
        epochs = checks.positive_integer("epochs", epochs)
        batch_size = checks.positive_integer("batch_size", batch_size)
        pairs = check_data(self.hypermodel, x, y, validation_data)
        check_objective(self.objective, [f"{p}{m}" for p in pairs for m in METRICS])
        settings = search_settings(self, pairs, epochs, batch_size)
        images = {prefix: Images(*pair, batch_size) for prefix, pair in pairs.items()}
        if self.is_worker:
            self._check_chiefs(settings)
            self._search_slots(images, epochs, verbose)
            return
        with folder_lock(self.project_dir):
            self._take_over(settings)
            if not self.is_chief:
                self._search_slots(images, epochs, verbose)
            elif len(self.oracle.end_order) < self.max_trials:  # else no worker would come
                chief.check_free()
                super().search(verbose=0)

    def _check_chiefs(self, settings):
        """Raise a `ValueError` unless the chief's search is in the folder, and has `settings`."""
        chief.wait()  # it listens once it has recorded its own
        if not check_recorded(self.project_dir, settings):
            raise ValueError(
                "`directory` must be that of the chief's search: all its processes share one. "
                f"Received: directory={str(self.directory)!r} without it."
            )

    def _take_over(self, settings):
        """Read what is in the folder: another process may have continued it."""
        check_recorded(self.project_dir, settings)
        folder = pathlib.Path(self.project_dir)
        if (folder / "oracle.json").exists():
            with readable(folder):
                self.oracle.reload()
        elif any(folder.glob("trial_*/trial.json")):
            raise ValueError(
                f"The search in {folder} has lost its oracle.json. Bring that file back, or delete "
                "the folder to search anew."
            )
        self.oracle.settings = settings

    def _search_slots(self, images, epochs, verbose):
        batch_size = images[""].batch_size
        self.population = self.population or population_size(
            self.hypermodel, batch_size, self.max_trials
        )
        self.save()  # else a search killed before its first trial ends would not be reloaded
        ended = 0 if self.is_worker else len(self.oracle.end_order)
        name = self.objective.name
        with Progress(self.project_name, self.max_trials, ended, name, verbose) as progress:
            self._search(images, epochs, progress)

    def _search(self, images, epochs, progress):
        slots = [f"{self.tuner_id}-{slot}" for slot in range(self.population)]
        while slots:
            asked = [self.oracle.create_trial(slot) for slot in slots]
            # A slot that was told to stop must not ask again: the chief may be gone by then.
            running = [trial.status == "RUNNING" for trial in asked]
            slots = [slot for slot, runs in zip(slots, running, strict=True) if runs]
            trials = [trial for trial, runs in zip(asked, running, strict=True) if runs]
            if trials:
                self._run(trials, images, epochs, progress)

    def _run(self, trials, images, epochs, progress):
        """Train trials together, from start to end."""
        running = RunningTrials(trials, self._population_of(trials), images, self.oracle)
        for epoch in range(epochs):
            order = np.random.default_rng([self.seed, epoch]).permutation(images[""].size)
            alive = running.train(epoch, order)
            progress.report(self._best_score(), running=len(trials) * (epoch + 1) / epochs)
            if not alive:
                break
        self._end(running)
        progress.report(self._best_score(), ended=len(trials))

    def _population_of(self, trials):
        values = [trial.hyperparameters.values for trial in trials]
        seeds = [[self.seed, int(trial.trial_id)] for trial in trials]
        weights = [draw(self.hypermodel, v, s) for v, s in zip(values, seeds, strict=True)]
        return Cohorts(self.hypermodel.kind, values, weights, cores())

    def _end(self, running):
        """End trials: first the weights of the best to disk, then the oracle."""
        # Of trials that tie, the oracle decides later which are the best.
        last = np.sort(running.scores)[: self.keep_models][-1]
        for index in np.flatnonzero((running.scores <= last) & np.isfinite(running.scores)):
            weights = running.population.best_weights(index)
            self._save_weights(running.trials[index].trial_id, weights)
        for trial, score in zip(running.trials, running.scores, strict=True):
            trial.status = "COMPLETED" if np.isfinite(score) else "FAILED"
            if trial.status == "FAILED":
                trial.message = "The loss is no longer finite."
            self.oracle.end_trial(trial)
        self._drop_weights()

    def _save_weights(self, trial_id, weights):
        if self._template is None:
            self._template = self.hypermodel.build(keras_tuner.HyperParameters())
        assign(self._template, weights)
        write_bytes(self._get_checkpoint_fname(trial_id), weights_file(self._template))

    def _drop_weights(self):
        """Delete the weights of trials that have ended and are no longer among the best."""
        paths = pathlib.Path(self.project_dir).glob("trial_*/checkpoint.weights.h5")
        paths = {path.parent.name.removeprefix("trial_"): path for path in paths}
        # First those that have ended: another worker's best trial may end before the next line.
        ended = [i for i in paths if self.oracle.get_trial(i).status == "COMPLETED"]
        best = {trial.trial_id for trial in self.oracle.get_best_trials(self.keep_models)}
        for trial_id in set(ended) - best:
            paths[trial_id].unlink(missing_ok=True)

    def load_model(self, trial):
        """Return the model of a trial with its best weights.

        Raises:
            ValueError: If the trial failed, or is not among the best.
        """
        path = self._get_checkpoint_fname(trial.trial_id)
        if not os.path.exists(path):
            raise ValueError(
                f"Trial {trial.trial_id} has no weights on disk: it failed, or is not among the "
                f"best trials. Received: keep_models={self.keep_models}; more keeps more."
            )
        return super().load_model(trial)

    def _best_score(self):
        best = self.oracle.get_best_trials(1)
        return best[0].score if best else None
