"""Run the command: `python -m highway_keras`. It imports Keras as late as `highway-keras`."""

import sys

from highway_keras.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
