"""Trained weights as a start: the classifier anew, features that stay as they are."""

import json
import shutil
import warnings

import keras
import numpy as np
import pytest
from picture_folders import images, little

from benchmarks import transfer
from highway_keras import data, models, training
from highway_keras.cli import command as cli
from highway_keras.messages import Notice

DEEP = {"model_options": {"depth": 3, "units": 8}, "epochs": 1}
SMALL = {"verbose": 0, "recipe": "digits", "batch_size": 16, "epochs": 2, "limit": 32}


@pytest.fixture(scope="module")
def dataset():
    """Three classes of images of MNIST's size."""
    return data.load(images(60, size=(28, 28)), validation=0.1)


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    """A run whose network other runs start from."""
    out = tmp_path_factory.mktemp("deep") / "run"
    options = {**SMALL, **DEEP}
    return training.fit("thin-highway-10", "digits", out=out, **options)


def fit(dataset, out, model="thin-highway-10", **changes):
    return training.fit(model, dataset, out=out, **{**SMALL, "weights": "mnist"} | changes)


def network_in(path):
    return keras.models.load_model(path, compile=False).layers[-1]


def run(*arguments):
    try:
        return cli.main([str(argument) for argument in arguments])
    except SystemExit as end:
        return end.code


STARTS_ANEW = "predictions of '{}' starts anew; all other layers have the weights"


@pytest.mark.parametrize(
    "name", ["thin-highway-10", pytest.param("mnist-highway-16", marks=pytest.mark.slow)]
)
def test_frozen_weights_are_equal_to_the_last_bit(name, dataset, tmp_path):
    """In a `HighwayStack`, which the fast engine loops over, and in convolutions."""
    with pytest.warns(Notice, match=STARTS_ANEW.format(name)):
        result = fit(dataset, tmp_path / "run", name, freeze=True)
    source, found = models.create(name, weights="mnist"), network_in(result.folder.final)
    layers = zip(source.layers, found.layers, strict=True)
    kept = [(one, other) for one, other in layers if one.weights and one.name != "predictions"]
    assert kept
    for one, other in kept:
        for before, after in zip(one.get_weights(), other.get_weights(), strict=True):
            np.testing.assert_array_equal(before, after)
        assert not other.trainable
    top = found.get_layer("predictions")
    assert found.trainable_weights == top.weights and found.output_shape == (None, 3)
    start = training.fit(  # what the classifier began as
        name, dataset, out=tmp_path / "other", **{**SMALL, "seed": 1, "epochs": 1}
    )
    assert not np.array_equal(
        top.get_weights()[0], network_in(start.folder.final).get_weights()[-2]
    )


def test_without_freezing_all_weights_move(dataset, tmp_path):
    with pytest.warns(Notice, match="starts anew"):
        result = fit(dataset, tmp_path / "run")
    source, found = models.create("thin-highway-10", weights="mnist"), result.folder.final
    for before, after in zip(
        source.get_weights()[:-2], network_in(found).get_weights(), strict=False
    ):
        assert before.shape == after.shape and not np.array_equal(before, after)
        assert np.abs(before - after).mean() < 0.5 * np.abs(before).mean()  # from there, not anew


def test_with_the_same_classes_the_classifier_has_its_weights(deep, tmp_path):
    options = {**DEEP, "learning_rate": 1e-9}
    result = fit("digits", tmp_path / "run", weights=deep.folder.best, **options)
    pairs = (network_in(r.folder.final).get_weights() for r in (deep, result))
    for before, after in zip(*pairs, strict=True):
        np.testing.assert_allclose(before, after, atol=1e-6)


def test_what_a_run_began_with_is_recorded(dataset, tmp_path):
    with pytest.warns(Notice):
        result = fit(dataset, tmp_path / "run", freeze=True)
    settings = result.folder.read_json()
    assert (settings["weights"], settings["freeze"]) == ("mnist", True)
    file = models.get("thin-highway-10").weights_file("mnist")
    assert models.shipped.sha256(file).startswith(settings["weights_sha256"])
    for changes, message in [
        ({"freeze": False}, "freeze: True → None"),
        ({"weights": None, "freeze": False}, "weights: 'mnist' → None"),
    ]:
        with pytest.raises(ValueError, match=f"settings differ .*{message}"):
            _quietly(fit, dataset, tmp_path / "run", resume=True, **changes)


def _quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        return function(*arguments, **options)


def test_a_frozen_run_resumes(dataset, tmp_path):
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise KeyboardInterrupt

    whole = _quietly(fit, dataset, tmp_path / "whole", freeze=True)
    with pytest.raises(KeyboardInterrupt):
        _quietly(fit, dataset, tmp_path / "run", freeze=True, callbacks=[Stop()])
    again = _quietly(fit, dataset, tmp_path / "run", freeze=True, resume=True)
    assert again.history == whole.history and again.test_loss == whole.test_loss


def test_another_file_under_the_same_name_is_another_start(deep, tmp_path):
    file = shutil.copy(deep.folder.best, tmp_path / "start.keras")
    options = {**DEEP, "weights": file}
    fit("digits", tmp_path / "run", **options)
    shutil.copy(models.get("thin-highway-10").weights_file("mnist"), file)
    with pytest.raises(ValueError, match="`weights` does not fit"):
        fit("digits", tmp_path / "run", resume=True, **options)
    other = keras.models.load_model(deep.folder.best, compile=False)
    other.set_weights([weight * 0 for weight in other.get_weights()])
    other.save(file)
    with pytest.raises(ValueError, match=r"weights_sha256: '\w+' → '\w+'"):
        fit("digits", tmp_path / "run", resume=True, **options)


def test_weights_that_expect_other_images_say_so(dataset, tmp_path):
    with pytest.warns(Notice) as said:
        fit(dataset, tmp_path / "run", preprocessing=("gcn", "mean"), epochs=1)
    lines = [str(warning.message) for warning in said]
    assert any(
        "expect images preprocessed by scale; the recipe's preprocessing is gcn" in line
        for line in lines
    )


def test_a_model_of_ones_own_freezes_below_its_classifier(tmp_path):
    model = little(keras.layers.Dense(6), keras.layers.Dense(5))
    before = model.get_weights()
    options = {key: value for key, value in SMALL.items() if key != "limit"}
    training.fit(model, images(60), out=tmp_path / "run", freeze=True, **options)
    after = model.get_weights()
    for index, (one, other) in enumerate(zip(before, after, strict=True)):
        assert np.array_equal(one, other) == (index < 4)


MISTAKES = {
    "frozen anew": ({"freeze": True, "weights": None}, "`freeze` needs `weights`"),
    "another network": (
        {"weights": "DEEP", "model": "thin-highway-20"},
        "`weights` does not fit the model 'thin-highway-20'",
    ),
    "another size": ({"weights": "mnist", "dataset": "digits"}, "`weights` does not fit the model"),
    "unknown": (
        {"weights": "cifar10"},
        "`weights` must be None or an existing file, or one",
    ),
    "none": ({"model": "thin-plain-10"}, r"or an existing file\. Received: weights=mnist"),
    "twice": ({"model_options": {"weights": "mnist"}}, "`weights` is given twice"),
    "a number": ({"weights": 5}, "`weights` must be a path"),
}


@pytest.mark.parametrize(("changes", "message"), MISTAKES.values(), ids=MISTAKES)
def test_weights_that_do_not_serve(changes, message, dataset, deep, tmp_path):
    changes = {k: deep.folder.best if v == "DEEP" else v for k, v in changes.items()}
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message) as caught:
        fit(**{"dataset": dataset, "out": tmp_path / "run", **changes})
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


def test_the_command_says_what_starts_anew(tmp_path, capfd):
    x, y = images(60, size=(28, 28))
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x[:9], y_test=y[:9])
    command = ["fit", "thin-highway-10", "--dataset", tmp_path / "mine.npz", "--epochs", 1]
    command += ["--freeze", "--out", tmp_path / "run"]
    assert run(*command, "--weights", "mnist") == 0
    (line,) = capfd.readouterr().err.splitlines()
    assert line == f"highway-keras: {STARTS_ANEW.format('thin-highway-10')}."
    assert json.loads((tmp_path / "run" / "run.json").read_text())["freeze"] is True
    shutil.rmtree(tmp_path / "run")
    assert run(*command) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "--freeze needs --weights" in line


def test_the_benchmark_chooses_by_other_images_than_it_trains_on_or_tests():
    found = transfer.few_images(0)
    assert [len(y) for y in (found.y_train, found.y_val, found.y_test)] == [25, 200, 179]
    assert np.bincount(found.y_train).tolist() == [5] * 5
    parts = [{image.tobytes() for image in x} for x in (found.x_train, found.x_val, found.x_test)]
    assert not (parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2])
    assert found.input_shape == (28, 28, 1) and not found.x_train[:, :4].any()
    assert transfer.few_images(1).fingerprint() != found.fingerprint()


def test_the_benchmark_trains_adapters_and_the_classifier_alone():
    model = _quietly(transfer.with_adapters, transfer.few_images(0))
    kernels = [w for layer in model.layers[:-1] for w in layer.trainable_weights]
    assert all(w.name.startswith("lora_") or w.name.endswith("bias") for w in kernels)
    assert model.get_layer("predictions").trainable_weights
