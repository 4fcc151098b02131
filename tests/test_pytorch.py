"""PyTorch as a backend for training and using networks."""

import keras
import numpy as np
import pytest

from highway_keras import models, training
from highway_keras.cli import command as cli

pytestmark = pytest.mark.skipif(keras.backend.backend() != "torch", reason="about PyTorch")


class Killed(BaseException):
    pass


def test_a_run_that_was_killed_goes_on_as_if_nothing_had_been(tmp_path):
    """With dropout, crops, mirrors, L2 and twice the rate for biases."""

    y = np.arange(60) % 3
    x = np.random.default_rng(0).integers(0, 100, (60, 12, 12, 3)) + 70 * y[:, None, None, None]
    x, small = x.astype("uint8"), tmp_path / "small.npz"
    np.savez(small, x_train=x, y_train=y, x_test=x[:20], y_test=y[:20])

    def end(epoch, logs):
        if epoch == 1:
            raise Killed

    def fit(name, **how):
        sizes = {"batch_size": 20, "epochs": 3, "model_options": {"width": 3}, "verbose": 0}
        return training.fit("mnist-highway-16", small, "cifar", tmp_path / name, **sizes, **how)

    whole = fit("whole")
    with pytest.raises(Killed):
        fit("run", callbacks=[keras.callbacks.LambdaCallback(on_epoch_begin=end)])
    again = fit("run", resume=True)
    assert again.history == whole.history and len(whole.history) == 3
    assert (again.test_loss, again.test_accuracy) == (whole.test_loss, whole.test_accuracy)


@pytest.mark.parametrize(
    "command",
    [
        "fit thin-highway-10 --dataset digits --distribute",
        "search --dataset digits --depth 2 --kind plain",
        f"export {models.get('thin-highway-10').weights_file('mnist')} --out exported",
    ],
)
def test_what_needs_another_backend_says_so_and_leaves_nothing(
    command, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()) == 2
    assert "TensorFlow" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
