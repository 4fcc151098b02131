"""What `epoch.py` compares; each runs in the process of a `turns.Worker`."""

import json
import math

import keras
import numpy as np

from benchmarks.peers import keras_turns, machine
from highway_keras import data, models, training
from highway_keras.training.batches import plan_steps
from highway_keras.training.engines.engine import Engine
from highway_keras.training.evaluation import compile_classifier
from highway_keras.training.optimizer import from_recipe


def work(turns, run, options):
    """Take the turns of a run; see `turns.Worker`."""
    options = json.loads(options)
    keras.config.set_dtype_policy(options["dtype"])
    RUNS[run](turns, models.get(options["model"]), options["images"])


def _fit(turns, card, images):
    network, recipe = card.build(), training.get_recipe(card.recipe)
    steps, _, batch = plan_steps(images, recipe.batch_size)
    x, y = _random_images(card, steps * batch)
    model = _augmented(network, recipe)
    optimizer = keras.optimizers.SGD(recipe.learning_rate, recipe.momentum, recipe.nesterov)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    turns.wait()
    keras_turns.fit(model, turns, x=x, y=y, batch_size=batch)


def _trainer(turns, card, images):
    network, recipe = card.build(), training.get_recipe(card.recipe)
    steps, planned, batch = plan_steps(images, recipe.batch_size)
    x, y = _random_images(card, steps * batch)
    stepping = Engine().stepping
    model = compile_classifier(
        _augmented(network, recipe),
        from_recipe(recipe, steps),
        stepping.steps_per_execution(steps, planned),
    )
    plan = steps, batch, 0, 0  # seed and first epoch
    stepping.take_over(model, x, y, plan, replicas=1)
    figures = {
        "images": len(x),
        "batch": batch,
        "operations": 3 * len(x) * _operations(network),
        "machine": f"{keras.backend.backend()} on {keras.distribution.list_devices()[0]}",
    }
    turns.wait()
    fed = {"x": stepping.batches(x, y, *plan), "steps_per_epoch": steps, "shuffle": False}
    keras_turns.fit(model, turns, figures, **fed)


def _product(turns, card, images):
    machine.run(card, turns, keras.config.dtype_policy().compute_dtype)


RUNS = {"fit": _fit, "trainer": _trainer, "product": _product}


def _random_images(card, count):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((count, *card.input_shape), "float32")
    return x, rng.integers(0, card.classes, count)


def _augmented(network, recipe):
    augment = data.augmenter(recipe.augmentation, network.input_shape[1:], 0)
    return keras.Sequential([augment, network]) if augment else network


def _operations(network):
    """Return the operations of an image's forward matrix products; an addition counts as one."""
    return sum(
        2 * math.prod(weight.shape) * math.prod(layer.output.shape[1:-1])
        for layer in network.layers
        for weight in layer.weights
        if weight.name.endswith("kernel")
    )
