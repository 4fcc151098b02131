"""Our training next to the authors' logs, epoch by epoch, with their recipe.

    highway-keras reproduce authors-log --model mnist-highway-32 --epochs 3 --seed 0 1 2 3 4

For three networks the authors published the log of one run, with loss and accuracy on the test
images after every epoch. The comparison checks that network, images and solver match theirs.

Result (docs/tables.md, results/authors-log-ours.csv): three epochs of MNIST, ten of CIFAR-10 and
two of CIFAR-100 come close to their logs.
"""

from highway_keras import checks, results
from highway_keras.io import folder_lock
from highway_keras.models import get
from highway_keras.results import provenance, update_rows
from highway_keras.runs.folder import RunFolder
from highway_keras.training import fit
from highway_keras.training.recipes import get_recipe


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
        model: `"mnist-highway-32"`, `"highway-gap-10"` or `"highway-gap-100"`.
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

    Example:

    >>> from highway_keras import paper
    >>> rows = paper.compare_with_authors("mnist-highway-32", epochs=2)  # doctest: +SKIP
    """
    logs = results.authors_logs()
    log = logs[checks.one_of("model", model, logs)]
    epochs = checks.integer("epochs", epochs, least=1, most=len(log))
    seeds = [checks.seed(seed, "seeds") for seed in seeds]
    out = checks.path("out", out or f"runs/authors-log/{model}")
    card, rows = get(model), []
    changes = checks.given(epochs=epochs, dtype_policy=dtype_policy)
    recipe = get_recipe(card.recipe).override(**changes)
    for seed in seeds:
        folder = RunFolder(out / f"seed-{seed}")
        options = {"data_dir": data_dir, "verbose": verbose, "test_curve": True}
        fit(model, recipe=recipe, seed=seed, out=folder.path, resume=True, **options)
        command = ("highway-keras", "reproduce", "authors-log")
        command = provenance.command_line(*command, model=model, **changes, seed=seed)
        made = {"n": 1, **provenance.of_run(folder, command)}
        new = [
            {
                "model": model,
                "seed": seed,
                "preprocessing": " ".join(recipe.preprocessing),
                "dtype_policy": recipe.dtype_policy,
                "epoch": int(theirs["epoch"]),
                "authors_accuracy": float(theirs["test_accuracy"]),
                "ours_accuracy": ours["test_accuracy"],
                "authors_loss": float(theirs["test_loss"]),
                "ours_loss": ours["test_loss"],
                **made,
            }
            for theirs, ours in zip(log, folder.read_history(), strict=False)
        ]
        with folder_lock(out, seconds=60):  # another process may be training another seed
            update_rows(out / "authors-log.csv", new, ("seed", "epoch"))
        rows += new
    return rows
