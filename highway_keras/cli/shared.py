"""What several commands share: their arguments, and how they print."""

import json

from highway_keras import checks
from highway_keras.messages import printable

FAILED = 1  # an exit code
# What shtab's scripts call to complete a file's name.
FILES = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}
DATASETS = "mnist, fashion_mnist, cifar10, cifar100, digits (embedded), an .npz file, or a folder "
DATASETS += "with train/ and test/ or directly a folder of pictures for each class"


def add_command(commands, name, handler, summary):
    """Add a command that calls `handler` with its options; return its parser."""
    command = commands.add_parser(name, help=summary, description=summary)
    command.set_defaults(handler=handler, parser=command)
    return command


def add_dataset(command, default):
    summary = f"{DATASETS} (default: {default})"
    command.add_argument("--dataset", help=summary).complete = FILES
    add_data_dir(command)


def add_network(command):
    command.add_argument(
        "network",
        metavar="MODEL_OR_FILE",
        help="a .keras file that `fit` saved, or with --weights a name that `list` shows",
    ).complete = FILES
    command.add_argument(
        "--weights", help="use the trained weights of that name, which `list` shows, such as mnist"
    )


def network_file(options):
    """Return the path of the network that the options name."""
    from highway_keras import models

    name, path = options.network, checks.path("network", options.network)
    if options.weights and path.is_file():
        raise ValueError(f"--weights is for a name that `list` shows. Received: {name}, a file.")
    if options.weights:
        return models.get(name).weights_file(options.weights)
    if path.exists() or path.suffix or len(path.parts) > 1:
        return checks.existing_file("network", path)
    trained = ", ".join(models.get(name).weights)  # nothing there is called so: a name, if known
    remedy = f"Use trained ones with --weights {trained}" if trained else "Train it with `fit`"
    raise ValueError(f"{name} is a network without weights. {remedy}, or give a .keras file.")


def add_json(command):
    command.add_argument("--json", action="store_true", help="print JSON")


def add_data_dir(command):
    command.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")


def add_limit(command, default=None):
    summary = f"number of training images (default: {'all' if default is None else default})"
    command.add_argument("--limit", type=int, default=default, help=summary)


def add_seed(command):
    command.add_argument("--seed", type=int, default=0, help="of the first run (default: 0)")


def add_dtype_policy(command):
    command.add_argument(
        "--dtype-policy",
        help="float32, or mixed_bfloat16 to train in bfloat16 (default: the recipe's)",
    )


def add_distribute(command):
    command.add_argument(
        "--distribute", action="store_true", help="train data-parallel on all devices"
    )


def print_table(rows, right=()):
    """Print rows of texts in columns; those with an index in `right` are aligned to the right."""
    rows = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        line = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(cells)]
        print("  ".join(line).rstrip())


def print_saved(path):
    """Print where a result is."""
    print(f"saved {printable(path)}")


def print_json(content):
    """Print `content` as JSON in ASCII, which every terminal and pipe can take."""
    print(json.dumps(content, indent=2))
