"""Figure 1: does training loss rise with depth? A random search for each depth and kind.

    highway-keras reproduce figure1 --preset laptop    # under 45 minutes on 2 CPU cores
    highway-keras reproduce figure1 --preset paper     # 400 epochs of all images, in rungs

docs/figure1.md has the results.
"""

import math
import pathlib
import statistics

from highway_keras import data, plots
from highway_keras.models.thin import DEPTHS, KINDS
from highway_keras.results.provenance import command_line
from highway_keras.tuning import HighwayHyperModel, read_searches, run_searches
from highway_keras.util import checks
from highway_keras.util.files import folder_lock, write_picture, write_rows

PRESETS = {
    "laptop": {"epochs": 10, "limit": 10_000},
    # As long as the curves of the paper; of 100 trials, 30 go on from epoch 40 and 10 from 133.
    "paper": {"epochs": 400, "limit": None, "rungs": {40: 30, 133: 10}},
}
TOP = 10  # the paper's: the mean of the top 10 of 100
HYPERPARAMETERS = ("learning_rate", "one_minus_momentum", "decay", "activation", "transform_bias")


def reproduce_figure1(
    preset="laptop",
    *,
    depths=None,
    kinds=None,
    trials=100,
    epochs=None,
    rungs=None,
    limit=None,
    seed=0,
    population=None,
    out="runs/figure1",
    data_dir=None,
    verbose="auto",
):
    """Search for networks of each kind and depth on MNIST, and draw Figure 1.

    Call it again to continue the searches, which are in `OUT/searches`.

    Args:
        preset: `"laptop"`, 10 epochs of 10,000 images, or `"paper"`, 400 epochs of all, in rungs.
        depths: Numbers of hidden layers. Default: 10, 20, 50, 100.
        kinds: Any of `"highway"`, `"plain"`, `"residual"`. Default: the first two.
        trials: Trials of each search.
        epochs, rungs, limit: Epochs of a trial, `{epoch: trials}` that continue, and number of
            training images. Default: the preset's.
        seed: Seed of each search.
        population: Number of trials to train together. Default: as in `PopulationRandomSearch`.
        out: Folder, as for `draw_figure1`.
        data_dir: Where TFDS keeps its data.
        verbose: `"auto"` for a bar of progress, 0 for none.

    Returns:
        The rows of `figure1-top10.csv`, dictionaries.

    Raises:
        ValueError: If an argument is out of its range, or `out` holds another search.
    """
    settings = PRESETS[checks.one_of("preset", preset, PRESETS)]
    settings = settings | checks.given(epochs=epochs, rungs=rungs, limit=limit)
    options = {"preset": preset, "depth": depths, "kind": kinds, "trials": trials, "seed": seed}
    options |= {"epochs": epochs, "limit": limit}
    options["rungs"] = rungs and [f"{epoch}:{count}" for epoch, count in dict(rungs).items()]
    command = command_line("highway-keras", "reproduce", "figure1", **options)
    limit = settings.pop("limit")
    images = data.load("mnist", data_dir=data_dir, validation=0.0, limit=limit)
    networks = [
        HighwayHyperModel(depth, kind) for kind in kinds or KINDS for depth in depths or DEPTHS
    ]
    out = pathlib.Path(out).expanduser()
    folders = run_searches(
        images,
        networks,
        **settings,
        out=out / "searches",
        resume=True,
        verbose=verbose,
        max_trials=trials,
        seed=seed,
        population=population,
    )
    searches = [one for one in read_searches(out / "searches") if one.folder in folders]
    return draw_figure1(searches, out, command)


def draw_figure1(searches, out, command="highway-keras reproduce figure1"):
    """Draw both panels of Figure 1, and the loss over transform bias and depth.

    Args:
        searches: What `tuning.read_searches` returns.
        out: Folder for `figure1.png`, `figure1-trials.csv`, `figure1-top10.csv` and
            `transform-bias.png`.
        command: The command that repeats the searches, for the rows.

    Returns:
        The rows of `figure1-top10.csv`, dictionaries.

    Raises:
        ValueError: If a search does not rank by the training loss.
    """
    out = pathlib.Path(out).expanduser()
    for search in searches:
        if search.settings["objective"] != "loss":
            raise ValueError(
                "`searches` must rank by the training loss, as the paper's do. Received: "
                f"{search.folder}, ranked by {search.settings['objective']}."
            )
    tops = [{**_top_row(search), **search.machine, "command": command} for search in searches]
    trials = [
        {**row, **search.machine, "command": command}
        for search in searches
        for row in _trial_rows(search)
    ]
    with folder_lock(out, seconds=60):  # another process may be drawing
        write_rows(out / "figure1-top10.csv", tops)
        write_rows(out / "figure1-trials.csv", trials, columns=list(max(trials, key=len)))
        best = {(s.kind, s.depth): s.completed[0].losses for s in searches if s.completed}
        write_picture(out / "figure1.png", lambda: plots.plot_figure1(best, tops))
        if any(search.kind == "highway" for search in searches):
            write_picture(out / "transform-bias.png", lambda: plots.plot_biases(trials))
    return tops


def _top_row(search):
    """Return a point of the right panel: the mean of the ten best, and the settings of a search.

    If fewer than ten trials ran for all epochs, mean and deviation are blank.
    """
    scores = [trial.score for trial in search.completed]
    ends = [t.score for t in search.completed if len(t.losses) == search.settings["epochs"]]
    top = ends[:TOP] if len(ends) >= TOP else []
    return {
        "kind": search.kind,
        "depth": search.depth,
        "trials": len(search.trials),
        "failed": len(search.trials) - len(scores),
        "best": scores[0] if scores else "",
        "top10_mean": statistics.fmean(top) if top else "",
        "top10_std": statistics.stdev(top) if top else "",
        "median": statistics.median(scores) if scores else "",
        **_settings(search),
    }


def _trial_rows(search):
    """Return every trial: its hyperparameters, its score, and its training loss by epoch."""
    rows = []
    for trial in sorted(search.trials, key=lambda trial: int(trial.number)):
        row = {"kind": search.kind, "depth": search.depth, "trial": trial.number}
        row |= {name: trial.values.get(name, "") for name in HYPERPARAMETERS}
        row |= {"score": trial.score if math.isfinite(trial.score) else "", **_settings(search)}
        row |= {f"loss_{epoch}": loss for epoch, loss in enumerate(trial.losses, start=1)}
        rows.append(row)
    return rows


def _settings(search):
    """Return the settings of a search besides its kind and depth."""
    settings = {key: search.settings[key] for key in ("dataset", "epochs", "batch_size", "seed")}
    return {**settings, "limit": search.settings["train_images"], "rungs": search.settings["rungs"]}
