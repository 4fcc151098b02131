"""The search space, training in populations, and the tuner around it."""

import io
import pathlib
import re
from types import SimpleNamespace

import keras
import keras_tuner
import numpy as np
import pytest
from keras_tuner.errors import FailedTrialError

from highway_keras import data
from highway_keras.tuning import (
    HighwayHyperModel,
    PopulationRandomSearch,
    cohorts,
    memory,
    tuner,
)
from highway_keras.tuning.cohorts import Cohorts
from highway_keras.tuning.population import Images, Population
from highway_keras.tuning.progress import Progress
from highway_keras.tuning.weights import assign, draw

KINDS = ("highway", "plain", "residual")
EPOCHS, BATCH = 2, 32
needs_loops = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="populations need TensorFlow or JAX"
)


@pytest.fixture(scope="module")
def digits():
    images = data.load("digits", limit=150)
    x, x_val = images.x_train / np.float32(256), images.x_val / np.float32(256)
    return x, images.y_train, x_val, images.y_val


def small(kind="highway"):
    return HighwayHyperModel(4, kind, input_shape=(8, 8, 1), units=6)


def space(hypermodel):
    hp = keras_tuner.HyperParameters()
    hypermodel.declare_hyperparameters(hp)
    return {p.name: p for p in hp.space}


# The space


def test_the_space_is_the_papers():
    found = space(small())
    assert found["activation"].values == ["relu", "tanh"]
    bias = found["transform_bias"]
    assert (bias.min_value, bias.max_value, bias.sampling) == (-10, -1, "linear")
    rate, momentum = found["learning_rate"], found["one_minus_momentum"]
    assert (rate.min_value, rate.max_value) == (1e-3, pytest.approx(0.316, rel=1e-3))
    assert (momentum.min_value, momentum.max_value) == (1e-2, pytest.approx(0.501, rel=1e-3))
    assert rate.sampling == momentum.sampling == "log"
    assert (found["decay"].min_value, found["decay"].max_value) == (0.9, 1.0)


@pytest.mark.parametrize("kind", ["plain", "residual"])
def test_networks_without_gates_have_no_transform_bias(kind):
    assert "transform_bias" not in space(small(kind))


def test_build_uses_every_hyperparameter():
    hp = keras_tuner.HyperParameters()
    hp.values = {
        "learning_rate": 0.125,
        "one_minus_momentum": 0.25,
        "decay": 0.5,
        "activation": "relu",
        "transform_bias": -7.0,
    }
    model = small().build(hp)
    assert float(model.optimizer.learning_rate) == 0.125
    assert model.optimizer.momentum == 0.75
    assert model.get_layer("plain").activation is keras.activations.relu
    gates = [w for w in model.weights if w.path.endswith("transform_bias")]
    assert gates
    for gate in gates:
        assert np.all(keras.ops.convert_to_numpy(gate) == -7)


def test_fit_decays_the_rate_by_epoch_also_when_it_resumes(digits):
    x, y, *_ = digits
    hp = keras_tuner.HyperParameters()
    hp.values = {"learning_rate": 0.1, "decay": 0.9, "transform_bias": -2.0}
    hypermodel = small()
    history = hypermodel.fit(hp, hypermodel.build(hp), x, y, epochs=3, initial_epoch=1, verbose=0)
    np.testing.assert_allclose(history.history["learning_rate"], [0.09, 0.081], rtol=1e-6)


def test_fit_reports_a_loss_that_is_not_finite_as_a_failed_trial(digits):
    x, y, *_ = digits
    hypermodel, hp = small("residual"), keras_tuner.HyperParameters()
    model = hypermodel.build(hp)
    model.layers[-1].bias.assign(np.full(10, np.nan))
    with pytest.raises(FailedTrialError, match="no longer finite in epoch 1"):
        hypermodel.fit(hp, model, x, y, epochs=3, verbose=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 1}, "`depth` must be an integer of at least 2. Received: depth=1"),
        ({"depth": 2.5}, "`depth` must be an integer of at least 2. Received: depth=2.5"),
        ({"depth": 3, "kind": "wide"}, "`kind` must be one of 'highway', 'plain', 'residual'. Rec"),
        ({"depth": 3, "units": 0}, "`units` must be a positive integer, or None .* units=0"),
        ({"depth": 3, "classes": 0}, "`classes` must be a positive integer. Received: classes=0"),
    ],
)
def test_bad_arguments_of_the_hypermodel(arguments, message):
    with pytest.raises(ValueError, match=message):
        HighwayHyperModel(**arguments)


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
    starts = [draw(small(kind), VALUES[trial], [0, trial]) for trial in trials]
    return Population(kind, values, starts)


def order_of(epoch, size):
    return np.random.default_rng([0, epoch]).permutation(size)


def losses(trained, images):
    return np.array([trained.train(images, e, order_of(e, images.size))[0] for e in range(EPOCHS)])


@needs_loops
@pytest.mark.parametrize("kind", ["highway", "plain"])
def test_a_trial_does_not_depend_on_its_company(kind, digits):
    images = Images(*digits[:2], BATCH)
    together = losses(population(kind, [0, 1, 2]), images)
    alone = losses(population(kind, [1]), images)[:, 0]
    np.testing.assert_allclose(alone, together[:, 1], rtol=1e-4)
    swapped = losses(population(kind, [2, 2, 0]), images)
    np.testing.assert_allclose(swapped, together[:, [2, 2, 0]], rtol=1e-4)


@needs_loops
@pytest.mark.parametrize("kind", KINDS)
def test_a_trial_is_the_network_trained_alone_by_keras(kind, digits):
    x, y, x_val, y_val = digits
    trained = population(kind, [0, 1, 2])
    metrics = []
    for epoch in range(EPOCHS):
        loss, accuracy = trained.train(Images(x, y, BATCH), epoch, order_of(epoch, len(x)))
        measured = trained.evaluate(Images(x_val, y_val, BATCH))
        metrics.append([loss[1], accuracy[1], measured[0][1], measured[1][1]])
    model = keras_model(kind, 1)
    for epoch in range(EPOCHS):
        order = order_of(epoch, len(x))
        model.optimizer.learning_rate = VALUES[1]["learning_rate"] * 0.9**epoch
        logs = model.fit(
            x[order], y[order], BATCH, shuffle=False, validation_data=(x_val, y_val), verbose=0
        )
        expected = [logs.history[k][0] for k in ("loss", "accuracy", "val_loss", "val_accuracy")]
        np.testing.assert_allclose(metrics[epoch], expected, rtol=1e-4)


def keras_model(kind, trial):
    hp = keras_tuner.HyperParameters()
    hp.values = dict(VALUES[trial])
    model = small(kind).build(hp)
    assign(model, draw(small(kind), VALUES[trial], [0, trial]))
    return model


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


@needs_loops
@pytest.mark.parametrize("cores", [None, 1, 2, 3, 8])
def test_cohorts_are_the_population_in_pieces(cores, digits, monkeypatch):
    monkeypatch.setattr(cohorts, "MOST_IN_A_COHORT", 2)
    trials, images = [0, 1, 2, 1, 0], Images(*digits[:2], BATCH)
    values = [VALUES[trial] for trial in trials]
    starts = [draw(small(), VALUES[t], [0, place]) for place, t in enumerate(trials)]
    whole = Population("highway", values, starts)
    pieces = Cohorts("highway", values, starts, cores)
    np.testing.assert_allclose(losses(pieces, images), losses(whole, images), rtol=1e-4)
    np.testing.assert_allclose(pieces.evaluate(images), whole.evaluate(images), rtol=1e-4)
    improved = np.array([True, False, True, False, True])
    for trained in (whole, pieces):
        trained.keep(improved)
    for place, start in enumerate(starts):
        found = pieces.best_weights(place)["kernel"]
        expected = whole.best_weights(place)["kernel"]
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
        assert np.array_equal(found, start["kernel"]) != improved[place]


@pytest.mark.parametrize(
    ("trials", "cores", "sizes"),
    [
        (20, None, [20]),
        (20, 2, [5, 5, 5, 5]),
        (3, 2, [2, 1]),
        (1, 8, [1]),
        (11, 2, [3, 3, 3, 2]),
        (100, 16, [4] * 4 + [3] * 28),
    ],
)
def test_every_core_gets_as_many_cohorts(trials, cores, sizes, monkeypatch):
    monkeypatch.setattr(cohorts, "Population", lambda kind, values, weights: len(weights))
    assert Cohorts("plain", [{}] * trials, [{}] * trials, cores).cohorts == sizes


@needs_loops
def test_a_trial_that_diverges_stops_and_touches_no_other(digits):
    images = Images(*digits[:2], BATCH)
    sound = losses(population("residual", [0, 1, 2]), images)
    sick = population("residual", [0, 1, 2], {1: {"learning_rate": 1e38}})
    found = losses(sick, images)
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_allclose(found[:, [0, 2]], sound[:, [0, 2]], rtol=1e-6)
    sick.keep(np.array([True, True, True]))
    frozen = sick.best_weights(1)
    losses(sick, images)
    sick.keep(np.array([True, True, True]))
    for key, weight in sick.best_weights(1).items():
        np.testing.assert_array_equal(weight, frozen[key])


# The tuner


def search_digits(path, digits, **arguments):
    x, y, *held_out = digits
    defaults = {"objective": "val_loss", "max_trials": 6, "population": 3, "keep_models": 2}
    search = PopulationRandomSearch(small(), **{**defaults, **arguments}, directory=path)
    search.search(x, y, validation_data=tuple(held_out), epochs=2, batch_size=BATCH, verbose=0)
    return search


@pytest.fixture(scope="module")
def searched(tmp_path_factory, digits):
    return search_digits(tmp_path_factory.mktemp("search"), digits)


def test_a_directory_may_be_in_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    search = PopulationRandomSearch(small(), max_trials=2, directory="~/s", project_name="p")
    assert pathlib.Path(search.project_dir) == tmp_path / "home" / "s" / "p"
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@needs_loops
def test_the_best_models_have_the_recorded_loss(searched, digits):
    models, trials = searched.get_best_models(2), searched.oracle.get_best_trials(2)
    scores = [trial.score for trial in trials]
    assert scores == sorted(scores)
    for model, score in zip(models, scores, strict=True):
        assert model.evaluate(*digits[2:], verbose=0)[0] == pytest.approx(score, rel=1e-4)


@needs_loops
def test_curves_and_files_are_keras_tuners(searched, capsys):
    for trial in searched.oracle.trials.values():
        assert trial.status == "COMPLETED"
        for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
            assert [point.step for point in trial.metrics.get_history(name)] == [0, 1]
    searched.results_summary(1)
    best = searched.get_best_hyperparameters()[0]
    assert f"learning_rate: {best['learning_rate']}" in capsys.readouterr().out


@needs_loops
def test_only_the_best_weights_stay_on_disk(searched):
    folder = searched.oracle._project_dir
    kept = sorted(p.parent.name for p in tuner.pathlib.Path(folder).glob("trial_*/*.weights.h5"))
    best = searched.oracle.get_best_trials(2)
    assert kept == sorted(f"trial_{trial.trial_id}" for trial in best)
    worst = searched.oracle.get_best_trials(6)[-1]
    with pytest.raises(ValueError, match=f"Trial {worst.trial_id} has no weights on disk"):
        searched.load_model(worst)


def ended(search, scores):
    """Trials with these scores, the last one first, as `_end` takes a population of them."""
    trials = [search.oracle.create_trial(f"slot-{slot}") for slot in range(len(scores))]
    for trial, score in zip(trials, scores, strict=True):
        search.oracle.update_trial(trial.trial_id, {"val_loss": score}, step=0)
    weights = draw(small(), VALUES[0], [0])
    population = SimpleNamespace(best_weights=lambda index: weights)
    backwards = np.array(scores[::-1])
    return SimpleNamespace(trials=trials[::-1], scores=backwards, population=population)


@needs_loops
def test_of_tied_trials_those_named_the_best_keep_their_weights(tmp_path):
    options = {"max_trials": 12, "keep_models": 2, "directory": tmp_path}
    search = PopulationRandomSearch(small(), "val_loss", **options)
    search._end(ended(search, [0.5] * 10 + [0.25, np.inf]))
    search.save()
    kept = {path.parent.name for path in tmp_path.glob("*/trial_*/*.weights.h5")}
    assert kept == {"trial_10", "trial_00"}
    again = PopulationRandomSearch(small(), "val_loss", **options)
    for found in (search, again):
        assert [trial.trial_id for trial in found.oracle.get_best_trials(2)] == ["10", "00"]
        assert len(found.get_best_models(2)) == 2
    assert list(again.oracle.trials) == [f"{number:02}" for number in range(12)]


@needs_loops
def test_weights_of_a_trial_that_ends_meanwhile_in_another_worker_stay(tmp_path, monkeypatch):
    search = PopulationRandomSearch(
        small(), "val_loss", max_trials=2, keep_models=1, directory=tmp_path
    )
    running = ended(search, [0.5, 0.25])
    other, own = running.trials
    for trial in (other, own):
        search._save_weights(trial.trial_id, draw(small(), VALUES[0], [0]))
    own.status = "COMPLETED"
    search.oracle.end_trial(own)
    best_trials = search.oracle.get_best_trials

    def then_the_other_ends(count):
        found = best_trials(count)
        other.status = "COMPLETED"
        search.oracle.end_trial(other)
        return found

    monkeypatch.setattr(search.oracle, "get_best_trials", then_the_other_ends)
    search._drop_weights()
    monkeypatch.undo()
    assert search.get_best_models()[0].count_params() > 0


@needs_loops
def test_hyperparameters_are_those_of_the_stock_random_search(searched, tmp_path):
    stock = keras_tuner.RandomSearch(
        small(), "val_loss", max_trials=6, seed=searched.seed + 1, directory=tmp_path
    )
    stock.oracle.verbose = 0
    for trial_id in sorted(searched.oracle.trials):
        values = stock.oracle.create_trial(f"tuner-{trial_id}").hyperparameters.values
        assert searched.oracle.trials[trial_id].hyperparameters.values == values


@needs_loops
def test_the_result_does_not_depend_on_the_size_of_the_population(searched, tmp_path, digits):
    other = search_digits(tmp_path, digits, population=2)
    for trial_id, trial in searched.oracle.trials.items():
        assert other.oracle.trials[trial_id].score == pytest.approx(trial.score, rel=1e-4)


@needs_loops
def test_a_failed_trial_is_recorded_and_touches_no_other(searched, tmp_path, digits, monkeypatch):
    def poisoned(hypermodel, values, seed):
        weights = draw(hypermodel, values, seed)
        return weights if seed[1] != 1 else {key: w * np.nan for key, w in weights.items()}

    monkeypatch.setattr(tuner, "draw", poisoned)
    search = search_digits(tmp_path, digits)
    assert search.oracle.trials["1"].status == "FAILED"
    assert "finite" in search.oracle.trials["1"].message
    for trial_id in "02345":
        trial = search.oracle.trials[trial_id]
        assert trial.score == pytest.approx(searched.oracle.trials[trial_id].score, rel=1e-6)


@needs_loops
def test_a_search_whose_trials_all_fail_ends(tmp_path, digits, monkeypatch):
    def poisoned(*arguments):
        return {key: w * np.nan for key, w in draw(*arguments).items()}

    monkeypatch.setattr(tuner, "draw", poisoned)
    search = search_digits(tmp_path, digits)
    assert {trial.status for trial in search.oracle.trials.values()} == {"FAILED"}
    with pytest.raises(ValueError, match="has no weights on disk: it failed"):
        search.get_best_models()


@needs_loops
def test_progress_says_trials_best_and_time_left(tmp_path, digits, capsys):
    search = PopulationRandomSearch(
        small(), max_trials=4, population=2, directory=tmp_path, project_name="tiny"
    )
    search.search(*digits[:2], epochs=1)
    first, last = capsys.readouterr().out.splitlines()
    clock = r"\d\d:\d\d"
    line = rf"tiny: 2/4 trials, {clock} elapsed, {clock} left, best loss \d\.\d+"
    assert re.fullmatch(line, first)
    score = search.oracle.get_best_trials()[0].score
    assert last.startswith("tiny: 4/4 trials, ") and last.endswith(f"best loss {score:.4g}")


def test_progress_on_a_terminal_is_one_line_redrawn(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", terminal)
    with Progress("tiny", 4, 0, "loss") as progress:
        progress.report(None, running=1.0)
        progress.report(0.5, ended=2)
        progress.report(0.25, running=1.0)
        progress.report(0.25, ended=2)
    *drawn, end = terminal.getvalue().split("\r")[1:]
    assert end.endswith("\n") and "\n" not in "".join(drawn)
    assert ["0/4", "1/4", "2/4", "3/4", "4/4"] == sorted({text.split()[1] for text in drawn})
    assert "best loss 0.25" in drawn[-1]


@pytest.mark.parametrize("ended", [0, 50])
def test_time_left_counts_only_this_session(ended, capsys):
    with Progress("long", ended + 50, ended, "loss") as progress:
        progress.start_t -= 60
        progress.report(0.5, ended=10)  # a minute for 10 trials: 40 take 4 minutes
    assert re.search(r"01:0\d elapsed, 04:0\d left", capsys.readouterr().out)


def test_silence(capsys):
    with Progress("quiet", 4, 0, "loss", verbose=0) as progress:
        progress.report(0.5, ended=2)
    assert capsys.readouterr() == ("", "")


@needs_loops
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"hypermodel": lambda hp: None}, TypeError, "`hypermodel` must be a `HighwayHyperModel`"),
        ({"seed": -1}, ValueError, "`seed` must be an integer from 0 to .* Received: seed=-1"),
        ({"max_trials": 0}, ValueError, "`max_trials` must be a positive integer. Received: max"),
        ({"population": 0}, ValueError, "`population` must be a positive integer, or None for"),
        ({"keep_models": 0}, ValueError, "`keep_models` must be a positive integer. Received"),
        ({"executions_per_trial": 3}, TypeError, "unexpected .* 'executions_per_trial'"),
    ],
)
def test_bad_arguments_of_the_tuner(arguments, error, message, tmp_path):
    with pytest.raises(error, match=message):
        PopulationRandomSearch(**{"hypermodel": small(), "directory": tmp_path, **arguments})


@needs_loops
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"x": np.zeros((3, 7))},
            r"`x` must hold inputs of .* \(8, 8, 1\). Received: shape=\(3, 7",
        ),
        ({"y": [0, 1]}, "`y` must hold one class number for each input. Received: .* for 3 inp"),
        ({"y": [0, 1, 10]}, "`y` must hold class numbers from 0 to 9. Received: 0 to 10"),
        ({"y": [0, 1.5, 2]}, "`y` must hold class numbers from 0 to 9. Received: 1.5"),
        ({"y": [0, np.nan, 2]}, "`y` must be .* finite numbers. Received: .* float64 with NaN"),
        ({"y": ["a", "b", "c"]}, "`y` must be an array of finite numbers. Received: .*U1"),
        ({"x": np.full((3, 8, 8), "a")}, "`x` must be an array of finite numbers. .*U1"),
        ({"x": [[1], [1, 2]]}, "`x` must be an array of finite numbers. .*object"),
        ({"validation_data": 5}, "`validation_data` must be a pair .* validation_data=5"),
        ({"epochs": 0}, "`epochs` must be a positive integer. Received: epochs=0"),
        ({}, "`objective` must be one of loss, accuracy; those with `val_` need `validation_"),
    ],
)
def test_bad_arguments_of_search(changes, message, tmp_path):
    search = PopulationRandomSearch(small(), "val_loss", directory=tmp_path)
    arguments = {"x": np.zeros((3, 8, 8, 1)), "y": [0, 1, 2], **changes}
    with pytest.raises(ValueError, match=message):
        search.search(**arguments)


@needs_loops
@pytest.mark.parametrize(
    ("fitting", "trials", "size"), [(1000, 100, 100), (30, 100, 25), (99, 100, 50), (0, 7, 1)]
)
def test_populations_fill_the_memory_evenly(fitting, trials, size, monkeypatch):
    need = memory.bytes_per_trial(small(), 128)
    free = (fitting + 0.5) * need / memory.SHARE
    monkeypatch.setattr(memory.shim, "accelerator_memory", lambda: free)
    assert memory.population_size(small(), 128, trials) == size


@needs_loops
def test_the_state_on_disk_is_json_that_keras_tuner_reads(searched):
    stock = keras_tuner.oracles.RandomSearchOracle("val_loss", 6)
    stock._set_project_dir(searched.directory, searched.project_name)
    stock.reload()
    assert sorted(stock.trials) == sorted(searched.oracle.trials)
    assert stock.end_order == list("012345")
