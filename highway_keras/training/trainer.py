"""Train a network once or several times, and save the results in a folder per run."""

import contextlib
import dataclasses
import hashlib
import os
import pathlib
import random
import sys
import time

import keras
import numpy as np

from highway_keras import data
from highway_keras.analysis.pictures import write_picture
from highway_keras.models.parts import check_image_shape
from highway_keras.models.registry import BUILT_IN
from highway_keras.models.weight_files import copy_weights
from highway_keras.runs import check_free
from highway_keras.runs.folder import RunFolder, mark, mark_in
from highway_keras.runs.machine import Session
from highway_keras.training.batches import PreprocessedImages, batches, plan_steps
from highway_keras.training.callbacks import Checkpoint, EpochSeeds, Measured, check_users_own
from highway_keras.training.engines.devices import Devices, data_parallel
from highway_keras.training.evaluation import (
    NotProbabilities,
    check_probabilities,
    compile_classifier,
    evaluate,
)
from highway_keras.training.loss_weights import loss_weights
from highway_keras.training.networks import architecture, find_network, named_network
from highway_keras.training.recipe_optimizer import from_recipe
from highway_keras.training.recipes import choose_recipe
from highway_keras.training.saved_network import check_here, load_network, notice_other_split
from highway_keras.util import checks
from highway_keras.util.extras import extra
from highway_keras.util.files import BusyError, replacing
from highway_keras.util.messages import notice


class TrainingDiverged(RuntimeError):
    """The loss or a weight is no longer finite."""


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
        class_accuracy: Share of the test images of each class that it classifies correctly, by the
            name of the class; `None` for a class without test images.
        confusion: Test images by class (rows) and by the class they are taken for (columns).
    """

    folder: RunFolder
    history: list = dataclasses.field(repr=False)
    test_accuracy: float
    test_loss: float
    best_epoch: int
    seconds: float
    class_accuracy: dict = dataclasses.field(repr=False)
    confusion: list = dataclasses.field(repr=False)


def fit(
    model,
    dataset=None,
    recipe=None,
    *,
    out=None,
    resume=False,
    seed=0,
    data_dir=None,
    limit=None,
    model_options=None,
    verbose="auto",
    distribute=False,
    test_curve=False,
    weights=None,
    freeze=False,
    input_shape=None,
    callbacks=(),
    class_weight=None,
    sample_weight=None,
    skip_broken=False,
    **overrides,
) -> Result:
    """Train a network and leave a folder with its models, history and settings.

    The same seed on the same CPU and backend gives the same result, even if a run is killed and
    resumed; on a GPU, rounding may differ.
    The test images are used once, at the end; with `test_curve`, after every epoch, for the record.

    Args:
        model: Registered name, such as `"thin-highway-50"`; the path of a run's folder or of a
            `.keras` file that `fit` or `compact` saved, whose network is trained further; or a
            functional or Sequential `keras.Model` that maps images to class probabilities and is
            trained in place, from the weights it has. It takes images as preprocessed by the
            recipe's `preprocessing`.
        dataset: What `highway_keras.data.load` takes: a name, the path of a folder or a `.npz`,
            arrays, a `tf.data.Dataset`, a `data.Dataset`. Default: that on the network's card, or
            in the `run.json` next to a file.
        recipe: A `Recipe`, or the name of one; default: `"digits"` on the embedded digits, else
            that on the network's card, `"quick"` for a `keras.Model` or a file.
        out: Folder of the run; default `runs/MODEL-DATASET`, or `runs/RUN-further` if `model` is
            the file of a run.
        resume: Whether to continue the run in `out`, if there is one. One that has ended goes on to
            more `epochs`, unless its `schedule` is cosine, which they would stretch. Its results
            are dropped then; until a new epoch is saved, the number of epochs trained brings them
            back.
        seed: Non-negative integer; decides weights, order of images, dropout and augmentation.
            Keras's backend keeps it as its global seed.
        data_dir: Where TFDS keeps its data.
        limit: Number of training images to use; default all.
        model_options: Arguments of the network's factory, such as `{"transform_bias": -3.0}`. They
            take precedence over the recipe's `kernel_initializer`.
        verbose: As in Keras; `"auto"`: a progress bar on a terminal, elsewhere a line per epoch.
        distribute: Whether to split each batch across all devices: those of this machine and, if
            `TF_CONFIG` (TensorFlow) or `KERAS_DISTRIBUTION_JOB_ADDRESSES` (JAX) names them, of
            other processes. The recipe's `batch_size` is the whole batch. One process writes `out`.
        test_curve: Whether to add loss and accuracy on the test images to the history, as
            `test_loss` and `test_accuracy`. They decide nothing, not even which network is best.
        weights: Start of a registered network, as for `models.create`: a name of its card's
            `weights`, a file, or the folder of a run. If the number of classes differs, the
            classifier starts from scratch, and a message says so.
        freeze: Whether to freeze all layers but the classifier, the last one with weights, for
            this run.
        input_shape: (height, width, channels) to scale the pictures of a folder to. Default: the
            network's. A message says how many had another size.
        callbacks: List of `keras.callbacks.Callback`, called after the epoch is saved: if one
            raises, the run can resume after that epoch. Their `model` takes preprocessed images.
            Up to 32 steps run per call, and the hooks of batches are called once for them.
            One that sets the learning rate needs `schedule="constant"`; no `BackupAndRestore`.
        class_weight: Weight in the loss of the training images of each class: `"balanced"` for
            equal totals, or a dictionary by the name or number of the class; others weigh 1.
        sample_weight: Array of weights in the loss, one for each training image of a
            `data.Dataset`.
        skip_broken: Whether to leave out pictures of a folder that cannot be read, and say which.
        **overrides: Attributes of the recipe, such as `epochs=5`.

    Returns:
        A `Result`.

    Raises:
        ValueError: If an argument is unknown or out of its range.
        TypeError: If an argument has the wrong type, such as a function among `callbacks`.
        OSError: If the folder cannot be written.
        BusyError: If another process is writing to the folder.
        TrainingDiverged: If the loss or a weight is no longer finite.

    Examples:
        >>> from highway_keras import training
        >>> result = training.fit("thin-highway-10", "digits", epochs=20)  # doctest: +SKIP
    """
    # What to train, on which images, how, and where to put it
    if distribute and test_curve:
        raise ValueError(
            "`test_curve` is recorded on one device. Received: test_curve=True, distribute=True."
        )
    devices = data_parallel() if distribute else Devices()  # first: TensorFlow and JAX require it
    model = named_network(model)
    network = find_network(model, model_options, weights, freeze, distribute)
    if dataset is None:
        dataset = network.dataset
        if dataset == network.before.get("dataset"):  # as a run.json says
            check_here(dataset, model)
    if dataset is None:
        raise ValueError(
            "`dataset` must say what to train on: neither a card nor a run.json names it. "
            "Received: dataset=None."
        )
    recipe, seed = choose_recipe(recipe, model, dataset).override(**overrides), checks.seed(seed)
    check_users_own(callbacks, recipe.schedule)
    of_pictures = {"input_shape": input_shape, "skip_broken": skip_broken or None}
    for name, value in checks.given(**of_pictures).items():
        is_path = isinstance(dataset, str | os.PathLike)
        missing = is_path and not os.path.exists(os.path.expanduser(dataset))
        if not data.is_folder(dataset) and (not missing or dataset in data.NAMES):
            raise ValueError(
                f"`{name}` is for pictures in a folder; other images are taken as they are. "
                f"{checks.received(name, value)}"
            )
    if sample_weight is not None and (not isinstance(dataset, data.Dataset) or limit is not None):
        raise ValueError(
            "`sample_weight` is for the training images of a `data.Dataset`, such as `data.load` "
            "returns, all of them: their order stays. "
            f"Received: limit={limit}, a dataset of type {type(dataset).__name__}."
        )
    data.check_outside(dataset, out or "runs")
    shape = network.input_shape if input_shape is None else check_image_shape(input_shape, least=1)
    images = data.load(dataset, data_dir, recipe.validation, limit, shape, skip_broken)
    settings = {**network.settings, **data_settings(dataset, images), "limit": limit, "seed": seed}
    notice_other_split(network.before, settings["dataset"], images)
    settings["edge_brightness"] = data.edge_brightness(images.x_train[:100])  # for `predict`
    settings["recipe"] = dataclasses.asdict(recipe)
    flags = {"freeze": freeze, "test_curve": test_curve, "skip_broken": skip_broken}
    settings |= {name: True for name, is_on in flags.items() if is_on}
    weight = loss_weights(images, class_weight, sample_weight)
    if weight is not None:
        settings["loss_weights"] = hashlib.sha256(weight.tobytes()).hexdigest()[:16]
    if isinstance(class_weight, dict):  # keys and values may be NumPy's
        settings["class_weight"] = {str(k): float(v) for k, v in class_weight.items()}
    elif class_weight is not None:
        settings["class_weight"] = class_weight
    default = f"runs/{network.name}-{images.name}"
    if str(model).endswith(".keras"):
        source = checks.path("model", model).resolve().parent
        if (source / "run.json").exists():
            default = f"runs/{source.name}-further"  # not its own
    folder = RunFolder(out or default)
    paths = [
        getattr(c, name, None) for c in callbacks for name in ("filepath", "filename", "log_dir")
    ]
    if any(isinstance(p, str | os.PathLike) and folder.owns(p) for p in paths):
        raise ValueError(
            f"`callbacks` must not write files of the run itself. Received: out={folder.path}; "
            "that folder's files are those of `fit`."
        )
    verbose = (1 if sys.stdout.isatty() else 2) if verbose == "auto" else verbose
    with contextlib.ExitStack() as stack:
        stack.enter_context(_seeded(seed))
        built = stack.enter_context(network.in_training(images, recipe, devices.scope))
        if network.name not in BUILT_IN:  # whose factories do not change
            settings.setdefault("architecture", architecture(built[1]))
        written = stack.enter_context(devices.writable(folder))
        run = _Run(*built, images, weight, recipe, written, seed, devices)
        stack.enter_context(written.locked())  # last, so a mistake leaves no folder
        first = run.restore(written.open(settings, resume))
        session = Session(written, distribute)
        if not written.has_ended:  # else nothing is trained
            stack.enter_context(session)
        verbose = verbose if devices.is_chief else 0
        seconds = run.train(first, test_curve, callbacks, session, verbose)
        return dataclasses.replace(run.finish(seconds), folder=folder)


@contextlib.contextmanager
def _seeded(seed):
    """Draw by `seed` in a `with` block; afterwards Python and NumPy go on from where they were."""
    before = random.getstate(), np.random.get_state()
    keras.utils.set_random_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


def data_settings(dataset, images):
    """Return what `run.json` records about the images.

    A user's own images may change under the same name, so their fingerprints are included.
    """
    # `Path` drops the slash at the end, which a shell's completion adds.
    source = str(pathlib.Path(dataset)) if isinstance(dataset, str | os.PathLike) else None
    if source in data.NAMES and data.is_folder(dataset):  # a `pathlib.Path` named like a data set
        source = os.path.join(os.curdir, source)
    settings = {"dataset": source, "class_names": list(images.class_names)}
    if source not in data.NAMES:
        settings |= {"images": images.fingerprint(), "test_images": images.fingerprint(("test",))}
        settings["image_shape"] = list(images.input_shape)
    return settings


class _Run:
    """One run: what is trained, what is saved, and the folder that it is saved in.

    `network` computes in the precision of the recipe, and `saved`, which may be the same, in
    float32. Keras trains `trainee`, the network behind its augmentation; files hold `complete`,
    the `saved` one behind its preprocessing.
    """

    def __init__(self, network, saved, images, weight, recipe, folder, seed, devices):
        self.network, self.saved, self.images, self.recipe = network, saved, images, recipe
        self.weight, self.folder, self.seed, self.devices = weight, folder, seed, devices
        self.board = []
        if keras.backend.backend() == "tensorflow":
            with extra("train"):  # Keras writes TensorBoard's files through TensorFlow
                import tensorboard  # noqa: F401
            self.board.append(keras.callbacks.TensorBoard(folder.tensorboard, write_graph=False))
        self.preprocess = data.preprocessor(recipe.preprocessing, images.x_train)
        _check_classifier(network, self.preprocess(images.x_train[:2]), images.classes)
        x = images.x_train
        self.streamed = not isinstance(x, np.ndarray) or not data.fits_training(x.size)
        self.steps, planned, self.batch_size = plan_steps(len(images.x_train), recipe.batch_size)
        devices.check_shares(self.batch_size, self.streamed, len(images.x_val))
        # What is saved: the network behind its preprocessing. Inputs are stated, or Keras rounds
        # them to the policy of the process.
        inputs = keras.Input(images.input_shape)
        complete = keras.Sequential([inputs, self.preprocess, saved], name=network.name)
        self.complete = compile_classifier(complete)
        # What is trained: the network behind its augmentation. Never `network` itself, which was
        # built within the scope: see `install_replica_steps`. PyTorch runs one step per call.
        per_call = 1 if self.streamed or keras.backend.backend() == "torch" else planned
        with devices.scope():
            augment = data.augmenter(recipe.augmentation, images.input_shape, seed)
        trainee = (
            keras.Sequential([keras.Input(images.input_shape), augment, network])
            if augment
            else keras.Model(network.inputs, network.outputs)
        )
        with devices.scope():
            optimizer = from_recipe(recipe, self.steps)
            # Keras asks the policy of the process, which need not be that of the network.
            if any(layer.compute_dtype == "float16" for layer in network._flatten_layers()):
                optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
            self.trainee = compile_classifier(trainee, optimizer, per_call)

    def restore(self, changed):
        """Load what the folder has, plan the epochs if they `changed`; return those trained."""
        folder, devices = self.folder, self.devices
        rows = folder.saved_history()
        first = len(rows)
        if not devices.same_on_all(first):
            raise ValueError(
                "`out` must be one folder for all processes, or hold a copy of what the first one "
                f"wrote last. Received: here a run after epoch {first}, elsewhere after another."
            )
        with devices.scope():
            self.trainee.optimizer.build(self.trainee.trainable_variables)
            folder.restore_state(self.trainee)
        if first:
            best = self._best_epoch(rows)
            ours = not folder.best.exists() or mark_in(folder.best)[0] == folder.identity()
            kept = folder.has_ended and folder.best.exists()
            if ours and best == first and not kept and not self._holds(folder.best, best):
                self.save(folder.best, best)  # a kill may have come before
            self._load_best(best)  # `finish` needs it: fail now, not after hours
        if changed:  # now that nothing is missing
            before = folder.read_json()["recipe"].get("epochs", 0)
            if self.recipe.epochs < before:
                notice(f"{folder.path} ends after {self.recipe.epochs} epochs, no longer {before}.")
            folder.plan(self.recipe.epochs)
        return first

    def train(self, first, test_curve, callbacks, session, verbose):
        """Train from the epoch `first` to the last; return the seconds it took."""
        images, folder = self.images, self.folder
        devices, replicas = self.devices, self.devices.replicas
        if folder.has_ended and first < self.recipe.epochs:
            notice(
                f"{folder.path} ended after {first} of {self.recipe.epochs} epochs, stopped by a "
                "callback; nothing is trained."
            )
        stopped = "stopped" in folder.read_json()  # and interrupted before it was measured
        if folder.has_ended or stopped or first >= self.recipe.epochs:
            return 0.0
        monitor = "val_accuracy" if len(images.x_val) else None
        best = max((row[monitor] for row in folder.read_history() if monitor), default=-np.inf)
        measured, held_out = {}, None  # after every epoch: by us, from raw images; by Keras
        at_once = data.images_at_once(images.input_shape)
        if self.streamed:
            x = PreprocessedImages(images.x_train, self.preprocess)
            if monitor:
                measured["val"] = images.x_val, images.y_val
        else:
            x = self.preprocess.predict(images.x_train, at_once, verbose=0)
            if monitor:
                x_val = self.preprocess.predict(images.x_val, at_once, verbose=0)
                shared = len(x_val) - len(x_val) % replicas  # equal shares of the devices
                whole = x_val[:shared], images.y_val[:shared]
                (held_out,) = devices.process_share([whole])
        if test_curve:
            measured["test"] = images.x_test, images.y_test
        plan = self.steps, self.batch_size, self.seed, first
        checkpoint = Checkpoint(folder, self.save, monitor, best)
        reading = x.reading() if self.streamed else contextlib.nullcontext()
        started = time.perf_counter()
        with devices.scope(), reading:
            devices.install_steps(self.trainee)
            self.trainee.fit(
                devices.process_share(batches(x, images.y_train, *plan, self.weight)),
                steps_per_epoch=self.steps,
                shuffle=False,
                epochs=self.recipe.epochs,
                initial_epoch=first,
                validation_data=held_out,
                validation_batch_size=max(at_once // replicas, 1) * replicas,
                verbose=verbose,
                callbacks=[
                    keras.callbacks.TerminateOnNaN(),
                    EpochSeeds(self.seed),
                    *(Measured(name, self.as_saved, *pair) for name, pair in measured.items()),
                    session,  # before the state, so that every saved epoch is in a session
                    *self.board,
                    checkpoint,
                    *callbacks,  # last, so one that raises loses nothing
                ],
            )
        if checkpoint.has_diverged:
            epoch = len(checkpoint.rows)
            raise self._diverged(
                epoch,
                f"The loss or a weight is no longer finite after epoch {epoch}. A lower "
                f"`learning_rate` helps, or a lower `l2`. Received: "
                f"learning_rate={self.recipe.learning_rate}, l2={self.recipe.l2}.",
            )
        return time.perf_counter() - started

    def finish(self, seconds):
        """Measure the best network, save the last one, write the results; return the `Result`."""
        images = self.images
        self.folder.write_history(self.folder.saved_history())  # whatever an editor left there
        rows = self.folder.read_history()
        best_epoch = self._best_epoch(rows)
        try:
            found = evaluate(self._load_best(best_epoch), images)
        except NotProbabilities as error:  # NaN, from weights near the largest float
            message = f"{error} A lower `learning_rate` helps."
            raise self._diverged(len(rows), message) from error
        if not self._holds(self.folder.final, len(rows)):
            kept = self.trainee.get_weights()  # a callback may have restored those of another epoch
            with self.devices.scope():
                self.folder.load_weights(self.trainee)
            self.save(self.folder.final, len(rows))
            self.trainee.set_weights(kept)
        settings = {**self.folder.read_json(), "class_names": list(images.class_names)}
        seconds = seconds or settings.get("results", {}).get("seconds", 0.0)  # had ended
        results = {
            "test_accuracy": found.accuracy,
            "test_loss": found.loss,
            "best_epoch": best_epoch,
            "seconds": seconds,
            "class_accuracy": dict(zip(images.class_names, found.class_accuracy, strict=True)),
            "confusion": found.confusion.tolist(),
        }
        result = Result(self.folder, rows, **results)
        if len(rows) < self.recipe.epochs:
            results["epochs"] = len(rows)
        for done in ("diverged", "stopped"):  # before it was resumed
            settings.pop(done, None)
        self.folder.write_json({**settings, "results": results})

        def curves(plots):
            lines = [plots.Line([row["loss"] for row in rows], "training")]
            if len(images.x_val):
                lines.append(plots.Line([row["val_loss"] for row in rows], "held out", color=1))
            title = f"{self.complete.name} on {images.name}"
            return plots.plot_lines(lines, title, "cross-entropy (nats)")

        classes = found.confusion, images.class_names
        write_picture(self.folder.curves, curves)
        write_picture(self.folder.confusion, lambda plots: plots.plot_confusion(*classes))
        return result

    def as_saved(self):
        """Return the float32 network, with its preprocessing and the current weights."""
        if self.saved is not self.network:
            copy_weights(self.network, self.saved)
        return self.complete

    def save(self, path, epoch):
        """Save that network, as it is after an epoch, in place of the file at `path`."""
        with replacing(path) as temporary:
            self.as_saved().save(temporary)
            mark(temporary, self.folder.identity(), epoch)

    def _holds(self, path, epoch):
        return path.exists() and mark_in(path) == (self.folder.identity(), str(epoch))

    def _best_epoch(self, rows):
        if not len(self.images.x_val):
            return len(rows)
        return 1 + int(np.argmax([float(row["val_accuracy"]) for row in rows]))

    def _load_best(self, epoch):
        best, remedy = self.folder.best, "Restore it, or delete the folder to start over."
        if not best.exists():
            raise FileNotFoundError(f"The best network so far is gone: {best}. {remedy}")
        network = load_network(best, remedy)
        identity, saved = mark_in(best)
        if identity != self.folder.identity() or saved not in ("", str(epoch)):  # "" in older ones
            raise ValueError(
                f"{best} is not the network that this run saved after epoch {epoch}. {remedy}"
            )
        return network

    def _diverged(self, epoch, message):
        """Record in the folder that the training diverged; return the error."""
        self.folder.write_json({**self.folder.read_json(), "diverged": epoch})
        return TrainingDiverged(message)


def _check_classifier(network, inputs, classes):
    """Raise unless a network returns `classes` class probabilities for `inputs`, a few images."""
    takes, gives = network.input_shape, network.output_shape
    if takes != (None, *inputs.shape[1:]) or gives != (None, classes):
        raise ValueError(
            f"{network.name!r} must take images of shape {tuple(inputs.shape[1:])} and return a "
            f"probability for each of {classes} classes. Received: a network from {takes} to "
            f"{gives}. Labels number the classes from 0. A network given by its registered name is "
            "built for the data's shape and classes; leave `include_top` and `pooling` as they are."
        )
    outputs = keras.ops.cast(network(inputs, training=False), "float32")
    check_probabilities(network.name, keras.ops.convert_to_numpy(outputs))


FAILURES = (TrainingDiverged, BusyError)  # of one run, which do not end the others


def train_all(tasks, callbacks=lambda seed: ()):
    """Train runs one after the other, and yield (task, outcome) as they end.

    A task holds the arguments of `fit`, but for the `callbacks` of its seed; an outcome is its
    `Result` or one of `FAILURES`.
    """
    for number, task in enumerate(tasks, start=1):
        if len(tasks) > 1 and task.get("verbose", "auto"):
            run = f"run {number} of {len(tasks)}"
            print(f"{task['model']}, seed {task['seed']}: {run}", flush=True)
        try:
            outcome = fit(**task, callbacks=callbacks(task["seed"]))
        except FAILURES as error:
            outcome = error
        yield task, outcome


def fit_runs(model, runs, out=None, seed=0, **arguments) -> list[Result]:
    """Train a network `runs` times, with seeds starting at `seed`.

    Args:
        model: Registered name or `.keras` file; for a single run, also a `keras.Model`.
        runs: Number of runs, a positive integer.
        out: Folder; several runs are in `OUT/seed-0`, `OUT/seed-1`, ...
        seed: Seed of the first run.
        **arguments: As for `fit`; `callbacks` may be a function from a seed to a list, else all
            runs share the same objects.

    Returns:
        A list of `Result`, in the order of the seeds.

    Raises:
        ValueError: If `runs` or a seed is out of range, or a folder holds a run already.
        TrainingDiverged, BusyError: After all other runs, if some fail so; the type is that of the
            first one.
    """
    seeds, callbacks = checks.seeds(seed, runs), arguments.pop("callbacks", ())
    of_seed = callbacks if callable(callbacks) else lambda seed: callbacks
    if runs == 1:
        return [fit(model, out=out, seed=seed, callbacks=of_seed(seed), **arguments)]
    if isinstance(model, keras.Model):
        raise ValueError(
            "`model` must be a registered name or a path where `runs` is above 1, so that each run "
            "starts anew: see `models.register`. "
            f"Received: model={checks.short_repr(model)}, runs={runs}."
        )
    model = os.fspath(named_network(model))
    name = pathlib.Path(model).resolve().parent.name if model.endswith(".keras") else model
    out = checks.path("out", out or f"runs/{name}-runs")
    tasks = [{"model": model, "out": out / f"seed-{s}", "seed": s, **arguments} for s in seeds]
    if not arguments.get("resume"):
        for task in tasks:  # before the first trains for hours
            check_free(task["out"])
    outcomes = [outcome for _, outcome in train_all(tasks, of_seed)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, FAILURES)]
    if failed:
        said = [
            f"seed {s}: {outcome}"
            if isinstance(outcome, FAILURES)
            else f"seed {s} ended, test accuracy {100 * outcome.test_accuracy:.2f} %"
            for s, outcome in zip(seeds, outcomes, strict=True)
        ]
        raise type(failed[0])("; ".join(said))
    return outcomes
