"""Recipes: the authors' numbers, rates by epoch, the solver, and the order of the images."""

import dataclasses
import functools

import keras
import numpy as np
import pytest
from keras import ops

from highway_keras import ConvHighway2D, HighwayStack, models
from highway_keras.optimizers import CaffeSGD, ConvMuon
from highway_keras.training import RECIPES, Recipe, get_recipe
from highway_keras.training.batches import (
    MAX_STEPS,
    array_batches,
    batches,
    plan_steps,
)
from highway_keras.training.recipe_optimizer import from_recipe
from highway_keras.training.recipes import choose_recipe, variants
from highway_keras.training.state import EpochSeeds

OPEN = "open"
AUTHORS = {
    "mnist": {"learning_rate": 0.01, "epochs": 300, "decay_epochs": (100, 200)},
    "cifar": {"learning_rate": 0.025, "epochs": 400, "decay_epochs": (200, 300, 350)},
}
AUTHORS["mnist"] |= {"preprocessing": ("scale",), "augmentation": ()}
# Contrast and mean image, of a deviation that they do not give
AUTHORS["cifar"] |= {"preprocessing": OPEN, "augmentation": ("crop8", "mirror")}
AUTHORS_BOTH = {"batch_size": 100, "momentum": 0.9, "nesterov": True, "schedule": "steps"}
AUTHORS_BOTH |= {"decay": 0.1, "l2": 0.001, "classifier_l2": 10, "bias_rate": 2, "validation": 0}
AUTHORS_BOTH |= {"clip_norm": None, "dropout": 1, "kernel_initializer": None}
SGD = {"dtype_policy": "float32", "optimizer": "sgd", "warmup": 0, "weight_decay": 0}
AUTHORS_BOTH |= {"first_epoch": 1, "bias_l2": 0, **SGD}
# What the paper says about thin networks: SGD with momentum, a rate that decays exponentially, 400
# epochs on the axis of Figure 1, normalized starts. It names no penalty, and gives no values for
# what it searched over.
THIN = {"epochs": 400, "schedule": "exponential", "decay_epochs": (), "kernel_initializer": None}
THIN |= {"nesterov": False, "augmentation": (), "clip_norm": None, "dropout": 1, "l2": 0}
THIN |= {"classifier_l2": 10, "bias_rate": 1, "first_epoch": 1, "bias_l2": 0, **SGD}
THIN |= dict.fromkeys(("batch_size", "learning_rate", "momentum", "decay"), OPEN)
THIN |= dict.fromkeys(("preprocessing", "validation"), OPEN)
# The first author's comparison of 2025; his crops have a border of another color.
SKIP = {"epochs": 200, "batch_size": 128, "learning_rate": 0.1, "momentum": 0.9, "nesterov": False}
SKIP |= {"schedule": "steps", "decay": 0.1, "decay_epochs": (100, 150), "first_epoch": 1}
SKIP |= {"l2": 1e-4, "classifier_l2": 1, "bias_l2": 1, "bias_rate": 1, "clip_norm": None}
SKIP |= {"dropout": 1, "kernel_initializer": None, "preprocessing": ("imagenet",)}
SKIP |= {"augmentation": OPEN, "validation": 0, **SGD, "dtype_policy": "mixed_bfloat16"}
FOLLOWS = {"thin": THIN, "digits": THIN}
FOLLOWS |= {"skip-2025": SKIP, "skip-2025-resnet": {**SKIP, "first_epoch": 0.1}}
FOLLOWS |= {name: {**AUTHORS_BOTH, **AUTHORS[name]} for name in AUTHORS}
FOLLOWS |= dict.fromkeys(("quick", "modern-mnist"), FOLLOWS["mnist"])
OF_CIFAR = ("modern-cifar", "fitnet", "modern-fitnet", "muon-cifar", "muon-fitnet", "muon-fitnet-b")
FOLLOWS |= dict.fromkeys(OF_CIFAR, FOLLOWS["cifar"])


@pytest.mark.parametrize("name", RECIPES)
def test_every_number_is_the_authors_unless_a_reason_says_why_not(name):
    recipe = get_recipe(name)
    numbers = {field.name for field in dataclasses.fields(Recipe)} - {"name", "source", "reasons"}
    if recipe.schedule == "cosine":  # it has neither; its reason covers both
        numbers -= {"decay", "decay_epochs"}
    departures = {key for key in numbers if getattr(recipe, key) != FOLLOWS[name][key]}
    assert departures == set(recipe.reasons) and all(recipe.reasons.values())
    if name in AUTHORS:  # their own solver, which departs only where they say nothing
        assert departures == {key for key in numbers if FOLLOWS[name][key] == OPEN}
    assert recipe.name == name and recipe.source


BAD = {  # values that an attribute refuses, some of them only together with others
    "epochs": {"epochs": 0},
    "batch_size": {"batch_size": True},
    "learning_rate": {"learning_rate": float("nan")},
    "momentum": {"optimizer": "adamw", "decay": 1.0, "momentum": 0.1},
    "decay": {"schedule": "cosine"},
    "l2": {"l2": -1e-3},
    "optimizer": {"optimizer": "adam"},
    "decay_epochs": {"decay_epochs": (20, 10)},
    "first_epoch": {"first_epoch": 0.1},
    "warmup": {"schedule": "cosine", "decay": 1.0, "warmup": 11},
    "schedule": {"schedule": "linear"},
    "overrides": {"learning_rte": 1},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_overrides(name):
    with pytest.raises(ValueError, match=f"`{name}` must"):
        get_recipe("thin").override(**BAD[name])


def test_choose_recipe():
    assert choose_recipe(None, "highway-b").name == "cifar"
    assert choose_recipe(None, "thin-plain-50", "digits").name == "digits"
    assert choose_recipe("quick", "thin-plain-50", "digits").name == "quick"
    with pytest.raises(ValueError, match="recipe='slow'"):
        choose_recipe("slow", "highway-b")
    models.register("own", None, "digits", (8, 8, 1), 10)
    assert choose_recipe(None, "own").dropout == 1.0 and choose_recipe(None).name == "quick"
    # One with the name of a network comes before that of its kind.
    muon = {name: variants(models.get(name))["muon"] for name in ("fitnet-a", "fitnet-b")}
    assert muon == {"fitnet-a": "muon-fitnet", "fitnet-b": "muon-fitnet-b"}


# Rates

AUTHORS_CONSTANT = get_recipe("mnist").override(decay_epochs=())
CONSTANT = get_recipe("thin").override(schedule="constant", decay=1.0)
EXPONENTIAL = get_recipe("thin").override(learning_rate=2, decay=0.95)
COSINE = get_recipe("quick").override(epochs=4, learning_rate=1)  # a whole rate is as any other
WARM = COSINE.override(warmup=1.5, learning_rate=np.float32(1))
RATES = {  # by step, of which an epoch has 10
    "mnist": ("mnist", {0: 0.01, 999: 0.01, 1000: 0.001, 1999: 0.001, 2000: 1e-4, 2999: 1e-4}),
    "cifar": ("cifar", {0: 0.025, 1999: 0.025, 2000: 2.5e-3, 3000: 2.5e-4, 3500: 2.5e-5}),
    "first epoch": ("skip-2025-resnet", {0: 0.01, 9: 0.01, 10: 0.1, 999: 0.1, 1000: 0.01}),
    "no steps": (AUTHORS_CONSTANT, {0: 0.01, 2999: 0.01}),
    "constant": (CONSTANT, {0: 0.15, 99: 0.15}),
    "exponential": (EXPONENTIAL, {0: 2, 9: 2, 10: 1.9, 100: 2 * 0.95**10}),
    "cosine": (COSINE, {0: 1, 20: 0.5, 40: 0}),
    "warm-up": (WARM, {0: 0, 6: 0.4, 15: 1, 40: 0}),
    "all warm-up": (WARM.override(epochs=1, warmup=1), {5: 0.5}),
}


@pytest.mark.parametrize(("recipe", "rates"), RATES.values(), ids=RATES)
def test_rates_by_step(recipe, rates):
    optimizer = from_recipe(choose_recipe(recipe, "highway-a"), 10)
    for step, rate in rates.items():
        optimizer.iterations.assign(step)
        assert float(optimizer.learning_rate) == pytest.approx(rate, rel=1e-5, abs=1e-6), step


# Penalties


LAYERS = {
    "convolution": (lambda: ConvHighway2D(4, 3), (None, 8, 8, 4)),
    "stack": (lambda: HighwayStack(2), (None, 4)),
    "normalization": (keras.layers.LayerNormalization, (None, 4)),
    "rms": (keras.layers.RMSNormalization, (None, 4)),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("kind", ["adamw", "muon", "sgd", "muon on its own"])
def test_penalties_are_of_kernels_of_any_rank_alone(kind, layer):
    changes = {"l2": 0.5} if kind == "sgd" else {"weight_decay": 0.5, "clip_norm": 2.0}
    changes |= {"optimizer": kind, "learning_rate": 0.1, "decay": 1}
    if kind == "muon on its own":
        optimizer = ConvMuon(0.1, weight_decay=0.5, adam_weight_decay=0.5)
    else:
        optimizer = from_recipe(get_recipe("thin").override(**changes), steps=10)
    make, shape = LAYERS[layer]
    layer = make()
    layer.build(shape)
    before = [ops.convert_to_numpy(v) for v in layer.trainable_variables]
    optimizer.build(layer.trainable_variables)
    optimizer.apply([ops.zeros(v.shape) for v in layer.trainable_variables])
    for variable, value in zip(layer.trainable_variables, before, strict=True):
        remaining = 0.95 if "kernel" in variable.path else 1.0
        np.testing.assert_allclose(ops.convert_to_numpy(variable), remaining * value, rtol=1e-6)


def test_muon_makes_the_updates_of_convolutions_and_dense_layers_orthogonal():
    """Without momentum, the first step is the gradient with singular values of about 1."""
    layers = [keras.layers.Conv2D(5, 3), keras.layers.Flatten(), keras.layers.Dense(6)]
    layers += [HighwayStack(3, name="stack"), keras.layers.Dense(4, name="predictions")]
    network = keras.Sequential([keras.Input((8, 8, 3)), *layers])
    variables = network.trainable_variables
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=v.shape).astype("float32") for v in variables]
    gradients = [g + np.sign(g) / 100 for g in gradients]  # far above Adam's epsilon
    before = network.get_weights()
    optimizer = ConvMuon(1.0, weight_decay=0.5, adam_weight_decay=None, momentum=0.0)
    optimizer = ConvMuon.from_config(optimizer.get_config())
    optimizer.apply([ops.convert_to_tensor(g) for g in gradients], variables)
    for variable, gradient, old in zip(variables, gradients, before, strict=True):
        new = ops.convert_to_numpy(variable)
        if any(part in variable.path for part in ("bias", "predictions", "stack")):
            np.testing.assert_allclose(old - new, np.sign(gradient), rtol=1e-3)  # Adam's first step
            continue
        step = old / 2 - new  # half of it decays
        step, gradient = (value.reshape(-1, value.shape[-1]) for value in (step, gradient))
        left, _, right = np.linalg.svd(gradient, full_matrices=False)
        singular = left.T @ step @ right.T / (0.2 * max(step.shape) ** 0.5)  # Moonlight's factor
        np.testing.assert_allclose(np.diag(singular), 1, atol=0.35)
        np.testing.assert_allclose(singular, np.diag(np.diag(singular)), atol=1e-4)


# The solver


def caffe_sgd(values, gradients, velocity, rate, momentum, nesterov, l2, classifier_l2, bias_rate):
    """Apply one update in place, in float64, as in Caffe's sgd_solver.cpp and nesterov_solver.cpp.

    Its history has the opposite sign of Keras's velocity, and its Nesterov step another form.
    """
    for name, w in values.items():
        is_bias = name.endswith("bias")
        decay = 0 if is_bias else l2 * (classifier_l2 if "predictions/" in name else 1)
        local_rate = rate * (bias_rate if is_bias else 1)
        before = velocity[name].copy()
        velocity[name] *= momentum
        velocity[name] += local_rate * (gradients[name] + decay * w)
        step = velocity[name]
        w -= (1 + momentum) * step - momentum * before if nesterov else step


@pytest.mark.parametrize(("nested", "depth"), [(False, 3), (True, 11)], ids=["chain", "stack"])
@pytest.mark.parametrize(
    ("momentum", "nesterov", "l2", "classifier_l2", "bias_rate"),
    [(0.0, False, 0.0, 10, 1), (0.9, False, 0.1, 10, 2), (0.5, True, 0.2, 3, 0.5)],
)
def test_sgd_is_caffes(nested, depth, momentum, nesterov, l2, classifier_l2, bias_rate):
    settings = {"momentum": momentum, "nesterov": nesterov, "l2": l2}
    settings |= {"classifier_l2": classifier_l2, "bias_rate": bias_rate}
    sizes = {"units": 4, "input_shape": (5,), "classes": 3}
    network = models.thin_mlp(depth, **sizes)
    model = keras.Sequential([keras.Input((5,)), network]) if nested else network
    rates = [0.1, 0.1, 0.03, 0.03, 0.01]
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.03, 0.01])
    stored = keras.optimizers.serialize(CaffeSGD(schedule, **settings))
    optimizer, variables = keras.optimizers.deserialize(stored), model.trainable_variables
    names = [v.path for v in variables]
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


@pytest.mark.parametrize(
    ("outer", "inner", "factor"), [("a", "predictions", 5), ("predictions", "a", 1)]
)
def test_the_classifier_is_the_layer_that_owns_the_weight(outer, inner, factor):
    """A loaded model has no other names: Keras builds an inner layer outside the outer one's."""
    top = keras.layers.TimeDistributed(keras.layers.Dense(3, name=inner), name=outer)
    (kernel, *_) = keras.Sequential([keras.Input((5, 4)), top]).weights
    before = ops.convert_to_numpy(kernel)
    CaffeSGD(1.0, l2=0.01, classifier_l2=5.0).apply([ops.zeros((4, 3))], [kernel])
    after = (1 - 0.01 * factor) * before
    np.testing.assert_allclose(ops.convert_to_numpy(kernel), after, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")  # Keras's, that a gradient is missing
@pytest.mark.parametrize(
    ("most", "options"),
    [(0.05, {"gradient_accumulation_steps": 2}), (0.05, {"loss_scale_factor": 8.0})]
    + [(most, {}) for most in (0.05, 1e3, None)],
)
def test_sgd_limits_the_gradients_that_keras_applies(most, options):
    """By their common norm, after accumulation and without the loss scale, like Keras's own SGD."""
    x, y = np.random.default_rng(0).standard_normal((12, 4)), np.arange(12) % 3

    def trained(optimizer):
        keras.utils.set_random_seed(0)
        layer = keras.layers.Dense(3, "softmax")
        layer.add_weight((2,))  # without a gradient
        model = keras.Sequential([keras.Input((4,)), layer])
        model.compile(optimizer, "sparse_categorical_crossentropy")
        model.fit(x, y, batch_size=3, shuffle=False, verbose=0)
        return model.get_weights()

    ours = trained(CaffeSGD(1.0, bias_rate=1.0, global_clipnorm=most, **options))
    keras_own = trained(keras.optimizers.SGD(1.0, global_clipnorm=most, **options))
    for one, other in zip(ours, keras_own, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


# Batches


def test_plan_steps():
    for images in [*range(1, 300), 1294, 45_000, 50_000, 54_000, 60_000]:
        for batch_size in (1, 32, 128):
            steps, steps_per_execution, batch = plan_steps(images, batch_size)
            assert batch == min(images, batch_size)
            assert steps % steps_per_execution == 0 and 1 <= steps_per_execution <= MAX_STEPS
            assert 0.99 * (images // batch) <= steps <= images // batch
    assert plan_steps(54_000, 128) == (420, 30, 128)  # not 421, a prime
    for images in (60_000, 50_000):  # the authors', none of whose steps is dropped
        assert plan_steps(images, 100)[::2] == (images // 100, 100)


@pytest.mark.parametrize("batched", [batches, array_batches])
def test_order_depends_on_seed_and_epoch_alone(batched):
    """An epoch, 7 steps of 3 of the 23 images, repeats none; each leaves out different ones."""
    x, y = np.arange(23, dtype="float32")[:, None], np.arange(23)

    def epochs(count, seed=0, first_epoch=0):
        endless = iter(batched((x, y), 7, 3, seed, first_epoch))
        for _ in range(count):
            pairs = [next(endless) for _ in range(7)]
            images, labels = (np.concatenate([np.asarray(p[i]) for p in pairs]) for i in (0, 1))
            np.testing.assert_array_equal(images[:, 0], labels)
            yield tuple(labels.tolist())

    first = [*epochs(4)]
    assert all(len(epoch) == len(set(epoch)) == 21 for epoch in first)
    assert set().union(*first) == set(range(23)) and first == [*epochs(4)]
    assert first[2:] == [*epochs(2, first_epoch=2)]
    assert len({*first, *epochs(4, seed=1)}) == 8


def test_an_epoch_repeats_its_dropout():
    model = models.mnist_highway(2, input_shape=(12, 12, 1))
    callbacks = keras.callbacks.CallbackList([EpochSeeds(3)], model=model)

    def outputs(epoch):
        callbacks.on_epoch_begin(epoch)
        callbacks.on_train_batch_begin(0)
        call = functools.partial(model, np.ones((4, 12, 12, 1), "float32"), training=True)
        return [ops.convert_to_numpy(call()) for _ in range(2)]

    first, other = outputs(5), outputs(6)
    np.testing.assert_array_equal(first, outputs(5))
    assert not np.allclose(first[0], first[1]) and not np.allclose(first, other)
    states, drawn = [v for v in model.variables if "seed_generator" in v.path], set()
    for seed in (3, 4):
        keras.callbacks.CallbackList([EpochSeeds(seed)], model=model).on_epoch_begin(0)
        drawn |= {tuple(np.asarray(state)) for state in states}
    assert len(drawn) == 2 * len(states) == 8


def test_the_optimizer_has_every_number_of_its_recipe():
    numbers = {"momentum": 0.5, "nesterov": True, "l2": 0.1, "classifier_l2": 3.0, "bias_rate": 2.0}
    config = from_recipe(get_recipe("thin").override(**numbers, clip_norm=0.7), 10).get_config()
    assert config.items() >= {**numbers, "global_clipnorm": 0.7}.items()
    for name in ("adamw", "muon"):
        limited = CONSTANT.override(optimizer=name, clip_norm=0.7)
        assert from_recipe(limited, 10).global_clipnorm == 0.7
