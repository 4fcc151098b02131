"""The process of a `turns.Worker`: `python -m benchmarks.worker LIBRARY MODULE ARGUMENT ...`."""

import importlib
import sys

from benchmarks.turns import Turns


def main(library, module, *arguments):
    turns = Turns()
    if library:
        sys.path.insert(0, library)  # before the clone, which is the working directory
    importlib.import_module(module).work(turns, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
