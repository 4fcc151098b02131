"""Put runs of `fit` into `results/accuracy.csv`: `python -m tools.accuracy RUN_FOLDER...`.

The folders are finished runs of one network with one recipe and different seeds. Runs of a table
each have a row in its own file, which `reproduce` writes.
"""

import argparse
import dataclasses

from highway_keras import results, training
from highway_keras.results import provenance, update_rows
from highway_keras.runs.provenance import minutes, sessions
from highway_keras.training.recipe import compared_fields
from tools.alike import common_settings
from tools.curves import command
from tools.render import ROOT

FILE = ROOT / "results" / "accuracy.csv"
KEYS = ("model", "dataset", "recipe", "epochs", "dtype_policy")


def accuracy_row(paths):
    """Return the row of the runs in the folders `paths`, a dictionary; accuracies in percent."""
    folders = [training.RunFolder(path) for path in paths]
    shared = common_settings(folders)
    _check_unchanged(shared)
    folders.sort(key=lambda folder: folder.read_json()["seed"])
    runs = [folder.read_json() for folder in folders]
    seeds = [run["seed"] for run in runs]
    if seeds != list(range(seeds[0], seeds[0] + len(seeds))):
        raise ValueError(f"The seeds of a row must follow one another. Received: {seeds}.")
    spread = results.spread([100 * run["results"]["test_accuracy"] for run in runs])
    took = [minutes(sessions(folder)) for folder in folders]
    row = {key: shared[key] for key in ("model", "dataset")}
    row |= {"recipe": shared["recipe"]["name"], "epochs": shared["recipe"]["epochs"]}
    row["dtype_policy"] = compared_fields(shared["recipe"])["dtype_policy"]
    row |= {"n": spread["n"], "seeds": " ".join(map(str, seeds))}
    row |= {key: f"{spread[key]:.2f}" for key in ("best", "mean", "std")}
    row["minutes"] = "" if None in took else f"{max(took):.1f}"
    repeated = f"{command(runs[0])} --runs {len(runs)}"
    return row | provenance.of_run(folders[0], repeated)


def _check_unchanged(settings):
    """Raise unless a run used all images and its recipe as it is, but for what the row names."""
    named = training.get_recipe(settings["recipe"]["name"])
    as_it_is = compared_fields(dataclasses.asdict(named))
    changed = {k for k, v in compared_fields(settings["recipe"]).items() if v != as_it_is[k]} - {
        *KEYS
    }
    if settings["limit"] or changed:
        raise ValueError(
            "Runs of a row must use all images and the values of their recipe. "
            f"Received: limit={settings['limit']}, changed: {', '.join(sorted(changed)) or 'none'}."
        )


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.accuracy", description=__doc__)
    parser.add_argument("folders", nargs="+", metavar="RUN_FOLDER")
    row = accuracy_row(parser.parse_args().folders)
    update_rows(FILE, [row], KEYS)
    print(*(f"{key} {row[key]}" for key in ("model", "n", "mean", "std")))


if __name__ == "__main__":
    main()
