"""Put runs of `fit` into `results/training-curves.csv`: `python -m tools.curves RUN_FOLDER...`.

A row per epoch. A run that diverged ends with a row whose losses are "diverged".
"""

import argparse

from highway_keras import models, training
from highway_keras.results import DIVERGED, provenance, update_rows
from highway_keras.training.recipe import compared_fields
from tools.recipe_options import options, pairs
from tools.render import ROOT

FILE = ROOT / "results" / "training-curves.csv"
MEASURED = ("loss", "accuracy", "val_loss", "val_accuracy")


def curve_rows(path):
    """Return the rows of a run of `fit`, one per epoch.

    The test accuracy is in the row of the epoch whose network was tested.
    """
    folder = training.RunFolder(path)
    settings, history = folder.read_json(), folder.read_history()
    results = settings.get("results")
    if not results and not folder.has_diverged:
        raise SystemExit(f"{folder.path} has not ended: continue it with `fit --resume`.")
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
        rows[-1] |= dict.fromkeys(MEASURED, DIVERGED)
    return rows


def command(settings):
    """Return the command that trains as the `run.json` of a run says."""
    parts = ["highway-keras fit", settings["model"], *_options(settings)]
    return " ".join([*parts, f"--seed {settings['seed']}"])


def _options(settings):
    recipe, dataset = compared_fields(settings["recipe"]), settings["dataset"]
    if dataset != models.get(settings["model"]).dataset:
        yield f"--dataset {dataset}"
    if settings["model_options"]:
        yield f"--model-set {pairs(settings['model_options'])}"
    yield options(recipe)
    if settings["limit"]:
        yield f"--limit {settings['limit']}"
    if settings.get("weights"):
        yield f"--weights {settings['weights']}"
    if settings.get("freeze"):
        yield "--freeze"


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.curves", description=__doc__)
    parser.add_argument("folders", nargs="+", metavar="RUN_FOLDER")
    for folder in parser.parse_args().folders:
        rows = curve_rows(folder)
        update_rows(FILE, rows, ("command", "epoch"))
        print(f"{len(rows)} rows of {rows[0]['command']}")


if __name__ == "__main__":
    main()
