"""The left panel of Figure 1 at the paper's length: training loss by epoch."""

from highway_keras.io import write_figure
from highway_keras.results import DIVERGED


def plot_finals(rows, path):
    """Draw the training loss by epoch of the better final of each search.

    Args:
        rows: Those of `final_rows`, or of the CSV file that holds them.
        path: The picture to write.
    """
    from highway_keras.analysis.plots import plot_figure1  # needs Matplotlib

    write_figure(path, plot_figure1(better_curves(rows)))


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
