"""`list`: the networks, and what the paper and we measured."""

from highway_keras.cli.shared import add_command, add_json, print_json, print_table

COLUMNS = ("name", "dataset", "layers", "parameters", "multiplications")
COLUMNS += ("paper %", "ours %", "weights")


def add_commands(commands):
    add_json(add_command(commands, "list", _list, "Show the networks of the zoo."))


def _list(options):
    from highway_keras import models, results

    measured = results.accuracies()
    cards = map(models.get, models.list_models())
    rows = [_row(card, measured.get(card.name, "")) for card in cards]
    if options.json:
        keys = [column.removesuffix(" %") for column in COLUMNS]
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        print_table([COLUMNS, *map(_texts, rows)], right=(2, 3, 4))


def _row(card, measured):
    counts = (card.layers, card.parameters, card.multiplications)
    return card.name, card.dataset, *counts, card.paper, measured, list(card.weights)


def _texts(row):
    name, dataset, *counts, paper, measured, weights = row
    counts = ("" if n is None else f"{n:,}" for n in counts)  # a user's card may not say
    return name, dataset, *counts, paper, measured, ", ".join(weights)
