"""Cards of the networks, and links to them from the table of all."""

import re

from highway_keras import models, results


def pages():
    """Return the text of each page by its path in the site."""
    return {f"zoo/{name}.md": card(name) for name in models.list_models()}


def navigation():
    """Return the entries of the cards for mkdocs's `nav`."""
    return [{name: f"zoo/{name}.md"} for name in models.list_models()]


def links_to_cards(markdown):
    """Return `markdown` with each row of the table of networks linked to its card."""
    names = "|".join(map(re.escape, models.list_models()))
    return re.sub(rf"^\| `({names})`", r"| [`\1`](\1.md)", markdown, flags=re.MULTILINE)


def card(name):
    """Return the page of a network: size, the paper's claims, our runs, and its trained weights."""
    found = models.get(name)
    weights = [_weights(name, dataset) for dataset in found.weights]
    return "\n\n".join([f"# {name}", _facts(found), _runs(name), _use(found), *weights]) + "\n"


def _facts(card):
    arguments = ", ".join(f"{key}={value!r}" for key, value in card.arguments.items())
    name = card.factory.__name__
    factory = f"[`models.{name}({arguments})`][highway_keras.models.{name}]"
    rows = {
        "Built by": factory,
        "Layers": card.layers,
        "Parameters": f"{card.parameters:,}",
        "Multiplications": f"{card.multiplications:,} an image",
        "Images": f"{' x '.join(map(str, card.input_shape))}, {card.classes} classes",
        "Trained on": f"`{card.dataset}`, by the recipe `{card.recipe}` unless told otherwise",
        "In the paper": card.table or "not there: a twin to compare with",
        "The paper's accuracy, %": card.paper,
        "Origin": card.origin,
    }
    lines = [f"| {key} | {value} |" for key, value in rows.items() if value]
    return "\n".join(["| | |", "|---|---|", *lines])


def _runs(name):
    rows = [row for row in results.read("accuracy") if row["model"] == name]
    for table in results.TABLES:
        runs = [row for row in results.read(table) if row["model"] == name]
        rows += results.summarize([row for row in runs if row["images"] == "all"])
    if not rows:
        return "No run of ours has been recorded yet."
    lines = [
        f"| `{row['recipe']}` | {row['dtype_policy']} | {row['epochs']} "
        f"| {results.mean_text(row)} |"
        for row in rows
    ]
    header = ["| recipe | arithmetic | epochs | test accuracy, % |", "|---|---|---:|---|"]
    return "\n".join(["## Our runs", "", *header, *lines])


def _use(card):
    return "\n".join(
        [
            "## Build and train",
            "",
            "```python",
            "from highway_keras import models, training",
            "",
            f'model = models.create("{card.name}")  # uncompiled',
            f'training.fit("{card.name}", out="runs/{card.name}")',
            "```",
        ]
    )


def _weights(name, dataset):
    """Return the card of trained weights as a section."""
    title, text = models.card_text(name, dataset).split("\n", 1)
    return f"## Weights: {title.rpartition(', ')[2]}\n{text}"
