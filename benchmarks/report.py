"""What the reports of the benchmarks share."""

import argparse
import os
import pathlib
import shlex
import statistics
import sys


def spread(values, digits=".3g"):
    """Return `median (lowest-highest)` as text."""
    return f"{statistics.median(values):{digits}} ({min(values):{digits}}-{max(values):{digits}})"


def ratios(values, others):
    """Return the ratio of each turn's value to that of the other in the same turn."""
    return [a / b for a, b in zip(values, others, strict=True)]


def save(path, rows, keys, command):
    """Write rows to a CSV file, in place of those in it that have the same values of `keys`.

    Args:
        path: The file, which need not exist.
        rows: Dictionaries.
        keys: Names of the columns that identify a row.
        command: What made the rows.
    """
    from highway_keras.results import provenance, update_rows  # imports Keras

    made = provenance.of_command(command)
    update_rows(path, [{**made, **row} for row in rows], keys)


def command(module, *files, **options):
    """Return the command line that measures a row again.

    Args:
        module: What `python -m` runs.
        *files: Its arguments without a name.
        **options: Its options that the row depends on; `None` is left out.
    """
    words = ["python", "-m", module, *files]
    for name, value in options.items():
        if value is not None:
            words += [
                f"--{name.replace('_', '-')}",
                *(value if isinstance(value, list) else [value]),
            ]
    return shlex.join(map(str, words))


def middle(name, values):
    """Return the columns of several values: their median as `name`, the lowest and the highest."""
    return {
        name: statistics.median(values),
        f"{name}_low": min(values),
        f"{name}_high": max(values),
    }


def load():
    """Return how busy the machine is, as text."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def say(line):
    """Print a line of progress, which is not part of the report."""
    print(line, file=sys.stderr, flush=True)


def add_out(parser):
    """Add the option `--out`, the table of a benchmark's rows."""
    text = "also write the rows to this file, in place of those of the same cases"
    parser.add_argument("--out", metavar="CSV", type=_table, help=text)


def _table(text):
    """Return an option as the path of a file in a folder that exists: a `type` for `argparse`."""
    if not pathlib.Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"must be in a folder that exists. Received: {text}")
    return text


def positive(text):
    """Return an option as an integer of at least 1: a `type` for `argparse`."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer. Received: {text}")
    return int(text)
