"""`fit`: train a classifier by a recipe, in a folder from which it resumes to the same result."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import pathlib
import tempfile

import keras
import numpy as np

from highway_keras import data, models
from highway_keras.data.dataset import MOST_IN_MEMORY, images_at_once
from highway_keras.training.batches import (
    batches,
    pictures_in_turn,
    plan_steps,
    shuffled_pictures,
)
from highway_keras.training.distribution import Distribution
from highway_keras.training.evaluation import check_probabilities, compile_classifier, evaluate
from highway_keras.training.recipe_optimizer import from_recipe
from highway_keras.training.recipes import BUILDING, Recipe, choose_recipe
from highway_keras.training.state import EpochSeeds, State
from highway_keras.util import checks
from highway_keras.util.files import (
    LEFTOVERS,
    folder_lock,
    write_json,
    write_picture,
    write_rows,
)
from highway_keras.util.messages import notice


class TrainingDiverged(RuntimeError):
    """The loss or a weight is no longer finite."""


@dataclasses.dataclass(frozen=True)
class Result:
    """The end of a run.

    Attributes:
        model: The trained network as of the best epoch, with its preprocessing: a `keras.Model`
            from raw images, 0 to 255, to class probabilities.
        folder: The folder of the run, a `pathlib.Path`.
        history: Metrics by epoch, a list of dictionaries.
        best_epoch: The epoch (from 1) with the highest accuracy on held-out images, or the last
            one if none were held out.
        test_accuracy: Share of the test images that `model` classifies correctly.
        test_loss: Its cross-entropy on the test images, in nats.
        class_accuracy: `test_accuracy` of each class, by its name; `None` without test images.
        confusion: Test images by class (rows) and by predicted class (columns).
        seconds: Duration of the training, all sessions together.
    """

    model: keras.Model = dataclasses.field(repr=False)
    folder: pathlib.Path
    history: list = dataclasses.field(repr=False)
    best_epoch: int
    test_accuracy: float
    test_loss: float
    class_accuracy: dict = dataclasses.field(repr=False)
    confusion: list = dataclasses.field(repr=False)
    seconds: float


def fit(
    model: str | keras.Model,
    images: data.Dataset | str | os.PathLike | None = None,
    recipe: str | Recipe | None = None,
    *,
    out: str | os.PathLike | None = None,
    seed: int = 0,
    resume: bool = False,
    class_weight: str | dict | None = None,
    callbacks: list = (),
    verbose: str | int = "auto",
    **overrides,
) -> Result:
    """Train a classifier, and leave a folder with its network, history and settings.

    The same seed on the same CPU and backend gives the same result, even if the run is killed and
    resumed; on a GPU, rounding may differ. The test images are used once, at the end.

    ```
    state.npz        what the run resumes from, after each epoch
    best.keras       the network with its preprocessing, as of the best epoch
    history.csv      a row for each epoch
    run.json         settings, where it was trained, results
    curves.png       losses by epoch
    confusion.png    test images by class and by predicted class
    tensorboard/     for `tensorboard --logdir`, with the TensorFlow backend
    ```

    Args:
        model: A functional or Sequential `keras.Model` from images, as the recipe's
            `preprocessing` leaves them, to class probabilities; it is trained in place and ends
            with the weights of the best epoch. Or a registered name, such as `"thin-highway-50"`:
            the network is then created with the recipe's `kernel_initializer`, `dropout` and
            `dtype_policy`, its weights drawn by `seed`.
        images: A `data.Dataset`, or a name or path that `data.load` takes, with the recipe's
            `validation`. Default: the data set of a registered network.
        recipe: A `Recipe` or the name of one. Default: `"digits"` for the embedded digits, else
            that of a registered network, `"quick"` for another model.
        out: Folder of the run. Default: `runs/MODEL-DATASET`.
        seed: Non-negative integer; decides the order of the images, dropout and augmentation.
        resume: Whether to continue the run in `out`, if there is one. A finished run continues if
            `epochs` is larger, except with a cosine schedule.
        class_weight: Weight of each class in the loss: `"balanced"` for equal totals, or a
            dictionary by name or number; other classes weigh 1.
        callbacks: List of `keras.callbacks.Callback`. Their `model` takes preprocessed images. Up
            to 32 steps run per call, and the hooks of batches are called once for them.
        verbose: As in Keras.
        **overrides: Attributes of the recipe, such as `epochs=5`.

    Returns:
        A `Result`.

    Raises:
        ValueError: If an argument is out of its range or cannot act, or `out` holds another run.
        BusyError: If another process is writing to `out`.
        TrainingDiverged: If the loss or a weight is no longer finite.

    Examples:
        >>> from highway_keras import training
        >>> result = training.fit("thin-highway-10", "digits", epochs=20)  # doctest: +SKIP
    """
    is_name = isinstance(model, str)
    if images is None and is_name:
        images = models.get(model).dataset
    is_loaded = isinstance(images, data.Dataset)
    source = images.source if is_loaded else images
    recipe = choose_recipe(recipe, model if is_name else None, source).override(**overrides)
    if not is_loaded:
        shape = models.get(model).input_shape if is_name else model.input_shape[1:]
        images = data.load(images, validation=recipe.validation, input_shape=shape)
    options = {"out": out, "seed": seed, "resume": resume, "class_weight": class_weight}
    options |= {"callbacks": callbacks, "verbose": verbose}
    if is_loaded:
        check_can_act(overrides, ["validation"], "`data.load`")
    if is_name:
        network = create_for(model, images, recipe, seed)
        return train(network, images, recipe, {"model": model}, **options)
    check_can_act(overrides, BUILDING, "`models.create`")
    unused = [name for name in BUILDING if getattr(recipe, name) != getattr(Recipe, name)]
    if unused:
        listed = ", ".join(f"{name}={getattr(recipe, name)!r}" for name in unused)
        notice(f"The network is already built, so {listed} of {recipe.name!r} does not apply.")
    return train(model, images, recipe, {"not_applied": unused}, **options)


def check_can_act(overrides, names, owner):
    """Raise a `ValueError` if one of these overrides of a recipe comes too late."""
    for name in names:
        if name in overrides:
            raise ValueError(
                f"`{name}` acts before training: give it to {owner}. "
                f"{checks.received(name, overrides[name])}"
            )


def create_for(name, images, recipe, seed, /, **options):
    """Return the registered network for some images, built by a recipe, its weights by `seed`."""
    keras.utils.set_random_seed(checks.seed(seed))
    card = models.get(name)
    if recipe.kernel_initializer and "kernel_initializer" not in card.arguments:
        if "kernel_initializer" in inspect.signature(card.factory).parameters:
            options = {"kernel_initializer": recipe.kernel_initializer, **options}
        else:
            notice(f"{name!r} takes no `kernel_initializer`; {recipe.name!r} names one.")
    return models.create(
        name,
        input_shape=images.input_shape,
        classes=images.classes,
        dtype=recipe.dtype_policy,
        dropout=recipe.dropout,
        **options,
    )


def train(
    network,
    images,
    recipe,
    settings,
    *,
    out=None,
    seed=0,
    resume=False,
    class_weight=None,
    callbacks=(),
    verbose="auto",
):
    """Train a network; `settings` says how it was made. The other arguments are those of `fit`."""
    checks.seed(seed)
    out = pathlib.Path(out or f"runs/{network.name}-{images.name}").expanduser()
    preprocess = data.preprocessor(recipe.preprocessing, images.x_train)
    _check_classifier(network, preprocess(images.x_train[:2]), images.classes)
    class_weights = weights_of_classes(images, class_weight)
    weights = [[list(w.shape), w.trainable] for w in network.weights]
    settings = {
        "model": network.name,
        **settings,
        "weights": weights,
        "dataset": images.source,
        "images": images.fingerprint(),
        "image_shape": list(images.input_shape),
        "class_names": list(images.class_names),
        "class_weight": None if class_weights is None else class_weights.tolist(),
        "recipe": dataclasses.asdict(recipe),
        "seed": seed,
    }
    run = _Run(network, preprocess, images, recipe, seed, class_weights)
    if not run.distribution.is_chief:
        with tempfile.TemporaryDirectory() as folder:  # the chief alone writes to `out`
            return run.train(out, pathlib.Path(folder), settings, resume, callbacks, 0)
    with folder_lock(out):
        for leftover in out.glob(LEFTOVERS):  # of a process that was killed
            leftover.unlink()
        return run.train(out, out, settings, resume, callbacks, verbose)


class _Run:
    """The parts of one run.

    `network` is trained, behind its augmentation, as `trainee`; `complete` is what files hold: the
    network in float32 behind its preprocessing.
    """

    def __init__(self, network, preprocess, images, recipe, seed, class_weights):
        self.network, self.preprocess, self.images = network, preprocess, images
        self.recipe, self.seed, self.class_weights = recipe, seed, class_weights
        self.distribution = Distribution(network)
        self.in_memory = isinstance(images.x_train, np.ndarray)
        self.in_memory &= images.x_train.size <= MOST_IN_MEMORY
        is_low = any(layer.compute_dtype in ("bfloat16", "float16") for layer in network.layers)
        must_copy = is_low or self.distribution.replicas > 1
        self.saved = copy_in_float32(network) if must_copy else network
        inputs = keras.Input(images.input_shape)  # stated, or Keras rounds to the global policy
        self.complete = compile_classifier(
            keras.Sequential([inputs, preprocess, self.saved], name=network.name)
        )
        steps = plan_steps(len(images.x_train), recipe.batch_size)
        self.steps, self.steps_a_call, self.batch_size = steps
        # PyTorch runs one step a call, as do several devices and pictures read from the disk.
        one = keras.backend.backend() == "torch" or self.distribution.replicas > 1
        if one or not self.in_memory:
            self.steps_a_call = 1
        if self.batch_size % self.distribution.replicas:
            raise ValueError(
                f"`batch_size` must be divisible by the number of devices, here "
                f"{self.distribution.replicas}. Received: batch_size={self.batch_size}."
            )
        self.trainee = self._compiled_trainee()

    def _compiled_trainee(self):
        with self.distribution.scope():
            shape = self.images.input_shape
            augment = data.augmenter(self.recipe.augmentation, shape, self.seed)
        layers = [] if self.in_memory else [self.preprocess]
        layers += [augment] if augment else []
        inputs = keras.Input(shape)
        trainee = keras.Sequential([inputs, *layers, self.network])
        with self.distribution.scope():
            optimizer = from_recipe(self.recipe, self.steps)
            if any(layer.compute_dtype == "float16" for layer in self.network.layers):
                optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
            return compile_classifier(trainee, optimizer, self.steps_a_call)

    def train(self, source, out, settings, resume, callbacks, verbose):
        """Train, resuming from the state in `source`, and write to `out`."""
        best = out / "best.keras"
        about = {
            "class_names": settings["class_names"],
            "dataset": settings["dataset"],
            "preprocessing": list(self.recipe.preprocessing),
            "model": settings["model"],
        }

        def save_best():
            self.saved.set_weights(state.best_weights)
            models.save(best, self.complete, **about)

        monitor = "val_accuracy" if len(self.images.x_val) else None
        state = State(source / "state.npz", settings, self.network, monitor, save_best)
        with self.distribution.scope():
            state.restore(self.trainee, resume)
        state.path = out / "state.npz"
        if not state.history:
            _check_can_be_saved(self.complete)
        first = len(state.history)
        write_json(out / "run.json", {**state.settings, "machine": state.sessions})
        if first < self.recipe.epochs and not state.has_stopped:
            self._fit(first, state, [*self._board(out), *callbacks, state], verbose)
        if state.has_diverged:
            raise TrainingDiverged(
                f"The loss or a weight is no longer finite in epoch {len(state.history) + 1}. A "
                "lower `learning_rate` helps. "
                f"Received: learning_rate={self.recipe.learning_rate}."
            )
        self.network.set_weights(state.best_weights)
        self.saved.set_weights(state.best_weights)
        measured = evaluate(self.complete, self.images)
        names = self.images.class_names
        result = Result(
            model=self.complete,
            folder=source,
            history=state.history,
            best_epoch=state.best_epoch,
            test_accuracy=measured.accuracy,
            test_loss=measured.loss,
            class_accuracy=dict(zip(names, measured.class_accuracy, strict=True)),
            confusion=measured.confusion.tolist(),
            seconds=sum(session["seconds"] for session in state.sessions),
        )
        not_results = ("model", "folder", "history")
        results = {key: v for key, v in vars(result).items() if key not in not_results}
        content = {**state.settings, "machine": state.sessions, "results": results}
        write_json(out / "run.json", content)
        write_rows(out / "history.csv", state.history)
        _draw(out, result, self.images)
        return result

    def _board(self, out):
        if keras.backend.backend() != "tensorflow":  # Keras writes the files through TensorFlow
            return []
        return [keras.callbacks.TensorBoard(out / "tensorboard", write_graph=False)]

    def _fit(self, first, state, callbacks, verbose):
        images, distribution = self.images, self.distribution
        arrays = [images.x_train, images.y_train]
        held_out = [images.x_val, images.y_val]
        if self.class_weights is not None:
            arrays.append(self.class_weights[images.y_train])
        at_once = images_at_once(images.input_shape)
        plan = self.steps, self.batch_size, self.seed
        if self.in_memory:
            arrays[0] = self.preprocess.predict(images.x_train, at_once, verbose=0)
            examples = distribution.share(batches(arrays, *plan, first))
            if len(images.x_val):
                held_out[0] = self.preprocess.predict(images.x_val, at_once, verbose=0)
                held_out = distribution.even(held_out)
        else:
            examples = shuffled_pictures(arrays, self.recipe.epochs, *plan, first)
            held_out = pictures_in_turn(held_out, at_once)
        per_device = max(at_once // distribution.replicas, 1)
        validation = {"validation_data": held_out} if len(images.x_val) else {}
        if self.in_memory and validation:
            validation["validation_batch_size"] = per_device * distribution.replicas
        with distribution.scope():
            distribution.install_steps(self.trainee)
            self.trainee.fit(
                examples,
                steps_per_epoch=self.steps,
                shuffle=False,
                epochs=self.recipe.epochs,
                initial_epoch=first,
                verbose=verbose,
                callbacks=[EpochSeeds(self.seed), *callbacks],
                **validation,
            )


def copy_in_float32(network):
    """Return a copy of a network, on one device, that computes in float32."""
    config = json.dumps(keras.saving.serialize_keras_object(network))
    for name in ("mixed_bfloat16", "mixed_float16"):
        config = config.replace(f'"{name}"', '"float32"')
    return keras.saving.deserialize_keras_object(json.loads(config))


def _check_can_be_saved(complete):
    """Fail now, not after the first epoch, if Keras cannot save a model and load it again."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.keras"
        complete.save(path)
        keras.models.load_model(path, compile=False)


def _check_classifier(network, inputs, classes):
    """Raise unless a network returns `classes` class probabilities for `inputs`, a few images."""
    takes, gives = network.input_shape, network.output_shape
    if takes[1:] != tuple(inputs.shape[1:]) or gives != (None, classes):
        raise ValueError(
            f"{network.name!r} must take images of shape {tuple(inputs.shape[1:])} and return a "
            f"probability for each of {classes} classes. Received: a network from {takes} to "
            f"{gives}."
        )
    outputs = keras.ops.cast(network(inputs, training=False), "float32")
    check_probabilities(network.name, keras.ops.convert_to_numpy(outputs))


def weights_of_classes(images, class_weight):
    """Return the weight of each class in the loss, an array, or `None` for equal ones."""
    if class_weight is None:
        return None
    counts = np.bincount(images.y_train, minlength=images.classes)
    if isinstance(class_weight, str):
        checks.one_of("class_weight", class_weight, ["balanced"])
        present = np.count_nonzero(counts)
        return (len(images.y_train) / present / np.maximum(counts, 1)).astype("float32")
    weights = np.ones(images.classes, "float32")
    names = list(images.class_names)
    for key, value in class_weight.items():
        if key not in names and key not in range(len(names)):
            raise ValueError(
                f"`class_weight` must be 'balanced' or have names or numbers of classes as keys: "
                f"{', '.join(names)}. {checks.received('class_weight', class_weight)}"
            )
        number = names.index(key) if key in names else key
        weights[number] = checks.number("class_weight", value, least=0)
    if not weights[counts > 0].any():
        raise ValueError(
            "`class_weight` must be above 0 for a class with training images. "
            f"{checks.received('class_weight', class_weight)}"
        )
    return weights


def _draw(out, result, images):
    def curves():
        from highway_keras import plots

        lines = [plots.Line([row["loss"] for row in result.history], "training")]
        if len(images.x_val):
            held_out = [row["val_loss"] for row in result.history]
            lines.append(plots.Line(held_out, "held out", color=1))
        title = f"{result.model.name} on {images.name}"
        return plots.plot_lines(lines, title, "cross-entropy (nats)")

    def confusion():
        from highway_keras import plots

        return plots.plot_confusion(np.array(result.confusion), images.class_names)

    write_picture(out / "curves.png", curves)
    write_picture(out / "confusion.png", confusion)


class TestCurve(keras.callbacks.Callback):
    """Add `test_loss` and `test_accuracy` to the history after every epoch, for the record.

    They decide nothing, not even which network is best.

    Args:
        images: The `data.Dataset` whose test images are used.
        preprocessing: The recipe's steps, and `images.x_train` must be those of the training.
    """

    def __init__(self, images, preprocessing):
        super().__init__()
        preprocess = data.preprocessor(preprocessing, images.x_train)
        self.x = preprocess.predict(images.x_test, images_at_once(images.input_shape), verbose=0)
        self.y = images.y_test

    def on_epoch_end(self, epoch, logs=None):
        measured = self.model.evaluate(self.x, self.y, batch_size=500, verbose=0, return_dict=True)
        logs |= {f"test_{name}": value for name, value in measured.items()}
