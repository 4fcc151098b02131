"""Several runs of a network in one line, as the paper states them."""

import statistics

SETTING = ("model", "recipe", "epochs", "images", "dtype_policy")


def summarize(rows):
    """Put together the runs of a network that share recipe, epochs, images and arithmetic.

    Args:
        rows: A dictionary for each run, with the keys of `SETTING` and `test_accuracy`.

    Returns:
        A dictionary for each group, with the keys of `SETTING` and of `spread`.
    """
    groups = {}
    for row in rows:
        key = tuple(str(row[name]) for name in SETTING)
        groups.setdefault(key, []).append(100 * float(row["test_accuracy"]))
    return [
        dict(zip(SETTING, key, strict=True)) | spread(percent) for key, percent in groups.items()
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
    """Return a row with the keys of `spread` as the paper writes it: "best (mean ± std)"."""
    if int(row["n"]) == 1:
        return f"{float(row['best']):.2f}"
    return f"{float(row['best']):.2f} ({float(row['mean']):.2f} ± {float(row['std']):.2f})"


def mean_text(row):
    """Return the same as "mean ± std, n=…", which says nothing of the luckiest run."""
    if int(row["n"]) == 1:
        return f"{float(row['mean']):.2f}, n=1"
    return f"{float(row['mean']):.2f} ± {float(row['std']):.2f}, n={row['n']}"
