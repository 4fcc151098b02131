"""A keras-tuner tuner that trains many trials together."""

import collections
import hashlib
import itertools
import json
import os
import pathlib
import time

import numpy as np

from highway_keras.layers.backends import shim
from highway_keras.tuning import states
from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.oracle import SEARCH, RungOracle, epochs_of
from highway_keras.tuning.population import IN_A_COHORT, Images, Population, check_backend
from highway_keras.tuning.programs import METRICS
from highway_keras.tuning.progress import Progress
from highway_keras.tuning.weights import assign, draw, initial_state, part_of
from highway_keras.util import checks
from highway_keras.util.cores import cores
from highway_keras.util.extras import extra
from highway_keras.util.files import LEFTOVERS, file_lock, folder_lock

with extra("tune"):
    import keras_tuner
    from keras_tuner.engine.trial import Trial

OBJECTIVES = (*METRICS, *(f"val_{metric}" for metric in METRICS))
COHORTS_A_CORE = 5  # a CPU gains nothing from more, and small populations end sooner
CHECKPOINT_INTERVAL_S = 120
POLL_INTERVAL_S = 0.5  # between two questions of a worker that waits for others


class PopulationRandomSearch(keras_tuner.Tuner):
    """Random search that trains its trials in populations: one compilation for all of them.

    Trials of one hypermodel share their shapes, so a population of them runs as one program with
    a trial axis; whole epochs are one compiled loop. Hyperparameters, curves and methods are those
    of keras-tuner. All trials see the same batches, drawn from `seed`; a trial starts from weights
    drawn from `seed` and its number. Its result is the same as if trained alone, on a GPU up to
    rounding. None of keras-tuner's hooks is called, such as `run_trial` or `on_trial_end`.

    With `rungs`, the search is a successive halving: all trials train to the first rung, the best
    of them continue to the second, and so on. A trial continues with its own weights, momentum and
    place in the data. A trial that is stopped keeps its score, and its curve ends at its rung.

    The search can be killed at any moment. Called again with the same arguments, it continues:
    trials resume from their last state on disk, which is saved every two minutes and at every rung.

    With keras-tuner's variables `KERASTUNER_ORACLE_IP`, `KERASTUNER_ORACLE_PORT` and
    `KERASTUNER_TUNER_ID`, several processes share a search in one folder: the `"chief"` hands out
    trials, the others train them. Read the results in the chief, or later in a process without
    these variables.

    Args:
        hypermodel: A `HighwayHyperModel`, or one of a subclass that overrides neither `build` nor
            `fit`.
        objective: What to rank by: a metric over an epoch's batches, such as `"loss"` or
            `"accuracy"`, or of the validation data, such as `"val_accuracy"`; or its
            `keras_tuner.Objective`.
        max_trials: Number of trials.
        seed: Non-negative integer that determines hyperparameters, weights and order of images. The
            hyperparameters are those of keras-tuner's `RandomSearch` with the same seed. There, 0
            stands for a random seed; here it draws the hyperparameters of seed 1, but other weights
            and another order. keras-tuner counts the seed up for each number that it draws, so
            seeds that differ by a multiple of the number of hyperparameters (5; 4 without a
            transform bias) share most sets, one or more trials later: let seeds of independent
            searches differ by more than 5 `max_trials`.
        population: Number of trials to train together. Default: 10 for each CPU core, or all on an
            accelerator.
        keep_models: Number of the best trials whose weights are kept, for `get_best_models`.
        directory: Folder of searches; `None` for the current one.
        project_name: The search's own folder in it; `None` for keras-tuner's `untitled_project`.
        overwrite: Whether to delete what is there and search anew, instead of continuing. A worker
            leaves that to its chief.
        rungs: How many trials continue beyond which epoch: `{40: 30, 133: 10}` stops all but the
            best 30 after epoch 40, and all but 10 after epoch 133. Default: all train to the end.

    Raises:
        TypeError: If `hypermodel` is not a `HighwayHyperModel`.
        ValueError: If an argument is out of its range, or the folder holds another search.
        BusyError: If another process is searching in the folder to be overwritten.
        ImportError: If the backend is PyTorch.

    Examples:
        >>> from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch
        >>> tuner = PopulationRandomSearch(
        ...     HighwayHyperModel(depth=50), "val_loss", max_trials=100, project_name="depth-50"
        ... )
        >>> tuner.search(x, y, validation_data=(x_val, y_val), epochs=5)  # doctest: +SKIP
        >>> best = tuner.get_best_models()[0]  # doctest: +SKIP

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.1;
        [Jamieson and Talwalkar, 2016](https://arxiv.org/abs/1502.07943) for the rungs.
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
        rungs=None,
        **of_stock_tuners,
    ):
        check_backend()
        _refuse(of_stock_tuners)
        own, stock = type(hypermodel), HighwayHyperModel
        if not issubclass(own, stock) or (own.build, own.fit) != (stock.build, stock.fit):
            raise TypeError(
                "`hypermodel` must be a `HighwayHyperModel` with the `build` and `fit` of that "
                "class; `keras_tuner.RandomSearch` takes others. "
                f"{checks.received('hypermodel', hypermodel)}"
            )
        checks.one_of("objective", getattr(objective, "name", objective), OBJECTIVES)
        self.seed = checks.seed(seed)
        checks.positive_integer("max_trials", max_trials)
        checks.positive_integer("keep_models", keep_models)
        self.population = checks.positive_integer("population", population, or_none=True)
        self.rungs = _check_rungs(rungs, max_trials)
        if isinstance(objective, str):
            direction = METRICS.get(objective.removeprefix("val_"), "min")
            objective = keras_tuner.Objective(objective, direction)
        folder = pathlib.Path(directory or ".") / (project_name or "untitled_project")
        # The stock oracle takes 0 for any seed.
        self.local_oracle = RungOracle(
            objective, max_trials, self.seed or 1, folder, self.rungs, keep_models
        )
        self.objective = self.local_oracle.objective
        shares = "KERASTUNER_ORACLE_IP" in os.environ
        self.is_chief = shares and "chief" in os.environ.get("KERASTUNER_TUNER_ID", "")
        self.is_worker = shares and not self.is_chief
        overwrite = overwrite and not self.is_worker  # which leaves that to its chief
        if overwrite and folder.exists():
            with folder_lock(folder):  # nobody else is searching there
                pass
        super().__init__(
            self.local_oracle,
            hypermodel,
            directory=folder.parent,
            project_name=folder.name,
            overwrite=overwrite,
        )
        self.folder = folder
        self.settings = {
            "kind": hypermodel.kind,
            "depth": hypermodel.depth,
            "units": hypermodel.units,
            "input_shape": list(hypermodel.input_shape),
            "classes": hypermodel.classes,
            "objective": self.objective.name,
            "direction": self.objective.direction,
            "seed": self.seed,
            "rungs": " ".join(f"{epoch}:{count}" for epoch, count in self.rungs.items()),
            **self._space(),
        }
        if not self.is_worker:
            self.local_oracle.reload()

    def _space(self):
        """Return the configurations of each hyperparameter, sorted: keras-tuner's order varies."""
        space = collections.defaultdict(list)
        for parameter in self.local_oracle.get_space().get_config()["space"]:
            space[f"space.{parameter['config'].pop('name')}"].append(parameter)
        return {name: json.dumps(sorted(space[name], key=str)) for name in space}

    def _check_same_search(self, settings):
        """Raise a `ValueError` if the search in the folder was started with other settings."""
        before = self.local_oracle.settings
        listed = "; ".join(
            f"{key}: {before.get(key)} → {settings.get(key)}"
            for key in before | settings
            if before.get(key) != settings.get(key)
        )
        if before and listed:
            raise ValueError(
                f"Cannot continue the search in {self.folder}: settings differ ({listed}). Pass "
                "the earlier values, or name another folder."
            )

    def save(self):
        """Do nothing: the oracle saves itself at every change."""

    def reload(self):  # called by keras-tuner where one of its own tuners has left files
        raise ValueError(
            "`project_name` must be that of a search by `PopulationRandomSearch`, or a new one. "
            f"Received: project_name={self.project_name!r}, a search by another tuner."
        )

    def search(
        self,
        x,
        y=None,
        validation_data=None,
        epochs=1,
        batch_size=128,
        verbose="auto",
        **of_stock_tuners,
    ):
        """Train trials until `max_trials` of them have ended.

        Args:
            x: Images or flat inputs, an array `(n, ...)`, scaled as the network expects them.
            y: Class numbers, an array `(n,)`.
            validation_data: `(x, y)` to measure every trial on after every epoch.
            epochs: Epochs per trial; with rungs, of the trials that are never stopped.
            batch_size: Images per step.
            verbose: `"auto"` for a line of progress, 0 for none.

        Raises:
            ValueError: If the arrays do not fit the hypermodel or one another, or the folder
                holds another search.
            TypeError: If there are other arguments, such as `callbacks`.
            BusyError: If another process is searching there.
        """
        _refuse(of_stock_tuners)
        epochs = checks.positive_integer("epochs", epochs)
        batch_size = checks.positive_integer("batch_size", batch_size)
        if epochs <= max(self.rungs, default=0):
            raise ValueError(
                "`epochs` must be above the last of the `rungs`. "
                f"Received: epochs={epochs}, rungs={self.rungs}."
            )
        pairs = {"": (x, y)} if validation_data is None else {"": (x, y), "val_": validation_data}
        if validation_data is None and self.objective.name.startswith("val_"):
            raise ValueError(
                f"`validation_data` must be given with objective={self.objective.name!r}. "
                "Received: validation_data=None."
            )
        settings = {**self.settings, "epochs": epochs, "batch_size": batch_size}
        images = {}
        for prefix, (x, y) in pairs.items():
            x, y = np.asarray(x, "float32"), np.ravel(y)
            _check_arrays(self.hypermodel, x, y)
            digest = hashlib.sha256(np.ascontiguousarray(x))
            digest.update(y.astype("int64"))
            settings[f"{prefix}images"] = digest.hexdigest()[:16]
            images[prefix] = Images(x, y, batch_size)
        self.local_oracle.epochs = epochs
        if self.is_worker:
            with file_lock(self.folder / self.tuner_id):
                self._work(settings, images, verbose)
            return
        with folder_lock(self.folder):
            self.local_oracle.reload()  # another process may have continued it
            self._check_same_search(settings)
            if self.local_oracle.settings and self.local_oracle.has_ended:
                return
            self.local_oracle.begin(settings)
            if self.is_chief:
                super().search()  # serves its workers until all trials have ended
                return
            for leftover in self.folder.glob(LEFTOVERS):  # of a process that was killed
                leftover.unlink(missing_ok=True)
            self._train_all(images, verbose)

    def _work(self, settings, images, verbose):
        """Train the trials that a chief hands out."""
        self.local_oracle.reload()
        if self.local_oracle.settings == settings and self.local_oracle.has_ended:
            return
        self.oracle.get_space()  # waits for the chief, which has written its settings before
        self.local_oracle.reload()
        if not self.local_oracle.settings:
            raise ValueError(
                "`directory` must be that of the chief's search. "
                f"Received: directory={str(self.directory)!r}, without {SEARCH}."
            )
        self._check_same_search(settings)
        self._train_all(images, verbose)

    def _train_all(self, images, verbose):
        """Train trials, as many together as the population has, until none is left."""
        oracle = self.local_oracle
        usual = COHORTS_A_CORE * IN_A_COHORT * cores()
        usual = oracle.max_trials if shim.accelerators() else usual
        size = min(self.population or usual, oracle.max_trials)
        slots = [f"{self.tuner_id}-{n}" for n in range(size)]
        trained = sum(map(epochs_of, oracle.trials.values()))
        shown = self.project_name, oracle.rounds, trained, self.objective.name
        with Progress(*shown, verbose) as progress:
            while slots:
                asked = [self.oracle.create_trial(slot) for slot in slots]
                slots = [s for s, t in zip(slots, asked, strict=True) if t.status != "STOPPED"]
                running = [trial for trial in asked if trial.status == "RUNNING"]
                if running:
                    self._train(running, size, images, progress)
                elif slots:  # other workers are on their way to a rung
                    time.sleep(POLL_INTERVAL_S)

    def _train(self, trials, size, images, progress):
        """Train trials of one round together, from the epoch of their states to its end."""
        rounds, name = self.local_oracle.rounds, self.objective.name
        sign = -1 if self.objective.direction == "max" else 1
        places = states.latest(self.folder)
        loaded = [self._state(trial, places, images) for trial in trials]
        # After an interruption, trials may have come to different epochs.
        positions = [
            (_round_of(trial, rounds), len(state["curve/loss"]))
            for trial, state in zip(trials, loaded, strict=True)
        ]
        number, start = positions[0]
        first, last, count = rounds[number]
        together = [n for n, position in enumerate(positions) if position == positions[0]]
        trials, loaded = [trials[n] for n in together], [loaded[n] for n in together]
        progress.initial += len(trials) * (start - first)

        width = min(size, count) if shim.accelerators() else None
        hyperparameters = [self._values(trial) for trial in trials]
        population = Population(self.hypermodel.kind, hyperparameters, loaded, width)
        curves = {  # a list of rows (K,), one an epoch
            key: list(np.stack([part_of(state, "curve")[key] for state in loaded], axis=1))
            for key in part_of(loaded[0], "curve")
        }
        best = np.full(len(trials), np.inf)
        for epoch in range(start):
            best = np.fmin(best, sign * _finite_row(curves, epoch)[name])
        path, saved = states.new_path(self.folder), time.monotonic()
        ended, trained, best_before = self._standing(first, last)

        def save():
            curve = {f"curve/{key}": np.stack(rows, axis=1) for key, rows in curves.items()}
            of_trials = {
                trial.trial_id: population.state(n) | {key: curve[key][n] for key in curve}
                for n, trial in enumerate(trials)
            }
            states.write(path, len(curves[name]), of_trials)

        for epoch in range(start, last):
            logs = self._train_epoch(population, images, epoch)
            for key, row in logs.items():
                curves[key].append(row)
            values = sign * _finite_row(curves, epoch)[name]
            population.keep(values < best)
            best = np.where(np.isfinite(logs["loss"]), np.fmin(best, values), np.inf)
            epochs = trained + len(trials) * (epoch + 1 - first)
            progress.report(number, ended, epochs, sign * min(best_before, best.min()))
            if epoch + 1 < last and time.monotonic() - saved > CHECKPOINT_INTERVAL_S:
                save()
                saved = time.monotonic()
        if start < last:
            save()  # before the oracle counts these trials as trained
        self._end(trials, [_finite_row(curves, epoch) for epoch in range(last)], best)
        if self.is_worker:
            self.local_oracle.reload()
        ended, trained, best_now = self._standing(first, last)
        progress.report(number, ended, trained, sign * best_now, is_end=True)

    def _end(self, trials, rows, best):
        """Report the curves of trials to the oracle, row by row; a trial without a best fails."""
        for n, trial in enumerate(trials):
            ended = Trial(trial.hyperparameters, trial.trial_id)
            ended.status = "COMPLETED" if np.isfinite(best[n]) else "FAILED"
            for key in rows[0]:
                direction = self.objective.direction if key == self.objective.name else None
                ended.metrics.register(key, direction)
            for epoch, row in enumerate(rows):
                if ended.status == "COMPLETED" or np.isfinite(row["loss"][n]):
                    for key, column in row.items():
                        # Not the tracker's `update`, which reads all epochs each time.
                        ended.metrics.metrics[key].update(float(column[n]), step=epoch)
            self.oracle.end_trial(ended)

    def _state(self, trial, places, images):
        """Return the latest state of a trial, on disk or its initial one."""
        if trial.trial_id in places:
            _, path = places[trial.trial_id]
            return states.read(path, trial.trial_id)
        seed = [self.seed, int(trial.trial_id)]
        state = initial_state(draw(self.hypermodel, self._values(trial), seed))
        empty = np.zeros(0, "float32")
        return state | {f"curve/{prefix}{m}": empty for prefix in images for m in METRICS}

    def _train_epoch(self, population, images, epoch):
        """Train for one epoch; return a dictionary of its metrics, each `(K,)`."""
        order = np.random.default_rng([self.seed, epoch]).permutation(images[""].size)
        logs = dict(zip(METRICS, population.train(images[""], epoch, order), strict=True))
        if "val_" in images:
            measured = zip(METRICS, population.evaluate(images["val_"]), strict=True)
            logs |= {f"val_{metric}": column for metric, column in measured}
        return logs

    def _standing(self, first, last):
        """Return how many trials have ended a round, the sum of all epochs, and the best score."""
        trials = list(self.local_oracle.trials.values())
        come = [trial for trial in trials if epochs_of(trial) >= first]
        ended = sum(trial.status == "FAILED" or epochs_of(trial) >= last for trial in come)
        sign = -1 if self.objective.direction == "max" else 1
        scores = [sign * trial.score for trial in trials if trial.status == "COMPLETED"]
        return ended, sum(map(epochs_of, trials)), min(scores, default=np.inf)

    def _values(self, trial):
        return self.hypermodel.declare_hyperparameters(trial.hyperparameters.copy())

    def load_model(self, trial):
        """Return the model of a trial with its best weights.

        Raises:
            ValueError: If the trial diverged, or its weights were not kept.
        """
        places = states.latest(self.folder)
        if trial.status != "COMPLETED" or trial.trial_id not in places:
            raise ValueError(
                f"Trial {trial.trial_id} has no weights on disk: it diverged, has not ended, or is "
                "not among the best `keep_models`."
            )
        _, path = places[trial.trial_id]
        model = self.hypermodel.build(trial.hyperparameters)
        assign(model, part_of(states.read(path, trial.trial_id), "best"))
        return model


def _round_of(trial, rounds):
    """Return the index of the round in which a trial trains."""
    return next(n for n, (_, last, _) in enumerate(rounds) if epochs_of(trial) < last)


def _finite_row(curves, epoch):
    """Return the metrics of an epoch, all of them NaN for a trial that has one not finite."""
    row = {key: rows[epoch] for key, rows in curves.items()}
    finite = np.all(np.isfinite([*row.values()]), axis=0)
    return {key: np.where(finite, column, np.nan) for key, column in row.items()}


def _refuse(of_stock_tuners):
    if of_stock_tuners:
        name, value = next(iter(of_stock_tuners.items()))
        raise TypeError(
            f"`{name}` is no argument of a population, which does without Keras's training loop; "
            f"`keras_tuner.RandomSearch` searches by that. {checks.received(name, value)}"
        )


def _check_rungs(rungs, trials):
    """Return the rungs as a dictionary of integers, in order."""
    ladder = {0: trials, **(rungs or {})}
    rising = all(a < b for a, b in itertools.pairwise(ladder))
    falling = all(a > b >= 1 for a, b in itertools.pairwise(ladder.values()))
    if not rising or not falling:
        raise ValueError(
            "`rungs` must map rising epochs to falling numbers of trials, such as {40: 30} of 100. "
            f"Received: rungs={rungs}, max_trials={trials}."
        )
    return {int(epoch): int(count) for epoch, count in ladder.items() if epoch}


def _check_arrays(hypermodel, x, y):
    """Raise a `ValueError` if arrays do not fit: compiled programs would read past their ends."""
    if len(x) != len(y) or x.size != len(x) * hypermodel.inputs or not len(x):
        raise ValueError(
            f"`x` must hold an input of the shape {hypermodel.input_shape} for each number of `y`. "
            f"Received: shapes {x.shape} and {y.shape}."
        )
    if not set(np.unique(y)) <= set(range(hypermodel.classes)):
        raise ValueError(
            f"`y` must hold class numbers from 0 to {hypermodel.classes - 1}. "
            f"{checks.received('y', y)}"
        )
