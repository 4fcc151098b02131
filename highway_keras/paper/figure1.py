"""Figure 1: does training loss rise with depth? A random search for each depth and kind.

    highway-keras reproduce figure1 --preset laptop    # under 45 minutes on 2 CPU cores
    highway-keras reproduce figure1 --preset paper     # 400 epochs of all images, in rungs

docs/figure1.md has what was found.
"""

import math
import statistics

from highway_keras.analysis.pictures import write_picture
from highway_keras.results.provenance import COLUMNS, of_runs
from highway_keras.tuning.chief import check_alone
from highway_keras.tuning.search_results import read_searches
from highway_keras.tuning.searches import DEPTHS, KINDS, run_searches
from highway_keras.util import checks
from highway_keras.util.files import folder_lock, write_rows

PRESETS = {
    "laptop": {"epochs": 10, "limit": 10_000},
    # As long as the curves of the paper; of 100 trials, 30 go on from epoch 40 and 10 from 133.
    "paper": {"epochs": 400, "limit": None, "rungs": {40: 30, 133: 10}},
}
TRIALS = 100  # the paper's, for each depth and kind
TOP = 10  # the paper's: the mean of the top 10 of 100
HYPERPARAMETERS = ("learning_rate", "one_minus_momentum", "decay", "activation", "transform_bias")


def run_preset(name, depths=DEPTHS, kinds=KINDS, out="runs/figure1", **arguments):
    """Run or continue the searches of a preset on MNIST.

    Args:
        name: `"laptop"` or `"paper"`.
        depths: Numbers of hidden layers.
        kinds: Any of `"highway"`, `"plain"`, `"residual"`.
        out: Folder; the searches are in `OUT/searches`.
        **arguments: As for `run_searches`. Its `epochs`, `limit`, `rungs` and `trials` default
            to those of the preset.

    Returns:
        The folder of the searches, for `draw_figure1`.

    Raises:
        ValueError: If an argument is out of its range, or `out` holds other searches.
        ImportError: With the PyTorch backend, which cannot train a population.
    """
    check_alone()
    arguments = {"trials": TRIALS, **PRESETS[checks.one_of("name", name, PRESETS)], **arguments}
    searches = checks.path("out", out) / "searches"
    run_searches(depths, kinds, out=searches, resume=True, **arguments)
    return searches


def draw_figure1(searches, out, command="highway-keras reproduce figure1", depths=None, kinds=None):
    """Draw both panels of Figure 1, and the loss over transform bias and depth.

    Args:
        searches: Folder of searches, as `run_searches` leaves it.
        out: Folder for `figure1.png`, `figure1-trials.csv`, `figure1-top10.csv` and
            `transform-bias.png`.
        command: What made the searches, for the rows.
        depths, kinds: Which searches, as for `read_searches`; default all.

    Returns:
        The rows of `figure1-top10.csv`, dictionaries.

    Raises:
        ValueError: If there are no searches of the depths and kinds.
        TrainingDiverged: If all trials of all of them diverged.
    """
    out = checks.path("out", out)
    with folder_lock(out, seconds=60):  # another process may be drawing
        found = read_searches(searches, depths, kinds)
        made = {(search.kind, search.depth): of_runs(command, search.folder) for search in found}
        tops, trials = top_rows(found), trial_rows(found)
        for name, rows in {"figure1-top10": tops, "figure1-trials": trials}.items():
            columns = max(rows, key=len)  # those of a failed trial are fewer
            rows = [row | made[row["kind"], row["depth"]] for row in rows]
            write_rows(out / f"{name}.csv", rows, [*columns, *COLUMNS])
        write_picture(
            out / "figure1.png",
            lambda plots: plots.plot_figure1(
                {(search.kind, search.depth): search.trials[0].losses for search in found}, tops
            ),
        )
        if any(search.kind == "highway" for search in found):
            write_picture(out / "transform-bias.png", lambda plots: plots.plot_biases(trials))
    return tops


def top_rows(searches):
    """Return the rows of the right panel: the mean of the top 10 of each search, and its settings.

    If fewer than 10 trials ran for all epochs, mean and deviation are blank.
    """
    rows = []
    for search in searches:
        scores = [trial.score for trial in search.completed]
        ends = [t.score for t in search.completed if len(t.losses) == search.settings["epochs"]]
        top, known = ends[:TOP], len(ends) >= TOP
        row = {"kind": search.kind, "depth": search.depth, "trials": len(search.trials)}
        row |= {"failed": len(search.trials) - len(scores), "best": scores[0]}
        row["top10_mean"] = statistics.fmean(top) if known else ""
        row["top10_std"] = statistics.stdev(top) if known else ""
        row["median"] = statistics.median(scores)
        rows.append(row | _settings(search))
    return rows


def trial_rows(searches):
    """Return every trial: its hyperparameters, its score, and its training loss by epoch."""
    rows = []
    for search in searches:
        for trial in sorted(search.trials, key=lambda trial: int(trial.number)):
            row = {"kind": search.kind, "depth": search.depth, "trial": trial.number}
            row |= {name: trial.values.get(name, "") for name in HYPERPARAMETERS}
            row |= {"score": trial.score if math.isfinite(trial.score) else ""}
            row |= _settings(search)
            row |= {f"loss_{n}": loss for n, loss in enumerate(trial.losses, start=1)}
            rows.append(row)
    return rows


def _settings(search):
    """Return the settings of a `Search` besides its kind and depth."""
    keys = ("dataset", "limit", "epochs", "batch_size", "seed")
    return {key: search.settings[key] for key in keys} | {"rungs": search.rungs}
