"""What the reports of the benchmarks share."""

import argparse
import os
import statistics
import sys


def spread(values, digits=".3g"):
    """Return `median (lowest-highest)` as text."""
    return f"{statistics.median(values):{digits}} ({min(values):{digits}}-{max(values):{digits}})"


def ratios(values, others):
    """Return the ratio of each turn's value to that of the other in the same turn."""
    return [a / b for a, b in zip(values, others, strict=True)]


def load():
    """Return how busy the machine is, as text."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def say(line):
    """Print a line of progress, which is no part of the report."""
    print(line, file=sys.stderr, flush=True)


def positive(text):
    """Return an option as an integer of at least 1: a `type` for `argparse`."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer. Received: {text}")
    return int(text)
