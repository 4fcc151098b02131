"""Figure 1 of the paper, from the searches on disk: tables as CSV, panels as PNG."""

from highway_keras import checks
from highway_keras.extras import extra
from highway_keras.io import folder_lock, optional_picture, write_figure, write_rows
from highway_keras.paper.bias_plot import plot_biases
from highway_keras.paper.searches import (
    bias_rows,
    curve_rows,
    read_searches,
    top_rows,
    trial_rows,
)
from highway_keras.results.provenance import COLUMNS, of_run
from highway_keras.training.curves import COLOURS

COMMAND = "highway-keras reproduce figure1"
LINES = {"highway": "-", "plain": "--", "residual": ":"}


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
        _draw_panels(found, tops, out / "figure1.png")
    if biases:
        with optional_picture(out / "transform-bias.png"):
            plot_biases(trials, biases, out / "transform-bias.png")
    return tops


def _draw_panels(searches, tops, path):
    with extra("plot"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    depths = sorted({search.depth for search in searches})
    draw_curves(left, {(s.kind, s.depth): s.trials[0].losses for s in searches})
    left.set(title="best trial", xlabel="epoch", ylabel="training loss (nats)")
    left.xaxis.get_major_locator().set_params(integer=True)
    _draw_tops(right, tops, depths)
    for axes in (left, right):
        axes.grid(which="both", alpha=0.25)
    # Up to twelve curves leave no room for their names: they go below, a column per kind.
    kinds = {search.kind for search in searches}
    layout = {"loc": "outside lower center", "ncols": len(kinds)}
    figure.legend(*left.get_legend_handles_labels(), frameon=False, fontsize="small", **layout)
    write_figure(path, figure)


def draw_curves(axes, curves):
    """Draw losses by epoch: `curves` has them by kind and depth, a line style and a color."""
    depths = sorted({depth for _, depth in curves})
    for (kind, depth), losses in sorted(curves.items()):
        axes.semilogy(
            range(1, len(losses) + 1),
            losses,
            LINES[kind],
            color=COLOURS[depths.index(depth) % len(COLOURS)],
            label=f"{kind} {depth}",
        )


def _draw_tops(axes, tops, depths):
    for kind, line in LINES.items():
        rows = [row for row in tops if row["kind"] == kind and row["top10_mean"] != ""]
        if rows:
            means = [row["top10_mean"] for row in rows]
            axes.semilogy([r["depth"] for r in rows], means, f"o{line}", color="k", label=kind)
    axes.set(title="mean of the top 10", xlabel="hidden layers")
    axes.set_xticks(depths)
    if axes.lines:
        axes.legend(frameon=False, fontsize="small")
    else:
        place = {"transform": axes.transAxes, "ha": "center"}
        axes.text(0.5, 0.5, "no search with ten successful trials", **place)
