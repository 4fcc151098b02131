"""The left panel of Figure 1 at the paper's length: the best trials, trained for 400 epochs."""

import json
import math
import pathlib

import numpy as np

from highway_keras import checks
from highway_keras.extras import extra
from highway_keras.files import write_figure, write_json, write_rows
from highway_keras.locks import folder_lock
from highway_keras.paper import provenance
from highway_keras.paper.figure1 import LINES
from highway_keras.paper.searches import read_searches
from highway_keras.pictures import optional_picture
from highway_keras.training import Recipe, RunFolder, TrainingDiverged, fit
from highway_keras.training.curves import COLOURS

CANDIDATES, CANDIDATE_EPOCHS, EPOCHS = 5, 40, 400
COMMAND = "highway-keras reproduce figure1 --preset finals"


def run_finals(
    searches,
    out="runs/figure1-finals",
    candidates=CANDIDATES,
    candidate_epochs=CANDIDATE_EPOCHS,
    epochs=EPOCHS,
    limit=None,
    data_dir=None,
    verbose="auto",
    depths=None,
    kinds=None,
):
    """Train the best trials of each search for longer, and the best of those to the end.

    A rate that suits ten short epochs need not suit four hundred long ones. So the five trials with
    the lowest loss are trained for 40 epochs first, and the best of them for 400. Called again, it
    continues what is in `out`.

    ```
    OUT/thin-highway-50/trial-007/   a candidate, a folder of `fit`
    OUT/thin-highway-50/chosen.json  the trial with the lowest loss of them
    OUT/thin-highway-50/final/       that trial, trained to the end
    OUT/figure1-finals.csv           training loss by epoch, for every search that has ended
    OUT/figure1-finals.png           the same as a picture
    ```

    Args:
        searches: Folder of searches, as `tuning.run_searches` leaves it.
        out: Folder.
        candidates: Number of trials of each search to train for `candidate_epochs`.
        candidate_epochs: Epochs of a candidate.
        epochs: Epochs of the best one.
        limit: Number of training images; default all.
        data_dir: Where TFDS keeps its data.
        verbose: Keras's, for each run.
        depths, kinds: Which searches, as for `read_searches`; default all.

    Returns:
        The rows of `figure1-finals.csv`, dictionaries.

    Raises:
        ValueError: If there is no search with a result, or none of a depth or a kind.
        TrainingDiverged: If all candidates of a search diverge.
    """
    checks.positive_integers(
        candidates=candidates, candidate_epochs=candidate_epochs, epochs=epochs
    )
    out, found = pathlib.Path(out), read_searches(searches, depths, kinds)
    options = {"limit": limit, "data_dir": data_dir, "verbose": verbose}
    for search in found:
        folder = out / search.name
        trials = {trial.number: trial for trial in search.completed[:candidates]}
        losses = {
            number: _train(search, trial, folder / f"trial-{number}", candidate_epochs, options)
            for number, trial in trials.items()
        }
        chosen = min(losses, key=losses.get)
        if not math.isfinite(losses[chosen]):
            raise TrainingDiverged(f"All candidates of {search.name} diverged.")
        write_json(folder / "chosen.json", chosen)
        _train(search, trials[chosen], folder / "final", epochs, options)
        draw_finals(out)
    return final_rows(out)


def _train(search, trial, folder, epochs, options):
    """Train a trial, or read what was trained; return its lowest training loss in nats."""
    values = trial.values
    recipe = Recipe(
        name="figure1-finals",
        source="The trial of a search.",
        epochs=epochs,
        batch_size=search.settings["batch_size"],
        learning_rate=values["learning_rate"],
        momentum=1 - values["one_minus_momentum"],
        decay=values["decay"],
        validation=0.0,
    )
    keys = ("activation", "transform_bias")
    network = {key: values[key] for key in keys if key in values}
    run = RunFolder(folder)
    if not run.has_ended:
        try:
            fit(
                search.name,
                search.settings["dataset"],
                recipe,
                folder,
                resume=True,
                model_options=network,
                **options,
            )
        except TrainingDiverged:
            return math.inf
    return min(row["loss"] for row in run.read_history())


def final_rows(out):
    """Return the training loss of each final by epoch, as far as it has come."""
    rows = []
    for folder in sorted(pathlib.Path(out).glob("thin-*/final")):
        kind, depth = folder.parent.name.removeprefix("thin-").rsplit("-", 1)
        trial = json.loads((folder.parent / "chosen.json").read_text(encoding="utf-8"))
        run = RunFolder(folder)
        settings = run.read_json()
        network = {"kind": kind, "depth": int(depth), "trial": trial}
        network |= {key: settings["recipe"][key] for key in ("learning_rate", "momentum", "decay")}
        for key in ("activation", "transform_bias"):
            network[key] = settings["model_options"].get(key, "")  # plain networks have no gates
        made = {"n": 1, "seed": settings["seed"], **provenance.of_run(run, COMMAND)}
        for epoch, row in enumerate(run.read_history(), start=1):
            measured = {"epoch": epoch, "loss": row["loss"], "accuracy": row["accuracy"]}
            rows.append({**network, **measured, **made})
    return sorted(rows, key=lambda row: (row["kind"], row["depth"], row["epoch"]))


def draw_finals(out):
    """Write `figure1-finals.csv` and `figure1-finals.png` of what has been trained so far."""
    out = pathlib.Path(out)
    with folder_lock(out, seconds=60):  # another process may be training another search
        rows = final_rows(out)
        write_rows(out / "figure1-finals.csv", rows)
        with optional_picture(out / "figure1-finals.png"):
            plot_finals(rows, out / "figure1-finals.png")


def plot_finals(rows, path):
    """Draw the training loss of each final by epoch.

    Args:
        rows: Those of `final_rows`, or of the CSV file that holds them.
        path: The picture to write.
    """
    with extra("plot"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    curves = {}
    for row in rows:
        curves.setdefault((row["kind"], int(row["depth"])), []).append(float(row["loss"]))
    depths = sorted({depth for _, depth in curves})
    for (kind, depth), losses in sorted(curves.items()):
        colour = COLOURS[depths.index(depth) % len(COLOURS)]
        epochs = np.arange(1, len(losses) + 1)
        axes.semilogy(epochs, losses, LINES[kind], color=colour, label=f"{kind} {depth}")
    axes.axhline(1e-4, color="#999999", lw=0.8)
    axes.set(xlabel="epoch", ylabel="training loss (nats)")
    axes.grid(which="both", alpha=0.25)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    write_figure(path, figure)
