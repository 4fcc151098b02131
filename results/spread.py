"""Several runs of a network in one line, as the paper states them."""

import statistics


def summarize(rows):
    """Put together the runs of a network that share recipe, epochs and number of images.

    Args:
        rows: A row a run, with those keys and `test_accuracy`.

    Returns:
        A dictionary for each group, with `n`, and `best`, `mean` and `std` in percent; the standard
        deviation of a single run is 0.
    """
    groups = {}
    for row in rows:
        key = tuple(str(row[name]) for name in ("model", "recipe", "epochs", "images"))
        groups.setdefault(key, []).append(100 * float(row["test_accuracy"]))
    return [
        {
            **dict(zip(("model", "recipe", "epochs", "images"), key, strict=True)),
            **spread(percent),
        }
        for key, percent in groups.items()
    ]


def spread(percent):
    """Return `n`, `best`, `mean` and `std` of several runs; `std` of a single one is 0."""
    return {
        "n": len(percent),
        "best": max(percent),
        "mean": statistics.mean(percent),
        "std": statistics.stdev(percent) if len(percent) > 1 else 0.0,
    }


def text(row):
    """Return a row of `n`, `best`, `mean` and `std` as in the paper: "best (mean ± std)"."""
    if int(row["n"]) == 1:
        return f"{float(row['best']):.2f}"
    return f"{float(row['best']):.2f} ({float(row['mean']):.2f} ± {float(row['std']):.2f})"
