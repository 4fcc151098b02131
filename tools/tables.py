"""Tables of README and docs, made from `results/`: `python -m tools.tables` writes them.

A page names the function of a table, and the table stands between two comments:

    <!-- table: peers -->
    <!-- end -->

A test fails if a page has another table than the rows make. Numbers in prose are typed;
`tests/claims.py` holds them to the rows.
"""

import math
import re
import statistics

from benchmarks.measurements import ROOT
from highway_keras import models, results
from highway_keras.util.files import write_text
from tools import figure1
from tools.frames import rows, select, shown, summary

BLOCK = re.compile(r"<!-- table: (\w+) -->\n(.*?)<!-- end -->", re.DOTALL)

LABELS = {  # of short names in rows
    "ours": "`HighwayStack`, through the trainer",
    "dense_chain": "two Dense layers per block, in Keras",
    "dense_chain_xla": "the same under XLA",
    "plain": "plain network of 71 units, 3 % more parameters, in Keras",
    "torch_eager": "PyTorch eager",
    "torch_compile": "PyTorch, `torch.compile`",
    "jax_scan": "JAX by hand, `lax.scan`",
    "keras": "Keras",
    "predict": "`predict`",
    "saved_model": "SavedModel",
    "onnx": "ONNX",
    "litert": "LiteRT",
    "openvino": "OpenVINO",
    "frozen": "classifier only (`--freeze`)",
    "adapters": "adapters of rank 2 and classifier",
    "all": "all of it",
    "scratch": "all of it, from scratch",
}


def middle(row, name, form):
    """Return "median (lowest to highest)" of three columns."""
    value, low, high = (getattr(row, f"{name}{end}") for end in ("", "_low", "_high"))
    return f"{value:{form}} ({low:{form}} to {high:{form}})"


def zoo():
    yield "name | layers | parameters | multiplications | paper % | ours % | weights"
    yield "--- | ---: | ---: | ---: | --- | --- | ---"
    measured = results.accuracies()
    for card in map(models.get, models.list_models()):
        paper = ", ".join(filter(None, (card.paper, card.table)))
        weights = ", ".join(f"`{name}`, {percent(card, name):.2f}" for name in card.weights)
        yield (
            f"`{card.name}` | {card.layers:,} | {card.parameters:,} | {card.multiplications:,} | "
            f"{paper} | {measured.get(card.name, '')} | {weights}"
        )


def trained():
    yield "network | data | test accuracy, %"
    yield "--- | --- | ---:"
    for card in map(models.get, models.list_models()):
        for name in card.weights:
            yield f"`{card.name}` | `{name}` | {percent(card, name):.2f}"


def percent(card, dataset):
    """Return the test accuracy of a network with its weights for a data set."""
    return 100 * card.weights_entry(dataset)["accuracy"]


def figure1_400():
    """What trainings of 400 epochs have come to, by depth."""
    ended = figure1.trainings().dropna(subset="loss_400").groupby(["kind", "depth"])
    leaders, lowest = figure1.epoch_400(), figure1.lowest(figure1.to_the_end().loc["usual"], 400)
    yield "after 400 epochs | 10 layers | 20 | 50 | 100"
    yield "--- | ---: | ---: | ---: | ---:"
    for kind in figure1.KINDS:
        groups = [ended.get_group((kind, depth))["score"] for depth in figure1.DEPTHS]
        yield f"**{kind}**: trainings | {' | '.join(str(len(losses)) for losses in groups)}"
        ten = [summary(leaders[kind, depth], ".1e") for depth in figure1.DEPTHS]
        yield f"the ten that led at the last rung | {' | '.join(ten)}"
        again = select(figure1.again(), kind=kind)
        four = [summary(select(again, depth=d)["score"], ".1e") for d in figure1.DEPTHS]
        yield f"the winner, four more times | {' | '.join(four)}"
        for trial in ("025", "023") if kind == "highway" else ():
            losses = [lowest[kind, depth, trial] for depth in figure1.DEPTHS]
            cells = " | ".join(f"{loss:.1e}" for loss in losses)
            yield f"one setting at every depth, trial {trial} | {cells}"


def transfer():
    """At the rate that held-out images chose."""
    yield "trained | parameters | rate | held out, % | test, % | processor seconds"
    yield "--- | ---: | ---: | ---: | ---: | ---:"
    for row in rows("transfer", chosen=1).itertuples():
        yield (
            f"{LABELS[row.way]} | {row.parameters:,} | {row.learning_rate} | {row.held_out:.1f} | "
            f"{row.mean:.1f} ± {row.std:.1f} | {row.processor_seconds:.0f}"
        )


def starts():
    """Networks of 50 layers: lowest and highest loss over the distributions."""
    yield "activation | network | x 0.5 | x 1 | x 2"
    yield "--- | --- | ---: | ---: | ---:"
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
    yield "kind | activation | 100 layers, x 0.5 | 100 layers, x 1 | 100 layers, x 2"
    yield "--- | --- | ---: | ---: | ---:"
    norms = rows("gradient-norms", depth=100).sort_values("scale", kind="stable")
    for (kind, activation), scales in norms.groupby(["kind", "activation"], sort=False):
        by_layer = ([float(norm) for norm in text.split()] for text in scales["by_layer"])
        means = map(statistics.geometric_mean, by_layer)
        texts = ("overflows" if math.isnan(mean) else f"{mean:.0e}" for mean in means)
        yield f"{kind} | {activation} | {' | '.join(texts)}"


def peers():
    yield "100 layers | ms per step | ours / theirs | first step, s"
    yield "--- | ---: | ---: | ---:"
    for row in rows("speed-thin", case="thin-highway-100 train").itertuples():
        yield (
            f"{LABELS[row.peer]} | {row.ms_a_step:.1f} | {middle(row, 'ours_over_peer', '.2f')} | "
            f"{row.first_step_s:.1f}"
        )


def exports():
    """Sizes and accuracies of the exports of a network, and the speed of their runtimes."""
    yield "format | bytes | Keras, % | exported, % | ms, one image | images/s, 256 a call"
    yield "--- | ---: | ---: | ---: | ---: | ---:"
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


def pages():
    """Return the pages that may hold tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def render(text):
    """Return a page with its tables as the rows make them."""

    def table(block):
        lines = "\n".join(f"| {line} |" for line in globals()[block[1]]())
        return f"<!-- table: {block[1]} -->\n\n{lines}\n\n<!-- end -->"

    return BLOCK.sub(table, text)


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
