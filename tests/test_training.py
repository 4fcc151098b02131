"""What a run leaves, whether it trains a zoo network, trained weights or a user's own model."""

import dataclasses
import json
import pathlib
import pickle
import random
import shutil
import types
import warnings

import keras
import numpy as np
import pytest
from helpers import Fails, read_rows
from picture_folders import CLASSES, images, little, write_parts

from highway_keras import Highway, data, models, training
from highway_keras.analysis.pictures import write_picture
from highway_keras.training import get_recipe
from highway_keras.training.callbacks import Measured
from highway_keras.training.evaluation import (
    NotProbabilities,
    check_probabilities,
    compile_classifier,
    evaluate,
)
from highway_keras.training.networks import architecture, find_network
from highway_keras.training.saved_network import settings_beside
from highway_keras.util.messages import Notice

pytestmark = pytest.mark.usefixtures("untraced")
SMALL = {"limit": 128, "model_options": {"depth": 2}, "verbose": 0, "epochs": 3}
OWN = {"verbose": 0, "recipe": "digits", "batch_size": 16, "epochs": 2}


def small_fit(out, **changes):
    return training.fit("thin-highway-10", "digits", out=out, **{**SMALL, **changes})


def fit_own(model, dataset, out, **changes):
    return training.fit(model, dataset, out=out, **OWN | changes)


def weights(path):
    return keras.models.load_model(path, compile=False).get_weights()


# A run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs, with seeds 0 and 1."""
    keras.utils.set_random_seed(11)  # what went before must not matter
    out = tmp_path_factory.mktemp("two") / "runs"
    return training.fit_runs("thin-highway-10", 2, out, dataset="digits", **SMALL)


@pytest.fixture(scope="module")
def run(runs):
    return runs[0]


def test_the_seed_alone_decides_a_run(runs, tmp_path):
    """Numbers may be NumPy's."""
    first, second = runs
    numbers = {"epochs": np.int64(3), "limit": np.int64(128), "learning_rate": np.float64(0.1)}
    again = small_fit(tmp_path / "again", **numbers)
    assert again.history == first.history and again.folder.read_json()["limit"] == 128
    assert (again.test_accuracy, again.test_loss) == (first.test_accuracy, first.test_loss)
    for name in ("best", "final"):
        np.testing.assert_equal(*(weights(getattr(r.folder, name)) for r in (first, again)))
    assert [r.folder.path.name for r in runs] == ["seed-0", "seed-1"]
    assert first.history[0]["loss"] != second.history[0]["loss"]
    assert not np.array_equal(*(weights(r.folder.final)[0] for r in runs))


def test_what_a_run_leaves(run):
    rows = read_rows(run.folder.history)
    assert [{k: float(v) for k, v in row.items()} for row in rows] == run.history
    assert set(rows[0]) == {"epoch", "loss", "accuracy", "val_loss", "val_accuracy"}
    assert [row["epoch"] for row in run.history] == [0, 1, 2]
    assert run.history[-1]["loss"] < run.history[0]["loss"]
    written = json.loads(run.folder.settings.read_text())
    expected = {"model": "thin-highway-10", "dataset": "digits", "limit": 128, "seed": 0}
    expected |= {"model_options": {"depth": 2}, "class_names": list("0123456789")}
    assert {key: written[key] for key in expected} == expected
    recipe = get_recipe("digits").override(epochs=3)
    assert written["recipe"] == json.loads(json.dumps(dataclasses.asdict(recipe)))
    assert written["results"] == {
        field.name: getattr(run, field.name)
        for field in dataclasses.fields(run)
        if field.name not in ("folder", "history")
    }
    assert not list(run.folder.path.rglob(".*"))
    events = list(run.folder.tensorboard.rglob("events.out.tfevents*"))
    assert bool(events) == (keras.backend.backend() == "tensorflow")
    assert "\n" not in f"{run}" and f"test_accuracy={run.test_accuracy}" in f"{run}"


def test_a_network_beside_the_settings_of_another_run_has_none(run, tmp_path):
    shutil.copy(run.folder.best, tmp_path / "copy.keras")
    shutil.copy(run.folder.settings, tmp_path)
    assert training.SavedNetwork(tmp_path / "copy.keras").dataset == "digits"
    other = {**run.folder.read_json(), "class_names": list("abcdefghij"), "seed": 5}
    (tmp_path / "run.json").write_text(json.dumps(other))
    with pytest.warns(Notice, match=r"copy\.keras"):
        found = training.SavedNetwork(tmp_path / "copy.keras")
    assert found.settings == {} and found.class_names == list("0123456789")
    weights = tmp_path / "own.weights.h5"  # which says nothing of its run
    found.model.save_weights(weights)
    assert settings_beside(weights) == other
    with pytest.warns(Notice) as said:
        fit_copy = {"epochs": 1, "limit": 40, "out": tmp_path / "new", "verbose": 0}
        training.fit(tmp_path / "copy.keras", "digits", **fit_copy)
    assert sum("left aside" in str(one.message) for one in said) == 1


def test_best_and_final_are_of_their_epochs(run):
    found, best = data.load("digits"), keras.models.load_model(run.folder.best)
    assert evaluate(best, found) == (run.test_loss, run.test_accuracy)
    assert best.get_compile_config()["jit_compile"] is None  # as suits the backend that loads it
    taken = best.predict(found.x_test, verbose=0).argmax(-1)
    for number, name in enumerate(found.class_names):
        of_class = taken[found.y_test == number]
        assert run.confusion[number] == np.bincount(of_class, minlength=10).tolist()
        assert run.class_accuracy[name] == np.mean(of_class == number)
    held_out = dataclasses.replace(found, x_test=found.x_val, y_test=found.y_val)
    for path, epoch in ((run.folder.best, run.best_epoch), (run.folder.final, 3)):
        _, accuracy = evaluate(keras.models.load_model(path), held_out)
        assert accuracy == pytest.approx(run.history[epoch - 1]["val_accuracy"], abs=1e-6)
    highest = max(row["val_accuracy"] for row in run.history)
    assert run.history[run.best_epoch - 1]["val_accuracy"] == highest


def test_a_data_set_with_dollars_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(training.trainer, "write_picture", write_picture)
    found = dataclasses.replace(data.load("digits", limit=100), name="cost_$x^{$")
    options = {"model_options": {"depth": 2}, "epochs": 1, "verbose": 0}
    result = training.fit("thin-highway-10", found, out=tmp_path / "run", **options)
    assert result.folder.has_ended
    for picture in (result.folder.curves, result.folder.confusion):
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_divergence_is_an_error_and_leaves_no_result(tmp_path):
    options = {"test_curve": True, "model_options": {"depth": 3, "activation": "relu"}}
    for resume in (False, True):
        with pytest.raises(training.TrainingDiverged, match="learning_rate"):
            small_fit(tmp_path / "run", resume=resume, learning_rate=1e30, **options)
        folder = training.RunFolder(tmp_path / "run")
        assert folder.read_json()["diverged"] == len(read_rows(folder.history)) == 1
        assert not folder.has_ended and not folder.state.exists()


MISTAKES = {
    "seed": [{"seed": -1}],
    "steps": [{"preprocessing": ("wash",)}],
    "depth": [{"model_options": {"depth": 0}}],
    "model_options": [{"model_options": {"activation": keras.ops.tanh}}],
    "limit": [{"limit": 0}],
    "test_curve": [{"distribute": True, "test_curve": True}],
    "class_weight": [{"class_weight": v} for v in ("equal", [1, 2], {"x": 1}, {11: 1}, {0: -1})],
    "sample_weight": [{"sample_weight": np.ones(128)}],
    "freeze": [{"freeze": True}, {"freeze": "yes"}],
    "input_shape": [{"input_shape": (8, 8, 1)}],
    "callbacks": [{"callbacks": v} for v in ([print], None)],
    "schedule": [{"callbacks": [keras.callbacks.ReduceLROnPlateau()]}],
    "BackupAndRestore": [{"callbacks": [keras.callbacks.BackupAndRestore("backup")]}],
    "files of the run": [{"callbacks": [keras.callbacks.ModelCheckpoint("run/best.keras")]}],
    "weights": [{"weights": "cifar10"}, {"weights": "mnist"}],  # none, and of another size
    "`name`": [{"model_options": {"name": name}} for name in ("cost$", 5)],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_leaves_no_folder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for changes in MISTAKES[name]:
        with pytest.raises((ValueError, TypeError, FileNotFoundError), match=name) as caught:
            small_fit(tmp_path / "run", **changes)
        assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


def test_several_runs():
    with pytest.raises(ValueError, match="runs=2"):
        training.fit_runs(little(), 2, dataset=images(9))
    with pytest.raises(FileNotFoundError, match="absent"):
        training.fit_runs(pathlib.Path("absent.keras"), 2)


def test_a_taken_seed_is_named_before_the_first_run_trains(runs, tmp_path):
    options = {**SMALL, "dataset": "digits", "out": tmp_path}
    shutil.copytree(runs[1].folder.path, tmp_path / "seed-1")
    with pytest.raises(ValueError, match="seed-1"):
        training.fit_runs("thin-highway-10", 2, **options)
    assert not (tmp_path / "seed-0").exists()
    seeds, state = [], (random.getstate(), np.random.get_state()[1].tolist())

    def callbacks(seed):
        assert (tmp_path / f"seed-{seed}").exists() == (seed == 1)  # when its run begins
        seeds.append(seed)
        return []

    options["callbacks"] = callbacks
    again = training.fit_runs("thin-highway-10", 2, seed=1, resume=True, **options)
    assert seeds == [1, 2]
    assert state == (random.getstate(), np.random.get_state()[1].tolist())  # the caller's
    assert again[0].history == runs[1].history != again[1].history
    assert [(one.folder.path.name, one.folder.read_json()["seed"]) for one in again] == [
        ("seed-1", 1),
        ("seed-2", 2),
    ]


# Resuming; `test_survival` kills


def test_a_file_drops_out_as_its_network_and_not_less_each_time(tmp_path):
    layers = [keras.layers.Flatten(), keras.layers.Dropout(0.4), keras.layers.Dense(10, "softmax")]
    model = keras.Sequential([keras.Input((8, 8, 1)), *layers])
    for number in range(2):
        out, sizes = tmp_path / str(number), {"epochs": 1, "limit": 50, "verbose": 0}
        model = training.fit(model, "digits", recipe="quick", out=out, **sizes).folder.path
        found = keras.models.load_model(model / "best.keras")._flatten_layers()
        rates = [layer.rate for layer in found if isinstance(layer, keras.layers.Dropout)]
        assert rates == pytest.approx([0.1])


def test_words_do_not_decide_a_training(tmp_path):
    folder, recipe = training.RunFolder(tmp_path), dataclasses.asdict(get_recipe("digits"))
    now = {"model": "thin-highway-10", "class_names": ["cat", "dog"], "recipe": recipe}
    reworded = {"name": "old", "source": "Reworded.", "reasons": {"batch_size": "Reworded."}}
    before = {**now, "class_names": ["Cat", "Dog"], "recipe": {**recipe, **reworded}}
    folder.open(before, False)
    folder.open(now, True)


# Precision


def test_a_run_in_float16_resumes(tmp_path, monkeypatch):
    """Its scaled loss overflows at first, and steps that are skipped do not count as iterations."""
    monkeypatch.setenv("HOME", str(tmp_path))
    keras.config.set_dtype_policy("mixed_float16")
    dense = [keras.layers.Dense(10, "relu"), keras.layers.Dense(10, "softmax", dtype="float32")]
    flat = [keras.Input((8, 8, 1)), keras.layers.Flatten()]
    model = keras.Sequential([*flat, *dense], name="half")
    keras.config.set_dtype_policy("float32")  # that of the network counts
    options = {"limit": 64, "preprocessing": ()}
    with pytest.raises(ConnectionError):
        fit_own(model, "digits", "~/run", callbacks=[Fails(0)], **options)
    begun = []

    def note(epoch, logs):
        scales = isinstance(watch.model.optimizer, keras.optimizers.LossScaleOptimizer)
        begun.append((epoch, scales))

    watch = keras.callbacks.LambdaCallback(on_epoch_begin=note)
    fit_own(model, "digits", "~/run", resume=True, callbacks=[watch], **options)
    assert begun == [(1, True)] and (tmp_path / "run" / "best.keras").exists()


def test_a_run_in_half_the_bits_is_saved_in_float32(tmp_path):
    class Watch(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.dtypes = {layer.compute_dtype for layer in self.model.layers}
            self.takes = self.model.inputs[0].dtype

    watch, sizes = Watch(), {"epochs": 2, "dtype_policy": "mixed_bfloat16"}
    sizes["augmentation"] = ("mirror",)
    keras.config.set_dtype_policy("mixed_float16")  # which has no say
    result = small_fit(tmp_path / "run", callbacks=[watch], **sizes)
    assert keras.config.dtype_policy().name == "mixed_float16"  # of the process, as it was
    keras.config.set_dtype_policy("float32")
    assert "bfloat16" in watch.dtypes
    complete = keras.models.load_model(result.folder.final)
    assert watch.takes == complete.inputs[0].dtype == "float32"
    network = complete.layers[-1]
    assert {layer.compute_dtype for layer in network.layers} == {"float32"}
    with np.load(result.folder.state) as state:
        trained = list(dict(state).values())
    for weight in network.get_weights():
        assert weight.dtype == "float32"
        assert any(np.array_equal(weight, array) for array in trained)
    assert small_fit(tmp_path / "run", resume=True, **sizes).test_loss == result.test_loss


# Trained weights as a start


@pytest.mark.filterwarnings("ignore::highway_keras.util.messages.Notice")
def test_freezing(tmp_path):
    """All below the classifier stays, to the last bit."""
    name, mnist_sized = "thin-highway-10", data.load(images(60, size=(28, 28)), validation=0.1)

    def fine_tune(out, weights="mnist", **changes):
        return fit_own(name, mnist_sized, tmp_path / out, weights=weights, **changes)

    with pytest.warns(Notice, match="is newly initialized") as said:
        result = fine_tune("run", freeze=True)
        fine_tune("16", freeze=True, dtype_policy="mixed_bfloat16")
    assert sum("newly initialized" in str(one.message) for one in said) == 2  # one for each run
    source = models.create(name, weights="mnist")
    found = keras.models.load_model(result.folder.final, compile=False).layers[-1]
    for one, other in zip(source.layers, found.layers, strict=True):
        if one.weights and one.name != "predictions":
            np.testing.assert_equal(one.get_weights(), other.get_weights())
            assert not other.trainable
    top = found.get_layer("predictions")
    assert found.trainable_weights == top.weights and found.output_shape == (None, 3)
    settings = result.folder.read_json()
    assert (settings["weights"], settings["freeze"]) == ("mnist", True)
    file = models.get(name).weights_file("mnist")
    assert models.shipped.sha256(file).startswith(settings["weights_sha256"])
    moved = shutil.copy(file, tmp_path / "moved.keras")
    again = fine_tune("run", resume=True, freeze=True, weights=moved)
    assert again.test_loss == result.test_loss
    file, before = result.folder.best, kernels(keras.models.load_model(result.folder.best))
    options = {"recipe": result.folder.read_json()["recipe"]["name"], "epochs": 1}
    further = training.fit(file, mnist_sized, out=tmp_path / "all", **options)
    after = kernels(keras.models.load_model(further.folder.best))  # frozen for one run alone
    assert before and not any(map(np.array_equal, before, after))
    file = shutil.copytree(tmp_path / "run", tmp_path / "copy") / "best.keras"
    training.fit(file, mnist_sized, out=tmp_path / "all", resume=True, **options)
    for changed, options in {"freeze": {}, "weights": {"weights": None}}.items():
        with pytest.raises(ValueError, match=changed):
            fine_tune("run", resume=True, **options)


# A model of one's own


@pytest.fixture(scope="module")
def dataset():
    return data.load(images(60), validation=0.1)


def highway_network():
    keras.utils.set_random_seed(0)
    return little(keras.layers.Dense(6), Highway(), keras.layers.Dropout(0.4), name="mine")


@pytest.fixture(scope="module")
def whole(dataset, tmp_path_factory):
    model = highway_network()
    return model, fit_own(model, dataset, tmp_path_factory.mktemp("own") / "whole", epochs=3)


def test_a_model_is_trained_in_place(whole, dataset, capsys):
    model, result = whole
    saved = keras.models.load_model(result.folder.final)
    np.testing.assert_equal(model.get_weights(), saved.get_weights())
    assert saved.name == "mine" and result.folder.read_json()["model"] == "mine"
    assert model.layers[3].rate == 0.4  # the recipe's factor holds in training only
    scaled = dataset.x_test / np.float32(256)
    np.testing.assert_allclose(
        model.predict(scaled, verbose=0), saved.predict(dataset.x_test, verbose=0), atol=1e-6
    )
    found = training.SavedNetwork(result.folder.best)
    assert found.evaluate(dataset) == (result.test_loss, result.test_accuracy)
    assert not capsys.readouterr().out
    found.evaluate(dataset, verbose=1)
    assert f"{len(dataset.x_test)}/{len(dataset.x_test)}" in capsys.readouterr().out


def test_a_callback_that_raises_leaves_a_run_that_resumes(whole, dataset, tmp_path):
    seen, out = [], tmp_path / "run"
    watch = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(logs))
    with pytest.raises(ConnectionError):
        fit_own(highway_network(), dataset, out, epochs=3, callbacks=[watch, Fails(1)])
    assert [sorted(logs) for logs in seen] == [["accuracy", "loss", "val_accuracy", "val_loss"]] * 2
    again = fit_own(highway_network(), dataset, out, epochs=3, callbacks=[watch], resume=True)
    assert len(seen) == 3  # the epoch of the error is not trained again
    assert again.history == whole[1].history and again.test_loss == whole[1].test_loss
    for name in ("best", "final"):
        np.testing.assert_equal(*(weights(getattr(r.folder, name)) for r in (again, whole[1])))


def test_callbacks_that_end_a_run_or_set_its_rate(dataset, tmp_path, monkeypatch):
    """`final.keras` still holds the last epoch. The folder is named after model and data."""

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.last = self.model.get_weights()
            self.rate = float(self.model.optimizer.learning_rate)

        def on_train_end(self, logs=None):
            raise KeyboardInterrupt  # that a callback stopped the run is saved by now

    monkeypatch.chdir(tmp_path)
    watch = Watch()
    restore = {"mode": "max", "patience": 2, "restore_best_weights": True}
    stop = keras.callbacks.EarlyStopping("loss", **restore)  # the first epoch has the highest
    slower = keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=100)
    model, options = little(keras.layers.Dense(5)), {"schedule": "constant", "decay": 1.0}
    options |= {"epochs": 9, "batch_size": 16, "verbose": 0}
    with pytest.raises(KeyboardInterrupt):
        training.fit(model, dataset, callbacks=[stop, slower, watch], **options)
    first = training.fit(little(keras.layers.Dense(5)), dataset, resume=True, **options)
    assert str(first.folder.path) == "runs/little-arrays"
    assert len(first.history) == first.folder.read_json()["results"]["epochs"] == 3
    assert watch.rate < 0.1 * 0.11
    saved = weights(first.folder.final)
    np.testing.assert_equal(saved, watch.last)
    assert not np.array_equal(saved[0], model.get_weights()[0])
    with pytest.warns(Notice, match="ended after 3 of 9 epochs"):
        again = training.fit(little(keras.layers.Dense(5)), dataset, resume=True, **options)
    np.testing.assert_equal(weights(first.folder.final), saved)
    assert again.history == first.history
    sessions = json.loads(first.folder.machine.read_text())
    assert [s["last_epoch"] for s in sessions] == [3, 3]  # nothing was trained again
    assert first.folder.read_json()["recipe"]["dropout"] == 1.0  # its author has chosen the rates


def test_a_rate_that_a_callback_has_set_survives(dataset, tmp_path):
    class Slower(Fails):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 0:
                self.model.optimizer.learning_rate = 0.01

        def on_train_batch_end(self, batch, logs=None):
            if self.model.optimizer.iterations > batch + 1:
                super().on_epoch_end(self.epoch)

    options = {"schedule": "constant", "decay": 1.0, "epochs": 2}
    with pytest.raises(ConnectionError):
        fit_own(highway_network(), dataset, tmp_path / "run", callbacks=[Slower(1)], **options)
    rates = []
    note = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: rates.append(note.model.optimizer.learning_rate)
    )
    ended = {**options, "epochs": 1, "callbacks": [Slower(9)]}  # after the last epoch
    fit_own(highway_network(), dataset, tmp_path / "ended", **ended)
    for name in ("run", "ended"):
        again = {**options, "callbacks": [note], "resume": True}
        fit_own(highway_network(), dataset, tmp_path / name, **again)
    assert [*map(float, rates)] == [pytest.approx(0.01)] * 2


class Spoils(keras.callbacks.Callback):
    """Makes a weight NaN in the last step of the second epoch, when its loss is known."""

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if self.epoch == 1 and batch == self.params["steps"] - 1:
            weight = self.model.trainable_variables[0]
            weight.assign(weight * np.nan)


def test_the_rate_decays_by_epoch_and_the_seed_decides_the_order(dataset, tmp_path):
    rates, losses = [], set()
    watch = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: rates.append(float(watch.model.optimizer.learning_rate))
    )
    changes = {"batch_size": 1, "learning_rate": 0.001}  # more steps than a call takes
    for seed in (0, 1):
        keras.utils.set_random_seed(0)
        out, model = tmp_path / str(seed), little()
        found = fit_own(model, dataset, out, seed=seed, callbacks=[watch], **changes)
        losses.add(found.history[0]["loss"])
    decay = found.folder.read_json()["recipe"]["decay"]
    assert rates == pytest.approx(2 * [0.001 * decay, 0.001 * decay**2], rel=1e-5)
    assert len(losses) == 2


# `max`: as the loss falls, the weights of the first epoch are restored, which are finite.
RESTORE = {"monitor": "loss", "mode": "max", "restore_best_weights": True}


@pytest.mark.parametrize("others", [[], [keras.callbacks.EarlyStopping(**RESTORE)]])
def test_weights_that_are_not_finite_are_not_saved(others, dataset, tmp_path):
    with pytest.raises(training.TrainingDiverged, match="weight"):
        fit_own(highway_network(), dataset, tmp_path, epochs=3, callbacks=[Spoils(), *others])
    folder = training.RunFolder(tmp_path)
    assert all(np.isfinite(weight).all() for weight in weights(folder.best))
    assert len(folder.read_state()["history"]) == 1 and not folder.has_ended


@pytest.mark.parametrize("after", [0, 2])  # an epoch follows, or the end of the run
def test_a_history_that_was_edited_meanwhile_loses_nothing(whole, after, dataset, tmp_path):
    """As by an editor that saves what it read before the first epoch."""
    history, lines = tmp_path / "history.csv", []

    def edit(epoch, logs):
        rows = history.read_text().splitlines(keepends=True)
        lines.append(len(rows))
        if epoch == after:
            history.write_text(rows[0])

    edits = keras.callbacks.LambdaCallback(on_epoch_end=edit)
    done = fit_own(highway_network(), dataset, tmp_path, epochs=3, callbacks=[edits])
    assert done.history == training.RunFolder(tmp_path).read_history() == whole[1].history
    assert lines == [2, 3, 4]


def test_weights_in_the_loss(whole, dataset, tmp_path):
    """Equal weights have no effect, and a class of weight 0 is not learned."""
    changes = {"sample_weight": np.ones(len(dataset.y_train)), "epochs": 3}
    equal = fit_own(highway_network(), dataset, tmp_path / "ones", **changes)
    assert equal.history == whole[1].history
    with pytest.raises(ValueError, match="loss_weights"):
        fit_own(highway_network(), dataset, tmp_path / "ones", resume=True, epochs=3)
    changes = {"class_weight": {"1": 0}, "epochs": 7}
    found = fit_own(highway_network(), dataset, tmp_path / "none", **changes)
    assert found.class_accuracy["1"] == 0 < found.class_accuracy["2"]
    rare = dataset.y_train * (np.arange(len(dataset.y_train)) % 3 == 0)
    rare = dataclasses.replace(dataset, y_train=rare)
    weight = training.trainer.loss_weights(rare, "balanced")
    totals = [weight[rare.y_train == number].sum() for number in range(3)]
    np.testing.assert_allclose(totals, len(rare.y_train) / 3, rtol=1e-5)
    each = np.arange(len(rare.y_train))
    both = training.trainer.loss_weights(rare, {"1": 2.0}, each)
    np.testing.assert_array_equal(both, each * np.where(rare.y_train == 1, 2, 1))
    both = training.trainer.loss_weights(rare, "balanced", each)
    totals = [both[rare.y_train == number].sum() for number in range(3)]
    np.testing.assert_allclose(totals, each.sum() / 3, rtol=1e-5)
    more = dataclasses.replace(rare, class_names=("1", "2", "3", "of no image"))
    np.testing.assert_array_equal(training.trainer.loss_weights(more, "balanced"), weight)
    with pytest.raises(ValueError, match="names as keys here, such as '2'"):
        training.trainer.loss_weights(more, {1: 2.0})


def test_adapters_alone_are_trained_and_belong_to_the_run(dataset, tmp_path):
    def adapted():
        model = highway_network()
        model.layers[2].enable_lora(2)
        return model

    model, half = adapted(), adapted()
    ids = {id(weight) for weight in model.trainable_weights}
    frozen = [weight for weight in model.layers[2].weights if id(weight) not in ids]
    before = [keras.ops.convert_to_numpy(weight) for weight in frozen]
    with pytest.raises(ConnectionError):
        fit_own(adapted(), dataset, tmp_path / "run", callbacks=[Fails(0)])
    half.layers[1].trainable = False
    for other in (highway_network(), half):
        with pytest.raises(ValueError, match=r"trained_weights|architecture"):
            fit_own(other, dataset, tmp_path / "run", resume=True)
    fit_own(model, dataset, tmp_path / "run", resume=True)
    assert before
    np.testing.assert_equal(before, [keras.ops.convert_to_numpy(weight) for weight in frozen])


def test_what_keras_numbers_does_not_tell_models_apart():
    def unnamed(seed):
        random.seed(seed)  # of which layers that draw take their seeds
        inputs = keras.Input((8, 8, 1))
        x = keras.layers.Flatten()(keras.layers.RandomCrop(6, 6)(inputs))
        x = keras.Sequential([keras.Input((36,)), keras.layers.Dense(5)])(x)
        return keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(x))

    first, second = unnamed(0), unnamed(1)
    assert first.layers[2].name != second.layers[2].name and first.name != second.name
    assert first.layers[1].get_config()["seed"] != second.layers[1].get_config()["seed"]
    assert find_network(first).settings == find_network(second).settings
    assert architecture(first) != architecture(little(keras.layers.Dense(7)))


def test_preprocessing_twice_is_said(dataset, tmp_path):
    model = little(keras.layers.Rescaling(1 / 255))
    with warnings.catch_warnings(), pytest.raises(Notice, match="preprocessing"):
        warnings.simplefilter("error", Notice)  # said before the training
        fit_own(model, dataset, tmp_path / "twice")
    result = fit_own(model, dataset, tmp_path / "once", epochs=1, preprocessing=())
    saved = keras.models.load_model(result.folder.final)
    pair = (network.predict(dataset.x_test, verbose=0) for network in (model, saved))
    np.testing.assert_allclose(*pair)


def kernels(model):
    return [keras.ops.convert_to_numpy(w) for w in model.weights if "kernel" in w.path]


def test_freezing_ends_with_the_run(dataset, tmp_path):
    """So the same model resumes; the recipe's factor on dropout reaches models within it."""
    inner, rates = highway_network(), []
    model = keras.Sequential([keras.Input((8, 8, 1)), inner])
    watch = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: rates.append(inner.layers[3].rate)
    )
    start, options = kernels(model), {"freeze": True, "dropout": 0.5}
    with pytest.raises(ConnectionError):
        fit_own(model, dataset, tmp_path / "run", callbacks=[watch, Fails(0)], **options)
    assert all(layer.trainable for layer in inner.layers)
    fit_own(model, dataset, tmp_path / "run", resume=True, **options)
    *below, top = kernels(model)
    np.testing.assert_equal(start[:-1], below)
    assert not np.array_equal(start[-1], top)
    assert rates == [0.2] and inner.layers[3].rate == 0.4


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


class Subclassed(keras.Model):
    def call(self, x):
        return x


class OwnStep(keras.Model):
    def train_step(self, *arguments):
        return super().train_step(*arguments)


def functional(kind, dtype="float32"):
    inputs = keras.Input((8, 8, 1), dtype=dtype)
    x = keras.layers.Rescaling(1.0)(keras.layers.Flatten()(inputs))
    return kind(inputs, keras.layers.Dense(3, "softmax")(x))


def chain(*layers, shape=(8, 8, 1)):
    return keras.Sequential([keras.Input(shape), *layers])


def registered_forgetful():
    own = lambda **_: little(Forgets(2.0))  # noqa: E731
    return models.register("forgets", own, "digits", (8, 8, 1), 3).name


REFUSED = {
    "options": (little, {"model_options": {"depth": 3}}, "model_options"),
    "devices": (little, {"distribute": True}, "distribute"),
    "half the bits": (little, {"dtype_policy": "mixed_bfloat16"}, "dtype_policy"),
    "nothing to train on": (little, {"dataset": None}, "dataset"),
    "subclassed": (Subclassed, {}, "`model`"),
    "own step": (lambda: functional(OwnStep), {}, "train_step"),
    "rounded": (lambda: functional(keras.Model, "uint8"), {}, "preprocessing"),
    "no softmax": (lambda: chain(keras.layers.Flatten(), keras.layers.Dense(3)), {}, "a softmax"),
    "no top": (lambda: chain(keras.layers.Conv2D(3, 3)), {}, "probability for each"),
    "other images": (lambda: chain(keras.layers.Flatten(), shape=(9, 9, 1)), {}, r"\(8, 8, 1\)"),
    "name": (lambda: little(name="a b"), {}, "`name`"),
    "nothing to freeze": (lambda: chain(keras.layers.Flatten()), {"freeze": True}, "freeze"),
    "lambda": (lambda: little(keras.layers.Lambda(lambda x: 2 * x)), {}, "`model`"),
    "not its config": (lambda: little(Forgets(2.0)), {}, "when loaded"),
    "registered": (registered_forgetful, {}, "when loaded"),
}


@pytest.mark.filterwarnings("ignore::highway_keras.util.messages.Notice")
@pytest.mark.parametrize(("make", "changes", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_model_cannot_be(make, changes, message, dataset, tmp_path):
    with pytest.raises(ValueError, match=message) as caught:
        training.fit(make(), **{"dataset": dataset, "out": tmp_path / "run", **OWN, **changes})
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


def test_a_registered_network_of_ones_own_trains_on_a_folder(tmp_path):
    def factory(name, input_shape, classes, activation="relu"):
        inputs = keras.Input(input_shape)
        x = Highway()(keras.layers.Dense(6, activation)(keras.layers.Flatten()(inputs)))
        return keras.Model(inputs, keras.layers.Dense(classes, "softmax")(x), name=name)

    folder = write_parts(tmp_path / "insects")
    models.register("flat", factory, str(folder), (8, 8, 1), 3)
    with pytest.warns(Notice, match="kernel_initializer"):
        result = training.fit("flat", out=tmp_path / "run", epochs=1, verbose=0)
    assert result.folder.read_json()["class_names"] == list(CLASSES)
    models.register("flat", factory, str(folder), (8, 8, 1), 3, activation="tanh")
    with pytest.raises(ValueError, match="architecture"):
        training.fit("flat", out=tmp_path / "run", epochs=1, verbose=0, resume=True)


def test_a_registered_network_keeps_what_its_author_chose(tmp_path):
    seen = []

    def factory(name, input_shape, classes, kernel_initializer):
        seen.append(kernel_initializer)
        top = [keras.layers.Dropout(0.5), keras.layers.Dense(classes, "softmax")]
        return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), *top], name=name)

    models.register("mine", factory, "digits", (8, 8, 1), 10, kernel_initializer="orthogonal")
    result = training.fit("mine", dataset=data.load("digits", limit=40), out=tmp_path, epochs=1)
    assert set(seen) == {"orthogonal"}
    recipe = result.folder.read_json()["recipe"]
    assert recipe["name"] == "quick" and recipe["dropout"] == 1


# Measuring


def test_an_image_that_is_wrong_for_certain_still_teaches(tmp_path):
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
    model.save(tmp_path / "model.keras")  # as a callback of the user's may
    assert keras.models.load_model(tmp_path / "model.keras").compiled


def test_and_it_still_teaches_in_a_search():
    keras_tuner = pytest.importorskip("keras_tuner")
    from highway_keras.tuning import HighwayHyperModel

    hypermodel = HighwayHyperModel(4, input_shape=(8, 8, 1), units=6)
    model = hypermodel.build(keras_tuner.HyperParameters())
    bias = model.layers[-1].bias
    bias.assign([0.0, 80.0] + 8 * [0.0])
    model.train_on_batch(np.zeros((1, 8, 8, 1)), np.array([0]))
    assert keras.ops.convert_to_numpy(bias)[1] < 80


class OwnLoss(keras.losses.Loss):
    """A loss that Keras cannot load, since nobody registered it."""

    def call(self, y_true, y_pred):
        return keras.ops.sum(y_pred, axis=-1)


def test_what_a_model_was_compiled_with_does_not_matter(tmp_path):
    found, model = data.load("digits"), models.thin_mlp(depth=3, input_shape=(8, 8, 1))
    expected = evaluate(model, found)
    compile_classifier(model)
    keras_says = model.evaluate(found.x_test, found.y_test, verbose=0)
    np.testing.assert_allclose(expected, keras_says, rtol=1e-5)
    model.compile("sgd", loss=OwnLoss(), metrics=["mae", "mse"])
    model.save(tmp_path / "own.keras")
    assert training.SavedNetwork(tmp_path / "own.keras").evaluate(found) == expected
    result = training.fit(model, "digits", out=tmp_path / "run", epochs=1, limit=100)
    assert training.SavedNetwork(result.folder.best).evaluate(found)[1] == result.test_accuracy
    assert model.compiled and isinstance(model.loss, OwnLoss)
    model.layers[-1].bias.assign([200.0] + 9 * [0.0])  # wrong for certain costs a finite loss
    loss, accuracy = measured = evaluate(model, found)
    again = pickle.loads(pickle.dumps(measured))
    np.testing.assert_array_equal(again.confusion, measured.confusion)
    assert 20 < loss < 100 and accuracy == np.mean(found.y_test == 0)


def test_images_that_training_refuses_are_not_measured():
    found, model = data.load("digits"), models.thin_mlp(depth=3, input_shape=(8, 8, 1))
    wrong = [("y_test", found.y_test - 1), ("x_test", found.x_test / 255.0)]
    for name, values in wrong:
        with pytest.raises(ValueError, match=name):
            evaluate(model, dataclasses.replace(found, **{name: values}))
    with pytest.raises(TypeError, match=r"data\.load"):
        evaluate(model, "digits")
    with pytest.raises(ValueError, match=r"`model` .* 10 classes"):
        evaluate(models.thin_mlp(depth=3, input_shape=(8, 8, 1), classes=12), found)
    inputs, top = keras.Input((8, 8, 1)), keras.layers.Dense(10, "softmax")
    for outputs in (top(inputs), 2 * [top(keras.layers.Reshape((64, 1))(inputs)[:, 0])]):
        with pytest.raises(ValueError, match="outputs of shape"):
            evaluate(keras.Model(inputs, outputs), found)


def test_an_image_that_makes_nan_is_one_mistake_of_an_epoch():
    found = np.array([[np.nan, np.nan], [0.1, 0.9], [0.2, 0.8]])
    network, logs = types.SimpleNamespace(predict_on_batch=lambda x: found), {}
    Measured("val", lambda: network, np.zeros((3, 8)), np.array([1, 1, 1])).on_epoch_end(0, logs)
    assert np.isnan(logs["val_loss"]) and logs["val_accuracy"] == pytest.approx(2 / 3)


def test_probabilities():
    shares = np.random.default_rng(0).random((50, 100))
    for rounding in ("float16", "float32"):
        check_probabilities("it", (shares / shares.sum(-1, keepdims=True)).astype(rounding))
    for row in ([0.5, 0.6], [319.6, -318.6], [np.nan, 0.5]):
        with pytest.raises(NotProbabilities, match="'it'"):
            check_probabilities("it", np.array([[0.5, 0.5], row]))


@pytest.mark.filterwarnings("ignore::highway_keras.util.messages.Notice")
def test_the_benchmark_of_fine_tuning_is_fair():
    """It chooses on images of neither training nor test; adapters leave kernels frozen."""
    from benchmarks import transfer

    found = transfer.few_images(0)
    assert np.bincount(found.y_train).tolist() == [5] * 5
    parts = [{image.tobytes() for image in x} for x in (found.x_train, found.x_val, found.x_test)]
    assert not (parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2])
    assert transfer.few_images(1).fingerprint() != found.fingerprint()
    model = transfer.with_adapters(found)
    trained = [w for layer in model.layers[:-1] for w in layer.trainable_weights]
    assert trained
    assert all(w.name.startswith("lora_") or w.name.endswith("bias") for w in trained)
    assert model.get_layer("predictions").trainable_weights
