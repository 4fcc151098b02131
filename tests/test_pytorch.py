"""PyTorch as a backend for training and using networks; other backends run this file on it."""

import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

from highway_keras import data, models, training
from highway_keras.cli import command as cli
from highway_keras.training.callbacks import Checkpoint

on_torch = pytest.mark.skipif(keras.backend.backend() != "torch", reason="about PyTorch")
# Two epochs on digits with TensorFlow, and what TensorFlow measures: loss and accuracy.
TENSORFLOWS = pathlib.Path(__file__).with_name("recorded") / "run-0.1.0" / "best.keras"
MEASURED = (2.1333182, 0.3481894)


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() == "torch", reason="runs here already")
def test_this_file_on_torch():
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", __file__],
        env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout


@pytest.fixture
def colours(tmp_path):
    """A data set of small colour images for a network with dropout."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = (rng.integers(0, 100, (60, 12, 12, 3)) + 70 * y[:, None, None, None]).astype("uint8")
    np.savez(tmp_path / "small.npz", x_train=x, y_train=y, x_test=x[:20], y_test=y[:20])
    return tmp_path / "small.npz"


class Killed(BaseException):
    pass


@on_torch
@pytest.mark.parametrize("last", [0, 1])
def test_a_run_that_was_killed_goes_on_as_if_nothing_had_been(last, colours, tmp_path, monkeypatch):
    """With dropout, crops, mirrors, L2 and twice the rate for biases."""
    sizes = {"batch_size": 20, "epochs": 3, "model_options": {"width": 3}, "verbose": 0}

    def fit(name, resume=False):
        out = tmp_path / name
        return training.fit("mnist-highway-16", colours, "cifar", out, resume, **sizes)

    def killed(self, epoch, logs=None, on_epoch_end=Checkpoint.on_epoch_end):
        on_epoch_end(self, epoch, logs)
        if epoch == last:
            raise Killed

    whole = fit("whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Checkpoint, "on_epoch_end", killed)
        fit("run")
    again = fit("run", resume=True)
    assert again.history == whole.history and len(whole.history) == 3
    assert (again.test_loss, again.test_accuracy) == (whole.test_loss, whole.test_accuracy)


@on_torch
def test_it_learns(tmp_path):
    result = training.fit("thin-highway-10", "digits", out=tmp_path, epochs=4, verbose=0)
    assert result.test_accuracy > 0.9


@on_torch
def test_what_tensorflow_trained_is_evaluated_and_used(capsys):
    saved = training.SavedNetwork(TENSORFLOWS)
    images = data.load("digits")
    assert saved.evaluate(images) == pytest.approx(MEASURED, abs=1e-5)
    found = saved.model.predict(images.x_test, verbose=0)
    assert (found.argmax(-1) == images.y_test).mean() == pytest.approx(MEASURED[1])
    assert cli.main(["evaluate", str(TENSORFLOWS)]) == 0
    assert capsys.readouterr().out.startswith("test accuracy 34.82 %  test loss 2.1333")


@on_torch
@pytest.mark.parametrize("name", ["thin-highway-10", "mnist-highway-16"])
def test_weights_of_the_zoo_are_used(name):
    saved = training.SavedNetwork(models.get(name).weights_file("mnist"))
    found = saved.model.predict(np.zeros((2, 28, 28, 1), "uint8"), verbose=0)
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)


@on_torch
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fit thin-highway-10 --dataset digits --distribute", "needs the TensorFlow or the JAX"),
        ("search --dataset digits --depth 2 --kind plain", "needs the TensorFlow or the JAX"),
        (f"export {TENSORFLOWS} --out exported", "is traced by TensorFlow. Received: the backend"),
    ],
)
def test_what_needs_another_backend_says_so_and_leaves_nothing(
    command, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
