"""Figure 1 of the paper, from the searches on disk: tables as CSV, panels as PNG."""

from highway_keras import checks
from highway_keras.io import folder_lock, optional_picture, write_figure, write_rows
from highway_keras.paper.searches import (
    bias_rows,
    curve_rows,
    read_searches,
    top_rows,
    trial_rows,
)
from highway_keras.results.provenance import COLUMNS, of_run

COMMAND = "highway-keras reproduce figure1"


def draw_figure1(searches, out, command=COMMAND, depths=None, kinds=None):
    """Draw both panels of Figure 1, and the loss over transform bias and depth.

    Args:
        searches: Folder of searches, as `run_searches` leaves it.
        out: Folder for `figure1.png`, `figure1-trials.csv`, `figure1-curves.csv`,
            `figure1-top10.csv`, `transform-bias.png` and `transform-bias.csv`.
        command: What made the searches, for the rows.
        depths, kinds: Which searches, as for `read_searches`; default all.

    Returns:
        The rows of `figure1-top10.csv`, dictionaries.

    Raises:
        ValueError: If no search has a result, or a depth or kind has none.
    """
    which = {"depths": depths, "kinds": kinds}
    read_searches(searches, **which)  # a mistake in it leaves no folder
    out = checks.path("out", out)
    with folder_lock(out, seconds=60):  # another process may be drawing
        return _draw(read_searches(searches, **which), out, command)


def _draw(found, out, command):
    made = {(search.kind, search.depth): of_run(search.folder, command) for search in found}
    tops, trials, biases = top_rows(found), trial_rows(found), bias_rows(found)
    tables = {"figure1-top10": tops, "figure1-trials": trials, "transform-bias": biases}
    tables["figure1-curves"] = curve_rows(found)
    for name, rows in tables.items():
        if rows:
            columns = max(rows, key=len)  # those of a failed trial are fewer
            # Biases are those of highway networks.
            rows = [row | made[row.get("kind", "highway"), row["depth"]] for row in rows]
            write_rows(out / f"{name}.csv", rows, [*columns, *COLUMNS])
    with optional_picture(out / "figure1.png"):
        from highway_keras.analysis import plots  # needs Matplotlib

        curves = {(search.kind, search.depth): search.trials[0].losses for search in found}
        write_figure(out / "figure1.png", plots.plot_figure1(curves, tops))
    if biases:
        with optional_picture(out / "transform-bias.png"):
            from highway_keras.analysis import plots

            write_figure(out / "transform-bias.png", plots.plot_biases(trials, biases))
    return tops
