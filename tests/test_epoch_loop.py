"""The compiled epoch of JAX next to Keras's own `fit`."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from highway_keras import data, models, training
from highway_keras.layers import ConvHighway2D
from highway_keras.training.batches import array_batches
from highway_keras.training.callbacks import _DRAWS_AN_EPOCH, EpochSeeds
from highway_keras.training.evaluation import compile_classifier
from highway_keras.training.optimizer import from_recipe

if keras.backend.backend() == "jax":
    from highway_keras.training.engines import jax as engine

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="only JAX compiles epochs")
IMAGES, STEPS, BATCH, EPOCHS, SIDE = 47, 4, 10, 3, 12  # 7 images are left over
X = np.random.default_rng(0).standard_normal((IMAGES, SIDE, SIDE, 3)).astype("float32")
Y = np.arange(IMAGES) % 3
SMALL = {"limit": 100, "epochs": 4, "model_options": {"depth": 3}, "verbose": 0}


def thin():
    return models.thin_mlp(4, input_shape=X.shape[1:], classes=3)


def convolutional():
    """With crops, mirrors and dropout."""
    return keras.Sequential(
        [
            data.augmenter(("crop8", "mirror"), X.shape[1:], 0),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.Dropout(0.2),
            ConvHighway2D(4, 3),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(3, "softmax", name="predictions"),
        ]
    )


def compiled(build, steps_a_call=1):
    """The model and its recipe's optimizer, whose rate falls and decays."""
    keras.utils.set_random_seed(0)
    recipe = training.get_recipe("cifar").override(epochs=EPOCHS, decay_epochs=(1, 2))
    return compile_classifier(build(), from_recipe(recipe, STEPS), steps_a_call)


def fit(model, fed=None, callbacks=()):
    history = model.fit(
        fed or array_batches(X, Y, STEPS, BATCH, seed=0),
        steps_per_epoch=STEPS,
        epochs=EPOCHS,
        shuffle=False,
        verbose=0,
        callbacks=[EpochSeeds(0), *callbacks],
    )
    return history.history


def fit_compiled(build):
    model = compiled(build, steps_a_call=STEPS)
    engine.install_train_function(model, X, Y, (STEPS, BATCH, 0))
    return model, fit(model)


def assert_same(model, history, other, other_history):
    for name in ("loss", "accuracy"):
        np.testing.assert_allclose(history[name], other_history[name], rtol=0, atol=1e-5)
    for one, two in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("build", "in_a_loop"),
    [
        (thin, True),
        (convolutional, False),
        pytest.param(convolutional, True, marks=pytest.mark.slow),
    ],
)
def test_it_trains_as_keras_does(build, in_a_loop, monkeypatch):
    monkeypatch.setattr(engine, "slow_in_a_loop", lambda model: not in_a_loop)
    ordinary = compiled(build)
    model, history = fit_compiled(build)
    assert_same(model, history, ordinary, fit(ordinary))
    states = [v for v in model.variables if v.path.endswith("seed_generator_state")]
    assert len(states) == (3 if build is convolutional else 0)  # crops, mirrors, dropout
    for state in states:  # each drew numbers in every step of the last epoch
        assert int(state[1]) >= (EPOCHS - 1) * _DRAWS_AN_EPOCH + STEPS


def test_only_small_networks_are_looped_on_a_cpu():
    assert not engine.slow_in_a_loop(thin())
    model = convolutional()
    model.build((None, *X.shape[1:]))
    assert engine.slow_in_a_loop(model)


def test_it_is_compiled_once(monkeypatch):
    traced = []
    train_step = keras.Model.train_step

    def counting(self, *arguments):
        traced.append(1)
        return train_step(self, *arguments)

    counts = []
    count = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: counts.append(len(traced)))
    monkeypatch.setattr(keras.Model, "train_step", counting)
    model = compiled(thin, steps_a_call=STEPS)
    engine.install_train_function(model, X, Y, (STEPS, BATCH, 0))
    fit(model, callbacks=[count])
    assert counts[0] == counts[-1] > 0


def test_it_follows_the_precision_policy():
    keras.config.set_dtype_policy("mixed_bfloat16")
    ordinary = compiled(thin)
    model, history = fit_compiled(thin)
    assert_same(model, history, ordinary, fit(ordinary))
    keras.config.set_dtype_policy("float32")
    assert history["loss"] != fit_compiled(thin)[1]["loss"]
    assert {weight.dtype for weight in model.trainable_weights} == {"float32"}


@pytest.mark.slow
def test_tensorflow_trains_alike(tmp_path):
    model = compiled(thin)
    model.save_weights(tmp_path / "first.weights.h5")
    script = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import test_epoch_loop as here; "
        "model = here.compiled(here.thin); model.load_weights(sys.argv[2]); "
        "print(json.dumps(here.fit(model, here.fed())['loss']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, os.path.dirname(__file__), tmp_path / "first.weights.h5"],
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=200,
    )
    losses = json.loads(done.stdout.splitlines()[-1])
    np.testing.assert_allclose(fit_compiled(thin)[1]["loss"], losses, rtol=0, atol=1e-5)


def fed():
    """The batches in the order of JAX, whatever the backend."""
    return array_batches(X, Y, STEPS, BATCH, 0, 0)


def test_an_interrupted_run_goes_on_as_if_nothing_had_been(tmp_path):
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise ConnectionError

    def fit(name, **options):
        return training.fit("thin-highway-10", "digits", out=tmp_path / name, **SMALL, **options)

    whole = fit("whole")
    with pytest.raises(ConnectionError):
        fit("cut", callbacks=[Stop()])
    again = fit("cut", resume=True)
    assert again.history == whole.history and again.test_loss == whole.test_loss
    weighed = fit("weighed", class_weight={"0": 5.0})
    assert weighed.history != whole.history


def test_divergence_is_an_error(tmp_path):
    options = {**SMALL, "model_options": {"depth": 3, "activation": "relu"}, "learning_rate": 1e30}
    with pytest.raises(training.TrainingDiverged, match="learning_rate"):
        training.fit("thin-highway-10", "digits", out=tmp_path / "run", **options)
