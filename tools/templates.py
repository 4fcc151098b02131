"""From the rows of `results/` to text: a number, a line, a Markdown table."""

import functools
import io
import math
import re
import string

import pandas as pd

from benchmarks.rows import RESULTS
from highway_keras.results import DIVERGED

LABELS = {  # what rows call by short names
    "ours": "`HighwayStack`, through the trainer",
    "dense_chain": "two Dense layers per block, Keras `fit`",
    "dense_chain_xla": "the same under XLA",
    "plain": "plain network of 71 units, 3 % more parameters, Keras `fit`",
    "torch_eager": "PyTorch eager",
    "torch_compile": "PyTorch, `torch.compile`",
    "jax_scan": "JAX by hand, `lax.scan`",
    "products": "the matrix products alone, as a loop",
    "keras": "Keras",
    "predict": "`predict`",
    "saved_model": "SavedModel",
    "onnx": "ONNX",
    "litert": "LiteRT",
    "openvino": "OpenVINO",
    "grpc": "gRPC",
    "http": "HTTP",
    "core": "the package without an extra",
    "cpu": "with the extra `cpu`",
    "frozen": "classifier only (`--freeze`)",
    "adapters": "adapters of rank 2 and classifier",
    "all": "all of it",
    "scratch": "all of it, from scratch",
}


class NotMeasured(LookupError):
    """No row says so yet."""


def rows(name, **wanted):
    """Return the rows of `results/NAME.csv` that have the `wanted` values, a `DataFrame`.

    For the column `command`, the value is a regular expression to search for. Values that diverged
    become infinite.
    """
    path = RESULTS / f"{name}.csv"
    found = _read(path) if path.exists() else pd.DataFrame(columns=list(wanted))
    for column, value in wanted.items():
        if column == "command":
            found = found[found[column].str.contains(value)]
        else:
            found = found[found[column] == found[column].dtype.type(value)]  # a page's "50" is 50
    if found.empty:
        raise NotMeasured(f"No row of {name}.csv fits {wanted}.")
    return found


@functools.lru_cache
def _read(path):
    text = path.read_text(encoding="utf-8").replace(f",{DIVERGED}", ",inf")
    return pd.read_csv(io.StringIO(text), dtype={"trial": str})


def long_trials():
    """Yield each long search of Figure 1: depth, kind, all its trials, the best first."""
    for (depth, kind), found in rows("figure1-long").groupby(["depth", "kind"]):
        yield depth, kind, found.sort_values("score")


def whole_trainings():
    """Yield the row and the curve of every whole training of Tables 2 and 3."""
    found = pd.concat([rows(name, images="all") for name in ("table2", "table3")])
    for row in found.to_dict("records"):
        optimizer = "muon" if row["recipe"] == "muon" else "sgd"
        command = f"--epochs {row['epochs']} .*optimizer={optimizer} .*validation=0.0 --seed"
        yield row, rows("training-curves", model=row["model"], seed=row["seed"], command=command)


def groups(found, *columns):
    """Yield a dictionary per group of rows that agree in `columns`; other columns stay `Series`."""
    for _, group in found.groupby(list(columns), sort=False):
        yield {**group, **group[list(columns)].iloc[0]}


class _Filler(string.Formatter):
    def get_field(self, name, arguments, row):
        value, key = super().get_field(name, arguments, row)
        return (value() if callable(value) else value), key

    def convert_field(self, value, conversion):
        if conversion == "l":
            return " ".join(LABELS.get(word, word) for word in value.split())
        return super().convert_field(value, conversion)

    def format_field(self, value, spec):
        if isinstance(value, pd.Series):
            return ", ".join(self.format_field(one, spec) for one in value)
        if isinstance(value, float) and not math.isfinite(value):
            return "" if math.isnan(value) else DIVERGED
        if spec.endswith("%"):
            value, spec = 100 * value, f"{spec[:-1]}f"
        return format(value, spec)


def fill(template, row):
    """Fill a template from the columns of a row, a dictionary, or of several, a `DataFrame`.

    `{a}` is what the row says, `{a!l}` its label, `{a:.2f}` a number, `{a:.2%}` percent without
    the sign, and `{a:.2f~}` "median (lowest to highest)" of columns a, a_low and a_high. Of several
    rows, `{a.min:.2f}` is the lowest. Blanks stay blank, without a ± before them.
    """
    middle = r"{\1:\2} ({\1_low:\2} to {\1_high:\2})"
    template = re.sub(r"{(\w+):([^{}]*)~}", middle, template)
    text = _Filler().vformat(template, (), row).replace(" ( to )", "")
    return re.sub(r" ± (?!\d)", "", text)


def markdown(names, lines, align):
    """Return a Markdown table on lines of its own.

    `align` is l or r for each column; if it is shorter, the last columns are aligned to the right.
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
        lines = [[cell.strip() for cell in fill(cells, row).split(" | ")] for row in found]
        return markdown(names.format(*arguments).split(" | "), lines, align)

    return text


def across(found, lines, name, cell):
    """Return a Markdown table of a `DataFrame` with a line for each value of the columns `lines`.

    Each row fills a cell: `name` is the template of its column's name, `cell` that of its text.
    """
    made = {}
    for row in found.to_dict("records"):
        line = made.setdefault(tuple(str(row[key]) for key in lines), {})
        line[fill(name, row)] = fill(cell, row)
    names = list(dict.fromkeys(name for line in made.values() for name in line))
    texts = [[*key, *(line[name] for name in names)] for key, line in made.items()]
    return markdown([*lines, *names], texts, "l" * len(lines))
