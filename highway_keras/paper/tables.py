"""Tables 1 to 3: every network trained several times, one row per run.

    highway-keras reproduce table1 --recipe modern    # 0.5 to 2 hours a run on 2 CPU cores
    highway-keras reproduce table2 --recipe muon      # Highway A, Fitnet A 2 to 3, others 5 to 10
    highway-keras reproduce table3 --recipe muon      # about 10 hours a run; minutes on a GPU

docs/tables.md has the results.
"""

import itertools
import json
import pathlib

from highway_keras import data
from highway_keras.models import get, list_models
from highway_keras.results import TABLES
from highway_keras.results.provenance import command_line
from highway_keras.training import BusyError, TrainingDiverged, fit, get_recipe
from highway_keras.training.machine import joined
from highway_keras.training.recipes import variants
from highway_keras.util import checks
from highway_keras.util.files import folder_lock, write_rows


def reproduce_table(
    table,
    recipe="authors",
    *,
    seeds=range(5),
    models=None,
    epochs=None,
    dtype_policy=None,
    limit=None,
    out=None,
    data_dir=None,
    verbose="auto",
):
    """Train the networks of a table several times each, and write one row per run.

    It continues the runs in `out`: a finished run is not repeated, an interrupted one continues
    from its last epoch. The folder can be moved to another machine in between, and several
    processes can share it, each with its own runs.

    ```
    OUT/MODEL-RECIPE/seed-0/   a folder of `fit`
    OUT/table1.csv             a row for every finished run
    ```

    Returns:
        The rows of the CSV file, dictionaries.

    Raises:
        ValueError: If an argument is out of its range, or a run in `out` has other settings.
        TrainingDiverged, BusyError: After all other runs, if a run fails so.
    """
    cards = {card.name: card for card in _cards(table)}
    for name in models or ():
        checks.one_of("models", name, cards)
    cards = [card for name, card in cards.items() if not models or name in models]
    for card in cards:
        checks.one_of("recipe", recipe, variants(card))
    out = pathlib.Path(out or f"runs/{table}").expanduser()
    changes = checks.given(epochs=epochs, dtype_policy=dtype_policy)
    failures = []
    for seed, card in itertools.product(seeds, cards):
        if verbose:
            print(f"{card.name}, {recipe}, seed {seed}", flush=True)
        chosen = get_recipe(variants(card)[recipe]).override(**changes)
        loading = {"data_dir": data_dir, "validation": chosen.validation, "limit": limit}
        images = data.load(card.dataset, **loading)
        folder = out / f"{card.name}-{recipe}" / f"seed-{seed}"
        try:
            fit(
                card.name,
                images,
                chosen,
                out=folder,
                seed=seed,
                resume=True,
                settings={"limit": limit},
                verbose=verbose,
            )
        except (TrainingDiverged, BusyError) as error:
            failures.append(type(error)(f"{card.name} with seed {seed} ({error})"))
        else:
            with folder_lock(out, seconds=60):  # another process may be training other runs
                write_rows(out / f"{table}.csv", read_table(table, out))
    if failures:
        texts = "; ".join(map(str, failures))
        raise type(failures[0])(f"Without a row in {table}.csv: {texts}")
    return read_table(table, out)


def read_table(table, out):
    """Return the rows of the runs of a table that have ended in the folder `out`."""
    rows = []
    for card in _cards(table):
        for recipe in variants(card):
            folder = pathlib.Path(out).expanduser() / f"{card.name}-{recipe}"
            runs = [json.loads(path.read_text("utf-8")) for path in folder.glob("seed-*/run.json")]
            runs.sort(key=lambda run: run["seed"])
            rows += [_row(table, card, recipe, run) for run in runs if "results" in run]
    return rows


def _cards(table):
    checks.one_of("table", table, TABLES)
    return [card for card in map(get, list_models()) if card.table == TABLES[table]]


def _row(table, card, recipe, run):
    recipe_of_run, sessions = run["recipe"], run["machine"]
    usual = get_recipe(variants(card)[recipe])
    epochs, policy = sessions[-1]["last_epoch"], recipe_of_run["dtype_policy"]
    command = command_line(
        *("highway-keras", "reproduce", table),
        recipe=recipe,
        model=card.name,
        runs=1,
        seed=run["seed"],
        epochs=epochs if epochs != usual.epochs else None,
        limit=run["limit"],
        dtype_policy=policy if policy != usual.dtype_policy else None,
    )
    return {
        "table": table,
        "model": card.name,
        "dataset": run["dataset"],
        "recipe": recipe,
        "seed": run["seed"],
        "epochs": epochs,
        "images": run["limit"] or "all",
        "dtype_policy": policy,
        **{name: run["results"][name] for name in ("test_accuracy", "test_loss", "best_epoch")},
        "minutes": round(run["results"]["seconds"] / 60, 2),
        **joined(sessions),
        "command": command,
    }
