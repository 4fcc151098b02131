"""A user's own `keras.Model` and callbacks in the trainer, and files that others have made."""

import json
import random
import re
import shutil

import keras
import numpy as np
import pytest
from picture_folders import CLASSES, images, little, write_parts

from highway_keras import Highway, HighwayWrapper, analysis, data, export, models, training
from highway_keras.cli import command as cli
from highway_keras.messages import Notice
from highway_keras.training.networks import architecture, find_network

SMALL = {"verbose": 0, "recipe": "digits", "batch_size": 16, "epochs": 3}


@pytest.fixture(scope="module")
def dataset():
    return data.load(images(60), validation=0.1)


def highway_network():
    keras.utils.set_random_seed(0)
    return little(keras.layers.Dense(6), Highway(), keras.layers.Dropout(0.4), name="mine")


def fit(model, dataset, out, **changes):
    return training.fit(model, dataset, out=out, **SMALL | changes)


def run(*arguments):
    try:
        return cli.main([str(argument) for argument in arguments])
    except SystemExit as end:
        return end.code


class Fails(keras.callbacks.Callback):
    """As a logger whose server is gone."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            raise ConnectionError("the server is gone")


@pytest.fixture(scope="module")
def whole(dataset, tmp_path_factory):
    model = highway_network()
    return model, fit(model, dataset, tmp_path_factory.mktemp("own") / "whole")


def assert_equal_networks(first, second):
    pairs = zip(*(keras.models.load_model(p).get_weights() for p in (first, second)), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


# A model of one's own


def test_a_model_is_trained_in_place(whole, dataset):
    model, result = whole
    saved = keras.models.load_model(result.folder.final)
    for one, other in zip(model.get_weights(), saved.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert saved.name == "mine" and result.folder.read_json()["model"] == "mine"
    assert model.layers[3].rate == 0.4  # the recipe's factor holds in training only
    scaled = dataset.x_test / np.float32(256)
    np.testing.assert_allclose(
        model.predict(scaled, verbose=0), saved.predict(dataset.x_test, verbose=0), atol=1e-6
    )


def test_a_callback_that_raises_leaves_a_run_that_resumes(whole, dataset, tmp_path):
    seen, out = [], tmp_path / "run"
    watch = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(logs))
    with pytest.raises(ConnectionError, match="the server is gone"):
        fit(highway_network(), dataset, out, callbacks=[watch, Fails()])
    assert [sorted(logs) for logs in seen] == [["accuracy", "loss", "val_accuracy", "val_loss"]] * 2
    again = fit(highway_network(), dataset, out, callbacks=[watch], resume=True)
    assert len(seen) == 3  # the epoch of the error is not trained again
    _, result = whole
    assert again.history == result.history and again.test_loss == result.test_loss
    for name in ("best", "final"):
        assert_equal_networks(*(getattr(r.folder, name) for r in (again, result)))


def test_a_run_that_a_callback_ends_has_ended(dataset, tmp_path):
    stop = keras.callbacks.EarlyStopping("val_loss", patience=0, min_delta=100)
    result = fit(highway_network(), dataset, tmp_path / "run", epochs=9, callbacks=[stop])
    assert len(result.history) == 2 and result.folder.read_json()["results"]["epochs"] == 2
    again = fit(highway_network(), dataset, tmp_path / "run", epochs=9, resume=True)
    assert again.history == result.history and again.test_loss == result.test_loss


def test_adapters_alone_are_trained(dataset, tmp_path):
    def adapted():
        model = highway_network()
        model.layers[2].enable_lora(2)
        return model

    def weight(name):
        return keras.ops.convert_to_numpy(getattr(model.layers[2], name))

    model = adapted()
    kernel = weight("_kernel")
    result = fit(model, dataset, tmp_path / "whole")
    np.testing.assert_array_equal(weight("_kernel"), kernel)
    assert np.abs(weight("lora_kernel_b")).max() > 0
    with pytest.raises(ConnectionError):
        fit(adapted(), dataset, tmp_path / "run", callbacks=[Fails()])
    again = fit(adapted(), dataset, tmp_path / "run", resume=True)
    assert again.history == result.history
    assert_equal_networks(again.folder.final, result.folder.final)


def test_what_keras_numbers_does_not_tell_models_apart(dataset, tmp_path):
    def unnamed():
        inputs = keras.Input((8, 8, 1))
        x = keras.layers.Dense(6, activation="relu")(keras.layers.Flatten()(inputs))
        x = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5)])(x)
        return keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(x))

    first, second = unnamed(), unnamed()
    assert first.layers[2].name != second.layers[2].name and first.name != second.name
    assert architecture(first) == architecture(second)
    fit(first, dataset, tmp_path / "run")
    fit(second, dataset, tmp_path / "run", resume=True)
    with pytest.raises(ValueError, match=r"architecture: '\w{16}' → '\w{16}'"):
        fit(
            little(keras.layers.Dense(7), name="functional"), dataset, tmp_path / "run", resume=True
        )


def test_a_seed_that_a_layer_draws_is_not_part_of_the_model():
    def cropped(seed):
        random.seed(seed)
        return keras.Sequential([keras.Input((8, 8, 1)), keras.layers.RandomCrop(6, 6)])

    first, second = cropped(0), cropped(1)
    assert first.layers[0].get_config() != second.layers[0].get_config()
    assert architecture(first) == architecture(second)


def leaky_relu(x):
    return keras.ops.leaky_relu(x, 0.01)  # Keras's of that name has the slope 0.2


@keras.saving.register_keras_serializable()
class Forgets(keras.layers.Layer):
    """A layer whose `get_config` lacks its argument."""

    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, x):
        return self.factor * x

    def get_config(self):
        return {"name": self.name}


@pytest.mark.parametrize("layer", [keras.layers.Dense(5, activation=leaky_relu), Forgets(2.0)])
def test_a_model_that_loads_as_another_is_refused(layer, dataset, tmp_path):
    with pytest.raises(ValueError, match="'little', which computes something else when loaded"):
        fit(little(layer), dataset, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_final_network_is_that_of_the_last_epoch(dataset, tmp_path):
    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.last = self.model.get_weights()

    watch = Watch()
    # The first epoch has the highest loss, and no epoch is left out.
    options = {"mode": "max", "patience": 5, "restore_best_weights": True}
    stop = keras.callbacks.EarlyStopping("loss", **options)
    model = little(keras.layers.Dense(5))
    first = fit(model, dataset, tmp_path / "run", callbacks=[stop, watch])
    saved = keras.models.load_model(first.folder.final).get_weights()
    for weight, seen, restored in zip(saved, watch.last, model.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, seen)
        assert not np.array_equal(weight, restored)
    fit(little(keras.layers.Dense(5)), dataset, tmp_path / "run", resume=True)
    again = keras.models.load_model(first.folder.final).get_weights()
    for weight, before in zip(again, saved, strict=True):
        np.testing.assert_array_equal(weight, before)


def test_it_is_named_after_model_and_images(dataset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = training.fit(highway_network(), dataset, **SMALL)
    assert str(result.folder.path) == "runs/mine-arrays"


def test_without_a_card_the_recipe_is_quick(dataset, tmp_path):
    options = {"epochs": 1, "batch_size": 16, "verbose": 0}
    result = training.fit(highway_network(), dataset, out=tmp_path / "run", **options)
    recipe = result.folder.read_json()["recipe"]
    assert (recipe["name"], recipe["dropout"]) == ("quick", 1.0)


def test_a_model_that_scales_its_images_says_so(dataset, tmp_path):
    model = little(keras.layers.Rescaling(1 / 255))
    with pytest.warns(Notice, match=r"'little' scales its input itself, .* `preprocessing=\(\)`"):
        fit(model, dataset, tmp_path / "twice")
    result = fit(model, dataset, tmp_path / "once", preprocessing=())
    saved = keras.models.load_model(result.folder.final)
    np.testing.assert_allclose(
        model.predict(dataset.x_test, verbose=0), saved.predict(dataset.x_test, verbose=0)
    )


def test_a_saved_network_scales_its_images_inside(whole, dataset, tmp_path):
    model = keras.models.load_model(whole[1].folder.best)
    with pytest.warns(Notice, match="scales its input itself, after the recipe's preprocessing"):
        fit(model, dataset, tmp_path / "run", epochs=1)


def kernels(model):
    return [keras.ops.convert_to_numpy(w) for w in model.weights if "kernel" in w.path]


def test_freezing_ends_with_the_run(dataset, tmp_path):
    model = keras.Sequential([keras.Input((8, 8, 1)), highway_network()])  # whose layers count
    start = kernels(model)
    fit(model, dataset, tmp_path / "frozen", freeze=True, epochs=1)
    below, (*_, top) = kernels(model)[:-1], kernels(model)
    for before, after in zip(start, below, strict=False):
        np.testing.assert_array_equal(before, after)
    assert not np.array_equal(start[-1], top)
    # The settings of a run have nothing left of it, so the same model resumes.
    fit(model, dataset, tmp_path / "frozen", freeze=True, epochs=1, resume=True)
    fit(model, dataset, tmp_path / "free", epochs=1)
    for before, after in zip(start, kernels(model), strict=True):
        assert not np.array_equal(before, after)


def test_freezing_ends_with_an_interruption(dataset, tmp_path):
    model = highway_network()
    with pytest.raises(ConnectionError):
        fit(model, dataset, tmp_path / "run", freeze=True, callbacks=[Fails()])
    assert all(layer.trainable for layer in model.layers)
    fit(model, dataset, tmp_path / "run", freeze=True, resume=True)


@pytest.mark.parametrize("freeze", [False, True])
def test_what_was_frozen_before_a_run_stays_frozen(freeze):
    model = little(Highway(), HighwayWrapper(keras.layers.Dense(64)), keras.layers.Dense(6))
    model.layers[1].enable_lora(2)
    model.layers[2].layer.trainable = False
    before = [weight.path for weight in model.trainable_weights]
    with find_network(model, freeze=freeze).in_training():
        during = [weight.path for weight in model.trainable_weights]
    assert [weight.path for weight in model.trainable_weights] == before
    assert during == (before[-2:] if freeze else before)


def test_the_factor_on_dropout_reaches_models_within_a_model(dataset, tmp_path):
    rates, inner = [], highway_network()
    model = keras.Sequential([keras.Input((8, 8, 1)), inner])
    watch = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: rates.append(inner.layers[3].rate)
    )
    fit(model, dataset, tmp_path / "run", epochs=1, dropout=0.5, callbacks=[watch])
    assert rates == [0.2] and inner.layers[3].rate == 0.4


class Unregistered(keras.layers.Layer):
    def call(self, x):
        return 2 * x


@pytest.mark.parametrize("layer", [Unregistered, lambda: keras.layers.Lambda(lambda x: 2 * x)])
def test_a_model_that_cannot_be_loaded_is_found_before_it_is_trained(layer, dataset, tmp_path):
    with pytest.raises(ValueError, match=r"`model` must be one that Keras can save and load"):
        fit(little(layer()), dataset, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def two_inputs():
    inputs = [keras.Input((8, 8, 1)), keras.Input((8, 8, 1))]
    return keras.Model(inputs, keras.layers.Add()(inputs))


class Subclassed(keras.Model):
    def call(self, x):
        return x


REFUSED = {
    "weights": (little, {"weights": "mnist"}, "`weights` is for registered networks"),
    "options": (little, {"model_options": {"depth": 3}}, "`model_options` is for registered"),
    "devices": (little, {"distribute": True}, "`distribute` needs a registered network"),
    "half the bits": (
        little,
        {"dtype_policy": "mixed_bfloat16"},
        "`dtype_policy` is for registered networks",
    ),
    "nothing to train on": (little, {"dataset": None}, "`dataset` must say what to train on"),
    "several inputs": (two_inputs, {}, "functional or Sequential `keras.Model` with one input"),
    "subclassed": (Subclassed, {}, "functional or Sequential `keras.Model` with one input"),
    "no softmax": (
        lambda: keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), _logits()]),
        {},
        "must return class probabilities",
    ),
    "no top": (
        lambda: keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Conv2D(3, 3)]),
        {},
        "must take images of shape .* and return a probability for each of 3 classes",
    ),
    "other images": (
        lambda: keras.Sequential([keras.Input((9, 9, 1)), keras.layers.Flatten(), _logits()]),
        {},
        r"must take images of shape \(8, 8, 1\)",
    ),
    "name": (lambda: little(name="a b"), {}, "`name` must consist of letters"),
    "flag": (little, {"freeze": "yes"}, "`freeze` must be True or False"),
    "nothing to freeze": (
        lambda: keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten()]),
        {"freeze": True},
        "`freeze` needs a network with weights. Received: freeze=True with 'sequential",
    ),
}


def _logits():
    return keras.layers.Dense(3, kernel_initializer=keras.initializers.Constant(9.0))


@pytest.mark.parametrize(("make", "changes", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_model_cannot_be(make, changes, message, dataset, tmp_path):
    with pytest.raises(ValueError, match=message) as caught:
        training.fit(make(), **{"dataset": dataset, "out": tmp_path / "run", **SMALL, **changes})
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


def test_several_runs_need_a_registered_network(dataset):
    with pytest.raises(ValueError, match=r"must be a registered name where `runs` .* runs=2"):
        training.fit_runs(little(), 2, dataset=dataset)


@pytest.mark.parametrize("callbacks", [[print], Fails(), "log", [Fails], None])
def test_callbacks_that_are_none(callbacks, dataset, tmp_path):
    with pytest.raises(
        TypeError, match=r"`callbacks` must be a list of `keras.callbacks.Callback`"
    ):
        fit(little(), dataset, tmp_path / "run", callbacks=callbacks)
    assert not (tmp_path / "run").exists()


# What is done with it afterwards


def test_analysis_and_export_serve_it(whole, dataset, tmp_path):
    _, result = whole
    saved = training.SavedNetwork(result.folder.best)
    assert saved.evaluate(dataset) == (result.test_loss, result.test_accuracy)
    found = analysis.analyze(saved.model, dataset.x_train, dataset.y_train, tmp_path / "look")
    assert len(found.lesions.layers) == 1
    done = export.export(result.folder.best, tmp_path / "mine.keras", "keras", dataset=dataset)
    assert done.images == 12 and done.accuracy == result.test_accuracy


def test_a_registered_network_of_ones_own_trains_on_a_folder(tmp_path):
    def factory(name, input_shape, classes):
        images = keras.Input(input_shape)
        x = Highway()(keras.layers.Dense(6)(keras.layers.Flatten()(images)))
        return keras.Model(images, keras.layers.Dense(classes, "softmax")(x), name=name)

    folder = write_parts(tmp_path / "insects")
    models.register("flat", factory, str(folder), (8, 8, 1), 3)
    with pytest.warns(Notice, match="'flat' takes no `kernel_initializer`, so that of the recipe"):
        result = training.fit("flat", out=tmp_path / "run", epochs=1, verbose=0)
    assert result.folder.read_json()["class_names"] == list(CLASSES)


# Files that others have made


def test_a_network_beside_settings_of_something_else(whole, tmp_path):
    shutil.copy(whole[1].folder.best, tmp_path / "best.keras")
    (tmp_path / "run.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"cannot be read. .*move the network away from that fil"):
        training.SavedNetwork(tmp_path / "best.keras")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """A folder of pictures, and a network that Keras alone has trained on images like them."""
    folder = tmp_path_factory.mktemp("foreign")
    write_parts(folder / "insects")
    keras.utils.set_random_seed(0)
    ends = [keras.layers.Flatten(), keras.layers.Dense(3, activation="softmax")]
    model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Rescaling(1 / 255), *ends])
    model.compile(keras.optimizers.Adam(0.03), "sparse_categorical_crossentropy")
    x, y = images(60)
    model.fit(x[..., None], y, epochs=60, verbose=0)
    model.save(folder / "theirs.keras")
    return folder


def test_a_foreign_file_is_measured_on_a_folder(foreign, capsys):
    command = ["evaluate", foreign / "theirs.keras", "--json"]
    assert run(*command, "--dataset", foreign / "insects") == 0
    found = data.load(foreign / "insects")
    theirs = keras.models.load_model(foreign / "theirs.keras").predict(found.x_test, verbose=0)
    right = np.mean(theirs.argmax(-1) == found.y_test)
    assert json.loads(capsys.readouterr().out)["accuracy"] == pytest.approx(right) and right > 0.6
    assert run(*command) == 2
    assert "No run.json next to" in capsys.readouterr().err


@pytest.mark.slow
def test_a_foreign_file_is_exported_with_a_folder(foreign, tmp_path, capsys):
    command = ["export", foreign / "theirs.keras", "--format", "keras", "--out"]
    assert run(*command, tmp_path / "with.keras", "--dataset", foreign / "insects") == 0
    assert re.search(r"15 images", capsys.readouterr().out)
    assert (tmp_path / "with.txt").read_text().split() == list(CLASSES)
    names = ["--no-verify", "--class-names", "Ameise", "Biene", "Katze"]
    assert run(*command, tmp_path / "without.keras", *names) == 0
    assert (tmp_path / "without.txt").read_text().split() == names[2:]


def test_a_fine_tuned_file_away_from_its_run_is_one_of_them(foreign, tmp_path, capsys):
    result = fit(highway_network(), foreign / "insects", tmp_path / "run")
    lonely = shutil.copy(result.folder.best, tmp_path / "lonely.keras")
    assert run("evaluate", lonely, "--dataset", foreign / "insects", "--json") == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == result.test_accuracy
