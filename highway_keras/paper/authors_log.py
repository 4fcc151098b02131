"""Our training next to the authors' logs, epoch by epoch.

    highway-keras reproduce authors-log --model mnist-highway-32 --epochs 3 --seed 0 1 2 3 4

For three networks of the paper, and for two of 2025, the authors published the log of one run, with
loss and accuracy on the test images after every epoch. The comparison checks that network, images
and solver match theirs. docs/authors-logs.md and docs/skip-connections.md have the results.
"""

import pathlib

from highway_keras import data, models, results
from highway_keras.results import update_rows
from highway_keras.results.provenance import command_line
from highway_keras.training import TestCurve, fit, get_recipe
from highway_keras.training.machine import here
from highway_keras.util import checks


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

    Returns:
        The rows of `seeds`, dictionaries.

    Raises:
        ValueError: If an argument is unknown or out of its range, or `out` holds runs with other
            settings.
        TrainingDiverged: If the loss is no longer finite.
    """
    logs = results.authors_logs()
    log = logs[checks.one_of("model", model, logs)]
    epochs = checks.integer("epochs", epochs, least=1, most=len(log))
    seeds = [checks.seed(seed, "seeds") for seed in seeds]
    out = pathlib.Path(out or f"runs/authors-log/{model}").expanduser()
    card = models.get(model)
    changes = checks.given(epochs=epochs, dtype_policy=dtype_policy)
    recipe = get_recipe(card.recipe).override(**changes)
    images = data.load(card.dataset, data_dir=data_dir, validation=0.0)
    curve, rows = TestCurve(images, recipe.preprocessing), []
    for seed in seeds:
        result = fit(
            model,
            images,
            recipe,
            seed=seed,
            out=out / f"seed-{seed}",
            resume=True,
            callbacks=[curve],
            verbose=verbose,
        )
        command = ("highway-keras", "reproduce", "authors-log")
        command = command_line(*command, model=model, **changes, seed=seed)
        for theirs, ours in zip(log, result.history, strict=False):
            row = {
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
            rows.append(row)
        update_rows(out / "authors-log.csv", rows, ("seed", "epoch"))
    return rows
