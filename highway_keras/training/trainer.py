"""The one trainer: reads a recipe, trains a network with `model.fit`, leaves a folder."""

import dataclasses
import statistics
import sys
import time

import keras
import numpy as np

from highway_keras import data, models
from highway_keras.training.batches import batches, plan_steps
from highway_keras.training.callbacks import Checkpoint, EpochSeeds
from highway_keras.training.curves import plot_curves
from highway_keras.training.optimizer import CaffeSGD
from highway_keras.training.recipes import Recipe, get_recipe
from highway_keras.training.run_folder import RunFolder

EVALUATION_BATCH = 500


class TrainingDiverged(RuntimeError):
    """The training loss left the finite numbers."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run ended with.

    Attributes:
        folder: Its `RunFolder`.
        history: Metrics by epoch, a list of dictionaries.
        test_accuracy: Share of test images that `best.keras` classifies rightly.
        test_loss: Its cross-entropy on the test images, in nats.
        best_epoch: The epoch (from 1) that `best.keras` is of: the one with the highest accuracy
            on held-out images, or the last one if none were held out.
        seconds: Duration of the training since it was started or resumed.
    """

    folder: RunFolder
    history: list
    test_accuracy: float
    test_loss: float
    best_epoch: int
    seconds: float


def choose_recipe(recipe, model, dataset=None):
    """The `Recipe` for a network: the one named, or else its own.

    The embedded digits are too few for any but theirs.
    """
    if isinstance(recipe, Recipe):
        return recipe
    own = "digits" if dataset == "digits" else models.get(model).recipe
    return get_recipe(own if recipe is None else recipe)


def fit(
    model,
    dataset=None,
    recipe=None,
    out=None,
    resume=False,
    seed=0,
    data_dir=None,
    limit=None,
    model_options=None,
    verbose="auto",
    **overrides,
):
    """Trains a registered network and leaves a folder with its models, history and settings.

    Same seed, same machine: same result, also if the run was killed and resumed in between.
    The test images are used once, at the end.

    Args:
        model: Registered name, such as `"thin-highway-50"`.
        dataset: Name or `.npz` for `highway_keras.data.load`; default: the network's own.
        recipe: A `Recipe`, or the name of one; default: the network's own.
        out: Folder of the run; default `runs/MODEL-DATASET`.
        resume: Whether to continue the run in `out`, if there is one.
        seed: Non-negative integer; decides weights, order of images, dropout and augmentation.
        data_dir: Where TFDS keeps its data.
        limit: Number of training images to use; default all.
        model_options: Arguments of the network's factory, such as `{"transform_bias": -3.0}`.
        verbose: Keras's; `"auto"` is a progress bar on a terminal and a line an epoch elsewhere.
        **overrides: Attributes of the recipe, such as `epochs=5`.

    Returns:
        A `Result`.

    Raises:
        ValueError: If an argument is unknown or out of its range.
        OSError: If the folder cannot be written.
        TrainingDiverged: If the loss is no longer finite.

    Example:

    >>> from highway_keras import training
    >>> result = training.fit("thin-highway-10", "digits", epochs=20)  # doctest: +SKIP
    """
    card = models.get(model)
    dataset = dataset or card.dataset
    recipe = choose_recipe(recipe, model, dataset).override(**overrides)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise ValueError(f"`seed` must be an integer from 0 to 2**31 - 1. Received: seed={seed!r}.")
    images = data.load(dataset, data_dir=data_dir, validation=recipe.validation, limit=limit)
    folder = RunFolder(out or f"runs/{model}-{images.name}")
    settings = {
        "model": model,
        "model_options": model_options or {},
        "dataset": str(dataset),
        "class_names": list(images.class_names),
        "limit": limit,
        "seed": seed,
        "recipe": dataclasses.asdict(recipe),
    }
    keras.utils.set_random_seed(seed)
    network = card.build(
        input_shape=images.input_shape, classes=images.classes, **(model_options or {})
    )
    _scale_dropout(network, recipe.dropout)
    run = _Run(network, images, recipe, folder, seed, _verbosity(verbose))
    folder.open(settings, resume)  # last, so that a mistake leaves no folder behind
    return run.train()


def fit_runs(model, runs, out=None, seed=0, **arguments):
    """Trains `runs` times, with the seeds from `seed` on; several runs get a subfolder each.

    Args:
        model: Registered name.
        runs: Number of runs, a positive integer.
        out: Folder; the runs are in `OUT/seed-0`, `OUT/seed-1`, ... if there are several.
        seed: Seed of the first run.
        **arguments: As for `fit`.

    Returns:
        A list of `Result`.
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise ValueError(f"`runs` must be a positive integer. Received: runs={runs!r}.")
    if runs == 1:
        return [fit(model, out=out, seed=seed, **arguments)]
    out = out or f"runs/{model}-{runs}-runs"
    seeds = range(seed, seed + runs)
    return [fit(model, out=f"{out}/seed-{s}", seed=s, **arguments) for s in seeds]


def _verbosity(verbose):
    return verbose if verbose != "auto" else (1 if sys.stdout.isatty() else 2)


class _Run:
    def __init__(self, network, images, recipe, folder, seed, verbose):
        self.images, self.recipe, self.folder = images, recipe, folder
        self.seed, self.verbose = seed, verbose
        self.preprocess = data.preprocessor(recipe.preprocessing, images.x_train)
        self.steps, at_once, self.batch_size = plan_steps(len(images.x_train), recipe.batch_size)
        self.complete = _compile(
            keras.Sequential([self.preprocess, network], name=network.name), "sgd", at_once
        )
        augment = data.augmenter(recipe.augmentation, images.input_shape, seed)
        self.trained = _compile(
            keras.Sequential([augment, network]) if augment else network,
            _optimizer(recipe, self.steps),
            at_once,
        )

    def train(self):
        first = self._restore()
        started = time.perf_counter()
        if first < self.recipe.epochs:
            self._fit(first)
        seconds = time.perf_counter() - started
        rows = self.folder.read_history()
        if not rows or not np.isfinite(rows[-1]["loss"]):
            raise TrainingDiverged(
                f"The training loss is no longer finite after epoch {len(rows)}. A lower "
                f"`learning_rate` helps. Received: learning_rate={self.recipe.learning_rate}."
            )
        return self._finish(rows, seconds)

    def _restore(self):
        """Loads the saved state if there is one; returns the epoch to go on from."""
        self.trained.optimizer.build(self.trained.trainable_variables)
        if not self.folder.state.exists():
            self.folder.keep_history(0)
            return 0
        try:
            self.trained.load_weights(self.folder.state)
        except Exception as error:  # damaged files raise errors of many kinds
            raise ValueError(
                f"The saved state {self.folder.state} cannot be read. Delete the folder to start "
                "anew."
            ) from error
        epoch = int(self.trained.optimizer.iterations) // self.steps
        self.folder.keep_history(epoch)
        return epoch

    def _fit(self, first):
        images = self.images
        x = self.preprocess.predict(images.x_train, batch_size=EVALUATION_BATCH, verbose=0)
        held_out = None
        if len(images.x_val):
            held_out = (self.preprocess.predict(images.x_val, verbose=0), images.y_val)
        monitor = "val_accuracy" if held_out else None
        best = max((row[monitor] for row in self.folder.read_history() if monitor), default=-np.inf)
        self.trained.fit(
            batches(x, images.y_train, self.steps, self.batch_size, self.seed, first),
            steps_per_epoch=self.steps,
            shuffle=False,
            epochs=self.recipe.epochs,
            initial_epoch=first,
            validation_data=held_out,
            validation_batch_size=EVALUATION_BATCH,
            verbose=self.verbose,
            callbacks=[
                keras.callbacks.TerminateOnNaN(),
                EpochSeeds(self.seed),
                keras.callbacks.CSVLogger(self.folder.history, append=True),
                *_tensorboard(self.folder),
                Checkpoint(self.folder, self.complete, monitor, best),
            ],
        )

    def _finish(self, rows, seconds):
        chosen = keras.models.load_model(self.folder.best)
        loss, accuracy = evaluate(chosen, self.images)
        self.complete.save(self.folder.final)
        self._draw(rows)
        best_epoch = len(rows)
        if len(self.images.x_val):
            best_epoch = 1 + int(np.argmax([row["val_accuracy"] for row in rows]))
        result = Result(self.folder, rows, accuracy, loss, best_epoch, seconds)
        measured = ("test_accuracy", "test_loss", "best_epoch", "seconds")
        results = {name: getattr(result, name) for name in measured}
        self.folder.write_json({**self.folder.read_json(), "results": results})
        return result

    def _draw(self, rows):
        curves = {"training": [row["loss"] for row in rows]}
        if len(self.images.x_val):
            curves["held out"] = [row["val_loss"] for row in rows]
        title = f"{self.complete.name} on {self.images.name}"
        plot_curves(curves, self.folder.curves, title, "cross-entropy (nats)")


def _tensorboard(folder):
    """Keras writes TensorBoard's files through TensorFlow, which other backends do without."""
    if keras.backend.backend() != "tensorflow":
        return []
    return [keras.callbacks.TensorBoard(folder.tensorboard, write_graph=False)]


def _scale_dropout(network, factor):
    for layer in network.layers:
        if isinstance(layer, keras.layers.Dropout):
            layer.rate *= factor


def _compile(model, optimizer, at_once=1):
    model.compile(
        optimizer,
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        steps_per_execution=at_once,
    )
    return model


def _optimizer(recipe, steps):
    schedules = keras.optimizers.schedules
    rate = recipe.learning_rate
    if recipe.schedule == "cosine":
        schedule = schedules.CosineDecay(rate, recipe.epochs * steps)
    elif recipe.schedule == "exponential":
        schedule = schedules.ExponentialDecay(rate, steps, recipe.decay, staircase=True)
    else:
        # The step that Keras calls a boundary still has the rate before it.
        boundaries = [epoch * steps - 1 for epoch in recipe.decay_epochs]
        values = [rate * recipe.decay**n for n in range(len(boundaries) + 1)]
        schedule = schedules.PiecewiseConstantDecay(boundaries, values)
    return CaffeSGD(
        schedule,
        momentum=recipe.momentum,
        nesterov=recipe.nesterov,
        l2=recipe.l2,
        classifier_l2=recipe.classifier_l2,
        bias_rate=recipe.bias_rate,
    )


def evaluate(model, images):
    """Cross-entropy (nats) and accuracy of a model on the test images of a `data.Dataset`."""
    if not model.compiled:
        _compile(model, "sgd")
    results = model.evaluate(images.x_test, images.y_test, EVALUATION_BATCH, verbose=0)
    return tuple(float(value) for value in results)


def summary(accuracies):
    """The paper's way to state several runs, in percent: "best (mean ± std)"."""
    percent = [100 * accuracy for accuracy in accuracies]
    if len(percent) == 1:
        return f"{percent[0]:.2f}"
    mean, deviation = statistics.mean(percent), statistics.stdev(percent)
    return f"{max(percent):.2f} ({mean:.2f} ± {deviation:.2f})"
