"""Put runs of `fit` into `results/training-curves.csv`: `python -m tools.curves RUN_FOLDER...`.

A row an epoch. What a run's settings differ in from its recipe and its network is in the command
that repeats it. A run that diverged ends with a row whose losses are "diverged".
"""

import argparse

from highway_keras import models, training
from highway_keras.paper import provenance
from highway_keras.training.recipe import deciding
from highway_keras.training.recipes import choose_recipe
from tools.render import ROOT

FILE = ROOT / "results" / "training-curves.csv"
MEASURED = ("loss", "accuracy", "val_loss", "val_accuracy")
# Of the recipe, with an option of their own
FLAGS = ("epochs", "batch_size", "learning_rate", "dtype_policy")


def curve_rows(path):
    """Return the rows of a run of `fit`, an epoch each.

    The test accuracy stands in the row of the epoch whose network was tested.
    """
    folder = training.RunFolder(path)
    settings, history = folder.read_json(), folder.read_history()
    results = settings.get("results")
    what = {key: settings[key] for key in ("model", "dataset", "seed")}
    what["n"] = 1
    made = provenance.of_run(folder, command(settings))
    rows = []
    for epoch, measured in enumerate(history, start=1):
        row = {**what, "epoch": epoch, **{key: measured.get(key, "") for key in MEASURED}}
        tested = results and results["best_epoch"] == epoch
        row["test_accuracy"] = results["test_accuracy"] if tested else ""
        rows.append({**row, **made})
    if not results:
        diverged = {**dict.fromkeys(MEASURED, "diverged"), "test_accuracy": ""}
        rows.append({**what, "epoch": len(history) + 1, **diverged, **made})
    return rows


def command(settings):
    """Return the command that trains as the `run.json` of a run says."""
    parts = ["highway-keras fit", settings["model"], *_options(settings)]
    return " ".join([*parts, f"--seed {settings['seed']}"])


def _options(settings):
    recipe, name = deciding(settings["recipe"]), settings["recipe"]["name"]
    named = deciding(_stored(training.get_recipe(name)))
    changed = {key: value for key, value in recipe.items() if value != named[key]}
    card, dataset = models.get(settings["model"]), settings["dataset"]
    if dataset != card.dataset:
        yield f"--dataset {dataset}"
    if name != choose_recipe(None, card.name, dataset).name:
        yield f"--recipe {name}"
    if settings["model_options"]:
        yield f"--model-set {_pairs(settings['model_options'])}"
    for key in FLAGS:
        if key in changed:
            yield f"--{key.replace('_', '-')} {changed.pop(key)}"
    if changed:
        yield f"--set {_pairs(changed)}"
    if settings["limit"]:
        yield f"--limit {settings['limit']}"


def _stored(recipe):
    return {key: getattr(recipe, key) for key in recipe.__dataclass_fields__}


def _pairs(values):
    return " ".join(_pair(key, value) for key, value in values.items())


def _pair(key, value):
    if isinstance(value, list):  # as JSON stores tuples; a shell reads parentheses itself
        return f'"{key}={tuple(value)}"'.replace(", ", ",")
    return f"{key}={value}"


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.curves", description=__doc__)
    parser.add_argument("folders", nargs="+", metavar="RUN_FOLDER")
    for folder in parser.parse_args().folders:
        rows = curve_rows(folder)
        provenance.update_rows(FILE, rows, ("command", "epoch"))
        print(f"{len(rows)} rows of {rows[0]['command']}")


if __name__ == "__main__":
    main()
