"""`fit`: train a classifier by a recipe, in a folder from which it resumes to the same result."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import os
import pathlib
import tempfile

import keras
import numpy as np

from highway_keras import data, models
from highway_keras.training.batches import Feed
from highway_keras.training.distribution import Distribution
from highway_keras.training.evaluation import check_probabilities, compile_classifier, evaluate
from highway_keras.training.recipe_optimizer import from_recipe
from highway_keras.training.recipes import BUILDING, Recipe, choose_recipe
from highway_keras.training.state import EpochSeeds, State
from highway_keras.util import checks
from highway_keras.util.files import LEFTOVERS, folder_lock, write_picture, write_rows
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
    settings: dict | None = None,
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
            `fit` then creates the network, its weights drawn by `seed`. Only there do the recipe's
            `kernel_initializer`, `dropout` and `dtype_policy` act.
        images: A `data.Dataset`, or a name or path that `data.load` takes, with the recipe's
            `validation`. Default: the data set of a registered network.
        recipe: A `Recipe` or the name of one. Default: `"digits"` for the bundled digits, else
            that of a registered network, `"quick"` for another model.
        out: Folder of the run. Default: `runs/MODEL-DATASET`.
        seed: Non-negative integer; decides the order of the images, dropout and augmentation.
        resume: Whether to continue the run in `out`, if there is one. A finished run continues if
            `epochs` is larger, except with a cosine schedule.
        class_weight: Weight of each class in the loss: `"balanced"` for equal totals, or a
            dictionary by name or number; other classes weigh 1.
        callbacks: List of `keras.callbacks.Callback`. Their `model` takes preprocessed images or,
            if the images do not fit in memory, raw ones. Up to 32 steps run per call, and the hooks
            of batches are called once for them.
        settings: What else decides the run, for `run.json`, such as how the model was made. A run
            resumes under equal settings only.
        verbose: As in Keras.
        **overrides: Attributes of the recipe, such as `epochs=5`.

    Returns:
        A `Result`.

    Raises:
        ValueError: If an argument is out of its range or cannot act, or `out` holds another run.
        BusyError: If another process is writing to `out`.
        TrainingDiverged: If the loss or a weight is no longer finite.
        FileNotFoundError, data.DataError: As `data.load` does.

    Examples:
        >>> from highway_keras import training
        >>> result = training.fit("thin-highway-10", "digits", epochs=20)  # doctest: +SKIP
    """
    is_name = isinstance(model, str)
    if settings is None:
        settings = {} if is_name else {"not_applied": BUILDING}  # a given network is built
    images, recipe = _resolve(model, images, recipe, overrides)
    network = create_for(model, images, recipe, seed) if is_name else model
    preprocess = data.preprocessor(recipe.preprocessing, images.x_train)
    outputs = keras.ops.cast(network(preprocess(images.x_train[:2]), training=False), "float32")
    check_probabilities(network.name, keras.ops.convert_to_numpy(outputs), images.classes)
    class_weights = weights_of_classes(images, class_weight)
    settings = {
        "model": network.name,
        "start": None,  # this and the next two: what the command may set
        "model_options": {},
        "limit": None,
        **settings,
        "weights": [[list(w.shape), w.trainable] for w in network.weights],
        "dataset": images.source,
        "images": images.fingerprint(),
        "image_shape": list(images.input_shape),
        "class_names": list(images.class_names),
        "class_weight": None if class_weights is None else class_weights.tolist(),
        "recipe": dataclasses.asdict(recipe),
        "seed": checks.seed(seed),
    }
    distribution = Distribution(network)
    feed = Feed(images, preprocess, recipe.batch_size, distribution)
    trainee = _model_to_train(network, feed, recipe, seed)
    complete = _model_to_save(network, images, preprocess, distribution)
    out = pathlib.Path(out or f"runs/{network.name}-{images.name}").expanduser()
    with _folder_to_write(out, distribution.is_chief) as folder:
        state = State(folder, settings, trainee, complete)
        if not (out / "state.npz").exists():
            _check_can_be_saved(complete)
        elif resume:
            with distribution.scope():
                state.restore(out / "state.npz")
        else:
            raise ValueError(
                f"`out` already holds a run. Received: out={out}. Pass resume=True to continue it, "
                "or name another folder."
            )
        if not state.has_ended:
            _train_epochs(state, feed, class_weights, callbacks, verbose)
        if state.has_diverged:
            raise TrainingDiverged(
                f"The loss or a weight is no longer finite in epoch {len(state.history) + 1}. A "
                "lower `learning_rate` helps. "
                f"{checks.received('learning_rate', recipe.learning_rate)}"
            )
        network.set_weights(state.best_weights)
        results = _results(complete, images, state)
        state.write_run(results=results)
        write_rows(folder / "history.csv", state.history)
        _draw(folder, f"{network.name} on {images.name}", state.history, results)
        return Result(model=complete, folder=out, history=state.history, **results)


def _resolve(model, images, recipe, overrides):
    """Return the `Dataset` and the `Recipe` to train a model with, or a network of that name."""
    is_name, is_loaded = isinstance(model, str), isinstance(images, data.Dataset)
    if images is None and is_name:
        images = models.get(model).dataset
    source = images.source if is_loaded else images
    recipe = choose_recipe(recipe, model if is_name else None, source).override(**overrides)
    check_can_act(overrides, [] if is_name else BUILDING)
    if is_loaded:
        check_can_act(overrides, ["validation"])
        return images, recipe
    shape = models.get(model).input_shape if is_name else model.input_shape[1:]
    return data.load(images, validation=recipe.validation, input_shape=shape), recipe


def check_can_act(overrides, too_late):
    """Raise a `ValueError` if `overrides` name an attribute that acts only before training."""
    for name in too_late:
        if name in overrides:
            raise ValueError(
                f"`{name}` acts before training: give it to `data.load` or `models.create`. "
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


def _model_to_train(network, feed, recipe, seed):
    """Return the compiled model from what a `Feed` gives to the network's probabilities."""
    shape, scope = feed.images.input_shape, feed.distribution.scope
    with scope():
        augment = data.augmenter(recipe.augmentation, shape, seed)
        optimizer = from_recipe(recipe, feed.steps)
        if any(layer.compute_dtype == "float16" for layer in network.layers):
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    first = [*feed.layers, augment] if augment else feed.layers
    # Outside the scope: Keras fails with a model that is made and compiled in it.
    trainee = keras.Sequential([keras.Input(shape), *first, network])
    with scope():
        compile_classifier(trainee, optimizer, feed.steps_per_execution)
        optimizer.build(trainee.trainable_variables)
    return trainee


def _model_to_save(network, images, preprocess, distribution):
    """Return the model from raw images, in float32 and on one device.

    It holds the network itself, or a copy of one that trains otherwise.
    """
    is_in_16_bits = any(layer.compute_dtype in ("bfloat16", "float16") for layer in network.layers)
    if is_in_16_bits or distribution.replicas > 1:
        config = json.dumps(keras.saving.serialize_keras_object(network))
        for name in ("mixed_bfloat16", "mixed_float16"):
            config = config.replace(f'"{name}"', '"float32"')
        network = keras.saving.deserialize_keras_object(json.loads(config))
    inputs = keras.Input(images.input_shape)  # stated, or Keras rounds to the global policy
    return compile_classifier(keras.Sequential([inputs, preprocess, network], name=network.name))


def _train_epochs(state, feed, class_weights, callbacks, verbose):
    """Train for the epochs that are left."""
    distribution, seed, first_epoch = feed.distribution, state.settings["seed"], len(state.history)
    board = []
    if keras.backend.backend() == "tensorflow":  # through which Keras writes the files
        board = [keras.callbacks.TensorBoard(state.folder / "tensorboard", write_graph=False)]
    examples, held_out = feed.training(class_weights, seed, first_epoch), feed.validation()
    with distribution.scope():
        distribution.install_steps(state.trainee)
        state.trainee.fit(
            examples,
            steps_per_epoch=feed.steps,
            shuffle=False,
            epochs=state.settings["recipe"]["epochs"],
            initial_epoch=first_epoch,
            verbose=verbose if distribution.is_chief else 0,
            callbacks=[EpochSeeds(seed), *board, *callbacks, state],
            **held_out,
        )


@contextlib.contextmanager
def _folder_to_write(out, is_chief):
    """Lock `out` for the chief; other processes write to a folder that is then deleted."""
    if not is_chief:
        with tempfile.TemporaryDirectory() as folder:
            yield pathlib.Path(folder)
        return
    with folder_lock(out):
        for leftover in out.glob(LEFTOVERS):  # of a process that was killed
            leftover.unlink()
        yield out


def _check_can_be_saved(complete):
    """Fail now, not after the first epoch, if Keras cannot save a model and load it again."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.keras"
        complete.save(path)
        keras.models.load_model(path, compile=False)


def weights_of_classes(images, class_weight):
    """Return the weight of each class in the loss, an array, or `None` for equal ones."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        checks.one_of("class_weight", class_weight, ["balanced"])
        counts = np.bincount(images.y_train, minlength=images.classes)
        present = np.count_nonzero(counts)
        return (len(images.y_train) / present / np.maximum(counts, 1)).astype("float32")
    weights = np.ones(images.classes, "float32")
    choices = [*images.class_names, *range(images.classes)]  # names, and after them numbers
    for key, value in class_weight.items():
        number = choices.index(checks.one_of("class_weight", key, choices)) % images.classes
        weights[number] = checks.number("class_weight", value, least=0)
    return weights


def _results(complete, images, state):
    """Return the attributes of a `Result` that `run.json` holds."""
    measured = evaluate(complete, images)
    return {
        "best_epoch": state.best_epoch,
        "test_accuracy": measured.accuracy,
        "test_loss": measured.loss,
        "class_accuracy": dict(zip(images.class_names, measured.class_accuracy, strict=True)),
        "confusion": measured.confusion.tolist(),
        "seconds": round(sum(session["seconds"] for session in state.sessions), 1),
    }


def _draw(folder, title, history, results):
    """Draw the losses by epoch, and the test images by class and by predicted class."""

    def curves():
        from highway_keras import plots

        lines = [plots.Line([row["loss"] for row in history], "training")]
        if "val_loss" in history[0]:
            lines.append(plots.Line([row["val_loss"] for row in history], "held out", color=1))
        return plots.plot_lines(lines, title, "cross-entropy (nats)")

    def confusion():
        from highway_keras import plots

        return plots.plot_confusion(np.array(results["confusion"]), [*results["class_accuracy"]])

    write_picture(folder / "curves.png", curves)
    write_picture(folder / "confusion.png", confusion)
