"""What the benchmarks share around a measurement: options, medians with their spread, rows."""

import argparse
import json
import os
import pathlib
import statistics
from importlib import metadata

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = ROOT / "results"
LIBRARIES = ("keras", "tensorflow", "tensorflow-cpu", "jax", "torch")


def parser(module, description, turns=None):
    """Return the argument parser of a benchmark, with the options that all benchmarks share."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if turns:
        text = f"turns of each peer after the first, which compiles (default: {turns})"
        parser.add_argument("--turns", type=int, default=turns, help=text)
    text = "also write the rows to this file, in place of those of the same cases"
    parser.add_argument("--out", metavar="CSV", type=pathlib.Path, help=text)
    return parser


def middle(name, values):
    """Return the columns of several values: their median as `name`, the lowest and the highest."""
    ends = {f"{name}_low": min(values), f"{name}_high": max(values)}
    return {name: statistics.median(values), **ends}


def versions():
    """Return the versions of the libraries that are installed."""
    installed = {each.name.replace("_", "-"): each.version for each in metadata.distributions()}
    return " ".join(f"{name} {installed[name]}" for name in LIBRARIES if name in installed)


def record(rows, keys, out, *command, **options):
    """Print rows; if `out` is given, also write them to that file.

    A row replaces the one with the same values of `keys`. `python -m *command **options` repeats
    the measurement.
    """
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(json.dumps(rows, indent=1), flush=True)
    if out:
        from highway_keras.results import update_rows  # Keras, which the peers do without
        from highway_keras.results.provenance import command_line
        from highway_keras.training.machine import here

        where = {**here(), "command": command_line("python", "-m", *command, **options)}
        update_rows(out, [{**where, **row} for row in rows], keys)


def read_run(folder):
    """Return the settings and results of a run or a search."""
    return json.loads(pathlib.Path(folder, "run.json").read_text(encoding="utf-8"))


def of_runs(command, *folders):
    """Return where rows of trainings or searches come from, as their `run.json` says."""
    from highway_keras.training.machine import joined

    sessions = [session for folder in folders for session in read_run(folder)["machine"]]
    where = {key: value or "not recorded" for key, value in joined(sessions).items()}
    return {**where, "command": command}
