"""`python -m highway_keras.benchmarks`: see `highway-keras benchmark --help`."""

import sys

from highway_keras.cli import main

sys.exit(main(["benchmark", *sys.argv[1:]]))
