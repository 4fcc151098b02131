"""Our training next to the authors' logs, epoch by epoch, and the loss before the first step.

    highway-keras reproduce authors-log --model mnist-highway-32 --epochs 3 --seed 0 1 2 3 4
    highway-keras reproduce first-losses --seeds 10 --limit 500

For three networks of the paper, and for two of 2025, the authors published the log of one run, with
loss and accuracy on the test images after every epoch. The comparison checks that network, images
and solver match theirs.

The loss before the first step, one value in each log, depends on the initial kernels and on the
scale of the images but not on the solver, so it checks these two. It is measured on held-out
training images. docs/authors-logs.md has the results.
"""

import pathlib

import keras

from highway_keras import data, models, results
from highway_keras.data.dataset import images_at_once
from highway_keras.results import update_rows
from highway_keras.results.provenance import command_line
from highway_keras.training import TestCurve, fit, get_recipe
from highway_keras.training.machine import here
from highway_keras.util import checks
from highway_keras.util.files import folder_lock

CAFFES_KERNEL = "lecun_uniform"  # the "xavier" of Caffe as it was published
# The scale of images after contrast normalization is not given for CIFAR, so some are tried.
SCALES = {"mnist-highway-32": (1.0,)}
SCALES |= dict.fromkeys(("highway-gap-10", "highway-gap-100"), (1.0, 0.7, 0.5))


def compare_with_authors(
    model="mnist-highway-32",
    epochs=5,
    seeds=(0,),
    out=None,
    data_dir=None,
    verbose="auto",
    dtype_policy=None,
):
    """Train a network with its authors' recipe, and put every epoch next to that of their log.

    Like theirs, our loss and accuracy are on the test images. They are recorded and decide nothing:
    no image is held out, and a run's `best.keras` is its last epoch.

    Call it again to continue an interrupted run from its last epoch.

    ```
    OUT/seed-0/            a folder of `fit`
    OUT/authors-log.csv    a row for each seed and epoch, also of earlier calls
    ```

    Args:
        model: `"mnist-highway-32"`, `"highway-gap-10"`, `"highway-gap-100"`, `"highway110"` or
            `"resnet110"`.
        epochs: Number of epochs, at most as many as in the log.
        seeds: Seed of each run.
        out: Folder; default `runs/authors-log/MODEL`.
        data_dir: Where TFDS keeps its data.
        verbose: As in Keras.
        dtype_policy: What training computes in; default the recipe's, float32.

    Returns:
        The rows of `seeds`, dictionaries.

    Raises:
        ValueError: If an argument is unknown or out of its range, or `out` holds runs with other
            settings.
        OSError: If the folder cannot be written.
        TrainingDiverged: If the loss is no longer finite.

    Examples:
        >>> from highway_keras import paper
        >>> rows = paper.compare_with_authors("mnist-highway-32", epochs=2)  # doctest: +SKIP
    """
    logs = results.authors_logs()
    log = logs[checks.one_of("model", model, logs)]
    epochs = checks.integer("epochs", epochs, least=1, most=len(log))
    seeds = [checks.seed(seed, "seeds") for seed in seeds]
    out = pathlib.Path(out or f"runs/authors-log/{model}").expanduser()
    card, rows = models.get(model), []
    changes = checks.given(epochs=epochs, dtype_policy=dtype_policy)
    recipe = get_recipe(card.recipe).override(**changes)
    images = data.load(card.dataset, data_dir=data_dir, validation=0.0)
    curve = TestCurve(images, recipe.preprocessing)
    for seed in seeds:
        folder = out / f"seed-{seed}"
        options = {"callbacks": [curve], "resume": True, "verbose": verbose}
        result = fit(model, images, recipe, seed=seed, out=folder, **options)
        command = ("highway-keras", "reproduce", "authors-log")
        command = command_line(*command, model=model, **changes, seed=seed)
        new = [
            {
                "model": model,
                "seed": seed,
                "preprocessing": " ".join(recipe.preprocessing),
                "dtype_policy": recipe.dtype_policy,
                "epoch": int(theirs["epoch"]),
                "authors_training_loss": theirs["training_loss"],
                "ours_training_loss": ours["loss"],
                "authors_accuracy": float(theirs["test_accuracy"]),
                "ours_accuracy": ours["test_accuracy"],
                "authors_loss": float(theirs["test_loss"]),
                "ours_loss": ours["test_loss"],
                "n": 1,
                **here(),
                "command": command,
            }
            for theirs, ours in zip(log, result.history, strict=False)
        ]
        with folder_lock(out, seconds=60):  # another process may be training another seed
            update_rows(out / "authors-log.csv", new, ("seed", "epoch"))
        rows += new
    return rows


def first_losses(model, kernel_initializer=None, scale=1.0, seeds=10, limit=1000, data_dir=None):
    """Measure the cross-entropy of an untrained network on held-out images, once per seed.

    Args:
        model: Registered name.
        kernel_initializer: Initializer of the kernels; default: the network's own.
        scale: Factor on the preprocessed images, in place of the recipe's own (`times...`).
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
        network = models.create(model, kernel_initializer=kernel_initializer)
        network.get_layer("predictions").activation = keras.activations.linear
        network.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        at_once = images_at_once(images.input_shape)
        losses.append(network.evaluate(x, images.y_val[:limit], at_once, verbose=0))
    return losses


def reproduce_first_losses(seeds=10, limit=1000, out="runs/first-losses", data_dir=None):
    """Measure the first losses of all networks with a log, for their own and stock Caffe's kernels.

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
    checks.positive_integer("seeds", seeds)
    checks.positive_integer("limit", limit)
    out, rows = pathlib.Path(out).expanduser(), []
    before = {row["model"]: row for row in results.read("authors-logs") if row["epoch"] == "0"}
    command = f"highway-keras reproduce first-losses --seeds {seeds} --limit {limit}"
    cases = [(m, k, s) for m in SCALES for s in SCALES[m] for k in (None, CAFFES_KERNEL)]
    keys = ("model", "kernel_initializer", "input_scale", "images", "n")
    with folder_lock(out):
        for model, kernel, scale in cases:
            losses = first_losses(model, kernel, scale, seeds, limit, data_dir)
            spread = results.spread(losses)
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
            }
            rows.append({**row, **here(), "command": command})
            update_rows(out / "first-losses.csv", rows[-1:], keys)
    return rows
