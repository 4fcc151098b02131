"""Measuring classifiers: probabilities only, whatever a model was compiled with."""

import keras
import numpy as np
import pytest

from highway_keras import data, models, training
from highway_keras.cli import command as cli
from highway_keras.training.evaluation import NotProbabilities, check_probabilities, evaluate


@pytest.fixture(scope="module")
def images():
    return data.load("digits")


def network():
    keras.utils.set_random_seed(0)
    return models.thin_mlp(depth=3, input_shape=(8, 8, 1))


class OwnLoss(keras.losses.Loss):
    """A loss that Keras cannot load, since nobody registered it."""

    def call(self, y_true, y_pred):
        return keras.ops.sum(y_pred, axis=-1)


def test_it_measures_what_keras_does(images):
    model = training.evaluation.compile_classifier(network())
    expected = model.evaluate(images.x_test, images.y_test, verbose=0)
    np.testing.assert_allclose(evaluate(model, images), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "compiled",
    [
        {"loss": "mse"},
        {"loss": OwnLoss(), "metrics": ["mae", "mse"]},
        {"loss": "sparse_categorical_crossentropy"},
        None,
    ],
)
def test_what_a_model_was_compiled_with_does_not_matter(compiled, images, tmp_path):
    model = network()
    expected = evaluate(model, images)
    if compiled:
        model.compile("sgd", **compiled)
    assert evaluate(model, images) == expected
    model.save(tmp_path / "own.keras")
    assert training.SavedNetwork(tmp_path / "own.keras").evaluate(images) == expected


def test_a_wrong_answer_given_for_certain_costs_a_finite_loss(images):
    model = network()
    model.layers[-1].bias.assign([200.0] + 9 * [0.0])
    loss, accuracy = evaluate(model, images)
    assert 20 < loss < 100 and accuracy == np.mean(images.y_test == 0)


@pytest.mark.parametrize(
    "row", [[0.5, 0.6], [319.6, -318.6], [np.nan, 0.5], [np.inf, 0], [0, 0], [1.5, -0.5]]
)
def test_other_numbers_are_no_probabilities(row):
    with pytest.raises(NotProbabilities, match="'it' must return class probabilities"):
        check_probabilities("it", np.array([[0.5, 0.5], row]))


@pytest.mark.parametrize("rounding", ["float16", "float32"])
def test_rounded_probabilities_are(rounding):
    shares = np.random.default_rng(0).random((50, 100))
    check_probabilities("it", (shares / shares.sum(-1, keepdims=True)).astype(rounding))


@pytest.mark.parametrize("change", ["l2=1e308", "bias_rate=1e308"])
def test_weights_that_left_the_finite_numbers_end_with_1(change, tmp_path, capsys):
    command = "fit thin-highway-10 --dataset digits --limit 16 --epochs 1 --batch-size 16 --set"
    code = cli.main([*command.split(), change, "--model-set", "depth=3", "--out", str(tmp_path)])
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 1 and ("no longer finite" in line or "Received: nan" in line)
    assert not training.RunFolder(tmp_path).has_ended
