"""`list`: the networks, and what the paper and we measured."""

from highway_keras.cli.shared import add_command, print_table


def add_commands(commands):
    add_command(commands, "list", _list, "Show the networks of the zoo.")


def _list(options):
    from highway_keras import models, results

    measured = results.accuracies()
    rows = [("name", "dataset", "layers", "parameters", "paper %", "ours %", "weights")]
    for card in map(models.get, models.list_models()):
        # A user's own network states neither depth nor size.
        depth, size = (f"{number:,}" if number else "" for number in (card.layers, card.parameters))
        ours, weights = measured.get(card.name, ""), ", ".join(card.weights)
        rows.append((card.name, card.dataset, depth, size, card.paper, ours, weights))
    print_table(rows, right=(2, 3))
