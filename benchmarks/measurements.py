"""What the benchmarks share around a measurement: options, medians with their spread, rows."""

import argparse
import json
import os
import pathlib
import statistics
import sys
from importlib import metadata

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = ROOT / "results"
SPREAD = ("_low", "_high")
LIBRARIES = ("keras", "tensorflow", "tensorflow-cpu", "jax", "torch")


def parser(module, description, turns=None, data=False):
    """Return the argument parser of a benchmark, with the options that all benchmarks share."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if turns:
        text = f"turns of each peer after the first, which compiles (default: {turns})"
        parser.add_argument("--turns", type=int, default=turns, help=text)
    if data:
        parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    text = "also write the rows to this file, in place of those of the same cases"
    parser.add_argument("--out", metavar="CSV", type=pathlib.Path, help=text)
    return parser


def middle(name, values):
    """Return the columns of several values: their median as `name`, the lowest and the highest."""
    low, high = (f"{name}{end}" for end in SPREAD)
    return {name: statistics.median(values), low: min(values), high: max(values)}


def ratios(values, others):
    """Return the ratio of each turn's value to the other's in the same turn."""
    return [a / b for a, b in zip(values, others, strict=True)]


def versions(folder=None):
    """Return the versions of the libraries that are installed here, or in a folder."""
    where = {"path": [str(folder)]} if folder else {}
    return " ".join(
        f"{name} {distribution.version}"
        for name in LIBRARIES
        for distribution in list(metadata.distributions(name=name, **where))[:1]
    )


def record(rows, keys, out, module, *files, runs=(), **options):
    """Print rows as a table; if `out` is given, also write them to that file.

    A row replaces the one with the same values of `keys`. `python -m module *files **options` is
    the command that repeats the measurement. `runs` are the folders of trainings that the rows
    describe, which may be from another day or machine.
    """
    names = [name for name in rows[0] if not name.endswith(SPREAD) and name != "versions"]
    lines = [names, *([_cell(row, name) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; median (lowest-highest)")
    for line in lines:
        print("  ".join(map(str.ljust, line, widths)).rstrip(), flush=True)
    if out:
        from highway_keras.results import update_rows  # Keras, which `--help` does without
        from highway_keras.results.provenance import command_line

        command = command_line("python", "-m", module, *files, **options)
        where = of_runs(command, *runs) if runs else of_command(command)
        update_rows(out, [{**where, **row} for row in rows], keys)


def _cell(row, name):
    values = [row[key] for key in (name, *(name + end for end in SPREAD)) if key in row]
    texts = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
    return f"{texts[0]} ({texts[1]}-{texts[2]})" if len(texts) == 3 else texts[0]


def read_run(folder):
    """Return the settings and results of a run or a search."""
    return json.loads(pathlib.Path(folder, "run.json").read_text(encoding="utf-8"))


def of_command(command):
    """Return where a row that this process measures comes from: `provenance.COLUMNS`."""
    from highway_keras.training.machine import here

    return {**here(), "command": command}


def of_runs(command, *folders):
    """Return the same for trainings or searches, as their `run.json` says."""
    from highway_keras.training.machine import joined

    sessions = [session for folder in folders for session in read_run(folder)["machine"]]
    where = {key: value or "not recorded" for key, value in joined(sessions).items()}
    return {**where, "command": command}


def say(line):
    """Print a line of progress, which is not part of the report."""
    print(line, file=sys.stderr, flush=True)
