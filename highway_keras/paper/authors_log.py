"""Our training next to the authors' logs, epoch by epoch, with their recipe.

For three networks the authors published the log of one run, with loss and accuracy on the test
images after every epoch. The comparison checks that network, images and solver match theirs.
"""

from highway_keras import checks, results
from highway_keras.io import folder_lock
from highway_keras.models import get
from highway_keras.results import provenance, update_rows
from highway_keras.runs.folder import RunFolder
from highway_keras.training.recipes import get_recipe
from highway_keras.training.trainer import fit

COMMAND = "highway-keras reproduce authors-log"
FILE = "authors-log.csv"


def compare_with_authors(
    model="mnist-highway-32", epochs=5, seeds=(0,), out=None, data_dir=None, verbose="auto"
):
    """Train a network with its authors' recipe, and put every epoch next to that of their log.

    Like theirs, our loss and accuracy are on the test images. They are recorded and decide nothing:
    no image is held out, and a run's `best.keras` is its last epoch.

    Call it again to continue: an interrupted run from its last epoch, a shorter one up to `epochs`.

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
    checks.one_of("model", model, logs)
    epochs = checks.integer("epochs", epochs, least=1, most=len(logs[model]))
    seeds = [checks.seed(seed, "seeds") for seed in seeds]
    out = checks.path("out", out or f"runs/authors-log/{model}")
    rows = []
    for seed in seeds:
        folder = RunFolder(out / f"seed-{seed}")
        _train(get(model), epochs, seed, folder, {"data_dir": data_dir, "verbose": verbose})
        ours = folder.read_history()[:epochs]
        command = f"{COMMAND} --model {model} --epochs {epochs} --seed {seed}"
        made = {"n": 1, **provenance.of_run(folder, command)}
        pairs = zip(logs[model], ours, strict=False)
        new = [{"model": model, **_row(seed, *pair), **made} for pair in pairs]
        with folder_lock(out, seconds=60):  # another process may be training another seed
            update_rows(out / FILE, new, ("seed", "epoch"))
        rows += new
    return rows


def _train(card, epochs, seed, folder, options):
    """Train a run to `epochs`, or evaluate one that has come further."""
    if folder.settings.exists():
        with folder.locked():
            epochs = max(epochs, len(folder.read_rows()))
            _set_epochs(folder, epochs)
    recipe = get_recipe(card.recipe).override(epochs=epochs)
    options = {"recipe": recipe, "seed": seed, "resume": True, "test_curve": True, **options}
    fit(card.name, out=folder.path, **options)


def _set_epochs(folder, epochs):
    # The authors' rate falls at given epochs, so a longer run starts the same as a shorter one.
    settings = folder.read_json()
    if "test_curve" in settings and settings["recipe"]["epochs"] != epochs:
        folder.lengthen(epochs)


def _row(seed, authors, ours):
    return {
        "seed": seed,
        "epoch": int(authors["epoch"]),
        "authors_accuracy": float(authors["test_accuracy"]),
        "ours_accuracy": ours["test_accuracy"],
        "authors_loss": float(authors["test_loss"]),
        "ours_loss": ours["test_loss"],
    }
