"""`python -m highway_keras.cli`."""

import sys

from highway_keras.cli import main

if __name__ == "__main__":
    sys.exit(main())
