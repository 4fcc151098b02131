"""`fit`: what decides a run, what it leaves, how it resumes, what it refuses."""

import contextlib
import dataclasses
import itertools
import json
import os

import keras
import numpy as np
import pytest
from helpers import Killed, kill_at

from highway_keras import Highway, data, models, training
from highway_keras.results import read_rows
from highway_keras.training.evaluation import (
    check_probabilities,
    compile_classifier,
)
from highway_keras.training.state import read_state
from highway_keras.util.files import folder_lock

pytestmark = pytest.mark.usefixtures("untraced")
OPTIONS = {"verbose": 0, "epochs": 3}


@pytest.fixture(scope="module")
def images():
    return data.load("digits", limit=128)


def small():
    """A network with gates, dropout and a plain layer, its weights always the same."""
    keras.utils.set_random_seed(7)
    layers = [
        keras.Input((8, 8, 1)),
        keras.layers.Flatten(),
        keras.layers.Dense(12, "tanh"),
        Highway(activation="tanh"),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(10, "softmax", name="predictions"),
    ]
    return keras.Sequential(layers, name="small")


def fit(images, out, **changes):
    return training.fit(small(), images, "digits", out=out, **{**OPTIONS, **changes})


@pytest.fixture(scope="module")
def result(images, tmp_path_factory):
    return fit(images, tmp_path_factory.mktemp("runs") / "whole")


def arrays_of(folder):
    """Weights and optimizer in the live file, and the best weights."""
    state = read_state(folder / "state.npz")
    del state["run"]
    return state


def assert_same_run(one, other):
    assert one.history == other.history
    assert (one.test_loss, one.test_accuracy) == (other.test_loss, other.test_accuracy)
    np.testing.assert_equal(arrays_of(one.folder), arrays_of(other.folder))


# What decides a run, and what it leaves


def test_the_seed_alone_decides_a_run(images, result, tmp_path):
    keras.utils.set_random_seed(11)  # the state of the process must not matter
    assert_same_run(fit(images, tmp_path / "again", seed=np.int64(0)), result)


@pytest.mark.parametrize("rate", [0.0, 0.1], ids=["order", "dropout"])
def test_the_seed_decides_the_order_and_the_dropout(rate, images, tmp_path):
    chosen = np.zeros(128, int) if rate else np.arange(128)  # one image has no order
    images = dataclasses.replace(
        images, x_train=images.x_train[chosen], y_train=images.y_train[chosen]
    )
    losses = [loss_of_an_epoch(images, tmp_path / str(s), rate, seed=s) for s in (0, 1)]
    assert losses[0] != losses[1]


def loss_of_an_epoch(images, out, rate=0.0, **changes):
    """Train for an epoch with another rate of dropout; return the loss."""
    model = small()
    model.layers[3].rate = rate
    options = {**OPTIONS, "epochs": 1, **changes}
    return training.fit(model, images, "digits", out=out, **options).history[0]["loss"]


def test_a_recipe_and_a_seed_build_the_network(images):
    recipe = training.get_recipe("modern-mnist").override(dtype_policy="mixed_bfloat16")
    one, other = (training.run.create_for("mnist-highway-16", images, recipe, s) for s in (0, 1))
    plain = one.get_layer("plain")
    assert plain.compute_dtype == "bfloat16"
    assert type(plain.kernel_initializer) is keras.initializers.LecunUniform
    rates = [layer.rate for layer in one.layers if isinstance(layer, keras.layers.Dropout)]
    assert rates == [0.1, 0.15, 0.2, 0.25]  # half of the network's
    assert not np.array_equal(one.get_weights()[0], other.get_weights()[0])


def test_a_registered_name_is_created_and_loaded_by_its_recipe(tmp_path):
    size = {"epochs": 1, "batch_size": 400, "verbose": 0}
    names = training.fit("thin-plain-10", "digits", out=tmp_path / "a", **size)
    images = data.load("digits", validation=0.1)
    keras.utils.set_random_seed(0)
    network = models.create("thin-plain-10", input_shape=(8, 8, 1))
    composed = training.fit(network, images, "digits", out=tmp_path / "b", **size)
    assert names.history == composed.history
    assert json.loads((tmp_path / "a" / "run.json").read_text())["model"] == "thin-plain-10"


def test_what_a_run_leaves(images, result):
    rows = read_rows(result.folder / "history.csv")
    assert [{k: float(v) for k, v in row.items()} for row in rows] == result.history
    assert set(rows[0]) == {"epoch", "loss", "accuracy", "val_loss", "val_accuracy"}
    assert result.history[-1]["loss"] < result.history[0]["loss"]
    written = json.loads((result.folder / "run.json").read_text())
    assert written["model"] == "small" and written["dataset"] == "digits"
    assert written["recipe"]["epochs"] == 3 and written["seed"] == 0
    assert written["results"]["test_loss"] == result.test_loss
    assert written["machine"][0]["last_epoch"] == 3
    assert not list(result.folder.rglob(".*"))
    events = list(result.folder.rglob("events.out.tfevents*"))
    assert bool(events) == (keras.backend.backend() == "tensorflow")


def test_best_keras_is_of_the_best_epoch_and_names_its_data(images, result):
    trained = models.load(result.folder)
    assert (trained.dataset, trained.class_names) == ("digits", images.class_names)
    assert trained.model.predict(images.x_test, verbose=0) == pytest.approx(
        result.model.predict(images.x_test, verbose=0), abs=1e-6
    )
    measured = training.evaluate(trained.model, images)
    assert (measured.loss, measured.accuracy) == (result.test_loss, result.test_accuracy)
    assert measured.confusion.tolist() == result.confusion
    held_out = dataclasses.replace(images, x_test=images.x_val, y_test=images.y_val)
    accuracy = training.evaluate(trained.model, held_out).accuracy
    highest = max(row["val_accuracy"] for row in result.history)
    assert accuracy == pytest.approx(highest, abs=1e-6)
    assert result.history[result.best_epoch - 1]["val_accuracy"] == highest


def test_a_test_curve_is_recorded_and_decides_nothing(images, result, tmp_path):
    curve = training.TestCurve(images, ("scale",))
    watched = fit(images, tmp_path / "run", callbacks=[curve])
    assert watched.test_loss == result.test_loss
    assert {"test_loss", "test_accuracy"} <= watched.history[0].keys()


# Resuming


@pytest.mark.filterwarnings("ignore:Exception ignored in")  # files that a crash leaves open
def test_a_run_killed_before_any_file_resumes_to_the_same_bits(images, tmp_path, monkeypatch):
    """Before a file has its name, and so also after the one before it has."""
    result = fit(images, tmp_path / "whole", epochs=2)
    for moment in itertools.count():
        out = tmp_path / str(moment)
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            patch.setattr(os, "replace", kill_at(moment))
            fit(images, out, epochs=2)
            break  # not killed: it writes no more files
        assert_same_run(fit(images, out, epochs=2, resume=True), result)
        measured = training.evaluate(models.load(out).model, images)
        assert (measured.loss, measured.accuracy) == (result.test_loss, result.test_accuracy)
    assert moment >= 6


def test_a_run_continues_with_a_callback_that_adds_to_the_history(images, tmp_path):
    fit(images, tmp_path, epochs=1)
    curve = training.TestCurve(images, training.get_recipe("digits").preprocessing)
    fit(images, tmp_path, epochs=2, resume=True, callbacks=[curve])
    losses = [row["test_loss"] for row in read_rows(tmp_path / "history.csv")]
    assert losses[0] == "" and float(losses[1]) > 0


def test_a_run_continues_from_its_last_epoch_and_not_from_its_best(images, tmp_path):
    wrong = dataclasses.replace(images, y_val=(images.y_val + 3) % 10)  # the first epoch is best
    uninterrupted = fit(wrong, tmp_path / "whole")
    assert uninterrupted.best_epoch == 1
    fit(wrong, tmp_path / "parts", epochs=2)
    assert_same_run(fit(wrong, tmp_path / "parts", resume=True), uninterrupted)


OTHERS = {
    "seed": {"seed": 1},
    "epochs": {"epochs": 2},
    "recipe.epochs": {"epochs": 4, "schedule": "cosine", "decay": 1.0},
    "batch_size": {"batch_size": 16},
    "class_weight": {"class_weight": "balanced"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_run_is_refused_and_the_difference_named(name, images, result):
    with pytest.raises(ValueError, match=name):
        fit(images, result.folder, resume=True, **OTHERS[name])


def test_other_images_another_network_and_no_resume_are_refused(images, result):
    with pytest.raises(ValueError, match="images"):
        fit(data.load("digits", limit=100), result.folder, resume=True)
    frozen = small()
    frozen.layers[1].trainable = False
    with pytest.raises(ValueError, match="weights"):
        training.fit(frozen, images, "digits", out=result.folder, resume=True, **OPTIONS)
    with pytest.raises(ValueError, match="resume=True"):
        fit(images, result.folder)


def test_a_second_process_at_one_folder_is_refused(images, tmp_path):
    with folder_lock(tmp_path), pytest.raises(training.BusyError, match="process"):
        fit(images, tmp_path)


def test_a_damaged_state_is_one_line(images, tmp_path):
    fit(images, tmp_path, epochs=1)
    state = tmp_path / "state.npz"
    state.write_bytes(state.read_bytes()[:2000])
    with pytest.raises(ValueError, match=r"state\.npz"):
        fit(images, tmp_path, epochs=1, resume=True)


class StopsAfterTwo(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = epoch == 1


def test_a_callback_may_end_a_run(images, tmp_path):
    stopped = fit(images, tmp_path, callbacks=[StopsAfterTwo()], epochs=5)
    assert len(stopped.history) == 2
    again = fit(images, tmp_path, callbacks=[StopsAfterTwo()], epochs=5, resume=True)
    assert_same_run(again, stopped)
    assert len(fit(images, tmp_path, epochs=3, resume=True).history) == 3


class Halves(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        optimizer = self.model.optimizer
        optimizer.learning_rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate)) / 2


def test_a_rate_that_a_callback_sets_survives(images, tmp_path):
    constant = {"schedule": "constant", "decay": 1.0, "callbacks": [Halves()]}
    uninterrupted = fit(images, tmp_path / "whole", **constant)
    fit(images, tmp_path / "parts", **{**constant, "epochs": 1})
    assert_same_run(fit(images, tmp_path / "parts", resume=True, **constant), uninterrupted)


# What is trained


def test_a_model_is_trained_in_place_to_its_best_epoch_but_for_frozen_layers(images, tmp_path):
    model = small()
    model.layers[1].trainable = False
    before = model.get_weights()
    result = training.fit(model, images, "digits", out=tmp_path, **OPTIONS)
    same = [np.array_equal(*pair) for pair in zip(before, model.get_weights(), strict=True)]
    assert same == [True] * 2 + [False] * (len(same) - 2)
    np.testing.assert_equal(model.get_weights(), models.load(tmp_path).network.get_weights())
    assert result.model.layers[-1] is model


def test_a_run_in_bfloat16_is_saved_in_float32(images, tmp_path):
    options = {"dtype_policy": "mixed_bfloat16", "augmentation": ("mirror",), "epochs": 2}
    name = "thin-highway-10"
    result = training.fit(name, images, "digits", out=tmp_path, verbose=0, **options)
    assert keras.config.dtype_policy().name == "float32"
    network = models.load(tmp_path).network
    assert {layer.compute_dtype for layer in network.layers} == {"float32"}
    again = training.fit(name, images, "digits", out=tmp_path, verbose=0, resume=True, **options)
    assert again.test_loss == result.test_loss


def test_balanced_weights_give_every_class_the_same_total(images):
    weights = training.run.weights_of_classes
    balanced = weights(images, "balanced")
    totals = balanced[images.y_train]
    per_class = [totals[images.y_train == number].sum() for number in range(10)]
    np.testing.assert_allclose(per_class, len(images.y_train) / 10, rtol=1e-5)
    assert weights(images, {"3": 2.0, 4: 0.5}).tolist() == [1, 1, 1, 2, 0.5, 1, 1, 1, 1, 1]


def test_the_weight_of_a_class_multiplies_its_loss(images, tmp_path):
    model, weights, y = small(), np.linspace(0, 3, 10), images.y_train
    rows = model.predict(images.x_train / np.float32(256), verbose=0)
    expected = (weights[y] * -np.log(rows[np.arange(len(y)), y])).mean()
    options = {"class_weight": dict(enumerate(weights)), "batch_size": 128}
    loss = loss_of_an_epoch(images, tmp_path, **options)
    assert loss == pytest.approx(expected, rel=1e-5)


def test_augmentation_alters_what_is_trained_on(images, tmp_path):
    plain, mirrored = (
        loss_of_an_epoch(images, tmp_path / str(len(steps)), augmentation=steps)
        for steps in ((), ("mirror",))
    )
    assert plain != mirrored


def test_a_network_in_float16_trains_with_a_scaled_loss(images, tmp_path):
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = small()
    finally:
        keras.config.set_dtype_policy(policy)
    optimizers = []
    watch = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: optimizers.append(type(watch.model.optimizer))
    )
    options = {**OPTIONS, "epochs": 1, "callbacks": [watch]}
    training.fit(model, images, "digits", out=tmp_path, **options)
    assert optimizers == [keras.optimizers.LossScaleOptimizer]


# What is refused, or said


class Spoils(keras.callbacks.Callback):
    """The second epoch ends with a weight that is no number."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            weight = self.model.trainable_weights[0]
            weight.assign(np.full(weight.shape, np.nan, "float32"))


def test_divergence_is_an_error_and_leaves_the_last_good_epoch(images, tmp_path):
    with pytest.raises(training.TrainingDiverged, match="learning_rate"):
        fit(images, tmp_path, callbacks=[Spoils()])
    assert len(json.loads(str(read_state(tmp_path / "state.npz")["run"]))["history"]) == 1
    written = json.loads((tmp_path / "run.json").read_text())
    assert "results" not in written and written["machine"][0]["hardware"]


MISTAKES = {
    "seed": {"seed": -1},
    "preprocessing": {"preprocessing": ("wash",)},
    "class_weight": {"class_weight": {"x": 1}},
    "validation": {"validation": 0.2},
    "dropout": {"dropout": 0.5},
    "dtype_policy": {"dtype_policy": "mixed_bfloat16"},
    "kernel_initializer": {"kernel_initializer": "he_normal"},
    "overrides": {"momentun": 0.9},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_before_a_folder_is_made(name, images, tmp_path):
    with pytest.raises(ValueError, match=f"`{name}`"):
        fit(images, tmp_path / "run", **MISTAKES[name])
    assert not (tmp_path / "run").exists()


def test_a_network_that_does_not_fit_is_refused_before_it_trains(images, tmp_path):
    layers = [keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10)]
    logits = keras.Sequential(layers)
    for network in (logits, models.create("thin-plain-10", input_shape=(8, 8, 1), classes=7)):
        with pytest.raises(ValueError, match="probabilit"):
            training.fit(network, images, "digits", out=tmp_path / "run", **OPTIONS)


class Unregistered(keras.layers.Layer):
    def call(self, x):
        return 2 * x


def test_a_model_that_keras_cannot_load_fails_before_the_first_epoch(images, tmp_path):
    layers = [keras.Input((8, 8, 1)), Unregistered(), keras.layers.Flatten()]
    model = keras.Sequential([*layers, keras.layers.Dense(10, "softmax")])
    with pytest.raises(Exception, match="Unregistered"):
        training.fit(model, images, "digits", out=tmp_path, **OPTIONS)
    assert not (tmp_path / "state.npz").exists()


# Measuring


def test_an_image_that_is_wrong_for_certain_still_teaches():
    top = keras.layers.Dense(3, "softmax", kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((1,)), top])
    compile_classifier(model, keras.optimizers.SGD(1.0))
    for gap in (30, 80):
        top.bias.assign([0.0, gap, 0.0])
        loss, _ = model.train_on_batch(np.zeros((1, 1)), np.array([0]))
        model.reset_metrics()
        assert loss == pytest.approx(gap)
        after = keras.ops.convert_to_numpy(top.bias)
        np.testing.assert_allclose(after, [1, gap - 1, 0], atol=1e-5)


def test_evaluation_is_keras_own_whatever_the_model_was_compiled_with(images):
    model = models.create("thin-plain-10", input_shape=(8, 8, 1))
    measured = training.evaluate(model, images)
    compile_classifier(model)
    of_keras = model.evaluate(images.x_test, images.y_test, verbose=0)
    np.testing.assert_allclose([measured.loss, measured.accuracy], of_keras, rtol=1e-5)
    model.compile("sgd", loss="mse")
    assert training.evaluate(model, images).loss == measured.loss
    predicted = model.predict(images.x_test, verbose=0).argmax(-1)
    for number, share in enumerate(measured.class_accuracy):
        answers = predicted[images.y_test == number]
        assert measured.confusion[number].tolist() == np.bincount(answers, minlength=10).tolist()
        assert share == pytest.approx(np.mean(answers == number))


def test_probabilities():
    shares = np.random.default_rng(0).random((50, 100))
    for rounding in ("float16", "float32"):
        check_probabilities("it", (shares / shares.sum(-1, keepdims=True)).astype(rounding), 100)
    for row in ([0.5, 0.6], [319.6, -318.6], [np.nan, 0.5]):
        with pytest.raises(ValueError, match="'it'"):
            check_probabilities("it", np.array([[0.5, 0.5], row]), 2)
