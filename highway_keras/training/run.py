"""One training run: build what is trained, restore what was saved, leave the models."""

import contextlib
import dataclasses
import time

import keras
import numpy as np

from highway_keras import data
from highway_keras.io import optional_picture, replacing
from highway_keras.runs.folder import RunFolder
from highway_keras.training.batches import plan_steps
from highway_keras.training.callbacks import Checkpoint, EpochSeeds, Measured, all_finite
from highway_keras.training.curves import plot_curves
from highway_keras.training.evaluation import (
    EVALUATION_BATCH,
    NotProbabilities,
    check_classifier,
    compile_classifier,
    evaluate,
)
from highway_keras.training.networks import layers_of
from highway_keras.training.optimizer import from_recipe
from highway_keras.training.saved_network import load_network
from highway_keras.training.streaming import PreprocessedImages, is_streamed


class TrainingDiverged(RuntimeError):
    """A training loss that is no longer finite."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run ended with.

    Attributes:
        folder: Its `RunFolder`.
        history: Metrics by epoch, a list of dictionaries.
        test_accuracy: Share of the test images that `best.keras` classifies correctly.
        test_loss: Its cross-entropy on the test images, in nats.
        best_epoch: The epoch (from 1) of `best.keras`: the one with the highest accuracy on
            held-out images, or the last one if none were held out.
        seconds: Duration of the training since it was started or resumed.
    """

    folder: RunFolder
    history: list
    test_accuracy: float
    test_loss: float
    best_epoch: int
    seconds: float


class Run:
    """A network, its data and its folder, from the first step or the last saved epoch on.

    Args:
        network: The uncompiled network.
        saved: The same network in float32, which is saved with the weights of `network`; `None` if
            `network` itself computes in float32.
        images: A `data.Dataset`.
        recipe: A `Recipe`.
        folder: A `RunFolder`.
        seed: Decides the order of images, dropout and augmentation.
        verbose: As in Keras.
        engine: The `Engine` in whose scope the network was built.
        test_curve: Whether to record loss and accuracy on the test images after every epoch.
        callbacks: A user's own.
    """

    def __init__(
        self,
        network,
        saved,
        images,
        recipe,
        folder,
        seed,
        verbose,
        engine,
        test_curve=False,
        callbacks=(),
    ):
        self.images, self.recipe, self.folder, self.engine = images, recipe, folder, engine
        self.seed, self.verbose = seed, verbose if engine.is_chief else 0
        self.test_curve, self.callbacks = test_curve, callbacks
        self.network, self.saved = network, saved or network
        self.preprocess = data.preprocessor(recipe.preprocessing, images.x_train)
        check_classifier(network, self.preprocess(images.x_train[:2]), images.classes)
        self.steps, planned, self.batch_size = plan_steps(len(images.x_train), recipe.batch_size)
        engine.check_batch(self.batch_size)
        # What is saved: the network behind its preprocessing. Get it by `_as_saved`.
        complete = keras.Sequential([self.preprocess, self.saved], name=network.name)
        self.complete = compile_classifier(complete)
        self.streamed = is_streamed(images.x_train)
        engine.check_streaming(self.streamed)
        per_call = 1 if self.streamed else engine.stepping.steps_per_execution(self.steps, planned)
        self.trainee = self._build_trainee(network, per_call)

    def _build_trainee(self, network, steps_per_execution):
        with self.engine.scope():
            augment = data.augmenter(self.recipe.augmentation, self.images.input_shape, self.seed)
        # Never `network` itself, which was built within the scope: see `replica_steps`.
        trainee = (
            keras.Sequential([augment, network])
            if augment
            else keras.Model(network.inputs, network.outputs)
        )
        with self.engine.scope():
            optimizer = from_recipe(self.recipe, self.steps)
            return compile_classifier(trainee, optimizer, steps_per_execution)

    def train(self, session):
        """Train from the first or the last saved epoch to the last; return a `Result`.

        Args:
            session: The callback that records what it is trained on.
        """
        with _scaled_dropout({self.network, self.saved}, self.recipe.dropout):
            return self._train(session)

    def _train(self, session):
        with self.engine.scope():
            first = self._restore()
        if first:
            self._load_best()  # which the end needs: now, not after hours
        started = time.perf_counter()
        if first < self.recipe.epochs and not self.folder.has_ended:
            self._fit(first, session)
        seconds = time.perf_counter() - started
        rows = self.folder.read_history()
        if not rows or not np.isfinite(rows[-1]["loss"]) or not all_finite(self.trainee):
            raise self._diverged(
                len(rows),
                f"The loss or a weight is no longer finite after epoch {len(rows)}. A lower "
                f"`learning_rate` helps, or a lower `l2`. Received: "
                f"learning_rate={self.recipe.learning_rate}, l2={self.recipe.l2}.",
            )
        return self._finish(rows, seconds)

    def _diverged(self, epoch, message):
        """Record in the folder that the training diverged; return the error."""
        self.folder.write_json({**self.folder.read_json(), "diverged": epoch})
        return TrainingDiverged(message)

    def _restore(self):
        """Load the saved state if there is one; return the epoch to continue with."""
        self.trainee.optimizer.build(self.trainee.trainable_variables)
        return self.folder.restore_state(self.trainee)

    def _load_best(self):
        best, remedy = self.folder.best, "Bring it back, or delete the folder to start anew."
        if not best.exists():
            raise FileNotFoundError(f"The best network so far is gone: {best}. {remedy}")
        # Not compiled as it was saved: the run may have started with another backend, which takes
        # more steps per call than this one can.
        return load_network(best, remedy)

    def _fit(self, first, session):
        engine, labels = self.engine, self.images.y_train
        x = self._inputs(self.images.x_train)
        held_out = self._held_out()
        plan = self.steps, self.batch_size, self.seed, first
        with engine.scope():
            engine.stepping.take_over(self.trainee, x, labels, plan, engine.replicas)
            self.trainee.fit(
                engine.stepping.batches(x, labels, *plan),
                steps_per_epoch=self.steps,
                shuffle=False,
                epochs=self.recipe.epochs,
                initial_epoch=first,
                validation_data=held_out,
                validation_batch_size=EVALUATION_BATCH - EVALUATION_BATCH % engine.replicas,
                verbose=self.verbose,
                callbacks=self._callbacks(session),
            )

    def _inputs(self, images):
        """Return preprocessed images: an array, or an object that preprocesses them in batches."""
        if self.streamed:
            return PreprocessedImages(images, self.preprocess)
        return self.preprocess.predict(images, EVALUATION_BATCH, verbose=0)

    def _held_out(self):
        """Return the preprocessed held-out images and their labels, or `None`."""
        if not len(self.images.x_val) or self.streamed:  # then a callback measures them
            return None
        return self.engine.equal_shares(self._inputs(self.images.x_val), self.images.y_val)

    def _callbacks(self, session):
        monitor = "val_accuracy" if len(self.images.x_val) else None
        best = max((row[monitor] for row in self.folder.read_history() if monitor), default=-np.inf)
        return [
            keras.callbacks.TerminateOnNaN(),
            EpochSeeds(self.seed),
            *self._measurements(),
            keras.callbacks.CSVLogger(self.folder.history, append=True),
            session,  # before the state is saved: an epoch that was not is trained again
            *self.engine.stepping.callbacks(self.folder, self.seed),
            Checkpoint(self.folder, self._save, monitor, best),
            *self.callbacks,  # last, so one that raises loses nothing
        ]

    def _measurements(self):
        """Return the callbacks that measure what Keras does not."""
        images, found = self.images, []
        if self.streamed and len(images.x_val):
            found.append(Measured("val", self._as_saved, images.x_val, images.y_val))
        if self.test_curve:
            found.append(Measured("test", self._as_saved, images.x_test, images.y_test))
        return found

    def _finish(self, rows, seconds):
        try:
            loss, accuracy = evaluate(self._load_best(), self.images)
        except NotProbabilities as error:  # NaN, from weights near the largest float
            message = f"{error} A lower `learning_rate` helps."
            raise self._diverged(len(rows), message) from error
        self._save_final()
        best_epoch = len(rows)
        if len(self.images.x_val):
            best_epoch = 1 + int(np.argmax([row["val_accuracy"] for row in rows]))
        result = Result(self.folder, rows, accuracy, loss, best_epoch, seconds)
        measured = ("test_accuracy", "test_loss", "best_epoch", "seconds")
        results = {name: getattr(result, name) for name in measured}
        if len(rows) < self.recipe.epochs:
            results["epochs"] = len(rows)
        settings = self.folder.read_json()
        settings.pop("diverged", None)  # of an attempt that was resumed
        self.folder.write_json({**settings, "results": results})
        with optional_picture(self.folder.curves):
            self._draw(rows)
        return result

    def _save_final(self):
        """Save the network as of the last epoch; a callback may have restored an earlier one."""
        if not self.callbacks:
            self._save(self.folder.final)
            return
        kept = self.trainee.get_weights()
        with self.engine.scope():
            self.folder.load_weights(self.trainee)
        self._save(self.folder.final)
        self.trainee.set_weights(kept)

    def _save(self, path):
        with replacing(path) as temporary:
            self._as_saved().save(temporary)

    def _as_saved(self):
        """Return the network with its preprocessing, which computes in float32."""
        if self.saved is not self.network:
            self.saved.set_weights(self.network.get_weights())
        return self.complete

    def _draw(self, rows):
        curves = {"training": [row["loss"] for row in rows]}
        if len(self.images.x_val):
            curves["held out"] = [row["val_loss"] for row in rows]
        title = f"{self.complete.name} on {self.images.name}"
        plot_curves(curves, self.folder.curves, title, "cross-entropy (nats)")


@contextlib.contextmanager
def _scaled_dropout(networks, factor):
    """Scale the rates of dropout while networks are trained and saved: they may be a user's own."""
    layers = [layer for network in networks for layer in layers_of(network)]
    rates = {layer: layer.rate for layer in layers if isinstance(layer, keras.layers.Dropout)}
    try:
        for layer, rate in rates.items():
            layer.rate = rate * factor
        yield
    finally:
        for layer, rate in rates.items():
            layer.rate = rate
