"""`benchmark`: the networks beside their peers."""

import sys

from highway_keras.cli.shared import add_command


def add_commands(commands):
    summary = "Time the networks beside their peers."
    command = add_command(commands, "benchmark", _benchmark, summary)
    command.add_argument("--case", nargs="+", help="cases whose names contain this (default: all)")
    command.add_argument("--peer", nargs="+", help="peers to compare with (default: all installed)")
    command.add_argument("--turns", type=int, default=9, help="turns of each peer (default: 9)")
    command.add_argument("--out", help="also write the table to this CSV file")


def _benchmark(options):
    from highway_keras.benchmarks import run

    rows = []
    for case in run.select(options.case):
        rows += run.measure(case, options.turns, options.peer, say=_say)
        if options.out:
            run.save(rows, options.out)
    run.report(rows)


def _say(line):
    print(line, file=sys.stderr, flush=True)
