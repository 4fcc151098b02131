"""How commands declare their arguments, each of them once, and how they print.

```python
@cli.command("evaluate", "Measure a network.", *cli.NETWORK, cli.dataset("digits"), cli.JSON)
def evaluate(network, weights, json, **arguments): ...
```

An option's name is that of the library's argument (`dest` where they differ), so that a command
passes on `**arguments` without naming them again, and a message about an argument can name its
flag.
"""

import argparse
import json

from highway_keras import models
from highway_keras.runs import check_free, trained_file
from highway_keras.util import checks, files
from highway_keras.util.messages import did_you_mean, printable

COMMANDS = {}  # function, summary, arguments, and whether an interrupted one continues; by name
# What shtab's scripts call to complete a file's name.
FILES = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}
NAMED_DATA = ("digits", "mnist", "fashion_mnist", "cifar10", "cifar100")  # `data.NAMES`, no Keras


def command(name, summary, *arguments, continues=False):
    """Register a function as a command: `@command("fit", "Train a network.", SEED, ...)`.

    `arguments` are what `option` returns, or lists of them that exclude one another. A command that
    `continues` needs no --resume: called again after an interruption, it resumes.
    """

    def register(function):
        COMMANDS[name] = (function, summary, arguments, continues)
        return function

    return register


def option(*flags, help="", complete=None, **settings):
    """Declare an argument of `argparse`; its help names the default, and shtab uses `complete`."""
    default = settings.get("default")
    if default not in (None, []) and "default:" not in help:
        values = default if isinstance(default, list) else [default]
        named = (f"{value:.3g}" if isinstance(value, float) else str(value) for value in values)
        help = f"{help} (default: {' '.join(named)})".lstrip()
    return flags, {"help": help, **settings}, complete


class Collect(argparse.Action):
    """Add the values of an option that is given again; its default is not among them."""

    def __call__(self, parser, options, values, flag=None):
        before = getattr(options, self.dest)
        setattr(options, self.dest, values if before is self.default else [*before, *values])


def several(*flags, **settings):
    """Declare an option that takes one or more values."""
    return option(*flags, nargs="+", action=Collect, **settings)


def flag(name, help):
    """Declare an option without a value."""
    return option(name, action="store_true", help=help)


def dataset(default):
    """Declare `--dataset`, whose help names `default` as the default."""
    kinds = f"{', '.join(NAMED_DATA[1:])}, digits (embedded), an .npz file, or a folder with "
    kinds += "train/ and test/ or directly a folder of pictures for each class"
    return option("--dataset", help=f"{kinds} (default: {default})", complete=FILES)


def limit(default=None):
    """Declare `--limit`; without a default, it means all images."""
    named = "all" if default is None else default
    help = f"number of training images (default: {named})"
    return option("--limit", type=int, default=default, help=help)


def out(default):
    """Declare `--out`, a folder."""
    return option("--out", default=default, help="folder")


DATA_DIR = option(
    "--data-dir",
    help="where TensorFlow Datasets keeps its data (default: TFDS_DATA_DIR, else "
    "~/tensorflow_datasets)",
)
SEED = option("--seed", type=int, default=0, help="random seed; that of the first of several runs")
JSON = flag("--json", "print JSON")
DISTRIBUTE = flag("--distribute", "split each batch over all devices")
POPULATION = option(
    "--population",
    type=int,
    help="trials to train at once (default: all on a GPU, else 10 for each CPU core)",
)
DTYPE_POLICY = option(
    "--dtype-policy",
    help="float32, or mixed_bfloat16 to train in bfloat16 (default: the recipe's)",
)
NETWORK = (
    option(
        "network",
        metavar="MODEL_OR_FILE",
        help="a .keras file that `fit` saved, the folder of a run, or with --weights a name that "
        "`list` shows",
        complete=FILES,
    ),
    option(
        "--weights", help="the included weights of that data set, which `list` shows, such as mnist"
    ),
)


# What commands check before they import a backend, which takes seconds


def is_path(path):
    """Return whether a network is named by its path; otherwise it is a name of the zoo."""
    return path.exists() or path.suffix or len(path.parts) > 1


def network_file(network, weights):
    """Return the path of the network that `NETWORK` names."""
    path = checks.path("network", trained_file(network))
    if weights and path.is_file() and network not in models.list_models():
        raise ValueError(f"--weights is for a name that `list` shows. Received: {path}, a file.")
    if weights:
        return models.get(network).weights_file(weights)
    if is_path(path):
        return trained_network("network", path)
    trained = ", ".join(models.get(network).weights)  # raises if the name is unknown
    remedy = f"Add --weights {trained}" if trained else "Train it with `fit`"
    raise ValueError(f"{network} names an untrained network. {remedy}, or give a .keras file.")


def trained_network(name, path):
    """Return the path of a network's file; say which networks there are in a folder of runs."""
    if path.is_dir():
        runs = ", ".join(sorted(best.parent.name for best in path.glob("*/best.keras"))[:3])
        others = f", but runs: {runs}" if runs else ""
        raise FileNotFoundError(
            f"`{name}` must be a file or the folder of a run. Received: {name}={path}, which holds "
            f"no best.keras{others}."
        )
    return checks.existing_file(name, path)


def check_paths(dataset=None, out=None, resume=True):
    """Raise if there is no such data set, or the folder cannot be written or holds a run already.

    Args:
        dataset: A name or a path; `None` for the default.
        out: The folder; `None` for one that is not known yet.
        resume: Whether a run there is to be continued; `None` if a command cannot.
    """
    if dataset and dataset not in NAMED_DATA and not checks.path("dataset", dataset).exists():
        raise FileNotFoundError(
            f"`dataset` must be one of {', '.join(NAMED_DATA)}, or an existing file or folder. "
            f"{checks.received('dataset', dataset)}{did_you_mean(dataset, NAMED_DATA)}"
        )
    if out is None:
        return
    folder = checks.path("out", out)
    if not files.can_write(folder):  # now, not after the work
        raise PermissionError(
            f"`out` must be a folder that can be written. Received: out={folder}."
        )
    if not resume:
        check_free(folder, resumable=resume is not None)


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
