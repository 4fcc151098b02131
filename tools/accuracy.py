"""Put runs of `fit` into `results/accuracy.csv`: `python -m tools.accuracy RUN_FOLDER...`.

The folders are finished runs of one network with one recipe and different seeds. Runs of a table
each have a row in its own file, which `reproduce` writes.
"""

import argparse

from highway_keras import results, training
from highway_keras.paper import provenance
from highway_keras.training.machine import minutes, sessions
from highway_keras.training.recipe import deciding
from tools.curves import command
from tools.render import ROOT

FILE = ROOT / "results" / "accuracy.csv"
KEYS = ("model", "dataset", "recipe", "epochs", "dtype_policy")


def accuracy_row(paths):
    """Return the row of the runs in the folders `paths`, a dictionary; accuracies in percent."""
    folders = [training.RunFolder(path) for path in paths]
    runs = [folder.read_json() for folder in folders]
    if len({command({**run, "seed": 0}) for run in runs}) != 1:
        raise ValueError("Runs of one row must be alike but for their seeds.")
    spread = results.spread([100 * run["results"]["test_accuracy"] for run in runs])
    took = [minutes(sessions(folder)) for folder in folders]
    row = {key: runs[0][key] for key in ("model", "dataset")}
    row |= {
        key: runs[0]["recipe"][name] for key, name in (("recipe", "name"), ("epochs", "epochs"))
    }
    row["dtype_policy"] = deciding(runs[0]["recipe"])["dtype_policy"]
    row |= {"n": spread["n"], "seeds": " ".join(str(run["seed"]) for run in runs)}
    row |= {key: f"{spread[key]:.2f}" for key in ("best", "mean", "std")}
    row["minutes"] = "" if None in took else f"{max(took):.1f}"
    repeated = f"{command(runs[0])} --runs {len(runs)}"
    return row | provenance.of_run(folders[0], repeated)


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.accuracy", description=__doc__)
    parser.add_argument("folders", nargs="+", metavar="RUN_FOLDER")
    row = accuracy_row(parser.parse_args().folders)
    provenance.update_rows(FILE, [row], KEYS)
    print(*(f"{key} {row[key]}" for key in ("model", "n", "mean", "std")))


if __name__ == "__main__":
    main()
