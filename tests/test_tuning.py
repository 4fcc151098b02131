"""The search space, training in populations, and the tuner around it."""

import keras
import keras_tuner
import numpy as np
import pytest
from helpers import all_but, needs_populations
from keras_tuner.errors import FailedTrialError

from highway_keras import data, models
from highway_keras.results import read_rows
from highway_keras.tuning import (
    HighwayHyperModel,
    PopulationRandomSearch,
    oracle,
    read_searches,
    run_searches,
    searches,
    tuner,
)
from highway_keras.tuning.population import Images, Population
from highway_keras.tuning.weights import assign, draw, initial_state, part_of, stacked
from highway_keras.util.files import BusyError, folder_lock

KINDS = ("highway", "plain", "residual")
EPOCHS, BATCH = 2, 32


@pytest.fixture(scope="module")
def images():
    return data.load("digits", limit=150)


@pytest.fixture(scope="module")
def digits(images):
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
    space = space_of(small())
    assert space["activation"].values == ["relu", "tanh"]
    bias = space["transform_bias"]
    assert (bias.min_value, bias.max_value, bias.sampling) == (-10, -1, "linear")
    rate, momentum = space["learning_rate"], space["one_minus_momentum"]
    assert (rate.min_value, rate.max_value) == (1e-3, pytest.approx(0.316, rel=1e-3))
    assert (momentum.min_value, momentum.max_value) == (1e-2, pytest.approx(0.501, rel=1e-3))
    assert rate.sampling == momentum.sampling == "log"
    assert (space["decay"].min_value, space["decay"].max_value) == (0.9, 1.0)
    for kind in ("plain", "residual"):
        assert "transform_bias" not in space_of(small(kind))
    space = space_of(small(decay=(0.99, 1.0), activations="tanh"))
    assert space["decay"].min_value == 0.99 and space["activation"].values == ["tanh"]


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
    wrong = {"depth": 1, "kind": "wide", "units": 0, "classes": 0, "activations": "gelu"}
    for name, value in (wrong | {"one_minus_momentum": (0.1, 2)}).items():
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
    return Population(kind, values, stacked(starts), cohort_size=len(trials))  # as on a GPU


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
        measured = [*trained.train(Images(x, y, BATCH), epoch, order)]
        measured += trained.evaluate(Images(x_val, y_val, BATCH))
        model.optimizer.learning_rate = VALUES[1]["learning_rate"] * 0.9**epoch
        logs = model.fit(
            x[order], y[order], BATCH, shuffle=False, validation_data=(x_val, y_val), verbose=0
        )
        expected = [logs.history[k][0] for k in ("loss", "accuracy", "val_loss", "val_accuracy")]
        np.testing.assert_allclose([column[1] for column in measured], expected, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_weights_are_distributed_as_those_of_keras(kind):
    hypermodel = HighwayHyperModel(20, kind, input_shape=(400,), units=20)
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
    curves = losses(sick, images)
    assert np.isnan(curves[:, 1]).all()
    np.testing.assert_array_equal(curves[:, [0, 2]], sound[:, [0, 2]])
    sick.keep(np.array([True, True, True]))
    frozen = part_of(sick.state(), "best")
    losses(sick, images)
    for key, weight in part_of(sick.state(), "weights").items():
        np.testing.assert_array_equal(weight[:, 1], frozen[key][:, 1])


# The tuner


def make(path, hypermodel=None, **arguments):
    if keras.backend.backend() == "torch":
        pytest.skip("populations need TensorFlow or JAX")
    defaults = {"objective": "val_loss", "max_trials": 6, "population": 3}
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


def test_curves_and_models_are_keras_tuners(searched, digits):
    for trial in searched.oracle.trials.values():
        assert trial.status == "COMPLETED"
        for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
            assert [point.step for point in trial.metrics.get_history(name)] == [0, 1]
    # Also from the folder, in another process
    for search in (searched, make(searched.directory)):
        models, trials = search.get_best_models(2), search.oracle.get_best_trials(6)
        scores = [trial.score for trial in trials]
        assert scores == sorted(scores)
        for model, trial in zip(models, trials[:2], strict=True):
            loss, _ = model.evaluate(*digits[2:], verbose=0)
            assert loss == pytest.approx(trial.score, rel=1e-4)
            rate = trial.hyperparameters["learning_rate"]
            assert float(model.optimizer.learning_rate) == pytest.approx(rate)


def test_only_the_states_of_the_best_stay(tmp_path, digits, monkeypatch):
    monkeypatch.setattr(oracle, "KEPT_MODELS", 2)
    search = train(make(tmp_path, population=1), digits)
    ranked = search.oracle.get_best_trials(6)
    assert len(search.get_best_models(2)) == len(list(tmp_path.glob("*/state-*.npz"))) == 2
    with pytest.raises(ValueError, match=f"Trial {ranked[-1].trial_id} has no weights"):
        search.load_model(ranked[-1])


def drawn(oracle):
    oracle.verbose = 0
    trials = [oracle.create_trial(f"slot-{number}") for number in range(6)]
    return [trial.hyperparameters.values for trial in trials]


@pytest.mark.parametrize(("seed", "of_stock"), [(0, 1), (5, 5)])
def test_hyperparameters_are_those_of_the_stock_tuner(seed, of_stock, tmp_path):
    stock = keras_tuner.RandomSearch(small(), "val_loss", 6, seed=of_stock, directory=tmp_path)
    search = make(tmp_path, project_name="ours", seed=seed)
    search.oracle.begin({"epochs": 1})
    assert drawn(search.oracle) == drawn(stock.oracle)


@needs_populations
def test_the_seed_decides_orders_by_epoch_and_starts_by_trial(tmp_path, digits, monkeypatch):
    orders, starts, train_epoch = set(), set(), Population.train

    def spied(self, images, epoch, order):
        orders.add(tuple(order))
        return train_epoch(self, images, epoch, order)

    def drawn_from(hypermodel, values, seed):
        starts.add(tuple(seed))
        return draw(hypermodel, values, seed)

    monkeypatch.setattr(Population, "train", spied)
    monkeypatch.setattr(tuner, "draw", drawn_from)
    for seed in (0, 1):
        train(make(tmp_path / str(seed), max_trials=2, seed=seed), digits)
    assert len(orders) == 2 * EPOCHS
    assert starts == {(seed, trial) for seed in (0, 1) for trial in (0, 1)}


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


def test_a_search_continues_with_its_own_settings_and_images_only(tmp_path, digits):
    late = make(tmp_path, max_trials=1)
    train(make(tmp_path, max_trials=1), digits)
    before = (tmp_path / "untitled_project" / "search.json").read_bytes()
    x, y, *held_out = digits
    cases = [  # the setting that the message names, what differs
        ("depth", {"hypermodel": HighwayHyperModel(5, input_shape=(8, 8, 1), units=6)}, digits),
        ("units", {"hypermodel": HighwayHyperModel(4, input_shape=(8, 8, 1), units=7)}, digits),
        ("kind", {"hypermodel": small("plain")}, digits),
        ("space.decay", {"hypermodel": small(decay=(0.95, 1.0))}, digits),
        ("seed", {"seed": 1}, digits),
        ("objective", {"objective": "val_accuracy"}, digits),
        ("images", {}, (256 * x, y, *held_out)),
        ("images", {}, (x[::-1], y, *held_out)),
        ("images", {}, (x, (y + 1) % 10, *held_out)),
        ("val_images", {}, (x, y, x[:20], y[:20])),
    ]
    for name, changes, others in cases:
        with pytest.raises(ValueError, match=rf"[( ]{name}:"):
            train(make(tmp_path, max_trials=1, **changes), others)
    with pytest.raises(ValueError, match="batch_size:"):
        train(make(tmp_path, max_trials=1), digits, batch_size=16)
    train(make(tmp_path, max_trials=1), digits)
    assert (tmp_path / "untitled_project" / "search.json").read_bytes() == before
    train(make(tmp_path, max_trials=2), digits)
    train(late, digits)  # made before others went on
    assert len(late.oracle.trials) == 2


def test_the_search_of_another_tuner_is_left_alone(tmp_path):
    keras_tuner.RandomSearch(small(), "loss", max_trials=2, directory=tmp_path).save()
    with pytest.raises(ValueError, match="project_name"):
        make(tmp_path)


# Hypermodels of a user's own

SIZES = {"input_shape": (6,), "classes": 3, "units": 5}
X, Y = np.random.default_rng(0).standard_normal((40, 6)), np.arange(40) % 3


def test_a_finite_space_is_drawn_once(tmp_path):
    class Three(HighwayHyperModel):
        def declare_hyperparameters(self, hp):
            hp.Choice("learning_rate", (0.3, 0.1, 0.03))
            for name, value in {**VALUES[0], "learning_rate": 0}.items():
                hp.Fixed(name, value)
            return super().declare_hyperparameters(hp)

    search = make(tmp_path, Three(3, **SIZES), objective="loss", rungs={1: 2})
    search.search(X, Y, epochs=2, verbose=0)
    trained = [len(t.metrics.get_history("loss")) for t in search.oracle.trials.values()]
    assert sorted(trained) == [1, 2, 2]


def test_overwrite_begins_anew_unless_another_process_searches_there(tmp_path):
    hypermodel = HighwayHyperModel(2, "plain", **SIZES)
    search = make(tmp_path, hypermodel, objective="loss")
    search.search(X, Y, epochs=1, verbose=0)
    with folder_lock(search.folder), pytest.raises(BusyError):
        make(tmp_path, hypermodel, objective="loss", overwrite=True)
    assert make(tmp_path, hypermodel, objective="loss").oracle.trials
    assert not make(tmp_path, hypermodel, objective="loss", overwrite=True).oracle.trials


ROWS = np.zeros((3, 8, 8, 1))


class Scalar(HighwayHyperModel):
    def build(self, hp):
        raise NotImplementedError


BAD = [  # the error, the argument it names, arguments of the tuner, of `search`
    (TypeError, "`hypermodel`", {"hypermodel": len}, {}),
    (TypeError, "`hypermodel`.*keras_tuner", {"hypermodel": Scalar(3)}, {}),
    (TypeError, "executions_per_trial", {"executions_per_trial": 2}, {}),
    (TypeError, "callbacks", {}, {"callbacks": []}),
    (ValueError, "seed", {"seed": -1}, {}),
    (ValueError, "max_trials", {"max_trials": 0}, {}),
    (ValueError, "population", {"population": 0}, {}),
    (ValueError, "rungs", {"rungs": {2: 6}}, {}),
    (ValueError, "rungs", {"rungs": {2: 3, 1: 2}}, {}),
    (ValueError, "`epochs`", {"rungs": {2: 3}}, {"epochs": 2}),
    (ValueError, "`x`", {}, {"x": np.zeros((3, 7))}),
    (ValueError, "`x`", {}, {"x": ROWS[:0], "y": []}),
    (ValueError, "`x`", {}, {"x": ROWS[:2]}),
    (ValueError, "`y`", {}, {"y": [0, 1, 10]}),
    (ValueError, "`epochs`", {}, {"epochs": 0}),
    (ValueError, "`validation_data`.*val_loss", {"objective": "val_loss"}, {}),
    (ValueError, "`objective`.*'val_accuracy'", {"objective": "f1"}, {}),
]


@pytest.mark.parametrize(("error", "name", "of_tuner", "of_search"), BAD)
def test_bad_arguments(error, name, of_tuner, of_search, tmp_path):
    with pytest.raises(error, match=name):
        search = make(tmp_path, **{"objective": "loss", **of_tuner})
        search.search(**{"x": ROWS, "y": [0, 1, 2], **of_search})


# Searches of the paper


@needs_populations
def test_searches_leave_files_that_read_back(tmp_path, images):
    networks = [HighwayHyperModel(depth, "plain", (8, 8, 1)) for depth in (2, 3)]
    size = {"max_trials": 3, "epochs": 3, "out": tmp_path, "rungs": {1: 2}, "verbose": 0}
    size["objective"] = "val_accuracy"
    folders = run_searches(images, networks, **size)
    assert [folder.name for folder in folders] == ["thin-plain-2", "thin-plain-3"]
    searches = read_searches(tmp_path)
    assert [(one.kind, one.depth, one.folder) for one in searches] == [
        ("plain", depth, folder) for depth, folder in zip((2, 3), folders, strict=True)
    ]
    search = searches[1]
    scores = [trial.score for trial in search.trials]
    assert (
        search.settings["epochs"] == 3
        and search.settings["rungs"] == "1:2"
        and search.machine["hardware"]
    )
    assert len(scores) == 3 and scores == sorted(scores, reverse=True)
    assert sorted(len(trial.losses) for trial in search.trials) == [1, 3, 3]
    rows = read_rows(search.folder / "trials.csv")
    assert [(row["kind"], row["depth"], row["trial"]) for row in rows] == [
        ("plain", "3", trial.number) for trial in search.trials
    ]
    assert [float(row["score"]) for row in rows] == scores
    best = models.load(search.folder)
    assert not best.network.compiled
    assert best.dataset == "digits" and best.class_names == images.class_names
    classes = best.model.predict(images.x_val, verbose=0).argmax(axis=-1)
    assert np.mean(classes == images.y_val) == pytest.approx(scores[0])
    with pytest.raises(ValueError, match="`folder`"):
        read_searches(tmp_path / "thin-plain-2")
    with pytest.raises(ValueError, match="`out`"):
        run_searches(images, networks, **size)
    run_searches(images, networks[:1], **{**size, "max_trials": 4, "resume": True})
    assert [len(one.trials) for one in read_searches(tmp_path)] == [4, 3]


@needs_populations
def test_results_are_written_before_another_process_may_continue(tmp_path, images, monkeypatch):
    writes = []

    def write(path, rows):
        with pytest.raises(BusyError), folder_lock(path.parent, seconds=0):
            pass
        writes.append(path.name)

    monkeypatch.setattr(searches, "write_rows", write)
    (folder,) = run_searches(
        images,
        [HighwayHyperModel(2, "plain", (8, 8, 1))],
        max_trials=1,
        epochs=1,
        out=tmp_path,
        verbose=0,
    )
    assert writes == ["trials.csv"] and (folder / "best.keras").exists()


@needs_populations
def test_processes_share_one_search_at_a_time(tmp_path, images, monkeypatch):
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    with pytest.raises(ValueError, match="one depth"):
        run_searches(images, [HighwayHyperModel(depth) for depth in (2, 3)], out=tmp_path)


# Progress


def test_progress_is_a_bar_of_keras_for_each_population(tmp_path, digits, capsys):
    search = make(tmp_path, rungs={1: 4})
    x, y, *held_out = digits
    search.search(x, y, held_out, EPOCHS, BATCH)
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    expected = ["1 to 3 of 6, to epoch 1", "4 to 6 of 6, to epoch 1"]
    expected += ["1 to 3 of 4, to epoch 2", "4 to 4 of 4, to epoch 2"]
    assert lines[::2] == [f"untitled_project: trials {which}" for which in expected]
    assert all("1/1" in bar and "best val_loss" in bar for bar in lines[1::2])
