"""The left panel of Figure 1 at the paper's length: training loss by epoch."""

from highway_keras.extras import extra
from highway_keras.io import write_figure
from highway_keras.paper.figure1 import draw_curves
from highway_keras.results import DIVERGED


def plot_finals(rows, path):
    """Draw the training loss by epoch of the better final of each search.

    Args:
        rows: Those of `final_rows`, or of the CSV file that holds them.
        path: The picture to write.
    """
    with extra("plot"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    draw_curves(axes, better_curves(rows))
    axes.axhline(1e-4, color="#999999", lw=0.8)
    axes.set(xlabel="epoch", ylabel="training loss (nats)")
    axes.grid(which="both", alpha=0.25)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    write_figure(path, figure)


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
