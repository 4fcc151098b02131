"""What an installation weighs, and how long its import takes."""

from tools.numbers.rows import NONE, columns, middle, rows, table

LABELS = {"core": "`pip install -e .`", "cpu": '`pip install -e ".[cpu]"`'}


def footprint():
    """Return the table of fresh environments: packages, megabytes, seconds of imports."""
    names = ("", "packages", "MB", "`import keras`, s", "`import highway_keras`, s")
    lines = []
    for r in rows("footprint"):
        imports = [
            middle(r, f"{module}_s", ".1f") if r[f"{module}_s"] else "needs a backend"
            for module in ("keras", "highway_keras")
        ]
        megabytes = f"{float(r['megabytes']):,.0f}"
        lines.append((LABELS[r["environment"]], r["packages"], megabytes, *imports))
    return table(columns(names), lines) if lines else NONE


NUMBERS = {"footprint": footprint}
