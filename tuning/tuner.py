"""A keras-tuner tuner that trains many trials together."""

import contextlib
import io
import itertools
import json
import os
import pathlib
import time
import types

import numpy as np

from highway_keras.layers.backends import shim
from highway_keras.runs.folder import check_same_settings
from highway_keras.training.networks import under_policy
from highway_keras.tuning import chief
from highway_keras.tuning.hypermodel import ACTIVATIONS, RANGES, HighwayHyperModel
from highway_keras.tuning.oracle import (
    SEARCH,
    STATE,
    STATES,
    WEIGHTS,
    PopulationOracle,
    check_recorded,
    count_ended,
    epochs_of,
    has_ended_round,
    rank_key,
    read_json,
    readable,
    rounds_of,
)
from highway_keras.tuning.population import IN_A_COHORT, Images, Population, check_backend
from highway_keras.tuning.progress import Progress
from highway_keras.tuning.weights import assign, draw, initial_state, part_of
from highway_keras.util import checks
from highway_keras.util.cores import cores
from highway_keras.util.extras import extra
from highway_keras.util.files import (
    LEFTOVERS,
    BusyError,
    digest,
    file_lock,
    folder_lock,
    make_folder,
    replacing,
    write_json,
)

with extra("tune"):
    import keras_tuner
    from keras_tuner.engine.trial import Trial

METRICS = ("loss", "accuracy")
# A CPU gains nothing from more, and small populations end sooner.
COHORTS_A_CORE = 5
SAVING = 120  # seconds between two states of trials that are on their way


class PopulationRandomSearch(keras_tuner.Tuner):
    """Random search that trains its trials in populations: one compilation for all of them.

    Trials of one hypermodel share their shapes, so a population of them runs as one program with
    a trial axis; whole epochs are one compiled loop. Hyperparameters, curves, files and methods are
    those of keras-tuner. All trials see the same batches, drawn from `seed`; a trial starts from
    weights drawn from `seed` and its number. Its result is the same as if trained alone, on a GPU
    up to rounding. None of keras-tuner's hooks is called, such as `run_trial` or `on_trial_end`.

    With `rungs`, the search is a successive halving: all trials train to the first rung, the best
    of them continue to the second, and so on. A trial continues with its own weights, momentum and
    place in the data, as if it had trained alone without a break. A trial that is stopped keeps its
    score; its hyperparameters `tuner/round` and `tuner/epochs`, named as in
    `keras_tuner.Hyperband`, say where it stopped.

    The search can be killed at any moment. Called again with the same arguments, it continues:
    trials that were being trained resume from their last state on disk, saved about every two
    minutes and at every rung. No trial is lost or counted twice.

    With `KERASTUNER_TUNER_ID` and `KERASTUNER_ORACLE_PORT` set, several processes share a search,
    one as the `"chief"` that hands out trials, each of the others as a worker with an id; restart a
    killed worker under the same id. All use the same folder. The chief listens on
    `KERASTUNER_ORACLE_IP`, by default 127.0.0.1. It does not authenticate workers: give it another
    address only on a network that you trust. Read the results in the chief (`not tuner.is_worker`),
    or later in a process without these variables.

    Args:
        hypermodel: A `HighwayHyperModel`, or one of a subclass that overrides neither `build` nor
            `fit`.
        objective: What to minimize or maximize: `"loss"`, `"accuracy"` (over an epoch's batches),
            `"val_loss"` or `"val_accuracy"`, or a `keras_tuner.Objective` of one of them.
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
        TypeError: If `hypermodel` is not a `HighwayHyperModel`, or overrides `build` or `fit`.
        ValueError: If an argument is out of its range.
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
    ):
        check_backend()
        _check_hypermodel(hypermodel)
        self.seed = checks.seed(seed)
        self.max_trials = checks.positive_integer("max_trials", max_trials)
        self.keep_models = checks.positive_integer("keep_models", keep_models)
        self.rungs = _check_rungs(rungs, max_trials)
        self.population = checks.positive_integer("population", population, or_none="the default")
        self.slots = 0  # by which a restarted worker asks for its former trials
        self._templates = {}  # models to save weights by, one for each activation
        chief.check_variables()
        if "KERASTUNER_ORACLE_PORT" in os.environ:
            os.environ.setdefault("KERASTUNER_ORACLE_IP", "127.0.0.1")
            chief.address()  # raises an error if the port is invalid
        first = self.seed or 1  # the stock oracle takes 0 for "any"
        oracle = PopulationOracle(objective, max_trials, first, self.rungs, keep_models)
        self.objective = oracle.objective
        # The trials there are the chief's, which may be about to delete them.
        self._is_replaced, overwrite = overwrite, not self.is_worker and overwrite
        folder = checks.path("directory", directory or ".") / (project_name or "untitled_project")
        if overwrite and folder.exists():
            with folder_lock(folder):  # nobody else is searching there
                pass
        where = {"directory": make_folder(folder).parent, "project_name": folder.name}
        with contextlib.redirect_stdout(io.StringIO()):  # keras-tuner prints what it reloads
            super().__init__(oracle, hypermodel, overwrite=overwrite, **where)

    @property
    def is_chief(self):
        """Whether this process hands out the trials of a search that several share."""
        return "KERASTUNER_ORACLE_IP" in os.environ and "chief" in self.tuner_id

    @property
    def is_worker(self):
        """Whether this process takes its trials from a chief."""
        return self._is_worker()

    def _populate_initial_space(self):
        self.oracle.update_space(whole_space(self.hypermodel))

    def get_state(self):
        return {"population": max(self.slots, self.population or 0)}

    def set_state(self, state):
        self.slots = state["population"] if self.is_worker else 0

    def _get_tuner_fname(self):
        # A chief uses the name of a single process, which may continue the search later.
        name = self.tuner_id if self.is_worker else "tuner0"
        return str(pathlib.Path(self.project_dir) / f"{name}.json")

    def reload(self):
        path = pathlib.Path(self._get_tuner_fname())
        state = read_json(path)
        if "population" not in state and (path.parent / "oracle.json").exists():
            raise ValueError(
                "`project_name` must be that of a search by `PopulationRandomSearch`, or a new "
                f"one. Received: project_name={self.project_name!r}; another tuner made the search "
                f"in {path.parent}. Name another one, or pass overwrite=True to delete that search."
            )
        with readable(self.project_dir):
            super().reload()
            settings = dict((not self.is_worker and self.oracle.settings) or {})
        if "objective" in settings:  # by which the best are found; `search` compares the others
            before, now = ({"objective": o} for o in (settings["objective"], self._ranked_by))
            check_same_settings(before, now, f"the search in {self.project_dir}")

    @property
    def _ranked_by(self):
        return f"{self.objective.direction} {self.objective.name}"

    def save(self):
        if not self.is_worker:
            self.oracle.save()
        write_json(self._get_tuner_fname(), self.get_state(), indent=None)

    def search(self, x, y=None, validation_data=None, epochs=1, batch_size=128, verbose="auto"):
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
            BusyError: If another process is searching there.
            RuntimeError: In a worker, if there is no chief.
        """
        epochs = checks.positive_integer("epochs", epochs)
        batch_size = checks.positive_integer("batch_size", batch_size)
        pairs = {"": _check_data(self.hypermodel, x, y)}
        if validation_data is not None:
            if len(validation_data) != 2:
                raise ValueError(
                    "`validation_data` must be a pair `(x, y)`; a search takes no sample weights. "
                    f"Received: {len(validation_data)} values."
                )
            pairs["val_"] = _check_data(self.hypermodel, *validation_data, "validation_data")
        measured = [f"{prefix}{metric}" for prefix in pairs for metric in METRICS]
        if self.objective.name not in measured:
            raise ValueError(
                f"`objective` must be one of {', '.join(measured)}; those with `val_` need "
                f"`validation_data`. Received: {self.objective}."
            )
        settings, self.oracle_here.epochs = self.settings(pairs, epochs, batch_size), epochs
        images = {prefix: Images(*pair, batch_size) for prefix, pair in pairs.items()}
        if self.is_worker:
            self._search_id = digest(settings)
            try:
                with file_lock(self._get_tuner_fname()):
                    chief.outlive(
                        lambda: self._work(settings, images, epochs, verbose), self._is_over
                    )
            except BusyError as error:
                raise BusyError(
                    f"Another process is worker {self.tuner_id!r} of this search. Give this one a "
                    "KERASTUNER_TUNER_ID of its own."
                ) from error
            return
        with folder_lock(self.project_dir):
            if check_recorded(self.project_dir, settings):  # another process may have continued it
                with readable(self.project_dir):
                    self.oracle.reload()
            self.oracle.settings, self.oracle.error = settings, None
            if not self.is_chief:
                project = pathlib.Path(self.project_dir)
                for folder in (project, *project.glob("trial_*")):  # others may write below it
                    for leftover in folder.glob(LEFTOVERS):  # of a process that was killed
                        leftover.unlink(missing_ok=True)
                self._search(images, epochs, verbose)
            elif not self.oracle.has_ended:  # else it would wait for workers that never come
                chief.check_port()
                self.save()
                chief.lead(self.oracle)

    @property
    def oracle_here(self):
        """The oracle that reads the folder; that of a worker asks the chief."""
        return self.oracle._oracle if self.is_worker else self.oracle

    def has_chief(self):
        """Wait until a worker's chief listens; return false if the search ended without one."""
        found = chief.wait(self._is_over)
        self._is_replaced = False  # by this chief, before it listened
        return found

    def _is_over(self):
        """Return whether all trials in the folder of a worker's search have ended."""
        if self._is_replaced:
            return False
        # Unless a file is missing, damaged or just being written
        with contextlib.suppress(ValueError), readable(self.project_dir):
            self.oracle_here.reload()
            return self.oracle_here.has_ended
        return False

    def _work(self, settings, *arguments):
        """Train the trials that a chief hands out."""
        self.has_chief()  # one that listens has recorded its settings
        if not check_recorded(self.project_dir, settings):
            raise ValueError(
                "`directory` must be that of the chief's search: all its processes share one, and "
                "a KERASTUNER_ORACLE_PORT of their own. "
                f"Received: directory={str(self.directory)!r} without it."
            )
        self._search(*arguments)

    @property
    def chosen(self):
        """The rungs and the parts of the space that differ from the defaults, a dictionary."""
        hypermodel = self.hypermodel
        chosen = {name: list(getattr(hypermodel, name)) for name in RANGES}
        chosen = {name: pair for name, pair in chosen.items() if pair != list(RANGES[name])}
        if hypermodel.activations != ACTIVATIONS:
            chosen["activations"] = list(hypermodel.activations)
        if self.rungs:
            chosen["rungs"] = {str(epoch): count for epoch, count in self.rungs.items()}
        return chosen

    def settings(self, pairs, epochs, batch_size):
        """Return the settings that determine the trials of a search, but not their number.

        Args:
            pairs: A dictionary from the prefix of metrics, `""` or `"val_"`, to a pair of inputs
                and class numbers.
            epochs, batch_size: As for `search`.
        """
        if epochs <= max(self.rungs, default=0):
            raise ValueError(
                "`epochs` must be above the last of the `rungs`. "
                f"Received: epochs={epochs}, rungs={self.rungs}."
            )
        hypermodel = self.hypermodel
        data = {}
        for prefix, (x, y) in pairs.items():
            data[f"{prefix}labels"] = f"{len(y)} {digest(np.ravel(y).astype(int).tolist())}"
            # Images may differ in their last bits, but not in their scale or by class.
            spread = float(np.std(x))
            means = [np.mean(x[np.ravel(y) == label]) for label in np.unique(y)]
            means = [str(round(float(mean) / (spread or 1), 2)) for mean in means]
            data[f"{prefix}inputs"] = f"{' '.join(means)} ± {spread:.2g}"
        space = whole_space(hypermodel)
        values = hypermodel.declare_hyperparameters(space)
        fixed = {k: str(v) for k, v in values.items() if space.values.get(k) != v}
        return {
            "kind": hypermodel.kind,
            "depth": hypermodel.depth,
            "space": digest(sorted(space.get_config()["space"], key=_order)),
            "units": hypermodel.units,
            "input_shape": list(hypermodel.input_shape),
            "classes": hypermodel.classes,
            "objective": self._ranked_by,
            "seed": self.seed,
            "epochs": epochs,
            "batch_size": batch_size,
            **({"fixed": fixed} if fixed else {}),
            **data,
            **self.chosen,
        }

    def _search(self, images, epochs, verbose):
        if not self.population:
            usual = COHORTS_A_CORE * IN_A_COHORT * cores()
            self.population = self.max_trials if shim.accelerators() else usual
        self.save()  # else a search killed before its first trial ends would not be reloaded
        rounds = rounds_of(self.rungs, epochs, self.max_trials)
        count = min(max(self.slots, self.population), self.max_trials)
        slots = [f"{self.tuner_id}-{n}" for n in range(count)]
        shown = self.project_name, rounds, self._count_ended(rounds), self.objective.name, verbose
        with Progress(*shown) as progress:
            while slots and self._may_ask():
                asked = [self.oracle.create_trial(slot) for slot in slots]
                # A slot that was told to stop must not ask again: the chief may be gone by then.
                slots = [s for s, t in zip(slots, asked, strict=True) if t.status != "STOPPED"]
                trials = [trial for trial in asked if trial.status == "RUNNING"]
                if trials:
                    # After an interruption, trials may have come to different epochs.
                    starts = [self._start(trial, rounds) for trial in trials]
                    group = [t for t, s in zip(trials, starts, strict=True) if s == starts[0]]
                    group = group[: self.population]
                    self._train(group, *starts[0], images, rounds, progress)
                elif slots:  # other workers are on their way to a rung
                    time.sleep(chief.PAUSE)

    def _may_ask(self):
        """Return whether to ask for trials; a worker first waits until the chief listens.

        keras-tuner's client would wait an hour.
        """
        if not self.is_worker:
            return True
        if not self.has_chief():
            return False
        if self.oracle.get_space().values.get(SEARCH) != self._search_id:
            host, port = chief.address()
            raise ValueError(
                f"The chief on {host}:{port} leads another search. Give each search a "
                "KERASTUNER_ORACLE_PORT of its own, and this worker the options of its chief."
            )
        return True

    def _start(self, trial, rounds):
        """Return the number of a trial's round, and the epoch of its last state on disk."""
        number = trial.hyperparameters.values.get("tuner/round", 0)
        first, last, _ = rounds[number]
        files = pathlib.Path(self.get_trial_dir(trial.trial_id)).glob(STATES)
        return number, max([first, *(e for e in map(epochs_of, files) if first < e <= last)])

    def _train(self, trials, number, start, images, rounds, progress):
        """Train trials of one round together, from the epoch of their states to its end."""
        first, last, count = rounds[number]
        values = [self._values(trial) for trial in trials]
        states = [self._state(trial, v, start) for trial, v in zip(trials, values, strict=True)]
        width = min(self.population, count)
        cohort_size = width if shim.accelerators() else None
        population = Population(self.hypermodel.kind, values, states, cohort_size)
        saved_curves = [part_of(state, "curve") for state in states]
        curves = [  # the results of `_train_epoch` for each epoch since the round began
            {key: np.array([curve[key][n] for curve in saved_curves]) for key in saved_curves[0]}
            for n in range(start - first)
        ]
        progress.initial += len(trials) * len(curves)  # restored epochs say nothing about speed
        saved = time.monotonic()
        name, sign = self.objective.name, -1 if self.objective.direction == "max" else 1
        scores = np.array([rank_key(trial, self.objective, first) for trial in trials])
        others = [t.score for t in self.oracle.get_best_trials() if t.status == "COMPLETED"]

        def best_score():
            key = min([*(sign * score for score in others), *scores])
            return sign * key if np.isfinite(key) else None

        for epoch in range(first, last):
            if is_new := epoch == first + len(curves):  # not from before an interruption
                curves.append(self._train_epoch(population, images, epoch))
            logs = curves[epoch - first]
            finite = np.all([np.isfinite(column) for column in logs.values()], axis=0)
            improved = (sign * logs[name] < scores) & finite
            if is_new:
                population.keep(improved)
            scores = np.where(improved, sign * logs[name], scores)
            scores[~np.isfinite(logs["loss"])] = np.inf
            epochs = len(trials) * (epoch + 1 - first)
            progress.report(number, best_score(), epochs=epochs)
            if is_new and epoch + 1 < last and time.monotonic() - saved > SAVING:
                self._save_running(population, trials, epoch + 1, curves)
                saved = time.monotonic()
            if not np.isfinite(logs["loss"]).any():
                curves += [logs] * (last - first - len(curves))
                break
        # Save states and the best weights before telling the oracle. Save more weights than
        # `keep_models`: the oracle decides between tied trials later, and trials that continue may
        # still fail.
        self._save_running(population, trials, last, curves)
        if not self._may_ask():
            return  # other workers have ended these trials
        # Where it was restarted, another worker may have ended the round of a trial, and gone on.
        stale = [t for t in trials if has_ended_round(self.oracle.get_trial(t.trial_id), last)]
        going = rounds[number + 1][2] if number + 1 < len(rounds) else 0
        worst = np.sort(scores)[: self.keep_models + going][-1]
        for index in np.flatnonzero(np.isfinite(scores) & (scores <= worst)):
            best = part_of(population.state(index), "best")
            if trials[index] not in stale:
                self._save_weights(trials[index], values[index]["activation"], best)
        if not self._may_ask():
            return
        for index, trial in enumerate(trials):
            if not trial.metrics.exists(name):
                trial.metrics.register(name, self.objective.direction)
            for epoch, logs in enumerate(curves, start=first):
                row = {metric: float(column[index]) for metric, column in logs.items()}
                if np.isfinite([*row.values()]).all():
                    for metric, value in row.items():
                        if not trial.metrics.exists(metric):
                            trial.metrics.register(metric)
                        # Not the tracker's own `update`, which reads all epochs before each time.
                        trial.metrics.metrics[metric].update(value, step=epoch)
            trial.status = "COMPLETED" if np.isfinite(scores[index]) else "FAILED"
            with contextlib.redirect_stdout(io.StringIO()):  # a worker's prints conditions
                self.oracle.end_trial(trial)
        progress.report(number, best_score(), ended=self._count_ended(rounds))

    def _train_epoch(self, population, images, epoch):
        """Train for one epoch; return a dictionary of its metrics, each `(K,)`."""
        order = np.random.default_rng([self.seed, epoch]).permutation(images[""].size)
        logs = dict(zip(METRICS, population.train(images[""], epoch, order), strict=True))
        if "val_" in images:
            measured = zip(METRICS, population.evaluate(images["val_"]), strict=True)
            logs |= {f"val_{metric}": column for metric, column in measured}
        return logs

    def _save_running(self, population, trials, epoch, curves):
        """Save trials after an epoch, in place of what was saved before in their round."""
        for index, trial in enumerate(trials):
            curve = {f"curve/{key}": [row[key][index] for row in curves] for key in curves[0]}
            file = self._file(trial.trial_id, STATE.format(epoch))
            with replacing(file) as temporary:
                np.savez(temporary, **population.state(index), **curve)
            for other in file.parent.glob(STATES):
                if epoch - len(curves) < epochs_of(other) < epoch:
                    other.unlink(missing_ok=True)

    def _state(self, trial, values, start):
        """Return the state of a trial after the epoch `start`."""
        if not start:
            return initial_state(draw(self.hypermodel, values, [self.seed, int(trial.trial_id)]))
        with readable(self.project_dir):
            return dict(np.load(self._file(trial.trial_id, STATE.format(start))))

    def _count_ended(self, rounds):
        """Return how many trials have ended each round, those of other workers included."""
        if not self.is_worker:
            return count_ended(self.oracle.trials.values(), rounds)
        files = pathlib.Path(self.project_dir).glob("trial_*/trial.json")
        return count_ended([Trial.load(file) for file in files], rounds)

    def _values(self, trial):
        """Return what the hypermodel makes of a trial's hyperparameters."""
        hp = trial.hyperparameters.copy()
        drawn = {*hp.values}
        values = self.hypermodel.declare_hyperparameters(hp)
        if new := hp.values.keys() - drawn:
            raise ValueError(
                "`hypermodel.declare_hyperparameters` must declare the same names whatever their "
                "values, those that depend on others in an `hp.conditional_scope`. "
                f"Received: {', '.join(sorted(new))} of trial {trial.trial_id}."
            )
        checks.one_of("activation", values["activation"], ACTIVATIONS)
        has_gates = self.hypermodel.kind == "highway"
        for name in (name for name in RANGES if has_gates or name != "transform_bias"):
            share = {"least": 0, "most": 1} if name == "one_minus_momentum" else {}
            checks.number(name, values.get(name), **share)  # `None` where a condition does not hold
        return values

    def _save_weights(self, trial, activation, weights):
        if activation not in self._templates:
            self._templates[activation] = self._build_hypermodel(trial.hyperparameters)
        assign(self._templates[activation], weights)
        # Configuration and rate saved are those of the first trial: see `load_model`.
        # Not `save_weights`: on a full disk, HDF5 ends the process with a segmentation fault. For a
        # `.keras` archive, Keras writes the HDF5 part in memory.
        with replacing(self._get_checkpoint_fname(trial.trial_id)) as temporary:
            self._templates[activation].save(temporary)

    def _get_checkpoint_fname(self, trial_id):
        return str(self._file(trial_id, WEIGHTS))

    def _file(self, trial_id, name):
        return pathlib.Path(self.get_trial_dir(trial_id)) / name

    def load_model(self, trial):
        """Return the model of a trial with its best weights.

        Raises:
            ValueError: If the trial failed, or is not among the best.
        """
        if not self._file(trial.trial_id, WEIGHTS).exists():
            why = "is not among the best that the search kept (`keep_models`), or has not ended"
            why = "diverged" if trial.status == "FAILED" else why
            raise ValueError(f"Trial {trial.trial_id} has no weights on disk: it {why}.")
        model = super().load_model(trial)
        # Keras loads the weights and, of an optimizer that was never built, also the rate.
        model.optimizer.learning_rate = float(self._values(trial)["learning_rate"])
        return model

    def _build_hypermodel(self, hp):
        with under_policy("float32"):  # in which a population trains, whatever the policy
            return super()._build_hypermodel(hp)


def _order(declared):
    """Return a sort key: conditional ones last and sorted, since keras-tuner's order varies."""
    return json.dumps(declared, sort_keys=True) if declared["config"]["conditions"] else ""


def whole_space(hypermodel):
    """Return all that a hypermodel declares, in every conditional scope."""
    # The stock way needs a tuner's oracle and hypermodel, and would build the model in each scope;
    # declaring is enough.
    declared = types.SimpleNamespace(build=hypermodel.declare_hyperparameters)
    oracle = keras_tuner.oracles.RandomSearchOracle("loss")
    scopes = types.SimpleNamespace(oracle=oracle, hypermodel=declared)
    keras_tuner.Tuner._activate_all_conditions(scopes)
    return oracle.get_space()


def _check_hypermodel(hypermodel):
    """Raise an error if a population could not train the hypermodel's networks faithfully."""
    if not isinstance(hypermodel, HighwayHyperModel):
        raise TypeError(
            "`hypermodel` must be a `HighwayHyperModel`; for others there is "
            f"`keras_tuner.RandomSearch`. {checks.received('hypermodel', hypermodel)}"
        )
    for name in ("build", "fit"):
        if getattr(type(hypermodel), name) is not getattr(HighwayHyperModel, name):
            raise TypeError(
                f"`hypermodel` must not override `{name}`: populations do not call it. Ranges are "
                "arguments of `HighwayHyperModel`; another space is `declare_hyperparameters`; "
                "`keras_tuner.RandomSearch` calls all methods. "
                f"Received: hypermodel={type(hypermodel).__name__}."
            )
    hp = keras_tuner.HyperParameters
    wanted = HighwayHyperModel.declare_hyperparameters(hypermodel, hp())
    declared = hypermodel.declare_hyperparameters(hp()) or {}
    if not wanted.keys() <= declared.keys() <= {*wanted, "transform_bias"}:
        raise ValueError(
            "`hypermodel.declare_hyperparameters` must return a dictionary of "
            f"{', '.join(sorted(wanted))}, and of nothing else, since a population varies no depth "
            f"or width. Received: {declared}."
        )


def _check_rungs(rungs, trials):
    """Return the rungs as a dictionary of integers, in order."""
    ladder = list(rungs.items() if isinstance(rungs, dict) else rungs or ())
    epochs, counts = [0, *(epoch for epoch, _ in ladder)], [trials, *(count for _, count in ladder)]
    rising = all(checks.is_positive_integer(b) and a < b for a, b in itertools.pairwise(epochs))
    falling = all(checks.is_positive_integer(b) and a > b for a, b in itertools.pairwise(counts))
    if not rising or not falling:
        raise ValueError(
            "`rungs` must name rising epochs and, for each, fewer trials than before, such as 30 "
            "from epoch 40 and 10 from epoch 133 of 100 trials. Received: "
            f"rungs={rungs}, max_trials={trials}."
        )
    return {int(epoch): int(count) for epoch, count in ladder}


def _check_data(hypermodel, x, y, name=""):
    """Return `x` and `y` as arrays, if they are inputs and class numbers for the hypermodel."""
    x_name, y_name = (f"{name}[0]", f"{name}[1]") if name else ("x", "y")
    x, y = np.asarray(x), np.asarray(y)
    # Flat, or as the hypermodel has it, with or without axes of one
    sides, wanted = ([n for n in shape if n > 1] for shape in (x.shape[1:], hypermodel.input_shape))
    fits = x.size and x.ndim >= 2 and sides in (wanted, [hypermodel.inputs])
    if not fits or x.dtype.kind not in "uif" or not np.isfinite(x).all():
        raise ValueError(
            f"`{x_name}` must be an array of finite inputs of the shape {hypermodel.input_shape}; "
            f"`keras_tuner.RandomSearch` takes a `tf.data.Dataset`. Received: shape={x.shape}, "
            f"dtype={x.dtype}."
        )
    numbers = np.issubdtype(y.dtype, np.number) and y.size == len(x)
    if not numbers or not set(np.unique(y)) <= set(range(hypermodel.classes)):
        raise ValueError(
            f"`{y_name}` must hold a class number from 0 to {hypermodel.classes - 1} for each "
            f"input. Received: {checks.short_repr(y)} for {len(x)} inputs."
        )
    return x, y
