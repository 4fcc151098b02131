"""The entry point of `highway-keras`: its help and `list` without waiting seconds for Keras."""

import importlib.util
import sys


def main():
    """Run the command; return its exit code."""
    # Found, but not executed yet: the package imports Keras. `cli.shared.library` executes it for
    # the commands that need it; the others import only modules that hold data.
    spec = importlib.util.find_spec("highway_keras")
    sys.modules["highway_keras"] = importlib.util.module_from_spec(spec)
    from highway_keras.cli.command import main

    return main()
