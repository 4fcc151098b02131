"""What several test files share: slow parameters, data sets, the command in two ways, kills."""

import itertools
import os
import pathlib

import keras
import numpy as np
import pytest

from highway_keras.cli import command

needs_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow alone does this"
)
needs_populations = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="populations need TensorFlow or JAX"
)
# The command in a process of its own, as the installed script starts it
SCRIPT = "import sys; from highway_keras_command import main; sys.exit(main())"


def run(*arguments):
    """Exit code of the command, run in this process."""
    try:
        return command.main([str(argument) for argument in arguments])
    except SystemExit as end:  # argparse ends so
        return end.code


def needs_data(name):
    """Skip the test unless `TFDS_DATA_DIR` has a prepared data set."""
    if not pathlib.Path(os.environ.get("TFDS_DATA_DIR", "none"), name).is_dir():
        pytest.skip(f"TFDS_DATA_DIR has no {name}")


def read_noise(name, data_dir=None):
    """In place of `loading.read_public`: 60 images of ten kinds of noise, to train and test on."""
    shape = (28, 28, 1) if name == "mnist" else (32, 32, 3)
    y = np.arange(60) % 10
    x = np.random.default_rng(0).integers(0, 100, (60, *shape)) + 15 * y[:, None, None, None]
    return 2 * [(x.astype("uint8"), y)], tuple("0123456789")


class Killed(BaseException):
    """Not an `Exception`: nothing is to catch it."""


def kill_at(moment, replace=os.replace):
    """Return what stands in for `os.replace`, and kills before a given replacement."""
    count = itertools.count()

    def replace_or_kill(*paths):
        if next(count) >= moment:  # nothing comes after it
            raise Killed
        replace(*paths)

    return replace_or_kill


def all_but(quick, values):
    """Return `values` as parameters of a test, those that are not in `quick` marked as slow."""
    return [v if v in quick else pytest.param(v, marks=pytest.mark.slow) for v in values]
