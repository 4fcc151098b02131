"""Recipes, the authors' solver, and what a training run leaves behind."""

import csv
import dataclasses
import json
import warnings

import h5py
import keras
import numpy as np
import pytest
from keras import ops

from highway_keras import ConvHighway2D, HighwayStack, data, models, training
from highway_keras.training import RECIPES, CaffeSGD, Recipe, get_recipe
from highway_keras.training.batches import MOST_STEPS, array_batches, plan_steps
from highway_keras.training.callbacks import EpochSeeds
from highway_keras.training.engines.devices import engine
from highway_keras.training.optimizer import from_recipe

SMALL = {"limit": 128, "model_options": {"depth": 3}, "verbose": 0}


def small_fit(out, **changes):
    return training.fit("thin-highway-10", "digits", out=out, **{**SMALL, "epochs": 3, **changes})


def weights(path):
    return keras.models.load_model(path).get_weights()


def assert_equal_weights(first, second):
    for one, other in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(one, other)


# Recipes

OPEN = "open"
AUTHORS = {
    "mnist": {
        "learning_rate": 0.01,
        "epochs": 300,
        "decay_epochs": (100, 200),
        "preprocessing": ("scale",),
        "augmentation": (),
    },
    "cifar": {
        "learning_rate": 0.025,
        "epochs": 400,
        "decay_epochs": (200, 300, 350),
        "preprocessing": OPEN,  # contrast and mean image, of a deviation that they do not give
        "augmentation": ("crop8", "mirror"),
    },
}
AUTHORS_BOTH = {"batch_size": 100, "momentum": 0.9, "nesterov": True, "schedule": "steps"}
AUTHORS_BOTH |= {"decay": 0.1, "l2": 0.001, "classifier_l2": 10, "bias_rate": 2, "validation": 0}
AUTHORS_BOTH |= {"clip_norm": None, "dropout": 1, "kernel_initializer": None}
SGD = {"dtype_policy": "float32", "optimizer": "sgd", "warmup": 0, "weight_decay": 0}
AUTHORS_BOTH |= SGD
# Of the thin networks the paper says so much: SGD with momentum, a rate that decays exponentially,
# the axis of Figure 1, normalized starts. It names no penalty, and what it searched over is open.
THIN = {"epochs": 400, "schedule": "exponential", "decay_epochs": (), "kernel_initializer": None}
THIN |= {"nesterov": False, "augmentation": (), "clip_norm": None, "dropout": 1, "l2": 0}
THIN |= {"classifier_l2": 10, "bias_rate": 1, **SGD}
THIN |= dict.fromkeys(("batch_size", "learning_rate", "momentum", "decay"), OPEN)
THIN |= dict.fromkeys(("preprocessing", "validation"), OPEN)
FOLLOWS = {"thin": THIN, "digits": THIN}
FOLLOWS |= {name: {**AUTHORS_BOTH, **AUTHORS["mnist"]} for name in ("quick", "modern-mnist")}
FOLLOWS |= {name: {**AUTHORS_BOTH, **AUTHORS["cifar"]} for name in ("modern-cifar", "fitnet")}
FOLLOWS |= {"modern-fitnet": FOLLOWS["modern-cifar"]}


@pytest.mark.parametrize("name", AUTHORS)
def test_the_authors_solvers(name):
    recipe = dataclasses.asdict(get_recipe(name))
    expected = {**AUTHORS_BOTH, **AUTHORS[name]}
    departures = {key for key in expected if recipe[key] != expected[key]}
    assert departures == set(recipe["reasons"]) == {k for k in expected if expected[k] == OPEN}


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in AUTHORS])
def test_every_number_is_the_authors_unless_a_reason_says_why_not(name):
    recipe = get_recipe(name)
    numbers = {field.name for field in dataclasses.fields(Recipe)} - {"name", "source", "reasons"}
    if recipe.schedule == "cosine":  # it has neither: the reason is that of the schedule
        numbers -= {"decay", "decay_epochs"}
    departures = {key for key in numbers if getattr(recipe, key) != FOLLOWS[name][key]}
    assert departures == set(recipe.reasons)


@pytest.mark.parametrize(
    ("name", "images", "drops"),
    [
        ("mnist", 60_000, [60_000, 120_000, 180_000]),
        ("cifar", 50_000, [100_000, 150_000, 175_000, 200_000]),
    ],
)
def test_epochs_are_the_authors_iterations(name, images, drops):
    recipe = get_recipe(name)
    steps, _, batch = plan_steps(images, recipe.batch_size)
    assert batch == 100
    assert [steps * epoch for epoch in (*recipe.decay_epochs, recipe.epochs)] == drops


def test_the_authors_solver_keeps_the_loss_of_table_3_in_range():
    """From their start it reaches 9e15 in the fourth step with images of deviation 1."""
    rng = np.random.default_rng(0)
    x = np.kron(rng.integers(0, 256, (20, 8, 8, 3)), np.ones((1, 4, 4, 1))).astype("uint8")
    recipe = get_recipe(models.get("highway-gap-10").recipe)
    x, y = data.preprocessor(recipe.preprocessing, x)(x), rng.integers(0, 10, 20)
    keras.utils.set_random_seed(0)
    network = models.create("highway-gap-10")
    network.compile(from_recipe(recipe, steps=500), "sparse_categorical_crossentropy")
    first, *later = [network.train_on_batch(x, y) for _ in range(5)]
    assert max(later) < first


def test_thin_nets_decay_exponentially():
    assert {get_recipe(name).schedule for name in ("thin", "digits")} == {"exponential"}


def test_every_recipe_says_its_name_and_source():
    for name, recipe in RECIPES.items():
        assert recipe.name == name and recipe.source and all(recipe.reasons.values())


def test_every_card_names_a_recipe():
    assert {models.get(name).recipe for name in models.list_models()} <= set(RECIPES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "`epochs` must be a positive integer. Received: epochs=0"),
        ({"epochs": 2.5}, "`epochs` must be a positive integer"),
        ({"batch_size": True}, "`batch_size` must be a positive integer"),
        ({"learning_rate": -0.1}, "`learning_rate` must be a number above 0. Received: .*=-0.1"),
        ({"learning_rate": float("nan")}, "`learning_rate` must be a number above 0"),
        ({"learning_rate": float("inf")}, "`learning_rate` must be a number above 0"),
        ({"learning_rate": "fast"}, "`learning_rate` must be a number"),
        ({"momentum": 1}, "`momentum` must be a number of at least 0 and below 1. Received: .*=1"),
        ({"decay": 0}, "`decay` must be a number above 0"),
        ({"l2": -1e-3}, "`l2` must be a number of at least 0"),
        ({"classifier_l2": None}, "`classifier_l2` must be a number"),
        ({"bias_rate": -1}, "`bias_rate` must be a number of at least 0"),
        ({"validation": 1.0}, "`validation` must be a number of at least 0 and below 1"),
        ({"nesterov": "yes"}, "`nesterov` must be True or False. Received: nesterov='yes'"),
        (
            {"kernel_initializer": 3},
            "must be the name of a Keras .* Received: kernel_initializer=3",
        ),
        ({"optimizer": "adam"}, "one of 'sgd', 'adamw', 'muon'. Received: optimizer='adam'"),
        (
            {"weight_decay": 0.1},
            "`weight_decay` must stay 0.0 with optimizer='sgd' .* Received: .*0.1",
        ),
        ({"optimizer": "adamw", "l2": 0.1}, "`l2` must stay 0.0 with optimizer='adamw' .*l2=0.1"),
        ({"optimizer": "muon", "bias_rate": 2}, "`bias_rate` must stay 1.0 with optimizer='muon'"),
        (
            {"optimizer": "adamw", "decay": 1.0, "momentum": 0.1},
            "`momentum` must stay 0.9 with optimizer='adamw' .* Received: momentum=0.1",
        ),
        ({"schedule": "cosine"}, "`decay` must stay 1.0 with .*'cosine'.* Received: decay=0.8"),
        ({"decay_epochs": (6, 8)}, r"`decay_epochs` must stay \(\) with .*'exponential'"),
        ({"warmup": 1}, "`warmup` must stay 0.0 with .*'exponential'.* Received: warmup=1"),
        (
            {"schedule": "cosine", "decay": 1.0, "warmup": 11},
            "at most the number of epochs, 10.*warmup=11",
        ),
        ({"schedule": "linear"}, "`schedule` must be one of"),
        ({"decay_epochs": 60}, "`decay_epochs` must be a tuple of rising .* Received: .*=60"),
        ({"decay_epochs": (20, 10)}, "`decay_epochs` must be a tuple of rising"),
        ({"decay_epochs": (0.5,)}, "`decay_epochs` must be a tuple of rising"),
        ({"learning_rte": 1, "self": 2}, "Received: learning_rte, self. Known: .*learning_rate"),
    ],
)
def test_bad_overrides(changes, message):
    with pytest.raises(ValueError, match=message):
        get_recipe("thin").override(**changes)


def test_override_leaves_the_recipe_as_it_was():
    assert get_recipe("thin").override(epochs=7).epochs == 7 != get_recipe("thin").epochs


def test_choose_recipe():
    assert training.choose_recipe(None, "highway-b").name == "cifar"
    assert training.choose_recipe(None, "thin-plain-50", "digits").name == "digits"
    assert training.choose_recipe("quick", "thin-plain-50", "digits").name == "quick"
    with pytest.raises(ValueError, match=r"one of 'thin', 'digits'.* Received: recipe='slow'"):
        training.choose_recipe("slow", "highway-b")


EXPONENTIAL = get_recipe("thin").override(learning_rate=0.02, decay=0.95)
CONSTANT = get_recipe("mnist").override(decay_epochs=())


@pytest.mark.parametrize(
    ("recipe", "epoch_rates"),
    [
        ("mnist", {0: 0.01, 99: 0.01, 100: 0.001, 199: 0.001, 200: 0.0001, 299: 0.0001}),
        ("cifar", {0: 0.025, 199: 0.025, 200: 0.0025, 300: 2.5e-4, 349: 2.5e-4, 350: 2.5e-5}),
        (CONSTANT, {0: 0.01, 299: 0.01}),
        (EXPONENTIAL, {0: 0.02, 1: 0.02 * 0.95, 10: 0.02 * 0.95**10}),
    ],
)
def test_rates_by_epoch(recipe, epoch_rates):
    steps = 7
    recipe = training.choose_recipe(recipe, "highway-a")
    optimizer = from_recipe(recipe, steps)
    for epoch, rate in epoch_rates.items():
        for step in (0, steps - 1):
            optimizer.iterations.assign(epoch * steps + step)
            assert float(optimizer.learning_rate) == pytest.approx(rate, rel=1e-5), (epoch, step)


def test_cosine_ends_at_zero():
    recipe = get_recipe("quick").override(epochs=4)
    optimizer = from_recipe(recipe, steps=10)
    rates = []
    for step in (0, 20, 40):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))
    assert rates == pytest.approx([recipe.learning_rate, recipe.learning_rate / 2, 0], abs=1e-6)


def test_warmup_rises_to_the_rate_before_the_cosine():
    recipe = get_recipe("quick").override(epochs=4, warmup=1.5)
    optimizer = from_recipe(recipe, steps=10)
    rates = []
    for step in (0, 6, 15, 40):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))
    assert rates == pytest.approx(
        [0, 0.4 * recipe.learning_rate, recipe.learning_rate, 0], abs=1e-6
    )


def test_warmup_may_fill_the_whole_training():
    recipe = get_recipe("quick").override(epochs=1, warmup=1)
    optimizer = from_recipe(recipe, steps=10)
    optimizer.iterations.assign(5)
    assert float(optimizer.learning_rate) == pytest.approx(recipe.learning_rate / 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": "exponential", "decay": 0.5},
        {"schedule": "cosine", "decay": 1.0},
        {"schedule": "steps", "decay_epochs": (1, 2)},
        {"schedule": "steps"},
    ],
    ids=["exponential", "cosine", "steps", "constant"],
)
def test_a_whole_rate_falls_like_any_other(changes):
    def rates(rate):
        recipe = get_recipe("thin").override(learning_rate=rate, epochs=3, **changes)
        optimizer = from_recipe(recipe, steps=10)
        for step in (0, 5, 12, 29):
            optimizer.iterations.assign(step)
            yield float(optimizer.learning_rate)

    expected = [*rates(1.0)]
    assert [*rates(1)] == expected == [*rates(np.float32(1))]
    assert (len({*expected}) > 1) == (changes != {"schedule": "steps"})


@pytest.mark.parametrize("make", [lambda: ConvHighway2D(4, 3), lambda: HighwayStack(2)])
@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_weight_decay_is_the_recipes_for_kernels_of_any_rank(kind, make):
    changes = {"optimizer": kind, "weight_decay": 0.5, "learning_rate": 0.1, "decay": 1}
    optimizer = from_recipe(get_recipe("thin").override(**changes), steps=10)
    layer = make()
    layer.build((None, 8, 8, 4) if isinstance(layer, ConvHighway2D) else (None, 4))
    kernel = ops.convert_to_numpy(layer.kernel)
    optimizer.build(layer.trainable_variables)
    optimizer.apply([ops.zeros(v.shape) for v in layer.trainable_variables])
    np.testing.assert_allclose(ops.convert_to_numpy(layer.kernel), 0.95 * kernel, rtol=1e-6)


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_normalization_is_not_penalized(kind):
    changes = {"l2": 0.5, "bias_rate": 1.0} if kind == "sgd" else {"weight_decay": 0.5}
    changes |= {"optimizer": kind, "learning_rate": 0.1, "decay": 1}
    optimizer = from_recipe(get_recipe("thin").override(**changes), steps=10)
    layer = keras.layers.LayerNormalization(beta_initializer="ones")
    layer.build((None, 4))
    optimizer.build(layer.trainable_variables)
    optimizer.apply([ops.zeros(4), ops.zeros(4)])
    np.testing.assert_array_equal(layer.get_weights(), np.ones((2, 4)))


@pytest.mark.parametrize("kind", [keras.optimizers.AdamW, keras.optimizers.Muon])
def test_weight_decay_spares_biases(kind):
    changes = {"optimizer": kind.__name__.lower(), "weight_decay": 0.5, "clip_norm": 2.0}
    changes |= {"learning_rate": 0.1, "decay": 1}
    optimizer = from_recipe(get_recipe("thin").override(**changes), steps=10)
    assert isinstance(optimizer, kind) and optimizer.global_clipnorm == 2.0
    layer = keras.layers.Dense(3, bias_initializer="ones")
    layer.build((None, 4))
    kernel, bias = layer.get_weights()
    optimizer.build(layer.trainable_variables)
    optimizer.apply([keras.ops.zeros((4, 3)), keras.ops.zeros(3)])
    after, bias_after = layer.get_weights()
    np.testing.assert_allclose(after, 0.95 * kernel, rtol=1e-6)
    np.testing.assert_array_equal(bias_after, bias)


# The solver


def caffe_sgd(values, gradients, velocity, rate, momentum, nesterov, l2, classifier_l2, bias_rate):
    """One update as Caffe writes it (sgd_solver.cpp, nesterov_solver.cpp), in float64, in place.

    Its history has the other sign, and its Nesterov another form, than Keras's.
    """
    for name, w in values.items():
        is_bias = name.endswith("bias")
        decay = 0 if is_bias else l2 * (classifier_l2 if name.startswith("predictions/") else 1)
        local_rate = rate * (bias_rate if is_bias else 1)
        before = velocity[name].copy()
        velocity[name] *= momentum
        velocity[name] += local_rate * (gradients[name] + decay * w)
        step = velocity[name]
        w -= (1 + momentum) * step - momentum * before if nesterov else step


@pytest.mark.parametrize(("nested", "implementation"), [(False, "layers"), (True, "stack")])
@pytest.mark.parametrize(
    ("momentum", "nesterov", "l2", "classifier_l2", "bias_rate"),
    [
        (0.0, False, 0.0, 10, 1),
        (0.9, False, 0.1, 10, 2),
        (0.9, True, 0.1, 10, 2),
        (0.5, True, 0.2, 3, 0.5),
    ],
)
def test_sgd_is_caffes(nested, implementation, momentum, nesterov, l2, classifier_l2, bias_rate):
    settings = {"momentum": momentum, "nesterov": nesterov, "l2": l2}
    settings |= {"classifier_l2": classifier_l2, "bias_rate": bias_rate}
    sizes = {"units": 4, "input_shape": (5,), "classes": 3}
    network = models.thin_mlp(3, implementation=implementation, **sizes)
    model = keras.Sequential([keras.Input((5,)), network]) if nested else network
    rates = [0.1, 0.1, 0.03, 0.03, 0.01]
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.03, 0.01])
    optimizer = CaffeSGD(schedule, **settings)
    variables = model.trainable_variables
    names = ["/".join(v.path.split("/")[-2:]) for v in variables]
    highway = "highway_x2" if implementation == "stack" else "highway_1"
    assert {"plain/bias", f"{highway}/transform_bias", "predictions/kernel"} < set(names)
    rng = np.random.default_rng(0)
    values = [ops.convert_to_numpy(v).astype(float) for v in variables]
    values = dict(zip(names, values, strict=True))
    velocity = {n: np.zeros_like(v) for n, v in values.items()}
    for rate in rates:
        gradients = {n: rng.standard_normal(v.shape) for n, v in values.items()}
        optimizer.apply([ops.convert_to_tensor(gradients[n], "float32") for n in names], variables)
        caffe_sgd(values, gradients, velocity, rate, **settings)
    for name, variable in zip(names, variables, strict=True):
        np.testing.assert_allclose(
            ops.convert_to_numpy(variable), values[name], rtol=1e-5, atol=1e-6, err_msg=name
        )


def test_sgd_limits_the_norm_of_all_gradients_together():
    start, gradients = [np.ones(2), np.ones((2, 2))], [np.full(2, 3.0), np.full((2, 2), 4.0)]
    norm = np.sqrt(2 * 9 + 4 * 16)
    for most, factor in ((1.0, 1 / norm), (2 * norm, 1.0), (None, 1.0)):
        variables = [keras.Variable(value, dtype="float32") for value in start]
        optimizer = CaffeSGD(0.1, clip_norm=most)
        optimizer.apply([ops.convert_to_tensor(g, "float32") for g in gradients], variables)
        for variable, value, gradient in zip(variables, start, gradients, strict=True):
            moved = value - 0.1 * factor * gradient
            np.testing.assert_allclose(ops.convert_to_numpy(variable), moved, rtol=1e-6)


def test_a_limit_leaves_weights_without_a_gradient_alone():
    kept, moved = variables = [keras.Variable([3.0]), keras.Variable([3.0])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras's, that a gradient is missing
        CaffeSGD(0.1, clip_norm=1.0).apply([None, ops.convert_to_tensor([5.0])], variables)
    np.testing.assert_allclose([*map(float, ops.concatenate([kept, moved]))], [3.0, 2.9])


def test_sgd_goes_through_its_config():
    optimizer = CaffeSGD(
        0.3, momentum=0.8, nesterov=True, l2=0.02, classifier_l2=5, bias_rate=3, clip_norm=2.0
    )
    config = keras.optimizers.serialize(optimizer)
    assert keras.optimizers.deserialize(config).get_config() == optimizer.get_config()
    with pytest.raises(ValueError, match=r"`l2` must be a number of at least 0. Received: l2=-1"):
        CaffeSGD(l2=-1)
    with pytest.raises(ValueError, match="`clip_norm` must be a number above 0, or None for no"):
        CaffeSGD(clip_norm=0)


# Batches


def test_plan_steps():
    for images in [*range(1, 500), 1294, 1438, 45_000, 50_000, 54_000, 60_000]:
        for batch_size in (1, 32, 100, 128):
            steps, steps_a_call, batch = plan_steps(images, batch_size)
            assert batch == min(images, batch_size)
            assert steps % steps_a_call == 0 and 1 <= steps_a_call <= MOST_STEPS
            assert 0.99 * (images // batch) <= steps <= images // batch
    assert plan_steps(54_000, 128) == (420, 30, 128)  # not 421, a prime
    assert plan_steps(10, 32) == (1, 1, 10)


@pytest.fixture(params=[engine().batches, array_batches], ids=["backend", "numpy"])
def epochs_of(request):
    """A function that returns the images of `count` epochs of 7 steps of 3 of 23 images."""

    def epochs(count, seed=0, first_epoch=0):
        x, y = np.arange(23, dtype="float32")[:, None], np.arange(23)
        endless = iter(request.param(x, y, 7, 3, seed, first_epoch))
        found = []
        for _ in range(count):
            pairs = [next(endless) for _ in range(7)]
            images, labels = (np.concatenate([np.asarray(p[i]) for p in pairs]) for i in (0, 1))
            np.testing.assert_array_equal(images[:, 0], labels)
            found.append(labels.tolist())
        return found

    return epochs


def test_an_epoch_holds_no_image_twice(epochs_of):
    for epoch in epochs_of(5):
        assert len(epoch) == len(set(epoch)) == 21


def test_what_an_epoch_leaves_out_differs(epochs_of):
    assert set().union(*epochs_of(5)) == set(range(23))


def test_order_depends_on_seed_and_epoch_alone(epochs_of):
    first = epochs_of(4)
    assert first == epochs_of(4)
    assert first[2:] == epochs_of(2, first_epoch=2)
    orders = [tuple(epoch) for epoch in first + epochs_of(4, seed=1)]
    assert len(set(orders)) == len(orders)


def test_an_epoch_repeats_its_dropout(tmp_path):
    model = models.mnist_highway(2, input_shape=(12, 12, 1))
    callbacks = keras.callbacks.CallbackList([EpochSeeds(3)], model=model)
    images = np.ones((4, 12, 12, 1), "float32")

    def outputs(epoch, calls=2):
        callbacks.on_epoch_begin(epoch)
        callbacks.on_train_batch_begin(0)
        return [ops.convert_to_numpy(model(images, training=True)) for _ in range(calls)]

    first, other = outputs(5), outputs(6)
    np.testing.assert_array_equal(first, outputs(5))
    assert not np.allclose(first[0], first[1]) and not np.allclose(first, other)
    states = [v for v in model.variables if "seed_generator" in v.path]
    callbacks.on_epoch_begin(0)
    assert len({tuple(np.asarray(state)) for state in states}) == len(states) == 4


# Runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs, with seeds 0 and 1."""
    keras.utils.set_random_seed(11)  # what went before must not matter
    out = tmp_path_factory.mktemp("two") / "runs"
    return training.fit_runs("thin-highway-10", 2, out, dataset="digits", **SMALL, epochs=3)


@pytest.fixture(scope="module")
def run(runs):
    return runs[0]


def test_equal_seeds_give_equal_runs(run, tmp_path):
    again = small_fit(tmp_path / "again")
    assert again.history == run.history
    assert (again.test_accuracy, again.test_loss) == (run.test_accuracy, run.test_loss)
    assert_equal_weights(again.folder.final, run.folder.final)
    assert_equal_weights(again.folder.best, run.folder.best)


def test_other_seeds_give_other_runs(runs):
    first, second = runs
    assert [r.folder.path.name for r in runs] == ["seed-0", "seed-1"]
    assert first.history[0]["loss"] != second.history[0]["loss"]
    assert not np.array_equal(*(weights(r.folder.final)[0] for r in runs))


def test_numpy_numbers_are_numbers(run, tmp_path):
    numbers = {"epochs": np.int64(3), "limit": np.int64(128), "learning_rate": np.float64(0.1)}
    again = small_fit(tmp_path / "again", **numbers)
    assert again.history == run.history
    assert again.folder.read_json()["limit"] == 128


def test_history_is_a_row_an_epoch(run):
    with run.folder.history.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["0", "1", "2"]
    assert [{k: float(v) for k, v in row.items()} for row in rows] == run.history
    assert set(rows[0]) == {"epoch", "loss", "accuracy", "val_loss", "val_accuracy"}
    assert run.history[-1]["loss"] < run.history[0]["loss"]


def test_settings_and_results_are_written(run):
    written = json.loads(run.folder.settings.read_text())
    recipe = get_recipe("digits").override(epochs=3)
    expected = {"model": "thin-highway-10", "dataset": "digits", "limit": 128, "seed": 0}
    expected |= {"model_options": {"depth": 3}, "class_names": list("0123456789")}
    assert {key: written[key] for key in expected} == expected
    assert written["recipe"] == json.loads(json.dumps(dataclasses.asdict(recipe)))
    assert written["results"] == {
        "test_accuracy": run.test_accuracy,
        "test_loss": run.test_loss,
        "best_epoch": run.best_epoch,
        "seconds": run.seconds,
    }


def test_saved_networks_take_raw_images(run):
    images = data.load("digits")
    best = keras.models.load_model(run.folder.best)
    assert training.evaluate(best, images) == (run.test_loss, run.test_accuracy)
    right = np.argmax(best.predict(images.x_test, verbose=0), -1) == images.y_test
    assert right.mean() == pytest.approx(run.test_accuracy)


def test_the_recipes_start_reaches_the_network(tmp_path, monkeypatch):
    built = []

    def build(card, **options):
        built.append(options.pop("kernel_initializer", None))
        return models.thin_mlp(3, **options)

    monkeypatch.setattr(type(models.get("thin-highway-10")), "build", build)
    for number, (changes, options) in enumerate(
        [({}, {}), ({"kernel_initializer": "zeros"}, {}), ({}, {"kernel_initializer": "ones"})]
    ):
        run = small_fit(tmp_path / str(number), epochs=1, model_options=options, **changes)
        assert run.folder.read_json()["recipe"]["kernel_initializer"] == (
            changes.get("kernel_initializer")
        )
    both = {"kernel_initializer": "zeros", "model_options": {"kernel_initializer": "ones"}}
    small_fit(tmp_path / "both", epochs=1, **both)
    assert built == [None, "zeros", "ones", "ones"]


def test_best_and_final_are_of_their_epochs(run):
    images = data.load("digits")
    held_out = dataclasses.replace(images, x_test=images.x_val, y_test=images.y_val)
    for path, epoch in ((run.folder.best, run.best_epoch), (run.folder.final, 3)):
        _, accuracy = training.evaluate(keras.models.load_model(path), held_out)
        assert accuracy == pytest.approx(run.history[epoch - 1]["val_accuracy"], abs=1e-6)
    assert run.history[run.best_epoch - 1]["val_accuracy"] == max(
        row["val_accuracy"] for row in run.history
    )


def test_nothing_half_written_stays(run):
    assert not list(run.folder.path.rglob(".*"))


def test_tensorboard_gets_events_where_tensorflow_runs(run):
    events = list(run.folder.tensorboard.rglob("events.out.tfevents*"))
    assert bool(events) == (keras.backend.backend() == "tensorflow")


def test_everything_at_once_without_held_out_images(tmp_path):
    """The authors' recipe for CIFAR: contrast, mean image, crops, mirrors, dropout, L2."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (60, 12, 12, 3), "uint8"), np.arange(60) % 3
    np.savez(tmp_path / "small.npz", x_train=x, y_train=y, x_test=x[:20], y_test=y[:20])
    sizes = {"batch_size": 20, "epochs": 2, "model_options": {"width": 3}, "verbose": 0}
    run = training.fit(
        "mnist-highway-16", tmp_path / "small.npz", "cifar", tmp_path / "run", **sizes
    )
    assert run.best_epoch == 2 and set(run.history[0]) == {"epoch", "loss", "accuracy"}
    assert_equal_weights(run.folder.best, run.folder.final)
    steps = [layer.name for layer in keras.models.load_model(run.folder.best).layers]
    assert steps == ["preprocessor", "mnist-highway-16"]


@pytest.mark.parametrize("test_curve", [False, True])
def test_divergence_is_an_error_and_leaves_no_result(test_curve, tmp_path):
    for resume in (False, True):
        with pytest.raises(
            training.TrainingDiverged, match=r"A lower `learning_rate` helps.* Received: .*=1e\+30"
        ):
            small_fit(
                tmp_path / "run",
                learning_rate=1e30,
                model_options={"depth": 3, "activation": "relu"},
                resume=resume,
                test_curve=test_curve,
            )
        names = {path.name for path in (tmp_path / "run").iterdir()}
        assert names <= {"run.json", "machine.json", "history.csv", "tensorboard"}
        assert "results" not in json.loads((tmp_path / "run" / "run.json").read_text())
        assert training.RunFolder(tmp_path / "run").has_diverged


def test_a_run_is_not_overwritten(run):
    before = run.folder.settings.read_bytes()
    with pytest.raises(ValueError, match=r"`out` already holds a run.* Pass resume=True"):
        small_fit(run.folder.path)
    assert run.folder.settings.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed: 0 → 1"),
        ({"epochs": 9}, r"epochs: 3 → 9"),
        ({"augmentation": ["mirror"]}, r"augmentation: \[\] → \['mirror'\]"),
        ({"model_options": {"depth": 4}}, "model_options: {'depth': 3} → {'depth': 4}"),
        ({"limit": 64}, "limit: 128 → 64"),
    ],
)
def test_a_run_resumes_with_its_own_settings(run, changes, message):
    with pytest.raises(ValueError, match=f"settings differ .*{message}"):
        small_fit(run.folder.path, resume=True, **changes)


def test_words_do_not_decide_a_training(tmp_path):
    """Nor do attributes that recipes had not yet, if they have their defaults."""
    folder = training.RunFolder(tmp_path)
    recipe = dataclasses.asdict(get_recipe("digits"))
    now = {"model": "thin-highway-10", "class_names": ["cat", "dog"], "recipe": recipe}
    reworded = {"name": "old", "source": "Reworded.", "reasons": {"batch_size": "Reworded."}}
    before = {**now, "class_names": ["Cat", "Dog"], "recipe": {**recipe, **reworded}}
    before["recipe"].pop("clip_norm")
    folder.open(before, resume=False)
    folder.open(now, resume=True)
    for changes in ({"clip_norm": 1.0}, {"preprocessing": ["gcn"]}):
        with pytest.raises(ValueError, match=next(iter(changes))):
            folder.open({**now, "recipe": {**recipe, **changes}}, resume=True)
    with pytest.raises(ValueError, match=r"limit: None → 3.*or name"):
        folder.open({**now, "limit": 3}, resume=True)
    with pytest.raises(ValueError, match=r"model: 'thin-highway-10' → None"):
        folder.open({"recipe": recipe}, resume=True)


def test_resuming_an_ended_run_gives_its_result(run):
    again = small_fit(run.folder.path, resume=True)
    assert dataclasses.replace(again, seconds=0) == dataclasses.replace(
        run, folder=again.folder, seconds=0
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "`seed` must be an integer from 0 to .* Received: seed=-1"),
        ({"seed": 0.5}, "`seed` must be an integer"),
        ({"preprocessing": ("wash",)}, "`steps` must be a sequence of names from 'scale'"),
        ({"augmentation": "mirror"}, "`augmentation` must be a tuple of names of steps"),
        ({"model_options": {"depth": 0}}, "`depth` must be a positive integer"),
        ({"limit": 0}, "`limit` must be a positive integer"),
        ({"distribute": True, "test_curve": True}, "`test_curve` is recorded on one device"),
    ],
)
def test_a_mistake_leaves_no_folder(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        small_fit(tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("runs", [0, -1, 2.0, True, "3"])
def test_runs_must_be_a_positive_integer(runs):
    with pytest.raises(ValueError, match=r"`runs` must be a positive integer. Received: runs="):
        training.fit_runs("thin-highway-10", runs)


def test_summary():
    assert training.summary([0.99431]) == "99.43"
    assert training.summary([0.99, 0.98, 0.97]) == "99.00 (98.00 ± 1.00)"


def test_a_run_in_float16_resumes(tmp_path, monkeypatch):
    """Its scaled loss overflows at first, and steps that are skipped do not count as iterations."""
    monkeypatch.setenv("HOME", str(tmp_path))
    keras.config.set_dtype_policy("mixed_float16")
    dense = [keras.layers.Dense(10, "relu"), keras.layers.Dense(10, "softmax", dtype="float32")]
    flat = [keras.Input((8, 8, 1)), keras.layers.Flatten()]
    model = keras.Sequential([*flat, *dense], name="half")
    arguments = {"out": "~/run", "recipe": "digits", "limit": 64, "preprocessing": (), "verbose": 0}
    run_out = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        training.fit(model, "digits", **arguments, callbacks=[run_out], epochs=2)
    begun = []
    watch = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: begun.append(epoch))
    training.fit(model, "digits", **arguments, resume=True, epochs=2, callbacks=[watch])
    assert begun == [1]
    assert (tmp_path / "run" / "best.keras").exists()


def test_a_run_in_half_the_bits_is_saved_in_float32(tmp_path, monkeypatch):
    computed, fit = [], keras.Model.fit

    def watch(model, *arguments, **options):
        computed.append({layer.compute_dtype for layer in model.layers})
        return fit(model, *arguments, **options)

    monkeypatch.setattr(keras.Model, "fit", watch)
    keras.config.set_dtype_policy("mixed_bfloat16")  # which has no say
    sizes = {"epochs": 2, "limit": 200, "verbose": 0}
    result = training.fit(
        "thin-highway-10", "digits", out=tmp_path / "run", dtype_policy="mixed_bfloat16", **sizes
    )
    assert keras.config.dtype_policy().name == "mixed_bfloat16"  # of the process, as it was
    keras.config.set_dtype_policy("float32")
    assert "bfloat16" in computed[0]
    settings = result.folder.read_json()
    assert settings["recipe"]["dtype_policy"] == "mixed_bfloat16"
    saved = keras.models.load_model(result.folder.best)
    network = saved.layers[-1]
    assert {layer.compute_dtype for layer in network.layers} == {"float32"}
    assert {str(weight.dtype) for weight in network.weights} == {"float32"}
    trained = []
    with h5py.File(result.folder.state) as state:
        state.visititems(
            lambda _, item: trained.append(item[()]) if hasattr(item, "dtype") else None
        )
    for weight in network.get_weights():
        assert any(np.array_equal(weight, array) for array in trained)
    again = training.fit(
        "thin-highway-10",
        "digits",
        out=tmp_path / "run",
        resume=True,
        dtype_policy="mixed_bfloat16",
        **sizes,
    )
    assert again.test_accuracy == result.test_accuracy
    with pytest.raises(ValueError, match=r"dtype_policy.*mixed_bfloat16"):
        training.fit("thin-highway-10", "digits", out=tmp_path / "run", resume=True, **sizes)
