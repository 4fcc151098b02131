"""`list`: the networks, and what the paper and we measured."""

from highway_keras.cli.shared import add_command, print_table


def add_commands(commands):
    add_command(commands, "list", _list, "Show the networks of the zoo.")


def _list(options):
    from highway_keras import models, results

    measured = results.accuracies()
    rows = [("name", "dataset", "layers", "parameters", "paper %", "ours %", "weights")]
    for card in map(models.get, models.list_models()):
        size, ours = f"{card.parameters:,}", measured.get(card.name, "")
        weights = ", ".join(card.weights)
        rows.append((card.name, card.dataset, str(card.layers), size, card.paper, ours, weights))
    print_table(rows, right=(2, 3))
