"""`list`: the networks, and what the paper and we measured."""

from highway_keras.cli.shared import add_command, print_table

COLUMNS = ("name", "dataset", "layers", "parameters", "multiplications")
COLUMNS += ("paper %", "ours %", "weights")


def add_commands(commands):
    add_command(commands, "list", _list, "Show the networks of the zoo.")


def _list(options):
    from highway_keras import models, results

    measured = results.accuracies()
    rows = [COLUMNS]
    for card in map(models.get, models.list_models()):
        counts = (card.layers, card.parameters, card.multiplications)
        counts = ("" if n is None else f"{n:,}" for n in counts)  # a user's card may not say
        accuracies = card.paper, measured.get(card.name, "")
        rows.append((card.name, card.dataset, *counts, *accuracies, ", ".join(card.weights)))
    print_table(rows, right=(2, 3, 4))
