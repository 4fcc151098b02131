"""A keras-tuner tuner that trains many trials together."""

import hashlib
import itertools
import json
import os
import pathlib
import sys
import time

import keras
import numpy as np

from highway_keras.layers.backends import shim
from highway_keras.tuning import states
from highway_keras.tuning.hypermodel import HighwayHyperModel
from highway_keras.tuning.oracle import KEPT_MODELS, SEARCH, RungOracle, epochs_of
from highway_keras.tuning.population import IN_A_COHORT, Images, Population, check_backend
from highway_keras.tuning.programs import METRICS
from highway_keras.tuning.weights import assign, draw, initial_state, part_of, stacked
from highway_keras.util import checks
from highway_keras.util.cores import cores
from highway_keras.util.extras import extra
from highway_keras.util.files import LEFTOVERS, file_lock, folder_lock

with extra("tune"):
    import keras_tuner
    from keras_tuner.engine.trial import Trial

OBJECTIVES = (*METRICS, *(f"val_{metric}" for metric in METRICS))
COHORTS_PER_CORE = 5  # a CPU gains nothing from more, and small populations end sooner
CHECKPOINT_INTERVAL_S = 120
POLL_INTERVAL_S = 0.5  # between two questions of a worker that waits for others
LOG_INTERVAL_S = 60  # between two lines of progress where the output is no terminal


class PopulationRandomSearch(keras_tuner.Tuner):
    """Random search that trains its trials in populations: one compilation for all of them.

    Trials of one hypermodel share their shapes, so a population of them is one program with a trial
    axis; whole epochs are one compiled loop. Hyperparameters, curves and methods are those of
    keras-tuner, but of its hooks only `on_search_end` is called, while the folder is still locked.
    All trials see the same batches, drawn from `seed`; a trial's weights are drawn from `seed` and
    its number. Its result is the same as if trained alone, on a GPU up to rounding.

    With `rungs`, the search is a successive halving: all trials train to the first rung, the best
    of them continue to the second, and so on. A trial that is stopped keeps its score.

    A search that was killed continues when it is called again with the same arguments: trials
    resume from their state on disk, which is saved every two minutes and at every rung.

    Several processes share a search by keras-tuner's `KERASTUNER_ORACLE_IP`,
    `KERASTUNER_ORACLE_PORT` and `KERASTUNER_TUNER_ID`: the `"chief"` hands out trials, the others
    train them. Read the results in the chief, or later without these variables.

    Args:
        hypermodel: A `HighwayHyperModel`, or one of a subclass that overrides neither `build` nor
            `fit`.
        objective: What to rank by: `"loss"` or `"accuracy"` over an epoch's batches, `"val_loss"`
            or `"val_accuracy"` of the validation data.
        max_trials: Number of trials.
        seed: Non-negative integer that determines hyperparameters, weights and order of images. The
            hyperparameters equal the hyperparameters of keras-tuner's `RandomSearch` with the same
            seed, except that seed 0, which keras-tuner takes for a random seed, draws like seed 1.
            keras-tuner adds one to the seed for each value that it draws, so the seeds of
            independent searches must differ by more than `5 * max_trials`.
        population: Number of trials to train together. Default: 10 for each CPU core, or all on an
            accelerator.
        directory: Folder of searches; `None` for the current one.
        project_name: The search's own folder in it; `None` for keras-tuner's `untitled_project`.
        overwrite: Whether to delete the search in the folder instead of continuing it. A worker
            leaves that to its chief.
        rungs: How many trials continue beyond which epoch, a dictionary or pairs: `{40: 30, 133:
            10}` stops all but the best 30 after epoch 40, and all but 10 after epoch 133. Default:
            all train to the end.

    Raises:
        TypeError: If `hypermodel` is not a `HighwayHyperModel`, or for other arguments of tuners.
        ValueError: If an argument is out of its range, or another tuner searched in the folder.
        BusyError: If another process is searching in the folder to overwrite.
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
        directory=None,
        project_name=None,
        overwrite=False,
        rungs=None,
    ):
        check_backend()
        cls, ours = type(hypermodel), HighwayHyperModel
        if not issubclass(cls, ours) or (cls.build, cls.fit) != (ours.build, ours.fit):
            raise TypeError(
                "`hypermodel` must be a `HighwayHyperModel` with the `build` and `fit` of that "
                "class; `keras_tuner.RandomSearch` takes others. "
                f"{checks.received('hypermodel', hypermodel)}"
            )
        checks.one_of("objective", objective, OBJECTIVES)
        checks.positive_integer("max_trials", max_trials)
        self.seed = checks.seed(seed)
        self.population = checks.positive_integer("population", population, or_none=True)
        self.rungs = _check_rungs(rungs, max_trials)
        # To the stock oracle, 0 means that it draws a seed of its own.
        self.local_oracle = RungOracle(objective, max_trials, self.seed or 1, self.rungs)
        directory = pathlib.Path(directory or ".").expanduser()
        folder = directory / (project_name or "untitled_project")
        is_chief = "chief" in os.environ.get("KERASTUNER_TUNER_ID", "")
        self.is_worker = "KERASTUNER_ORACLE_IP" in os.environ and not is_chief
        overwrite = overwrite and not self.is_worker
        if overwrite and folder.exists():
            with folder_lock(folder):  # raises if another process is searching there
                pass
        super().__init__(
            self.local_oracle,
            hypermodel,
            directory=directory,
            project_name=project_name,
            overwrite=overwrite,
        )
        self.folder = self.local_oracle.folder = pathlib.Path(self.project_dir)
        direction = self.local_oracle.objective.direction
        self.settings = {
            "kind": hypermodel.kind,
            "depth": hypermodel.depth,
            "units": hypermodel.units,
            "input_shape": list(hypermodel.input_shape),
            "classes": hypermodel.classes,
            "objective": objective,
            "direction": direction,
            "seed": self.seed,
            "rungs": " ".join(f"{epoch}:{count}" for epoch, count in self.rungs.items()),
        }
        self.sign = -1 if direction == "max" else 1
        # A hyperparameter has several configurations if it depends on others; their order varies.
        space = self.local_oracle.get_space().get_config()["space"]
        by_name = {}
        for parameter in space:
            by_name.setdefault(parameter["config"].pop("name"), []).append(parameter)
        for name, configurations in by_name.items():
            self.settings[f"space.{name}"] = json.dumps(sorted(configurations, key=str))
        if not self.is_worker:
            self.local_oracle.reload()

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
        y,
        validation_data=None,
        epochs=1,
        batch_size=128,
        verbose="auto",
    ):
        """Train trials until `max_trials` of them have ended.

        Args:
            x: Images or flat inputs, an array `(n, ...)`, scaled as the network expects them.
            y: Class numbers, an array `(n,)`.
            validation_data: `(x, y)` to measure every trial on after every epoch.
            epochs: Epochs per trial; with rungs, of the trials that are never stopped.
            batch_size: Images per step.
            verbose: `"auto"` for a bar of progress, 0 for none.

        Raises:
            ValueError: If the arrays do not fit the hypermodel or one another, or the folder
                holds another search.
            BusyError: If another process is searching there.
        """
        epochs = checks.positive_integer("epochs", epochs)
        batch_size = checks.positive_integer("batch_size", batch_size)
        if epochs <= max(self.rungs, default=0):
            raise ValueError(
                "`epochs` must be above the last of the `rungs`. "
                f"Received: epochs={epochs}, rungs={self.rungs}."
            )
        pairs = {"": (x, y)}  # by the prefix of their metrics
        if validation_data is not None:
            pairs["val_"] = validation_data
        elif self.settings["objective"].startswith("val_"):
            raise ValueError(
                f"`validation_data` must be given with objective={self.settings['objective']!r}. "
                "Received: validation_data=None."
            )
        settings = {**self.settings, "epochs": epochs, "batch_size": batch_size}
        images = {}
        for prefix, (values, labels) in pairs.items():
            values, labels = np.asarray(values, "float32"), np.ravel(labels)
            _check_arrays(self.hypermodel, values, labels)
            digest = hashlib.sha256(np.ascontiguousarray(values))
            digest.update(labels.astype("int64"))
            settings[f"{prefix}images"] = digest.hexdigest()[:16]
            images[prefix] = Images(values, labels, batch_size)
        if self.is_worker:
            with file_lock(self.folder / self.tuner_id):
                self._work(settings, images, verbose)
            return
        with folder_lock(self.folder):
            self.local_oracle.reload()  # another process may have continued it
            if self.local_oracle.begin(settings):
                for leftover in self.folder.glob(LEFTOVERS):  # of a process that was killed
                    leftover.unlink(missing_ok=True)
                if "KERASTUNER_ORACLE_IP" in os.environ:
                    super().search()  # serves its workers until all trials have ended
                else:
                    self._train_all(images, verbose)
            self.on_search_end()

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
        checks.same_settings(self.folder, self.local_oracle.settings, settings)
        self._train_all(images, verbose)

    def _train_all(self, images, verbose):
        """Train trials, as many together as the population has, until none is left."""
        max_trials = self.local_oracle.max_trials
        usual = max_trials if shim.accelerators() else COHORTS_PER_CORE * IN_A_COHORT * cores()
        size = min(self.population or usual, max_trials)
        slots = [f"{self.tuner_id}-{n}" for n in range(size)]
        while slots:
            asked = [self.oracle.create_trial(slot) for slot in slots]
            slots = [s for s, t in zip(slots, asked, strict=True) if t.status != "STOPPED"]
            running = [trial for trial in asked if trial.status == "RUNNING"]
            if running:
                self._train(running, size, images, verbose)
            elif slots:  # other workers are on their way to a rung
                time.sleep(POLL_INTERVAL_S)

    def _train(self, trials, size, images, verbose):
        """Train the trials that stand at the first one's epoch to the end of their round."""
        places = states.latest(self.folder)
        loaded = [
            states.read(places[trial.trial_id], trial.trial_id)
            if trial.trial_id in places
            else self._initial_state(trial, images)
            for trial in trials
        ]
        # After an interruption, trials may have come to different epochs.
        positions = [
            (self.local_oracle.round_of(trial), len(state["curve/loss"]))
            for trial, state in zip(trials, loaded, strict=True)
        ]
        together = [n for n, position in enumerate(positions) if position == positions[0]]
        trials = [trials[n] for n in together]
        state = stacked([loaded[n] for n in together])
        (first, last, count), start = positions[0]

        cohort_size = min(size, count) if shim.accelerators() else None
        hyperparameters = [self._values(trial) for trial in trials]
        population = Population(self.hypermodel.kind, hyperparameters, state, cohort_size)
        curves, ids = part_of(state, "curve"), [trial.trial_id for trial in trials]
        path, saved_at = states.new_path(self.folder), time.monotonic()
        bar = self._progress_bar(len(trials), (first, last, count), start, verbose)
        for epoch in range(start, last):
            for key, row in self._train_epoch(population, images, epoch).items():
                curves[key] = np.vstack([curves[key], row])
            *earlier, now = self._ranks(curves)
            population.keep(now < np.min(earlier, axis=0, initial=np.inf))
            # At the end, before the oracle counts these trials as trained.
            if epoch + 1 == last or time.monotonic() - saved_at > CHECKPOINT_INTERVAL_S:
                states.write(path, ids, population.state(), curves)
                saved_at = time.monotonic()
            best = self.sign * min(now.min(), np.min(earlier, initial=np.inf))
            bar.update(epoch + 1 - start, [(f"best {self.settings['objective']}", best)])
        self._end(trials, curves)

    def _progress_bar(self, count, of_round, start, verbose):
        """Return a bar of the epochs that some trials train, below a line that says which."""
        if self.is_worker:
            self.local_oracle.reload()
        first, last, total = of_round
        entered = [t for t in self.local_oracle.trials.values() if epochs_of(t) >= first]
        ended = sum(trial.status == "FAILED" or epochs_of(trial) >= last for trial in entered)
        if verbose:
            which = f"{ended + 1} to {ended + count} of {total}"
            print(f"{self.project_name}: trials {which}, to epoch {last}", flush=True)
        return keras.utils.Progbar(
            last - start,
            verbose=int(bool(verbose)),
            interval=0.05 if sys.stdout.isatty() else LOG_INTERVAL_S,
            stateful_metrics=[f"best {self.settings['objective']}"],
            unit_name="epoch",
        )

    def _train_epoch(self, population, images, epoch):
        """Train for one epoch; return a dictionary of its metrics, each `(K,)`."""
        order = np.random.default_rng([self.seed, epoch]).permutation(images[""].size)
        logs = dict(zip(METRICS, population.train(images[""], epoch, order), strict=True))
        if "val_" in images:
            measured = zip(METRICS, population.evaluate(images["val_"]), strict=True)
            logs |= {f"val_{metric}": column for metric, column in measured}
        return logs

    def _ranks(self, curves):
        """Return what trials are ranked by, `(epochs, K)`: the lower, the better."""
        values = self.sign * curves[self.settings["objective"]]
        return np.where(np.isfinite(values) & np.isfinite(curves["loss"]), values, np.inf)

    def _end(self, trials, curves):
        """Report the curves of trials, each `(epochs, K)`, to the oracle.

        A trial has failed if its loss is no longer finite, or if nothing can rank it.
        """
        finite = np.isfinite(curves["loss"])
        has_rank = np.isfinite(self._ranks(curves)).any(axis=0)
        completed = finite.all(axis=0) & has_rank
        for n, trial in enumerate(trials):
            status = "COMPLETED" if completed[n] else "FAILED"
            ended = Trial(trial.hyperparameters, trial.trial_id, status)
            for key, curve in curves.items():
                ended.metrics.register(key, METRICS[key.removeprefix("val_")])
                # Not `metrics.update`, which looks for the best of all values before each.
                history = ended.metrics.metrics[key]
                for epoch in np.flatnonzero(finite[:, n]).tolist():
                    history.update(float(curve[epoch, n]), epoch)
            self.oracle.end_trial(ended)

    def _initial_state(self, trial, images):
        seed = [self.seed, int(trial.trial_id)]
        state = initial_state(draw(self.hypermodel, self._values(trial), seed))
        empty = np.zeros(0, "float32")
        return state | {f"curve/{prefix}{m}": empty for prefix in images for m in METRICS}

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
                f"not among the best {KEPT_MODELS}."
            )
        model = self.hypermodel.build(trial.hyperparameters)
        assign(model, part_of(states.read(places[trial.trial_id], trial.trial_id), "best"))
        return model


def _check_rungs(rungs, trials):
    """Return the rungs as a dictionary of integers, in order."""
    rungs = dict(rungs or {})
    ladder = {0: trials, **rungs}
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
    checks.class_numbers("y", y, hypermodel.classes)
