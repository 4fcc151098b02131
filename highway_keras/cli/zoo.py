"""`list`: the networks, and what the paper and we measured."""

from highway_keras import models, results
from highway_keras.cli import shared as cli

COLUMNS = ("name", "dataset", "layers", "parameters", "multiplications")
COLUMNS += ("paper %", "ours %", "weights")


@cli.command("list", "Show the networks of the zoo.", cli.JSON)
def show(json):
    measured = results.accuracies()
    rows = []
    for card in map(models.get, models.list_models()):
        counts = (card.layers, card.parameters, card.multiplications)
        ours = measured.get(card.name, "")
        rows.append((card.name, card.dataset, *counts, card.paper, ours, list(card.weights)))
    if json:
        keys = [column.removesuffix(" %") for column in COLUMNS]
        cli.print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    lines = [COLUMNS]
    for name, dataset, *counts, paper, ours, weights in rows:
        counts = ("" if n is None else f"{n:,}" for n in counts)  # a user's card may not say
        lines.append((name, dataset, *counts, paper, ours, ", ".join(weights)))
    cli.print_table(lines, right=(2, 3, 4))
