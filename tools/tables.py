"""Tables of README and docs, made from `results/`: `python -m tools.tables` writes them.

A page names the function of a table, and the table stands between two comments:

    <!-- table: peers -->
    <!-- end -->

A test fails if a page has another table than the rows make. Numbers in prose are typed;
`tests/claims.py` holds them to the rows.
"""

import functools
import io
import math
import re
import statistics

import pandas as pd

from benchmarks.measurements import RESULTS, ROOT
from highway_keras import models, results
from highway_keras.results import DIVERGED
from highway_keras.util.files import write_text

BLOCK = re.compile(r"<!-- table: (\w+) -->\n(.*?)<!-- end -->", re.DOTALL)

LABELS = {  # of short names in rows
    "ours": "`HighwayStack`, through the trainer",
    "dense_chain": "two Dense layers per block, Keras `fit`",
    "dense_chain_xla": "the same under XLA",
    "plain": "plain network of 71 units, 3 % more parameters, Keras `fit`",
    "torch_eager": "PyTorch eager",
    "torch_compile": "PyTorch, `torch.compile`",
    "jax_scan": "JAX by hand, `lax.scan`",
    "keras": "Keras",
    "predict": "`predict`",
    "saved_model": "SavedModel",
    "onnx": "ONNX",
    "litert": "LiteRT",
    "openvino": "OpenVINO",
    "core": "the package without an extra",
    "cpu": "with the extra `cpu`",
    "frozen": "classifier only (`--freeze`)",
    "adapters": "adapters of rank 2 and classifier",
    "all": "all of it",
    "scratch": "all of it, from scratch",
}


# Rows


@functools.cache
def read(name):
    """Return all rows of `results/NAME.csv`, a `DataFrame`; what diverged is infinite."""
    text = (RESULTS / f"{name}.csv").read_text(encoding="utf-8")
    return pd.read_csv(io.StringIO(text.replace(f",{DIVERGED}", ",inf")), dtype={"trial": str})


def rows(name, *, command="", **values):
    """Return the rows of `results/NAME.csv` with these values; `command` is a regular expression.

    Raises:
        LookupError: If there is no such row.
    """
    frame = select(read(name), **values)
    if command:
        frame = frame[frame["command"].str.contains(command)]
    if frame.empty:
        raise LookupError(f"No row of {name}.csv has {values} and a command with {command!r}.")
    return frame


def select(frame, **values):
    """Return the rows of a frame with these values."""
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


# Text


def shown(value, form=""):
    """Format a number; what is missing is blank, and what is infinite diverged."""
    if isinstance(value, float) and not math.isfinite(value):
        return "" if math.isnan(value) else DIVERGED
    return format(value, form)


def spread(mean, std, form):
    """Return "mean ± std", without a deviation that is missing."""
    return shown(mean, form) + (f" ± {std:{form}}" if math.isfinite(std) else "")


def middle(row, name, form):
    """Return "median (lowest to highest)" of three columns, blank if the first is missing."""
    value, low, high = (getattr(row, f"{name}{end}") for end in ("", "_low", "_high"))
    if math.isnan(value):
        return ""
    return f"{value:{form}} ({low:{form}} to {high:{form}})"


def table(header, align="l"):
    """Let a function that yields lines, with | between cells, return a Markdown table.

    `align` is l or r for each column; the columns that it does not name are aligned to the right.
    """

    def decorate(function):
        @functools.wraps(function)
        def text(*arguments):
            return markdown(header, function(*arguments), align)

        return text

    return decorate


def markdown(header, lines, align):
    """Return a Markdown table of a header and lines with | between cells."""
    rule = [{"l": "---", "r": "---:"}[one] for one in align.ljust(header.count("|") + 1, "r")]
    cells = ([cell.strip() for cell in line.split(" | ")] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in ([header], rule, *cells))


def pivot(frame, lines, columns, texts):
    """Return a Markdown table whose lines are the values of some columns of a frame.

    `columns` and `texts` say for each row of the frame where it stands in its line, and what.
    """
    wide = frame.assign(column=columns, text=texts)
    wide = wide.pivot_table(
        index=lines, columns="column", values="text", aggfunc="first", sort=False
    )
    wide = wide[list(dict.fromkeys(columns))]
    header = " | ".join([*lines, *wide.columns])
    texts = (" | ".join(map(str, line)) for line in wide.reset_index().itertuples(index=False))
    return markdown(header, texts, "l" * len(lines))


# The zoo


def _accuracies(card):
    return {name: 100 * card.weights_entry(name)["accuracy"] for name in card.weights}


@table("name | layers | parameters | multiplications | paper % | ours % | weights", "lrrrlll")
def zoo():
    measured = results.accuracies()
    for card in map(models.get, models.list_models()):
        paper = ", ".join(filter(None, (card.paper, card.table)))
        weights = ", ".join(f"`{name}`, {value:.2f}" for name, value in _accuracies(card).items())
        yield (
            f"`{card.name}` | {card.layers:,} | {card.parameters:,} | {card.multiplications:,} | "
            f"{paper} | {measured.get(card.name, '')} | {weights}"
        )


@table("network | data | test accuracy, %", "ll")
def trained():
    for card in map(models.get, models.list_models()):
        for name, accuracy in _accuracies(card).items():
            yield f"`{card.name}` | `{name}` | {accuracy:.2f}"


# Trainings


@table("trained | parameters | rate | held out, % | test, % | processor seconds")
def transfer():
    """At the rate that held-out images chose."""
    for row in rows("transfer", chosen=1).itertuples():
        yield (
            f"{LABELS[row.way]} | {row.parameters:,} | {row.learning_rate} | {row.held_out:.1f} | "
            f"{row.mean:.1f} ± {row.std:.1f} | {row.processor_seconds:.0f}"
        )


@table("network | gated layers left | parameters | closed, % | fine-tuned, % | from scratch, %")
def compacted():
    networks = rows("compact").sort_values(["model", "layers"], ascending=False)
    networks = networks[networks["model"] != "thin-highway-100"]  # in the picture
    for (model, layers), ways in networks.groupby(["model", "layers"], sort=False):
        first = ways.iloc[0]
        reached = {row.way: spread(row.mean, row.std, ".2f") for row in ways.itertuples()}
        yield (
            f"`{model}` | {layers} of {first['of']} | {first['parameters']:,} | "
            f"{reached['closed']} | {reached.get('tuned', '')} | {reached.get('scratch', '')}"
        )


# Depth


@table("activation | network | x 0.5 | x 1 | x 2", "ll")
def starts():
    """Networks of 50 layers: lowest and highest loss over the distributions."""
    groups = rows("starts", depth=50).groupby(
        ["activation", "kind", "transform_bias"], dropna=False
    )
    for (activation, kind, bias), runs in groups:
        losses = runs.groupby("scale")["loss"].agg(["min", "max"])
        texts = [dict.fromkeys(shown(loss, ".2f") for loss in ends) for ends in losses.to_numpy()]
        network = kind if math.isnan(bias) else f"{kind}, bias {bias:g}"
        yield f"{activation} | {network} | {' | '.join(map(' to '.join, texts))}"


def gradients():
    """The gradient's norm at 100 layers, the geometric mean over the layers."""
    norms = rows("gradient-norms", depth=100)
    columns = [f"100 layers, x {scale:g}" for scale in norms["scale"]]
    means = [statistics.geometric_mean(map(float, text.split())) for text in norms["by_layer"]]
    texts = ["overflows" if math.isnan(mean) else f"{mean:.0e}" for mean in means]
    return pivot(norms, ["kind", "activation"], columns, texts)


# Speeds and sizes


@table("100 layers | ms per step | ours / theirs | first step, s")
def peers():
    for row in rows("speed-thin", case="thin-highway-100 train").itertuples():
        yield (
            f"{LABELS[row.peer]} | {row.ms_a_step:.1f} | {middle(row, 'ours_over_peer', '.2f')} | "
            f"{row.first_step_s:.1f}"
        )


@table("format | bytes | Keras, % | exported, % | ms, one image | images/s, 256 a call")
def exports():
    """Sizes and accuracies of the exports of a network, and the speed of their runtimes."""
    speeds = rows("serving", file="mnist-highway-16-mnist.keras").set_index("format")
    for row in rows("export", model="mnist-highway-16").itertuples():
        name = f"{row.format} {shown(row.quantize)}".strip()
        name = "keras predict" if name == "keras" else name
        speed = speeds.loc[name]
        label = " ".join(LABELS.get(word, word) for word in name.split())
        yield (
            f"{label} | {row.bytes:,} | {100 * row.keras_accuracy:.2f} | "
            f"{100 * row.accuracy:.2f} | {middle(speed, 'ms_1', '.2f')} | "
            f"{256_000 / speed['ms_256']:,.0f}"
        )


@table(" | packages | MB | `import keras`, s | `import highway_keras`, s")
def footprint():
    for row in rows("footprint").itertuples():
        yield (
            f"{LABELS[row.environment]} | {row.packages} | {row.megabytes:,.0f} | "
            f"{middle(row, 'keras_s', '.1f')} | {middle(row, 'highway_keras_s', '.1f')}"
        )


def pages():
    """Return the pages that may hold tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def render(text):
    """Return a page with its tables as the rows make them."""
    return BLOCK.sub(
        lambda block: f"<!-- table: {block[1]} -->\n\n{globals()[block[1]]()}\n\n<!-- end -->", text
    )


def main():
    """Write all tables, and name the pages that change."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        rendered = render(text)
        if rendered != text:
            write_text(page, rendered)
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
