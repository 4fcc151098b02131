"""`python -m benchmarks`: the networks beside their peers."""

import argparse
import sys

from benchmarks import report
from benchmarks.run import COLUMNS, measure, print_rows, select


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time the networks beside their peers."
    )
    parser.add_argument(
        "--case", nargs="+", help='networks, or cases such as "highway-b train" (default: all)'
    )
    parser.add_argument("--peer", nargs="+", help="peers to compare with (default: all installed)")
    parser.add_argument(
        "--before", metavar="FOLDER", help="also compare with the build of this library in FOLDER"
    )
    parser.add_argument(
        "--turns", type=report.positive, default=9, help="turns of each peer (default: 9)"
    )
    parser.add_argument("--out", metavar="CSV", help="also write the table to this file")
    options = parser.parse_args(arguments)
    rows = []
    try:
        for case in select(options.case, options.peer):
            rows += measure(case, options.turns, options.peer, options.before)
            if options.out:
                _save(rows, options.out)
    except ValueError as error:
        parser.error(str(error))
    except RuntimeError as error:
        sys.exit(str(error))
    print_rows(rows)


def _save(rows, path):
    from highway_keras import files  # imports Keras, which `--help` does without

    files.write_rows(path, rows, COLUMNS)


if __name__ == "__main__":
    main()
