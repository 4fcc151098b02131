"""The loss before the first step; the authors' logs have one value for each network.

    highway-keras reproduce first-losses --seeds 10 --limit 500

It depends on the start of the kernels and on the scale of the images, not on the solver, so it
checks both. It is measured on held-out training images.

Result (docs/tables.md, results/first-losses.csv): the log for MNIST fits kernels from
N(0, 2 / fan-in), the "xavier" of the authors' Caffe, and not the stock one.
"""

import keras

from highway_keras import checks, data, models, results
from highway_keras.io import folder_lock
from highway_keras.results import provenance, update_rows
from highway_keras.training.evaluation import EVALUATION_BATCH
from highway_keras.training.recipes import get_recipe

CAFFES_KERNEL = "lecun_uniform"  # the "xavier" of Caffe as it was published
# The scale of images after contrast normalization is not given for CIFAR, so some are tried.
SCALES = {"mnist-highway-32": (1.0,)}
SCALES |= dict.fromkeys(("highway-gap-10", "highway-gap-100"), (1.0, 0.7, 0.5))


def first_losses(model, kernel_initializer=None, scale=1.0, seeds=10, limit=1000, data_dir=None):
    """Measure the cross-entropy of an untrained network on held-out images, once per seed.

    Args:
        model: Registered name.
        kernel_initializer: Start of the kernels; default: the network's own.
        scale: Factor on the images after the preprocessing of the network's recipe without its own.
        seeds: Number of seeds, from 0 on.
        limit: Number of held-out images, at most a tenth of the training images.
        data_dir: Where TFDS keeps its data.

    Returns:
        A list of losses, in nats.

    Raises:
        ValueError: If an argument is unknown or out of its range.
    """
    card = models.get(model)
    images = data.load(card.dataset, data_dir=data_dir, validation=0.1)
    checks.integer("limit", limit, least=1, most=len(images.x_val))
    recipe = get_recipe(card.recipe)
    steps = [step for step in recipe.preprocessing if not step.startswith("times")]
    preprocess = data.preprocessor(steps, images.x_train)
    x = scale * preprocess.predict(images.x_val[:limit], verbose=0)
    losses = []
    for seed in range(seeds):
        keras.utils.set_random_seed(seed)
        options = {"kernel_initializer": kernel_initializer, "classifier_activation": None}
        network = models.create(model, **options)
        network.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        losses.append(network.evaluate(x, images.y_val[:limit], EVALUATION_BATCH, verbose=0))
    return losses


def reproduce_first_losses(seeds=10, limit=1000, out="runs/first-losses", data_dir=None):
    """Measure the first losses of all networks that have a log, from their start and stock Caffe's.

    Args:
        seeds: Number of seeds of each, from 0 on.
        limit: Number of held-out images.
        out: Folder for `first-losses.csv`, with a row for each network, start and scale.
        data_dir: Where TFDS keeps its data.

    Returns:
        The rows, dictionaries.

    Raises:
        ValueError: If `seeds` or `limit` is not a positive integer, or there are fewer images.
    """
    checks.positive_integers(seeds=seeds, limit=limit)
    out, rows = checks.path("out", out), []
    before = {row["model"]: row for row in results.read("authors-logs") if row["epoch"] == "0"}
    command = f"highway-keras reproduce first-losses --seeds {seeds} --limit {limit}"
    cases = [(m, k, s) for m in SCALES for s in SCALES[m] for k in (None, CAFFES_KERNEL)]
    with folder_lock(out):
        for model, kernel, scale in cases:
            losses = first_losses(model, kernel, scale, seeds, limit, data_dir)
            found = results.spread(losses)
            row = {
                "model": model,
                "kernel_initializer": kernel or "authors",
                "input_scale": scale,
                "images": limit,
                "n": seeds,
                "seeds": f"0-{seeds - 1}",
                "mean": f"{found['mean']:.3f}",
                "std": f"{found['std']:.3f}",
                "authors": before[model]["test_loss"],
            }
            rows.append(row | provenance.of_command(command))
            keys = ("model", "kernel_initializer", "input_scale", "images", "n")
            update_rows(out / "first-losses.csv", rows[-1:], keys)
    return rows
