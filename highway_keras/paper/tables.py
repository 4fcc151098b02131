"""Tables 1 to 3: every network trained several times, one row per run.

    highway-keras reproduce table1 --recipe modern    # 0.5 to 2 hours a run on 2 CPU cores
    highway-keras reproduce table2 --recipe muon      # Highway A and Fitnet A 2 to 3, others 10
    highway-keras reproduce table3 --recipe muon      # about 10 hours a run; minutes on a GPU

docs/tables.md has what was found.
"""

import dataclasses

from highway_keras import results
from highway_keras.analysis.pictures import write_picture
from highway_keras.models import get, list_models
from highway_keras.results import TABLES, provenance
from highway_keras.runs.folder import MEASURED, RunFolder
from highway_keras.runs.machine import minutes, sessions
from highway_keras.training.engines.devices import data_parallel
from highway_keras.training.recipes import get_recipe, variants
from highway_keras.training.trainer import FAILURES, train_all
from highway_keras.util import checks
from highway_keras.util.files import folder_lock, write_rows

STYLES = {"authors": "--", "modern": "-", "muon": "-."}
LEAST = 0.01  # percent, of an error of 0 on a logarithmic axis


def reproduce_table(
    table,
    recipe="authors",
    *,
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
    OUT/table1.png             error by epoch
    ```

    `minutes` in a row is the time of training and testing; of a session that was killed, it counts
    only the finished epochs.

    Args:
        table: `"table1"`, `"table2"` or `"table3"`.
        recipe: `"authors"`, `"modern"` with a fraction of their epochs, or, for CIFAR, `"muon"`,
            which is `"modern"` with another optimizer and larger batches.
        runs: Number of runs of each network, with seeds starting at `seed`.
        models: Registered names of networks in that table; default all.
        epochs: Number of epochs; default the recipe's. A finished run goes on to more, unless its
            schedule is cosine.
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

    Examples:
        >>> from highway_keras import paper
        >>> rows = paper.reproduce_table("table1", "modern", runs=2)  # doctest: +SKIP
    """
    is_chief = not distribute or data_parallel().is_chief
    cards = {card.name: card for card in _cards(table)}
    for name in models or ():
        checks.one_of("models", name, cards)
    out = checks.path("out", out or f"runs/{table}")
    cards = [card for card in cards.values() if not models or card.name in models]
    for card in cards:
        checks.one_of("recipe", recipe, variants(card))
    seeds = checks.seeds(seed, runs)
    checks.positive_integer("limit", limit, or_none="all images")
    changes = checks.given(epochs=epochs, dtype_policy=dtype_policy)
    read_table(table, out)  # raises now, not after training, if a run there cannot be read
    options = {"data_dir": data_dir, "verbose": verbose, "distribute": distribute, "resume": True}
    tasks = []
    for seed in seeds:  # the first run of every network comes before the second of any
        for card in cards:
            folder = RunFolder(out / f"{card.name}-{recipe}" / f"seed-{seed}")
            settings = {"model": card.name, "dataset": card.dataset, "limit": limit, "seed": seed}
            recipe_of_run = get_recipe(variants(card)[recipe]).override(**changes)
            asked = {**settings, "recipe": dataclasses.asdict(recipe_of_run)}
            # `open` raises if something else than the epochs that decides the training differs.
            if not folder.has_ended or folder.open({**folder.read_json(), **asked}, resume=True):
                tasks.append({**settings, **options, "recipe": recipe_of_run, "out": folder.path})
    failed = {}
    for task, outcome in train_all(tasks):
        if isinstance(outcome, FAILURES):
            failed[f"{task['model']} with seed {task['seed']} ({outcome})"] = type(outcome)
        elif is_chief:
            _write(table, out)
    rows = read_table(table, out)
    if is_chief and rows:
        _write(table, out)
        write_picture(out / f"{table}.png", lambda plots: draw_table(plots, table, out))
    if failed:
        kind = next(iter(failed.values()))
        raise kind(f"Without a row in {table}.csv: {'; '.join(failed)}")
    return rows


def read_table(table, out):
    """Return the rows of the runs of a table that have ended in the folder `out`."""
    return [_row(table, *run) for run in _finished(table, checks.path("out", out))]


def _write(table, out):
    with folder_lock(out, seconds=60):  # another process may be training other runs of the table
        write_rows(out / f"{table}.csv", read_table(table, out))


def _cards(table):
    checks.one_of("table", table, TABLES)
    return [card for card in map(get, list_models()) if card.table == TABLES[table]]


def _finished(table, out):
    """Yield (card, one of its `variants`, `RunFolder`) of the runs that have ended, in order."""
    for card in _cards(table):
        for recipe in variants(card):
            parent = out / f"{card.name}-{recipe}"
            seeds = (path.name.removeprefix("seed-") for path in parent.glob("seed-*"))
            for seed in sorted({int(seed) for seed in seeds if seed.isdecimal()}):  # no `0.bak`
                folder = RunFolder(parent / f"seed-{seed}")
                if folder.has_ended:
                    yield card, recipe, folder


def _row(table, card, recipe, folder):
    settings, took = folder.read_json(), minutes(sessions(folder))
    named = get_recipe(variants(card)[recipe])
    try:
        row = {
            "table": table,
            "model": card.name,
            "dataset": settings["dataset"],
            "recipe": recipe,
            "seed": settings["seed"],
            "epochs": settings["results"].get("epochs", settings["recipe"]["epochs"]),
            "images": settings["limit"] or "all",
            "dtype_policy": settings["recipe"].get("dtype_policy", "float32"),
            **{name: settings["results"][name] for name in MEASURED},
            "minutes": "" if took is None else round(took, 2),
        }
    except KeyError as error:
        raise ValueError(
            f"{folder.settings} lacks {error}. Restore it, or delete the folder to start over."
        ) from error
    policy = row["dtype_policy"]
    command = provenance.command_line(
        *("highway-keras", "reproduce", table),
        recipe=recipe,
        model=card.name,
        runs=1,
        seed=row["seed"],
        epochs=row["epochs"] if row["epochs"] != named.epochs else None,
        limit=settings["limit"],
        dtype_policy=policy if policy != named.dtype_policy else None,
    )
    return row | provenance.of_runs(command, folder)


def draw_table(plots, table, out):
    """Draw the error of each run by epoch, and its test error as a point at its best epoch.

    The lines show the error on held-out images if the recipe holds some out, otherwise that in
    training, with dropout and augmentation active. Dotted: the authors' log of that network, if
    they published one. Both axes are logarithmic.
    """
    lines, colors = [], {}
    for card, recipe, folder in _finished(table, out):
        history, measured = folder.read_history(), folder.read_json()["results"]
        color = colors.setdefault(card.name, len(colors))
        key = "val_accuracy" if "val_accuracy" in history[0] else "accuracy"
        label = f"{card.name}, {recipe}: {'training' if key == 'accuracy' else 'held out'}"
        errors = [max(100 * (1 - row[key]), LEAST) for row in history]
        lines.append(plots.Line(errors, label, STYLES[recipe], color))
        tested = [max(100 * (1 - measured["test_accuracy"]), LEAST)]
        label = "test images, once a run"
        lines.append(plots.Line(tested, label, "o", color, [measured["best_epoch"]]))
    for name, log in results.authors_logs().items():
        if name in colors:
            errors = [100 * (1 - float(row["test_accuracy"])) for row in log]
            lines.append(plots.Line(errors, f"{name}, authors' log: test", ":", colors[name]))
    return plots.plot_lines(lines, TABLES[table], "error (%)", xscale="log")
