"""The search space, training in populations, and the tuner around it."""

import contextlib
import io
import pathlib

import keras
import keras_tuner
import numpy as np
import pytest
from helpers import all_but, needs_populations
from keras_tuner.errors import FailedTrialError

from highway_keras import data
from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch, tuner
from highway_keras.tuning.population import Images, Population
from highway_keras.tuning.progress import Progress
from highway_keras.tuning.weights import assign, draw, initial_state, part_of
from highway_keras.util.messages import Notice

KINDS = ("highway", "plain", "residual")
EPOCHS, BATCH = 2, 32


@pytest.fixture(scope="module")
def digits():
    images = data.load("digits", limit=150)
    x, x_val = images.x_train / np.float32(256), images.x_val / np.float32(256)
    return x, images.y_train, x_val, images.y_val


def small(kind="highway", **space):
    return HighwayHyperModel(4, kind, input_shape=(8, 8, 1), units=6, **space)


def space_of(hypermodel):
    hp = keras_tuner.HyperParameters()
    hypermodel.declare_hyperparameters(hp)
    return {p.name: p for p in hp.space}


# The space


def test_the_space_is_the_papers_or_another():
    found = space_of(small())
    assert found["activation"].values == ["relu", "tanh"]
    bias = found["transform_bias"]
    assert (bias.min_value, bias.max_value, bias.sampling) == (-10, -1, "linear")
    rate, momentum = found["learning_rate"], found["one_minus_momentum"]
    assert (rate.min_value, rate.max_value) == (1e-3, pytest.approx(0.316, rel=1e-3))
    assert (momentum.min_value, momentum.max_value) == (1e-2, pytest.approx(0.501, rel=1e-3))
    assert rate.sampling == momentum.sampling == "log"
    assert (found["decay"].min_value, found["decay"].max_value) == (0.9, 1.0)
    for kind in ("plain", "residual"):
        assert "transform_bias" not in space_of(small(kind))
    found = space_of(small(decay=(0.99, 1.0), activations="tanh"))
    assert found["decay"].min_value == 0.99 and found["activation"].values == ["tanh"]


def test_fit_decays_the_rate_by_epoch_also_when_it_resumes(digits):
    x, y, *_ = digits
    hp = keras_tuner.HyperParameters()
    hp.values = {"learning_rate": 0.1, "decay": 0.9, "transform_bias": -2.0}
    hypermodel = small()
    model = hypermodel.build(hp)
    history = hypermodel.fit(hp, model, x, y, epochs=3, initial_epoch=1, verbose=0)
    np.testing.assert_allclose(history.history["learning_rate"], [0.09, 0.081], rtol=1e-6)
    model.layers[-1].bias.assign(np.full(10, np.nan))
    with pytest.raises(FailedTrialError, match="epoch 1"):
        hypermodel.fit(hp, model, x, y, epochs=3, verbose=0)


def test_bad_arguments_of_the_hypermodel():
    wrong = {
        "input_shape": (8, 8, None),
        "depth": 1,
        "kind": "wide",
        "units": 0,
        "classes": 0,
        "activations": "gelu",
    }
    for name, value in (wrong | {"decay": (1.0, 0.9), "one_minus_momentum": (0.1, 2)}).items():
        with pytest.raises(ValueError, match=f"`{name}`"):
            HighwayHyperModel(**{"depth": 3, name: value})


STOCK = {
    "random": lambda **where: keras_tuner.RandomSearch(max_trials=2, **where),
    "bayesian": lambda **where: keras_tuner.BayesianOptimization(max_trials=2, **where),
    "hyperband": lambda **where: keras_tuner.Hyperband(max_epochs=2, factor=2, **where),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STOCK)
def test_stock_tuners_search_it_and_their_best_model_has_the_recorded_loss(name, tmp_path, digits):
    x, y, *held_out = digits
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4)
    search = STOCK[name](
        hypermodel=hypermodel, objective="val_loss", seed=1, directory=tmp_path, overwrite=True
    )
    search.search(x[:64], y[:64], validation_data=tuple(held_out), epochs=1, verbose=0)
    best, score = search.get_best_models()[0], search.oracle.get_best_trials()[0].score
    assert best.evaluate(*held_out, verbose=0)[0] == pytest.approx(score, rel=1e-5)


# Populations

VALUES = [
    {"learning_rate": 0.02, "one_minus_momentum": 0.1, "activation": "relu"},
    {"learning_rate": 0.1, "one_minus_momentum": 0.3, "activation": "tanh"},
    {"learning_rate": 0.05, "one_minus_momentum": 0.02, "activation": "tanh"},
]
VALUES = [{**values, "decay": 0.9, "transform_bias": -1.0 - i} for i, values in enumerate(VALUES)]


def population(kind, trials, changes=()):
    values = [{**VALUES[trial], **dict(changes).get(trial, {})} for trial in trials]
    starts = [initial_state(draw(small(kind), VALUES[trial], [0, trial])) for trial in trials]
    return Population(kind, values, starts, cohort_size=len(trials))  # as on an accelerator


def order_of(epoch, size):
    return np.random.default_rng([0, epoch]).permutation(size)


def losses(trained, images):
    epochs = range(EPOCHS)
    return np.array([trained.train(images, e, order_of(e, images.size))[0] for e in epochs])


@needs_populations
@pytest.mark.parametrize("kind", all_but(["highway"], KINDS))
def test_a_trial_is_the_network_trained_alone_by_keras(kind, digits):
    x, y, x_val, y_val = digits
    trained = population(kind, [0, 1, 2])
    hp = keras_tuner.HyperParameters()
    hp.values = dict(VALUES[1])
    model = small(kind).build(hp)
    assign(model, draw(small(kind), VALUES[1], [0, 1]))
    for epoch in range(EPOCHS):
        order = order_of(epoch, len(x))
        found = [*trained.train(Images(x, y, BATCH), epoch, order)]
        found += trained.evaluate(Images(x_val, y_val, BATCH))
        model.optimizer.learning_rate = VALUES[1]["learning_rate"] * 0.9**epoch
        logs = model.fit(
            x[order], y[order], BATCH, shuffle=False, validation_data=(x_val, y_val), verbose=0
        )
        expected = [logs.history[k][0] for k in ("loss", "accuracy", "val_loss", "val_accuracy")]
        np.testing.assert_allclose([column[1] for column in found], expected, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_weights_are_distributed_as_those_of_keras(kind):
    hypermodel = HighwayHyperModel(40, kind, input_shape=(400,), units=20)
    for activation in ("relu", "tanh"):
        hp = keras_tuner.HyperParameters()
        hp.values = {"activation": activation, "transform_bias": -3.0}
        model = hypermodel.build(hp)
        theirs = [np.asarray(w) for w in model.get_weights()]
        assign(model, draw(hypermodel, hp.values | {"transform_bias": -3.0}, [0]))
        for own, other in zip(model.get_weights(), theirs, strict=True):
            assert own.shape == other.shape
            assert own.std() == pytest.approx(other.std(), rel=0.15)
            assert np.abs(own).max() == pytest.approx(np.abs(other).max(), rel=0.1)


@needs_populations
def test_a_trial_that_diverges_stops_and_touches_no_other(digits):
    images = Images(*digits[:2], BATCH)
    sound = losses(population("residual", [0, 1, 2]), images)
    sick = population("residual", [0, 1, 2], {1: {"learning_rate": 1e38}})
    found = losses(sick, images)
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[:, [0, 2]], sound[:, [0, 2]])
    sick.keep(np.array([True, True, True]))
    frozen = part_of(sick.state(1), "best")
    losses(sick, images)
    sick.keep(np.array([True, False, True]))
    for key, weight in part_of(sick.state(1), "weights").items():
        np.testing.assert_array_equal(weight, frozen[key])


# The tuner


def make(path, hypermodel=None, **arguments):
    if keras.backend.backend() == "torch":
        pytest.skip("populations need TensorFlow or JAX")
    defaults = {"objective": "val_loss", "max_trials": 6, "population": 3, "keep_models": 2}
    arguments = {**defaults, "directory": path, **arguments}
    return PopulationRandomSearch(hypermodel or small(), **arguments)


def train(search, digits, batch_size=BATCH):
    x, y, *held_out = digits
    size = {"epochs": np.int64(EPOCHS), "batch_size": batch_size, "verbose": 0}
    search.search(x, y, validation_data=held_out, **size)
    return search


@pytest.fixture(scope="module")
def searched(tmp_path_factory, digits):
    return train(make(tmp_path_factory.mktemp("search")), digits)


def scores_of(search):
    return {trial_id: trial.score for trial_id, trial in search.oracle.trials.items()}


def test_curves_files_and_models_are_keras_tuners(searched, digits, capsys):
    for trial in searched.oracle.trials.values():
        assert trial.status == "COMPLETED"
        for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
            assert [point.step for point in trial.metrics.get_history(name)] == [0, 1]
    searched.results_summary(1)
    best = searched.get_best_hyperparameters()[0]
    assert f"learning_rate: {best['learning_rate']}" in capsys.readouterr().out
    models, trials = searched.get_best_models(2), searched.oracle.get_best_trials(6)
    scores = [trial.score for trial in trials]
    assert scores == sorted(scores)
    for model, trial in zip(models, trials[:2], strict=True):
        assert model.evaluate(*digits[2:], verbose=0)[0] == pytest.approx(trial.score, rel=1e-4)
        rate = trial.hyperparameters["learning_rate"]
        assert float(model.optimizer.learning_rate) == pytest.approx(rate)  # not another trial's
    kept = pathlib.Path(searched.project_dir).glob("trial_*/*.keras")
    assert {path.parent.name for path in kept} == {f"trial_{t.trial_id}" for t in trials[:2]}
    with pytest.raises(ValueError, match=f"Trial {trials[-1].trial_id} .*keep_models"):
        searched.load_model(trials[-1])
    with pytest.raises(ValueError, match="objective: 'min val_loss'"):
        make(searched.directory, objective="val_accuracy")
    stock = keras_tuner.oracles.RandomSearchOracle("val_loss", 6)
    stock._set_project_dir(searched.directory, searched.project_name)
    stock.reload()
    assert sorted(stock.trials) == sorted(searched.oracle.trials)


def test_models_are_in_float32_as_they_were_trained(searched):
    keras.config.set_dtype_policy("mixed_bfloat16")
    (model,) = searched.get_best_models(1)
    keras.config.set_dtype_policy("float32")
    assert {layer.compute_dtype for layer in model._flatten_layers()} == {"float32"}


def drawn(search):
    search.oracle.verbose = 0
    trials = [search.oracle.create_trial(f"slot-{number}") for number in range(6)]
    return [trial.hyperparameters.values for trial in trials]


@pytest.mark.parametrize(("seed", "of_stock"), [(0, 1), (5, 5)])
def test_hyperparameters_are_those_of_the_stock_tuner(seed, of_stock, tmp_path):
    stock = keras_tuner.RandomSearch(small(), "val_loss", 6, seed=of_stock, directory=tmp_path)
    assert drawn(make(tmp_path, project_name="ours", seed=seed)) == drawn(stock)


def test_a_failed_trial_is_recorded_and_touches_no_other(searched, tmp_path, digits, monkeypatch):
    """To the last bit; nor does it matter how many train together, or in which place."""

    def poisoned(hypermodel, values, seed):
        weights = draw(hypermodel, values, seed)
        return weights if seed[1] != 1 else {key: w * np.nan for key, w in weights.items()}

    monkeypatch.setattr(tuner, "draw", poisoned)
    search = train(make(tmp_path, population=4), digits)
    assert search.oracle.trials["1"].status == "FAILED"
    assert "finite" in search.oracle.trials["1"].message
    assert scores_of(search) == {**scores_of(searched), "1": None}
    with pytest.raises(ValueError, match="diverged"):
        search.load_model(search.oracle.trials["1"])


def test_a_search_goes_on_with_its_own_settings_and_images_only(tmp_path, digits):
    meanwhile = make(tmp_path, max_trials=1)
    train(make(tmp_path, max_trials=1), digits)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/trial_*/*")}
    deeper = HighwayHyperModel(5, input_shape=(8, 8, 1), units=6)
    with pytest.raises(ValueError, match="depth"):
        train(make(tmp_path, deeper, max_trials=1), digits)
    x, y, x_val, y_val = digits
    tall = HighwayHyperModel(small().depth, input_shape=(16, 4, 1), units=6)
    with pytest.raises(ValueError, match="input_shape"):
        reshaped = x.reshape(-1, 16, 4, 1), y, x_val.reshape(-1, 16, 4, 1), y_val
        train(make(tmp_path, tall, max_trials=1), reshaped)
    with pytest.raises(ValueError, match="batch_size"):
        train(make(tmp_path, max_trials=1), digits, batch_size=16)
    for x, message in (
        (256 * digits[0], "inputs"),
        (digits[0][::-1], "inputs"),
        (np.nan * digits[0], "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            train(make(tmp_path, max_trials=1), (x, *digits[1:]))
    train(meanwhile, digits)  # whose only trial another process has done
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/trial_*/*")} == files


def test_the_search_of_another_tuner_is_left_alone(tmp_path):
    keras_tuner.RandomSearch(small(), "loss", max_trials=2, directory=tmp_path).save()
    with pytest.raises(ValueError, match="project_name"):
        make(tmp_path)


def test_of_tied_trials_those_named_the_best_keep_their_weights(tmp_path):
    options = {"max_trials": 12, "directory": tmp_path}
    network = HighwayHyperModel(2, "plain", input_shape=(2,), units=2)
    search = make(tmp_path, network, **options)
    trials = [search.oracle.create_trial(f"slot-{slot}") for slot in range(12)]
    for trial, score in zip(trials, [0.5] * 10 + [0.25, np.inf], strict=True):
        search.oracle.update_trial(trial.trial_id, {"val_loss": score}, step=0)
        search._save_weights(trial, "relu", draw(network, VALUES[0], [0]))
    for trial in reversed(trials):
        trial.status = "FAILED" if trial.trial_id == "11" else "COMPLETED"
        search.oracle.end_trial(trial)
    search.save()
    again = make(tmp_path, network, **options)
    for found in (search, again):
        assert [trial.trial_id for trial in found.oracle.get_best_trials(2)] == ["10", "00"]
        assert len(found.get_best_models(2)) == 2
    kept = {path.parent.name for path in tmp_path.glob("*/trial_*/*.keras")}
    assert kept - {"trial_11"} == {"trial_10", "trial_00"}
    assert list(again.oracle.trials) == [f"{number:02}" for number in range(12)]


# Hypermodels of a user's own

SIZES = {"input_shape": (6,), "classes": 3, "units": 5}
X, Y = np.random.default_rng(0).standard_normal((40, 6)), np.arange(40) % 3


def test_a_finite_space_is_drawn_once_and_goes_on_with_the_space_it_had(tmp_path):
    class Three(HighwayHyperModel):
        rates = (0.3, 0.1, 0.03)

        def declare_hyperparameters(self, hp):
            hp.Choice("learning_rate", self.rates)
            for name, value in {**VALUES[0], "learning_rate": 0}.items():
                hp.Fixed(name, value)
            return super().declare_hyperparameters(hp)

    network, options = Three(3, **SIZES), {"objective": "loss", "rungs": {1: 2}}
    search = make(tmp_path, network, **options)
    with pytest.warns(Notice, match="ends after 3 trials"):
        search.search(X, Y, epochs=2, verbose=0)
    trained = [len(t.metrics.get_history("loss")) for t in search.oracle.trials.values()]
    assert sorted(trained) == [1, 2, 2]
    network.rates = (3.0, 1.0)
    with pytest.raises(ValueError, match=r"\(space:"):
        make(tmp_path, network, **options).search(X, Y, epochs=2, verbose=0)


def test_what_depends_on_other_hyperparameters_is_drawn(tmp_path):
    class ByActivation(HighwayHyperModel):
        in_scope, highest = True, 1e-1

        def declare_hyperparameters(self, hp):
            found = super().declare_hyperparameters(hp)
            scope = hp.conditional_scope("activation", ["tanh"])
            with scope if self.in_scope else contextlib.nullcontext():
                if found["activation"] == "tanh":
                    found["learning_rate"] = hp.Float(
                        "rate_of_tanh", 1e-3, self.highest, sampling="log"
                    )
            return found

    network, options = ByActivation(3, **SIZES), {"objective": "loss", "max_trials": 8}
    search = make(tmp_path, network, **options)
    search.search(X, Y, verbose=0)
    found = [trial.hyperparameters.values for trial in search.oracle.trials.values()]
    rates = [values["rate_of_tanh"] for values in found if values["activation"] == "tanh"]
    assert len({*rates}) == len(rates) > 1
    network.highest = 1.0
    with pytest.raises(ValueError, match=r"\(space:"):
        make(tmp_path, network, **options).search(X, Y, verbose=0)
    network.in_scope = False
    with pytest.raises(ValueError, match="Received: rate_of_tanh of trial"):
        make(tmp_path / "none", network, **options).search(X, Y, verbose=0)
    network.in_scope = True  # in the same folder
    with pytest.raises(ValueError, match=r"\(space:"):
        make(tmp_path / "none", network, **options).search(X, Y, verbose=0)


class Changed(HighwayHyperModel):
    def declare_hyperparameters(self, hp):
        return {**super().declare_hyperparameters(hp), "decay": 1, **self.changes}


def test_what_declare_hyperparameters_returns_is_trained(tmp_path, monkeypatch):
    """Whether or not `hp` knows of it."""
    network = Changed(3, **SIZES)
    network.changes = {"learning_rate": 1e-9, "activation": "tanh"}
    search = make(tmp_path, network, objective="loss")
    search.search(X, Y, epochs=3, verbose=0)
    (model,) = search.get_best_models()
    assert model.layers[-2].activation is keras.activations.tanh
    score = search.oracle.get_best_trials()[0].score
    assert model.evaluate(X, Y, verbose=0)[0] == pytest.approx(score, rel=1e-5)  # it stood still
    network.changes["activation"] = "relu"
    with pytest.raises(ValueError, match="fixed"):
        make(tmp_path, network, objective="loss").search(X, Y, epochs=3, verbose=0)
    monkeypatch.setattr(Changed, "declare_hyperparameters", lambda self, hp: {"decay": 1.0})
    with pytest.raises(ValueError, match="return a dictionary of activation, decay"):
        make(tmp_path / "one", network)


CHANGES = [  # `None` where a condition does not hold
    ({"learning_rate": None}, "`learning_rate`.*None"),
    ({"one_minus_momentum": 1.5}, "one_minus_momentum"),
    ({"activation": "gelu"}, "`activation`"),
    ({"units": 7}, "nothing else.*units"),
    ({"learning_rate": 1, "one_minus_momentum": 1, "transform_bias": None}, None),
]


@pytest.mark.parametrize(("changes", "refused"), CHANGES)
def test_values_of_a_users_own(changes, refused, tmp_path):
    network = Changed(3, "plain", **SIZES)
    network.changes = changes
    if refused:
        with pytest.raises(ValueError, match=refused):
            make(tmp_path, network, objective="loss").search(X, Y, verbose=0)
        return
    search = make(tmp_path, network, objective="loss")
    search.search(X, Y, verbose=0)
    assert search.get_best_models()[0].optimizer.momentum == 0


class OwnBuild(HighwayHyperModel):
    def build(self, hp):
        return super().build(hp)


ROWS = np.zeros((3, 8, 8, 1))
BAD = [  # the error, what it names, arguments of the tuner, of `search`
    (TypeError, "`hypermodel`", {"hypermodel": len}, {}),
    (TypeError, "`hypermodel` must not override `build`", {"hypermodel": OwnBuild(4)}, {}),
    (ValueError, "seed", {"seed": -1}, {}),
    (ValueError, "max_trials", {"max_trials": 0}, {}),
    (ValueError, "population", {"population": 0}, {}),
    (ValueError, "keep_models", {"keep_models": 0}, {}),
    (ValueError, "rungs", {"rungs": {2: 6}}, {}),
    (ValueError, "rungs", {"rungs": {2: 3, 1: 2}}, {}),
    (TypeError, "class_weight", {"class_weight": None}, {}),
    (TypeError, "callbacks", {}, {"callbacks": None}),
    (ValueError, "`x`", {}, {"x": np.zeros((3, 7))}),
    (ValueError, "`x`", {}, {"x": np.zeros((3, 4, 16))}),  # of other sides
    (ValueError, "`x`", {}, {"x": ROWS[:0], "y": []}),
    (ValueError, "`y`", {}, {"x": ROWS[:2]}),
    (ValueError, "`y`", {}, {"y": [0, 1, 10]}),
    (ValueError, "`validation_data", {}, {"validation_data": (np.zeros((3, 7)), [0, 1, 2])}),
    (ValueError, "`validation_data", {}, {"validation_data": (ROWS, [0, 1, 2], [1, 1, 1])}),
    (ValueError, "`epochs`", {}, {"epochs": 0}),
    (ValueError, "`objective`", {}, {}),  # of validation data, which are not given
]


@pytest.mark.parametrize(("error", "name", "of_tuner", "of_search"), BAD)
def test_bad_arguments(error, name, of_tuner, of_search, tmp_path):
    with pytest.raises(error, match=name):
        make(tmp_path, **of_tuner).search(**{"x": ROWS, "y": [0, 1, 2], **of_search})


# Progress


def test_progress_on_a_terminal_is_one_line_redrawn(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", terminal)
    with Progress("tiny", [(0, 2, 4)], [0], "loss") as progress:
        for best, done in [(None, (2,)), (0.5, (0, [2])), (0.25, (2,)), (0.25, (0, [4]))]:
            progress.report(0, best, *done)
    *drawn, end = terminal.getvalue().split("\r")[1:]
    assert end.endswith("\n") and "\n" not in "".join(drawn)
    shown = {text.split()[1] for text in drawn if "/" in text}
    assert {"1/4", "2/4", "3/4", "4/4"} <= shown
    assert "best loss 0.25" in drawn[-1]


def test_progress_in_a_log_shows_a_long_round_from_time_to_time(monkeypatch, capsys):
    with Progress("tiny", [(0, 40, 4)], [0], "loss") as progress:
        progress.report(0, 0.5, epochs=40)
        assert capsys.readouterr().out == ""
        monkeypatch.setattr("highway_keras.tuning.progress.QUIET", 0)
        progress.report(0, 0.5, epochs=80)
        assert "2/4" in capsys.readouterr().out
