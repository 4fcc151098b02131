"""How rendered numbers come out of `results/`: rows by their columns, and Markdown tables."""

import re
import statistics

from highway_keras import results
from tools import recipe_options

NONE = "not measured yet"


def rows(name, **wanted):
    """Return the rows of `results/NAME.csv` whose columns are as `wanted`."""
    return [r for r in results.read(name) if all(r[k] == str(v) for k, v in wanted.items())]


def row(name, **wanted):
    """Return the one row of `results/NAME.csv` whose columns are as `wanted`."""
    found = rows(name, **wanted)
    if len(found) != 1:
        raise LookupError(f"{len(found)} rows of {name}.csv fit {wanted}, not one.")
    return found[0]


def curves(model):
    """Return the rows of `training-curves.csv` of a network, a list in order for each command."""
    found = {}
    for r in rows("training-curves", model=model):
        found.setdefault(r["command"], []).append(r)
    return found


def whole_runs(model):
    """Return the rows, in order, of each run of a network that held no training images out.

    They differ only in their seeds.
    """
    runs = {command: run for command, run in curves(model).items() if _is_whole(command)}
    settings = {re.sub(r" --seed \d+$", "", command) for command in runs}
    if len(settings) > 1:
        raise LookupError(f"training-curves.csv has {len(settings)} settings of {model}, not one.")
    return list(runs.values())


def _is_whole(command):
    held_out = float(recipe_options.values(command)["validation"])
    return not held_out and not recipe_options.is_limited(command)


def table(header, lines):
    """Return a Markdown table on lines of its own; a column of `---:` is aligned to the right."""
    return "\n".join(["", *(f"| {' | '.join(line)} |" for line in (*header, *lines)), ""])


def columns(names, left=1):
    """Return the two lines above a table whose columns after the first `left` hold numbers."""
    return names, ("---",) * left + ("---:",) * (len(names) - left)


def number(name, column, form, factor=1, **wanted):
    """Return a function that gives a figure of a row as text, or says that there is none yet."""

    def text():
        if not rows(name, **wanted):
            return NONE
        return format(factor * float(row(name, **wanted)[column]), form)

    return text


def spread(values, form, unit=""):
    """Return "mean ± standard deviation" of several values, or the one there is."""
    if len(values) == 1:
        return f"{values[0]:{form}}{unit}"
    return f"{statistics.mean(values):{form}} ± {statistics.stdev(values):{form}}{unit}"


def middle(found, name, form):
    """Return "median (lowest to highest)" of a row that has these three columns."""
    values = (format(float(found[f"{name}{end}"]), form) for end in ("", "_low", "_high"))
    return "{} ({} to {})".format(*values)
