"""Tables 1 to 3 of the paper: every network trained several times, one row per run."""

import dataclasses

from highway_keras import checks
from highway_keras.io import folder_lock, optional_picture, write_rows
from highway_keras.models import get, list_models
from highway_keras.paper.table_plot import plot_runs
from highway_keras.results import TABLES, provenance
from highway_keras.runs.folder import MEASURED, RunFolder
from highway_keras.runs.provenance import minutes, sessions
from highway_keras.training.engines.devices import data_parallel
from highway_keras.training.recipe import compared_fields
from highway_keras.training.recipes import get_recipe
from highway_keras.training.trainer import FAILURES, train_all

VARIANTS = {"authors": "{}", "modern": "modern-{}"}  # of the recipe that a card names
COLUMNS = ("table", "model", "dataset", "recipe", "seed", "epochs", "images", "dtype_policy")
COLUMNS += ("test_accuracy", "test_loss", "best_epoch", "minutes", *provenance.COLUMNS)


def reproduce_table(
    table,
    recipe="authors",
    runs=5,
    models=None,
    epochs=None,
    dtype_policy=None,
    limit=None,
    seed=0,
    out=None,
    data_dir=None,
    verbose="auto",
    distribute=False,
):
    """Train the networks of a table several times each, and write one row per run.

    It continues what is in `out`: a finished run is not repeated, an interrupted one continues from
    its last epoch. The folder can be moved to another machine in between, and several processes can
    share it, each with its own runs. The test images are used once per run, at its end.

    ```
    OUT/MODEL-RECIPE/seed-0/   a folder of `fit`, and what it was trained on in machine.json
    OUT/table1.csv             a row for every finished run, whichever call trained it
    OUT/table1.png             accuracy by epoch
    ```

    `minutes` in a row counts training and the test images, and of a killed part the epochs that it
    finished.

    Args:
        table: `"table1"`, `"table2"` or `"table3"`.
        recipe: `"authors"`, or `"modern"` with a fraction of their epochs.
        runs: Number of runs of each network, with seeds starting at `seed`.
        models: Registered names of networks in that table; default all.
        epochs: Number of epochs; default the recipe's.
        dtype_policy: What training computes in; default the recipe's.
        limit: Number of training images; default all.
        seed: Seed of the first run.
        out: Folder; default `runs/TABLE`.
        data_dir: Where TFDS keeps its data.
        verbose: As in Keras; 0 also suppresses the line before each run.
        distribute: Whether to train on all devices, as `fit` does; several hosts need an `out`
            that they share.

    Returns:
        The rows of the CSV file, dictionaries.

    Raises:
        ValueError: If an argument is unknown or out of its range, or a run in `out` was started
            with other settings.
        OSError: If the folder cannot be written.
        TrainingDiverged: After all other runs, if the loss of any is no longer finite.
        BusyError: After all other runs, if another process is training some of them in `out`.

    Example:

    >>> from highway_keras import paper
    >>> rows = paper.reproduce_table("table1", "modern", runs=2)  # doctest: +SKIP
    """
    is_chief = not distribute or data_parallel().is_chief
    out, cards = checks.path("out", out or f"runs/{table}"), _cards(table, models)
    checks.one_of("recipe", recipe, VARIANTS)
    seeds = checks.seeds(seed, runs)
    checks.positive_integer("limit", limit, or_none="all images")
    changes = {"epochs": epochs, "dtype_policy": dtype_policy}
    options = {"data_dir": data_dir, "verbose": verbose, "distribute": distribute}
    read_table(table, out)  # what is there must be readable: said before the work, not after
    # The first run of every network comes before the second of any.
    runs = [_settings(card, recipe, changes, limit, seed) for seed in seeds for card in cards]
    tasks = [{**task, **options} for task in _unfinished(runs, out, recipe)]
    failed = {}
    for task, outcome in train_all(tasks):
        if isinstance(outcome, FAILURES):
            failed[f"{task['model']} with seed {task['seed']} ({outcome})"] = type(outcome)
        elif is_chief:
            _write(table, out)
    rows = read_table(table, out)
    if is_chief and rows:
        _write(table, out)
        _draw(table, out / f"{table}.png")
    if failed:
        kind = next(iter(failed.values()))
        raise kind(f"Without a row in {table}.csv: {'; '.join(failed)}")
    return rows


def _unfinished(runs, out, recipe):
    """Yield the arguments of `fit` for the runs that have not ended; check those that have."""
    for settings in runs:
        folder = RunFolder(out / f"{settings['model']}-{recipe}" / f"seed-{settings['seed']}")
        if folder.has_ended:
            folder.open({**settings, "recipe": dataclasses.asdict(settings["recipe"])}, resume=True)
        else:
            yield {**settings, "out": folder.path, "resume": True}


def _write(table, out):
    with folder_lock(out, seconds=60):  # another process may be training other runs of the table
        write_rows(out / f"{table}.csv", read_table(table, out), COLUMNS)


def _draw(table, picture):
    with optional_picture(picture):
        plot_runs(_finished(table, picture.parent), picture, TABLES[table])


def read_table(table, out):
    """Return the rows of the runs of a table that have ended in the folder `out`."""
    return [_row(table, *run) for run in _finished(table, checks.path("out", out))]


def _cards(table, names=None):
    checks.one_of("table", table, TABLES)
    known = [card for card in map(get, list_models()) if card.table == TABLES[table]]
    unknown = sorted(set(names or ()) - {card.name for card in known})
    if unknown:
        raise ValueError(
            f"`models` must name networks of {TABLES[table]}: "
            f"{', '.join(card.name for card in known)}. Received: {', '.join(unknown)}."
        )
    return [card for card in known if not names or card.name in names]


def _settings(card, recipe, changes, limit, seed):
    changes = {name: value for name, value in changes.items() if value is not None}
    recipe = _recipe(card, recipe).override(**changes)
    data = {"dataset": card.dataset, "limit": limit, "seed": seed}
    return {"model": card.name, "model_options": {}, **data, "recipe": recipe}


def _recipe(card, variant):
    return get_recipe(VARIANTS[variant].format(card.recipe))


def _finished(table, out):
    """Yield (card, "authors" or "modern", `RunFolder`) of the runs that have ended, in order."""
    for card in _cards(table):
        for recipe in VARIANTS:
            parent = out / f"{card.name}-{recipe}"
            names = (path.name for path in parent.glob("seed-*"))  # copies, too: `seed-0.bak`
            for seed in sorted({int(name[5:]) for name in names if name[5:].isdecimal()}):
                folder = RunFolder(parent / f"seed-{seed}")
                if folder.has_ended:
                    yield card, recipe, folder


def _row(table, card, recipe, folder):
    settings, took = folder.read_json(), minutes(sessions(folder))
    known = {
        "table": table,
        "model": card.name,
        "recipe": recipe,
        "minutes": "" if took is None else round(took, 2),
    }
    try:
        known |= {name: settings[name] for name in ("dataset", "seed")}
        known |= {name: settings["results"][name] for name in MEASURED}
        known["epochs"] = settings["results"].get("epochs", settings["recipe"]["epochs"])
        known |= {"images": settings["limit"] or "all"}
    except KeyError as error:
        raise ValueError(
            f"{folder.settings} lacks {error}. Bring it back, or delete the folder to start anew."
        ) from error
    known["dtype_policy"] = compared_fields(settings["recipe"])["dtype_policy"]
    known |= provenance.of_run(folder, _command(known, _recipe(card, recipe)))
    return {column: known[column] for column in COLUMNS}


def _command(row, recipe):
    """Return the command that trains the run of a row again."""
    command = f"highway-keras reproduce {row['table']} --recipe {row['recipe']}"
    command += f" --model {row['model']} --runs 1 --seed {row['seed']}"
    if row["epochs"] != recipe.epochs:
        command += f" --epochs {row['epochs']}"
    if row["images"] != "all":
        command += f" --limit {row['images']}"
    if row["dtype_policy"] != recipe.dtype_policy:
        command += f" --dtype-policy {row['dtype_policy']}"
    return command
