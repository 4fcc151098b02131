"""Training on JAX, whose batches are NumPy arrays."""

import keras
import numpy as np
import pytest

from highway_keras import HighwayStack, training

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="the others have their own"
)
SMALL = {"limit": 100, "epochs": 4, "model_options": {"depth": 3}, "verbose": 0}


def test_an_interrupted_run_goes_on_as_if_nothing_had_been(tmp_path):
    def end(epoch, logs):
        raise ConnectionError

    def fit(name, **options):
        return training.fit("thin-highway-10", "digits", out=tmp_path / name, **SMALL, **options)

    whole = fit("whole")
    with pytest.raises(ConnectionError):
        fit("cut", callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=end)])
    again = fit("cut", resume=True)
    assert again.history == whole.history and again.test_loss == whole.test_loss
    assert fit("weighed", class_weight={"0": 5.0}).history != whole.history


def test_a_stack_exports_for_batches_of_any_size(tmp_path):
    tensorflow = pytest.importorskip("tensorflow")  # which `export` needs
    model = keras.Sequential([keras.Input((8,)), HighwayStack(3)])
    model.export(tmp_path / "saved", verbose=False)
    served = tensorflow.saved_model.load(tmp_path / "saved")
    for rows in (1, 5):
        x = np.ones((rows, 8), "float32")
        np.testing.assert_allclose(served.serve(x), model(x), atol=1e-6)


def test_divergence_is_an_error(tmp_path):
    options = {**SMALL, "model_options": {"depth": 3, "activation": "relu"}, "learning_rate": 1e30}
    with pytest.raises(training.TrainingDiverged, match="learning_rate"):
        training.fit("thin-highway-10", "digits", out=tmp_path / "run", **options)
