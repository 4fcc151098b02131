"""`python -m benchmarks`: see `highway-keras benchmark --help`."""

import sys

from highway_keras.cli.command import main

sys.exit(main(["benchmark", *sys.argv[1:]]))
