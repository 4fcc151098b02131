"""The loss before the first step, next to the first one in the authors' logs.

    highway-keras reproduce first-losses --seeds 10 --limit 500

It depends on the initial kernels and on the scale of the images but not on the solver, so it checks
these two. It is measured on held-out training images. docs/authors-logs.md has the results.
"""

import pathlib

import keras

from highway_keras import data, models, results
from highway_keras.data.dataset import inference_batch_size
from highway_keras.results import update_rows
from highway_keras.training import get_recipe
from highway_keras.training.machine import here
from highway_keras.util import checks

CAFFES_KERNEL = "lecun_uniform"  # the "xavier" of Caffe as it was published
# The scale of images after contrast normalization is not given for CIFAR, so some are tried.
SCALES = {"mnist-highway-32": (1.0,)}
SCALES |= dict.fromkeys(("highway-gap-10", "highway-gap-100"), (1.0, 0.7, 0.5))
CASE = ("model", "kernel_initializer", "input_scale", "images", "n")  # of a row


def first_losses(model, kernel_initializer, scale, seeds, limit, data_dir=None):
    """Return the cross-entropies (nats) of an untrained network on held-out images, one a seed.

    `kernel_initializer=None` is the network's own. `scale` is a factor on the preprocessed images,
    in place of the recipe's (`times...`).
    """
    card = models.get(model)
    images = data.load(card.dataset, data_dir=data_dir, validation=0.1)
    checks.integer("limit", limit, least=1, most=len(images.x_val))
    recipe = get_recipe(card.recipe)
    steps = [step for step in recipe.preprocessing if not step.startswith("times")]
    preprocess = data.preprocessor(steps, images.x_train)
    x = scale * preprocess.predict(images.x_val[:limit], verbose=0)
    batch_size = inference_batch_size(images.input_shape)
    losses = []
    for seed in range(seeds):
        keras.utils.set_random_seed(seed)
        network = models.create(model, **checks.given(kernel_initializer=kernel_initializer))
        network.get_layer("predictions").activation = keras.activations.linear
        network.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        losses.append(network.evaluate(x, images.y_val[:limit], batch_size, verbose=0))
    return losses


def reproduce_first_losses(seeds=10, limit=1000, out="runs/first-losses", data_dir=None):
    """Measure the first losses of the networks with a log, for their own and stock Caffe's kernels.

    `OUT/first-losses.csv` gets a row for each network, start and scale. Return the rows.

    Raises:
        ValueError: If `seeds` or `limit` is not a positive integer, or there are fewer images.
    """
    checks.positive_integer("seeds", seeds)
    out, rows = pathlib.Path(out).expanduser(), []
    out.mkdir(parents=True, exist_ok=True)
    before = {row["model"]: row for row in results.read("authors-logs") if row["epoch"] == "0"}
    command = f"highway-keras reproduce first-losses --seeds {seeds} --limit {limit}"
    for model, kernel, scale in (
        (m, k, s) for m in SCALES for s in SCALES[m] for k in (None, CAFFES_KERNEL)
    ):
        spread = results.spread(first_losses(model, kernel, scale, seeds, limit, data_dir))
        row = {
            "model": model,
            "kernel_initializer": kernel or "authors",
            "input_scale": scale,
            "images": limit,
            "n": seeds,
            "seeds": f"0-{seeds - 1}",
            "mean": f"{spread['mean']:.3f}",
            "std": f"{spread['std']:.3f}",
            "authors": before[model]["test_loss"],
            **here(),
            "command": command,
        }
        rows.append(row)
        update_rows(out / "first-losses.csv", rows, CASE)
    return rows
