"""Several runs of a network in one line, as the paper states them."""

import statistics


def summarize(rows):
    """Puts together the runs of a network by one recipe, epochs and number of images.

    Args:
        rows: A row a run, with those keys and `test_accuracy`.

    Returns:
        A dictionary for each, with `n`, and `best`, `mean` and `std` in percent; the standard
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
    """`n`, `best`, `mean` and `std` of several runs; the last is 0 for a single one."""
    return {
        "n": len(percent),
        "best": max(percent),
        "mean": statistics.mean(percent),
        "std": statistics.stdev(percent) if len(percent) > 1 else 0.0,
    }


def text(row):
    """A row with `n`, `best`, `mean` and `std` as the paper writes it: "best (mean ± std)"."""
    if int(row["n"]) == 1:
        return f"{float(row['best']):.2f}"
    return f"{float(row['best']):.2f} ({float(row['mean']):.2f} ± {float(row['std']):.2f})"
