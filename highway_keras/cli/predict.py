"""`predict`: the classes of pictures, for people and for scripts."""

import csv
import sys

from highway_keras.cli.backend import import_backend
from highway_keras.cli.shared import (
    FAILED,
    FILES,
    add_command,
    add_json,
    add_network,
    network_file,
    print_json,
    print_table,
)
from highway_keras.extras import extra
from highway_keras.messages import cell, printable

COLUMNS = ("image", "class", "probability")
SECONDS = 1.0  # before progress is shown


def add_commands(commands):
    command = add_command(commands, "predict", _predict, "Classify pictures with a network.")
    add_network(command)
    command.add_argument(
        "images",
        metavar="IMAGE",
        nargs="+",
        help="PNG or JPEG files, folders of them, or patterns such as 'scans/*.png'; what is "
        "transparent is white",
    ).complete = FILES
    command.add_argument(
        "--top", metavar="K", type=int, default=1, help="classes to name for each (default: 1)"
    )
    formats = command.add_mutually_exclusive_group()
    add_json(formats)
    formats.add_argument("--csv", action="store_true", help="print CSV, a row for each class")


def _predict(options):
    file = network_file(options)
    import_backend()
    with extra("train"):
        from tqdm import tqdm

    from highway_keras import data, training

    paths = data.find_pictures(options.images)
    found = training.SavedNetwork(file).classify(paths, options.top)
    # On stderr, if that is a terminal.
    bar = {"unit": " pictures", "disable": None, "delay": SECONDS, "leave": False}
    found = list(tqdm(found, total=len(paths), **bar))
    _print(found, options)
    return _report_failures(found)


def _print(found, options):
    if options.json:
        print_json([_as_json(one) for one in found])
    elif options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([cell(path), cell(name), p] for path, name, p in _rows(found))
    elif any(one.classes for one in found):
        rows = [(path, name, f"{p:.4f}") for path, name, p in _rows(found)]
        print_table([COLUMNS, *rows], right=(2,))


def _report_failures(found):
    """Say what is wrong with each picture that could not be read; return the exit code."""
    failed = [one for one in found if one.error]
    for one in failed:
        print(f"highway-keras: {printable(one.error)}", file=sys.stderr)
    if failed and len(found) > 1:
        counted = f"{len(failed)} of {len(found)} pictures could not be read."
        print(f"highway-keras: {counted}", file=sys.stderr)
    return FAILED if failed else 0


def _rows(found):
    return [(one.path, name, p) for one in found for name, p in one.classes]


def _as_json(one):
    if one.error:
        return {"image": one.path, "error": one.error}
    return {
        "image": one.path,
        "classes": [{"class": name, "probability": p} for name, p in one.classes],
    }
