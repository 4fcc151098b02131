"""Record rows of `results/` that no command of the package writes: `python -m tools.rows NAME ...`.

    python -m tools.rows accuracy RUN_FOLDER...    finished runs of one network, as one row
    python -m tools.rows curves RUN_FOLDER...      runs of `fit`, a row per epoch
    python -m tools.rows section4 FOLDER [TRIAL]   the layers of a network of section 4
    python -m tools.rows layers NETWORK            the layers of a network of the zoo, and Figure 4
    python -m tools.rows exports NETWORK...        sizes and accuracies of exports
    python -m tools.rows halving FOLDER            what rungs would have kept of whole searches
    python -m tools.rows table2 FOLDER             runs of a table of the paper, by `reproduce`

A new row replaces the one of the same case.
"""

import argparse
import dataclasses
import shutil
import tempfile

import keras
import numpy as np
import pandas as pd

from benchmarks.rows import RESULTS, ROOT
from benchmarks.serving import exported
from highway_keras import analysis, data, models, results, training
from highway_keras.analysis import report
from highway_keras.analysis.gating import block_starts
from highway_keras.analysis.graph import Graph
from highway_keras.models import shipped, thin
from highway_keras.paper.tables import read_table
from highway_keras.results import DIVERGED, provenance, update_rows
from highway_keras.runs.machine import minutes, sessions
from highway_keras.tuning.hypermodel import RANGES
from highway_keras.tuning.oracle import WEIGHTS
from highway_keras.tuning.search_results import read_search, read_searches
from tools.pack import common_settings, compared_fields

# Runs


def accuracy(options):
    """Yield the row of finished runs of one network with different seeds; accuracies in percent."""
    folders = [training.RunFolder(path) for path in options.what]
    folders.sort(key=lambda folder: folder.read_json()["seed"])
    shared = common_settings(folders)
    recipe = compared_fields(shared["recipe"])
    named = compared_fields(dataclasses.asdict(training.get_recipe(shared["recipe"]["name"])))
    own = {key: recipe[key] for key in ("epochs", "dtype_policy")}
    seeds = [folder.read_json()["seed"] for folder in folders]
    following = list(range(seeds[0], seeds[0] + len(seeds)))
    if shared["limit"] or recipe != {**named, **own} or seeds != following:
        raise ValueError(
            "Runs of a row must use all images and the values of their recipe, and have seeds that "
            f"follow one another. Received: {', '.join(map(str, options.what))}."
        )
    reached = [100 * folder.read_json()["results"]["test_accuracy"] for folder in folders]
    spread, took = results.spread(reached), [minutes(sessions(folder)) for folder in folders]
    yield {
        **{key: shared[key] for key in ("model", "dataset")},
        "recipe": shared["recipe"]["name"],
        **own,
        "n": spread["n"],
        "seeds": " ".join(map(str, seeds)),
        **{key: f"{spread[key]:.2f}" for key in ("best", "mean", "std")},
        "minutes": "" if None in took else f"{max(took):.1f}",
        **provenance.of_runs(f"{fit_command(shared)} --runs {len(folders)}", *folders),
    }


def curves(options):
    """Yield a row per epoch of each run; where one diverged, the last says so.

    The test accuracy is in the row of the epoch whose network was tested.
    """
    measured = ("loss", "accuracy", "val_loss", "val_accuracy")
    for path in options.what:
        folder = training.RunFolder(path)
        settings, history = folder.read_json(), folder.read_history()
        ended = settings.get("results")
        # One that goes on has not yet reached again the epoch in which it diverged.
        if not ended and settings.get("diverged") != len(history):
            raise ValueError(f"{path} has not ended: continue it with `fit --resume`.")
        run = {**{key: settings[key] for key in ("model", "dataset", "seed")}, "n": 1}
        made = provenance.of_runs(fit_command(settings), folder)
        for epoch, losses in enumerate(history, start=1):
            found = {key: losses.get(key, "") for key in measured}
            if not ended and epoch == len(history):
                found = dict.fromkeys(measured, DIVERGED)
            tested = ended and ended["best_epoch"] == epoch
            found["test_accuracy"] = ended["test_accuracy"] if tested else ""
            yield {**run, "epoch": epoch, **found, **made}


def fit_command(settings):
    """Return the command that trains as the `run.json` of a run says.

    It names every value of the recipe, so it stays true when the recipe of that name changes.
    """
    if "loss_weights" in settings:
        raise ValueError("A run with weights in the loss has no command: run.json lacks them.")
    recipe = compared_fields(settings["recipe"])
    flags = ("epochs", "batch_size", "learning_rate", "dtype_policy")  # have an option of their own
    own = settings["dataset"] == models.get(settings["model"]).dataset
    return provenance.command_line(
        *("highway-keras", "fit", settings["model"]),
        dataset=None if own else settings["dataset"],
        model_set=settings["model_options"] or None,
        **{key: recipe.pop(key) for key in flags},
        set=recipe,
        limit=settings["limit"],
        weights=settings.get("weights"),
        freeze=settings.get("freeze"),
        seed=settings["seed"],
    )


def table(options):
    """Yield the rows of a table of the paper, of the runs that `reproduce` left in a folder."""
    (folder,) = options.what
    yield from read_table(options.name, folder)


# Layers


def section4(options):
    """Yield a row for each layer of a network that `fit` or a search left in a folder.

    From a search, take the best network or, if a trial is named, that of the trial, whose
    checkpoint must have been kept. `docs/figures2-4.md` puts the rows next to what the paper says
    about its own networks.
    """
    path, *number = options.what
    folder = training.RunFolder(path)
    settings = folder.read_json()
    images = data.load(settings["dataset"], data_dir=options.data_dir, validation=0)
    model = None if number else training.SavedNetwork(folder.best).model
    if "model_options" in settings:  # a run of `fit`
        start = f"at {settings['model_options']['transform_bias']:g}"
        command = fit_command(settings)
        trained = {"trial": "", "epochs": settings["recipe"]["epochs"]}
    else:
        found = read_search(folder.path)
        low, high = settings.get("transform_bias", RANGES["transform_bias"])
        start = f"from {low:g} to {high:g}"
        named = [trial for trial in found.trials if trial.number in number]
        (trial,) = named if number else found.completed[:1]
        trained = {"trial": trial.number, "epochs": len(trial.losses)}
        if number:
            start += f", trial {trial.number}"
            network = models.create(
                thin.NAME.format(kind=found.kind, depth=found.depth),
                input_shape=images.input_shape,
                classes=images.classes,
                weights=folder.path / f"trial_{trial.number}" / WEIGHTS,
                **{key: trial.values[key] for key in ("activation", "transform_bias")},
            )
            model = keras.Sequential([data.preprocessor(("scale",), images.x_train), network])
        command = provenance.command_line(
            *("highway-keras", "search"),
            dataset=settings["dataset"],
            depth=settings["depth"],
            kind=settings["kind"],
            activation=settings.get("activations"),
            epochs=settings["epochs"],
            trials=len(found.trials),
            rungs=found.rungs.split() or None,
            **{name: settings.get(name) for name in (*RANGES, "objective")},
            limit=settings["limit"],
            seed=settings["seed"],
        )
    made = {
        "dataset": settings["dataset"],
        "searched_bias": start,
        "seed": settings["seed"],
        "n": 1,
        **trained,
        "samples": len(images.x_train),
        "test_accuracy": training.evaluate(model, images).accuracy,
        **provenance.of_runs(command, folder),
    }
    for row in gate_rows(model, images.x_train, images.y_train):
        yield {**row, **made}


def gate_rows(model, x, y):
    """Return a row for each layer, after layer 0: the loss and error of the intact network.

    Gates of single samples and block outputs are those of the first 2,000 images. The classes are
    those of the paper's Figure 3: 0 and 7 for MNIST, 0 and 1 for CIFAR-100.
    """
    biases, starts = analysis.transform_biases(model).values, block_starts(Graph(model))
    mean, lesions = analysis.mean_gates(model, x, y), analysis.lesions(model, x, y)
    overall, routing = mean.overall.values, np.abs(mean.by_class.values).mean(axis=-1)
    is_open = analysis.gates(model, x[:2000]).values > 0.5
    outputs = analysis.block_outputs(model, x[:2000]).values
    start = starts[:, None]
    closed = 1 / (1 + np.exp(-start))  # where gates start if weights have mean zero
    columns = {
        "layer": range(1, 1 + len(starts)),
        "start": starts,
        "mean_bias": biases.mean(axis=1),
        "moved": np.abs(biases - start).mean(axis=1),
        "below_start": (biases < start).mean(axis=1),
        "mean_gate": overall.mean(axis=1),
        "gate_moved": np.abs(overall - closed).mean(axis=1),
        "open": is_open.mean(axis=(0, 2)),
        "ever_open": is_open.any(axis=0).mean(axis=1),
        "change": ["", *np.abs(np.diff(outputs, axis=1)).mean(axis=(0, 2))],  # from the one before
        **{f"routing_{number}": routing[number] for number in (0, 1, 7)},
        "lesion_loss": lesions.loss,
        "lesion_error": lesions.error,
        "matters": np.isin(lesions.layers, analysis.needed_layers(lesions).layers).astype(int),
    }
    rows = pd.DataFrame(columns).to_dict("records")
    return [intact(rows[0], lesions), *rows]


def layers(options):
    """Yield a row for each layer of a network with its trained weights of the zoo.

    The analysis is that of `highway-keras analyze`, on training images; its Figure 4 is copied to
    `docs/figure4-NETWORK.png`.
    """
    (name,) = options.what
    card = models.get(name)
    saved = training.SavedNetwork(card.weights_file(card.dataset))
    images = saved.load(card.dataset, options.data_dir, validation=0, limit=options.limit)
    with tempfile.TemporaryDirectory() as folder:
        found = report.analyze(saved.model, images.x_train, images.y_train, folder)
        shutil.copy(f"{folder}/figure4.png", ROOT / "docs" / f"figure4-{name}.png")
    made = {
        "model": name,
        "dataset": card.dataset,
        "seed": shipped.find_entry(name, card.dataset)["seeds"][0],
        "n": 1,
        "samples": len(images.x_train),
        **provenance.of_command(f"python -m tools.rows layers {name} --limit {options.limit}"),
    }
    starts = block_starts(Graph(saved.model))
    keys = ("mean_bias", "mean_gate", "lesion_loss", "lesion_error")
    rows = [
        {"layer": number, "name": row["layer"], "start": start, **{key: row[key] for key in keys}}
        for number, (row, start) in enumerate(zip(report.layer_rows(found), starts, strict=True), 1)
    ]
    for row in (intact(rows[0], found.lesions), *rows):
        yield {**row, **made}


def intact(row, lesions):
    """Return the row of the intact network as layer 0, with the columns of `row`."""
    whole = {"lesion_loss": lesions.intact_loss, "lesion_error": lesions.intact_error}
    return {**dict.fromkeys(row, ""), "layer": 0, **whole}


# Files for other libraries


def exports(options):
    """Yield a row for each export of the networks, as verified by `export`.

    An export is verified on 1000 test images, or on all of them if it is quantized.
    `benchmarks.serving` measures speeds.
    """
    for name in options.what:
        dataset = models.get(name).dataset
        file = models.get(name).weights_file(dataset)
        saved = training.SavedNetwork(file)
        images = saved.load(None, options.data_dir)
        made = provenance.of_command(f"python -m tools.rows exports {name}")
        with tempfile.TemporaryDirectory() as folder:
            for (format, quantize), _, done in exported(file, folder, images):
                row = {"model": name, "weights": dataset, "format": format}
                row |= {"quantize": quantize or "", "bytes": done.size}
                keys = ("keras_accuracy", "accuracy", "difference", "images")
                row |= {**{key: getattr(done, key) for key in keys}, "n": 1}
                yield {**row, "seed": saved.settings["seeds"][0], **made}


# Searches


def halving(options):
    """Yield what rungs at a tenth and a third of the epochs would have kept of whole searches.

    A trial's losses do not depend on which others go on, so that the curves of a search without
    rungs say what one with rungs ends with: of all trials, the best 30 % at the first rung and the
    best 10 % at the second.
    """
    for search in read_searches(*options.what):
        losses = {trial.number: trial.losses for trial in search.completed}
        best = pd.DataFrame(losses).cummin()  # a trial's score so far; by epoch (rows) and trial
        epochs, trials = search.settings["epochs"], len(search.trials)
        first, second, end = (best.loc[e - 1] for e in (epochs // 10, epochs // 3, epochs))
        kept = second[first.nsmallest(3 * trials // 10).index].nsmallest(trials // 10).index
        top = end.nsmallest(trials // 10).index
        yield {
            "kind": search.kind,
            "depth": search.depth,
            **{key: search.settings[key] for key in ("dataset", "limit", "epochs", "seed")},
            "trials": trials,
            "failed": trials - len(end),
            "best": end.min(),
            "best_halved": end[kept].min(),
            "rank_of_best_halved": int(end.rank()[end[kept].idxmin()]),
            "top_kept": len(set(top) & set(kept)),
            "top_mean": end[top].mean(),
            "top_mean_halved": end[kept].mean(),
            "rank_correlation_first_second": first.corr(second, "spearman"),
            "rank_correlation_second_end": second.corr(end, "spearman"),
            "rank_correlation_first_end": first.corr(end, "spearman"),
            **provenance.of_runs("python -m tools.rows halving FOLDER", search.folder),
        }


# By name: what makes rows, the file they go to, and the columns that say which case a row is of
RECORDS = {
    "accuracy": (accuracy, "accuracy", ("model", "dataset", "recipe", "epochs", "dtype_policy")),
    "curves": (curves, "training-curves", ("command", "hardware", "epoch")),
    "section4": (section4, "analysis", ("dataset", "searched_bias", "layer")),
    "layers": (layers, "layers", ("model", "dataset", "layer")),
    "exports": (exports, "export", ("model", "weights", "format", "quantize")),
    "halving": (halving, "halving", ("kind", "depth", "epochs", "limit")),
}
RUN = ("model", "recipe", "seed", "epochs", "images", "dtype_policy")
RECORDS |= {name: (table, name, RUN) for name in results.TABLES}


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.rows")
    parser.add_argument("name", choices=RECORDS, help="what to record")
    parser.add_argument("what", nargs="*", help="folders or networks")
    parser.add_argument("--limit", type=int, default=10_000, help="images of layers (%(default)s)")
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    options = parser.parse_args()
    make, file, keys = RECORDS[options.name]
    for row in make(options):  # each is written as soon as it is there
        update_rows(RESULTS / f"{file}.csv", [row], keys)
        print(f"{file}.csv:", *(row[key] for key in keys))


if __name__ == "__main__":
    main()
