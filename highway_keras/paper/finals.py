"""The left panel of Figure 1 at the paper's length: the best trials, trained for 400 epochs.

    highway-keras reproduce figure1 --preset finals --search runs/figure1/searches

Result (docs/figure1.md, results/figure1-finals.csv): plain networks of 10 and 20 layers reach less
than 1e-4, as the paper says, and at 100 layers highway ends more than two orders of magnitude below
plain. Each final is one run with settings of its own.
"""

import dataclasses
import math

from highway_keras import checks
from highway_keras.analysis.pictures import write_picture
from highway_keras.io import folder_lock, write_rows
from highway_keras.paper.searches import read_searches
from highway_keras.results import DIVERGED, provenance
from highway_keras.training import Recipe, RunFolder, TrainingDiverged, fit

CANDIDATES, CANDIDATE_EPOCHS, EPOCHS = 5, 40, 400
LASTING = 1e-3  # of the first rate, at the last epoch


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
    """Train the best trials of each search to the end.

    The five trials with the lowest loss are trained for 40 epochs, and the best of them for 400. A
    short search prefers rates that decay fast, with which a long training soon stands still. So the
    best trial whose rate lasts, at a thousandth of its first value or more in the last epoch, is
    trained for 400 epochs as well; if it diverges, the next one is. Called again, it continues what
    is in `out`.

    ```
    OUT/thin-highway-50/trial-007/  a candidate, a folder of `fit`
    OUT/thin-highway-50/final-007/  the one with the lowest loss of them, trained to the end
    OUT/thin-highway-50/final-048/  the best trial whose rate lasts, unless that is the same
    OUT/figure1-finals.csv          training loss by epoch, for every search that has ended
    OUT/figure1-finals.png          the better final of each search as a picture
    ```

    Args:
        searches: Folder of searches, as `tuning.run_searches` leaves it.
        out: Folder.
        candidates: Number of trials of each search to train for `candidate_epochs`.
        candidate_epochs: Epochs of a candidate.
        epochs: Epochs of a final.
        limit: Number of training images; default all.
        data_dir: Where TFDS keeps its data.
        verbose: Keras's, for each run.
        depths, kinds: Which searches, as for `read_searches`; default all.

    Returns:
        The rows of `figure1-finals.csv`, dictionaries.

    Raises:
        ValueError: If there is no search with a result, or none of a depth or a kind, or one was
            made on arrays, or `out` holds runs with other settings.
        TrainingDiverged: If all candidates or all finals of a search diverge.
    """
    sizes = {"candidates": candidates, "candidate_epochs": candidate_epochs, "epochs": epochs}
    checks.positive_integers(**sizes)
    out, found = checks.path("out", out), read_searches(searches, depths, kinds)
    for search in found:
        if search.settings["dataset"] is None:
            raise ValueError(
                "`searches` must be on data with a name or a path, which the finals load again. "
                f"Received: {search.folder.path}, a search on arrays."
            )
    for search in found:
        options = {"limit": limit, "data_dir": data_dir, "verbose": verbose}
        train_finals(search, out / search.name, **sizes, **options)
        rows = _write(out, searches)
    return rows


def _write(out, searches):
    with folder_lock(out, seconds=60):  # another process may be training another search
        rows = final_rows(out, searches)
        write_rows(out / "figure1-finals.csv", rows)
        curves = better_curves(rows)
        write_picture(out / "figure1-finals.png", lambda plots: plots.plot_figure1(curves))
    return rows


def train_finals(search, folder, candidates, candidate_epochs, epochs, **options):
    """Train the best trials of a `Search`, and the best of them and the lasting one to the end.

    `folder` gets `trial-NUMBER` and `final-NUMBER`. `options` are those of `fit`.
    """
    losses = [
        _train(search, trial, folder / f"trial-{trial.number}", candidate_epochs, **options)
        for trial in search.completed[:candidates]
    ]
    if not any(map(math.isfinite, losses)):
        raise TrainingDiverged(f"All candidates of {search.name} diverged.")
    chosen = search.completed[losses.index(min(losses))]
    lasting = [t for t in search.completed if t.values["decay"] ** epochs >= LASTING]

    def ends(trial):
        final = folder / f"final-{trial.number}"
        return math.isfinite(_train(search, trial, final, epochs, **options))

    chosen_ends, lasting_ends = ends(chosen), any(map(ends, lasting))  # until one does
    if not (chosen_ends or lasting_ends):
        raise TrainingDiverged(f"The finals of {search.name} diverged.")


def _train(search, trial, folder, epochs, limit=None, **options):
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
    settings = {
        "dataset": search.settings["dataset"],
        "model_options": {key: values[key] for key in keys if key in values},
        "limit": limit,
        "seed": 0,
    }
    run = RunFolder(folder)
    if run.has_ended:
        asked = {"model": search.name, **settings, "recipe": dataclasses.asdict(recipe)}
        run.open({**run.read_json(), **asked}, resume=True)  # raises if something asked differs
    else:
        try:
            fit(search.name, recipe=recipe, out=folder, resume=True, **settings, **options)
        except TrainingDiverged:
            return math.inf
    return _lowest_loss(run)


def _lowest_loss(run):
    return min(row["loss"] for row in run.read_history())


def final_rows(out, searches):
    """Return the training loss of each final by epoch, as far as it has come.

    The last loss of a final that diverged is "diverged".
    """
    rows = []
    for path in out.glob("thin-*/final-*/run.json"):  # a folder that was just made has none yet
        folder = path.parent
        kind, depth = folder.parent.name.removeprefix("thin-").rsplit("-", 1)
        run = RunFolder(folder)
        settings = run.read_json()
        recipe, options = settings["recipe"], settings["model_options"]
        network = {"kind": kind, "depth": int(depth), "trial": folder.name.removeprefix("final-")}
        network |= {key: recipe[key] for key in ("learning_rate", "momentum", "decay")}
        # plain networks have no gates
        network |= {key: options.get(key, "") for key in ("activation", "transform_bias")}
        network |= {"images": settings["limit"] or "all", "batch_size": recipe["batch_size"]}
        command = provenance.command_line(
            *("highway-keras", "reproduce", "figure1"),
            preset="finals",
            search=searches,
            depth=depth,
            kind=kind,
            epochs=recipe["epochs"] if recipe["epochs"] != EPOCHS else None,
            limit=settings["limit"],
        )
        made = {"n": 1, "seed": settings["seed"], **provenance.of_run(run, command)}
        losses = [f"{row['loss']:.6g}" for row in run.read_history()]
        if run.has_diverged:
            losses[-1] = DIVERGED
        for epoch, loss in enumerate(losses, start=1):
            rows.append({**network, "epoch": epoch, "loss": loss, **made})
    return sorted(rows, key=lambda row: [row[key] for key in ("kind", "depth", "trial", "epoch")])


def better_curves(rows):
    """Return the losses by epoch of the final that reaches the lowest, by kind and depth.

    Finals that diverged are left out.
    """
    finals = {}
    for row in rows:
        final = row["kind"], int(row["depth"]), row["trial"]
        finals.setdefault(final, []).append(row["loss"])
    curves = {}
    for (kind, depth, _), losses in finals.items():
        if DIVERGED not in losses:
            curves.setdefault((kind, depth), []).append([float(loss) for loss in losses])
    return {search: min(found, key=min) for search, found in curves.items()}
