"""Copy rows of runs into `results/`, and measure those that no command of the package writes.

    python -m tools.record accuracy RUN...          finished runs of one network, as one row
    python -m tools.record curves RUN...            runs of `fit`, a row per epoch
    python -m tools.record section4 RUN             the layers of a network of section 4
    python -m tools.record layers NETWORK           the layers of a network of the zoo, and Figure 4
    python -m tools.record exports NETWORK...       sizes and accuracies of exports
    python -m tools.record table2 FOLDER            runs of a table of the paper, by `reproduce`

A new row replaces the one of the same case.
"""

import argparse
import functools
import inspect
import json
import pathlib
import shutil
import tempfile

import numpy as np
import pandas as pd

from benchmarks.measurements import RESULTS, ROOT, of_runs, read_run
from benchmarks.serving import exported
from highway_keras import analysis, data, models, results, training
from highway_keras.analysis import report
from highway_keras.paper.tables import read_table
from highway_keras.results import update_rows
from highway_keras.results.provenance import command_line
from highway_keras.training.machine import here
from tools.pack import check_alike, write_weights

# Runs


def accuracy(options):
    """Yield the row of finished runs of one network with different seeds; accuracies in percent."""
    runs = [read_run(folder) for folder in options.what]
    check_alike(runs)
    reached = results.spread([100 * run["results"]["test_accuracy"] for run in runs])
    recipe = runs[0]["recipe"]
    yield {
        "model": runs[0]["model"],
        "dataset": runs[0]["dataset"],
        "recipe": recipe["name"],
        "epochs": recipe["epochs"],
        "dtype_policy": recipe["dtype_policy"],
        "n": reached["n"],
        "seeds": " ".join(str(run["seed"]) for run in runs),
        **{key: f"{reached[key]:.2f}" for key in ("best", "mean", "std")},
        "minutes": f"{max(run['results']['seconds'] for run in runs) / 60:.1f}",
        **of_runs(f"{fit_command(runs[0])} --runs {len(runs)}", *options.what),
    }


def curves(options):
    """Yield a row per epoch of each run.

    The test accuracy is in the row of the epoch whose network was tested.
    """
    for folder in options.what:
        run = read_run(folder)
        tested = run.get("results", {})
        where = of_runs(fit_command(run), folder)
        with np.load(pathlib.Path(folder, "state.npz")) as state:  # also of a run that diverged
            history = json.loads(str(state["run"]))["history"]
        for number, row in enumerate(history, start=1):
            is_best = tested.get("best_epoch") == number
            yield {
                **{key: run[key] for key in ("model", "dataset", "seed")},
                "n": 1,
                "epoch": number,
                **{key: row.get(key, "") for key in ("loss", "accuracy", "val_loss")},
                "val_accuracy": row.get("val_accuracy", ""),
                "test_accuracy": tested["test_accuracy"] if is_best else "",
                **where,
            }


def fit_command(run):
    """Return the command that trains as the `run.json` of a run says.

    It names every value of the recipe, so it stays true when the recipe of that name changes.
    """
    described = ("name", "source", "reasons")  # do not decide the training
    recipe = {key: value for key, value in run["recipe"].items() if key not in described}
    options = ("epochs", "batch_size", "learning_rate", "dtype_policy")  # have flags of their own
    own = run["dataset"] == models.get(run["model"]).dataset
    return command_line(
        *("highway-keras", "fit", run["model"]),
        dataset=None if own else run["dataset"],
        model_set=run.get("model_options") or None,
        **{key: recipe.pop(key) for key in options},
        set=recipe,
        limit=run.get("limit"),
        class_weight="balanced" if run.get("class_weight") else None,
        weights=run.get("start"),
        freeze=not run["weights"][0][1],  # the averages of a normalization never train
        seed=run["seed"],
    )


def table(options):
    """Yield the rows of a table of the paper, of the runs that `reproduce` left in a folder."""
    (folder,) = options.what
    yield from read_table(options.name, folder)


# Layers


def section4(options):
    """Yield a row for each layer of the network of a run.

    The network goes to `results/section4/`, its weights rounded, and the rows are those of that
    file. `docs/figures2-4.md` puts them next to what the paper says about its own networks.
    """
    (folder,) = options.what
    run, trained = read_run(folder), models.load(folder)
    start = run["model_options"]["transform_bias"]
    file = RESULTS / "section4" / f"{trained.dataset}{start:.4g}-seed{run['seed']}.keras"
    file.parent.mkdir(exist_ok=True)
    write_weights(file, trained.preprocess, trained.network, trained.settings)
    trained = models.load(file)
    images = data.load(trained.dataset, validation=0)
    where = {
        "dataset": trained.dataset,
        "searched_bias": f"at {start:g}",
        "seed": run["seed"],
        "n": 1,
        "epochs": run["recipe"]["epochs"],
        "samples": len(images.x_train),
        "test_accuracy": training.evaluate(trained.model, images).accuracy,
        "seconds": run["results"]["seconds"],
        **of_runs(fit_command(run), folder),
    }
    with tempfile.TemporaryDirectory() as folder:
        analyzed = analysis.analyze(trained.model, images.x_train, images.y_train, folder)
    columns = gate_columns(analyzed, trained.model, images.x_train, start)
    for row in layer_rows(analyzed, columns):
        yield {**row, **where}


def gate_columns(analyzed, model, x, start):
    """Return columns of `analysis.csv` for a network whose gates all started at the bias `start`.

    Gates of single samples and block outputs are those of the first 2,000 images. The classes are
    those of the paper's Figure 3: 0 and 7 for MNIST, 0 and 1 for CIFAR-100.
    """
    gates = stacked(analysis.gates(model, x[:2000]), axis=1)
    outputs = stacked(analysis.block_outputs(model, x[:2000]), axis=1)
    routing = {
        f"routing_{number}": np.abs(stacked(analyzed.mean.by_class[number])).mean(axis=1)
        for number in (0, 1, 7)
    }
    return {
        "start": start,
        "below_start": (stacked(analyzed.biases) < start).mean(axis=1),
        "open": (gates > 0.5).mean(axis=(0, 2)),
        "change": ["", *np.abs(np.diff(outputs, axis=1)).mean(axis=(0, 2))],  # from the one before
        **routing,
        "matters": [int(layer in analyzed.needed.layers) for layer in analyzed.lesions.layers],
    }


def stacked(by_block, axis=0):
    """Return arrays of blocks of equal width, a dictionary by name, as one array."""
    return np.stack(list(by_block.values()), axis=axis)


def layer_rows(analyzed, columns):
    """Yield a row for each layer of an `Analysis`, after layer 0, the intact network."""
    lesions = analyzed.lesions
    measured = pd.DataFrame(report.layer_rows(analyzed)).drop(columns=["layer", "matters"])
    columns = {"layer": range(1, 1 + len(lesions.layers)), **columns, **measured}
    intact = {"lesion_loss": lesions.intact_loss, "lesion_error": lesions.intact_error}
    yield {**dict.fromkeys(columns, ""), "layer": 0, **intact}
    yield from pd.DataFrame(columns).to_dict("records")


def layers(options):
    """Yield a row for each layer of a network with its trained weights of the zoo.

    Its Figure 4 is copied to `docs/figure4-NETWORK.png`.
    """
    (name,) = options.what
    # Before the picture, which changes this clone
    where = {**here(), "command": f"python -m tools.record layers {name} --limit {options.limit}"}
    card = models.get(name)
    trained = models.load(card.weights_file(card.dataset))
    images = data.load(card.dataset, validation=0, limit=options.limit)
    with tempfile.TemporaryDirectory() as folder:
        analyzed = analysis.analyze(trained.model, images.x_train, images.y_train, folder)
        shutil.copy(f"{folder}/figure4.png", ROOT / "docs" / f"figure4-{name}.png")
    factory = inspect.signature(functools.partial(card.factory, **card.arguments))
    start = factory.parameters["transform_bias"].default
    network = {
        "model": name,
        "dataset": card.dataset,
        "seed": card.weights_entry(card.dataset)["seeds"][0],
        "n": 1,
        "samples": len(images.x_train),
    }
    for row in layer_rows(analyzed, {"name": analyzed.lesions.layers, "start": start}):
        yield {**row, **network, **where}


# Files for other libraries


def exports(options):
    """Yield a row for each export of the networks, as verified by `export`.

    `benchmarks.serving` measures speeds.
    """
    for name in options.what:
        card = models.get(name)
        trained = models.load(card.weights_file(card.dataset))
        images = data.load(card.dataset)
        with tempfile.TemporaryDirectory() as folder:
            for format, quantize, _, verified in exported(trained, folder, images):
                yield {
                    "model": name,
                    "weights": card.dataset,
                    "format": format,
                    "quantize": quantize,
                    "bytes": verified.size,
                    "keras_accuracy": verified.keras_accuracy,
                    "accuracy": verified.accuracy,
                    "difference": verified.difference,
                    "images": verified.images,
                    "n": 1,
                    "seed": card.weights_entry(card.dataset)["seeds"][0],
                    **here(),
                    "command": f"python -m tools.record exports {name}",
                }


# By name: the function that makes rows, their file, and the columns that identify a row
RECORDS = {
    "accuracy": (accuracy, "accuracy", ("model", "dataset", "recipe", "epochs", "dtype_policy")),
    "curves": (curves, "training-curves", ("command", "hardware", "epoch")),
    "section4": (section4, "analysis", ("dataset", "searched_bias", "seed", "layer")),
    "layers": (layers, "layers", ("model", "dataset", "layer")),
    "exports": (exports, "export", ("model", "weights", "format", "quantize")),
}
RUN = ("model", "recipe", "seed", "epochs", "images", "dtype_policy")
RECORDS |= {name: (table, name, RUN) for name in results.TABLES}


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.record")
    parser.add_argument("name", choices=RECORDS, help="what to record")
    parser.add_argument("what", nargs="*", help="folders or networks")
    parser.add_argument("--limit", type=int, default=10_000, help="images of layers (%(default)s)")
    options = parser.parse_args()
    make, file, keys = RECORDS[options.name]
    for row in make(options):  # each is written as soon as it is there
        update_rows(RESULTS / f"{file}.csv", [row], keys)
        print(f"{file}.csv:", *(row[key] for key in keys))


if __name__ == "__main__":
    main()
