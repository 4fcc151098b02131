"""From the rows of `results/` to text: a number, a line, a Markdown table."""

import functools
import math
import pathlib
import re
import statistics
import string

import pandas as pd

RESULTS = pathlib.Path(__file__).parents[1] / "results"


class NotMeasured(LookupError):
    """No row says so yet."""


def rows(name, **wanted):
    """Return the rows of `results/NAME.csv` whose columns are as `wanted`, a `DataFrame`.

    Raises:
        NotMeasured: If there are none.
    """
    path = RESULTS / f"{name}.csv"
    found = _read(path) if path.exists() else pd.DataFrame(columns=list(wanted))
    for column, value in wanted.items():
        found = found[found[column] == found[column].dtype.type(value)]  # a page's "50" is 50
    if found.empty:
        raise NotMeasured(f"No row of {name}.csv fits {wanted}.")
    return found


@functools.lru_cache
def _read(path):
    return pd.read_csv(path, dtype={"trial": str})


class _Filler(string.Formatter):
    def format_field(self, value, spec):
        if isinstance(value, float) and math.isnan(value):
            return ""
        if spec and isinstance(value, str):  # in a column that also says "diverged"
            value = float(value)
        if spec.endswith("%"):
            value, spec = 100 * value, f"{spec[:-1]}f"
        return format(value, spec)


def fill(template, row):
    """Fill a template from the columns of a row, a dictionary.

    `{a}` is what the row says, `{a:.2f}` a number, `{a:.2%}` percent without the sign, and
    `{a:.2f~}` "median (lowest to highest)" of columns a, a_low and a_high. Blanks stay blank.
    """
    middle = r"{\1:\2} ({\1_low:\2} to {\1_high:\2})"
    return _Filler().vformat(re.sub(r"{(\w+):([^{}]*)~}", middle, template), (), row)


def markdown(names, lines, align="l"):
    """Return a Markdown table on lines of its own.

    Args:
        names: Those of the columns.
        lines: A list of texts for each line.
        align: l or r for each column; the last columns, if it is shorter, are aligned to the right.
    """
    rule = [{"l": "---", "r": "---:"}[letter] for letter in align.ljust(len(names), "r")]
    return "\n".join(["", *(f"| {' | '.join(line)} |" for line in (names, rule, *lines)), ""])


def table(source, names, cells, align="l"):
    """Return a function that makes a Markdown table with a line for each row.

    Args:
        source: Name of a file, or a function that returns rows as a `DataFrame` or dictionaries; it
            gets the arguments of the new function.
        names: Names of the columns, with | between them; `{}` is an argument of the new function.
        cells: The template of a line, in the same form.
        align: As for `markdown`.
    """

    def text(*arguments):
        found = rows(source) if isinstance(source, str) else source(*arguments)
        found = found.to_dict("records") if isinstance(found, pd.DataFrame) else found
        lines = [fill(cells, row).split(" | ") for row in found]
        return markdown(names.format(*arguments).split(" | "), lines, align)

    return text


def mean_and_deviation(values, form, unit=""):
    """Return "mean ± standard deviation" of several values, or the one there is."""
    if len(values) == 1:
        return f"{values[0]:{form}}{unit}"
    return f"{statistics.mean(values):{form}} ± {statistics.stdev(values):{form}}{unit}"
