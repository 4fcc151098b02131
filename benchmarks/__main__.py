"""`python -m benchmarks`: the networks next to their peers."""

import argparse
import sys

from benchmarks import report
from benchmarks.run import measure, print_rows, select


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
    report.add_out(parser)
    options = parser.parse_args(arguments)
    found = []
    try:
        for case in select(options.case, options.peer):
            rows = measure(case, options.turns, options.peer, options.before)
            found += rows
            if options.out:
                asked = {"peer": options.peer, "before": options.before, "turns": options.turns}
                command = report.command("benchmarks", case=case.name, **asked)
                report.save(options.out, rows, ("case", "peer"), command)
    except ValueError as error:
        parser.error(str(error))
    except (OSError, RuntimeError) as error:
        sys.exit(str(error))
    finally:  # a later error, or Ctrl-C, loses no measured rows
        if found:
            print_rows(found)


if __name__ == "__main__":
    main()
