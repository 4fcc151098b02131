"""The command in a process that starts in a second: a fork of one that has imported everything."""

import multiprocessing
import os
import pathlib
import shlex
import sys
import tempfile
from multiprocessing import forkserver

import pytest
from helpers import read_noise

from highway_keras import analysis, export  # noqa: F401
from highway_keras.cli import command as cli
from highway_keras.data import loading

FORKS = multiprocessing.get_context("forkserver")


def start(command, folder):
    """Start `highway-keras` with the arguments in `command` in a folder; return a `Job`."""
    FORKS.set_forkserver_preload([__name__])  # for what it imports
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        forkserver.ensure_running()
    folder.mkdir(parents=True, exist_ok=True)
    return Job(shlex.split(command), folder)


def run(command, folder):
    """Run to the end; return the `Job`."""
    job = start(command, folder)
    job.wait()
    return job


class Job:
    """A process; `wait` sets its exit `code`, and `out` and `err`, what it printed."""

    def __init__(self, arguments, folder):
        self.folder = folder
        # Elsewhere: the disk of the folder may be full
        self.outputs = tempfile.TemporaryDirectory()
        self.process = FORKS.Process(target=_become, args=(arguments, folder, self.outputs.name))
        self.process.start()

    def has_ended(self):
        return self.process.exitcode is not None

    def wait(self, seconds=120):
        self.process.join(seconds)
        if not self.has_ended():
            self.kill()
            raise AssertionError(f"hangs: over {seconds} s")
        self.code, outputs = self.process.exitcode, pathlib.Path(self.outputs.name)
        self.out, self.err = ((outputs / end).read_text(errors="replace") for end in ("1", "2"))
        self.outputs.cleanup()

    def kill(self):
        self.process.kill()


def _become(arguments, folder, outputs):
    os.chdir(folder)
    for number in (1, 2):
        os.dup2(os.open(f"{outputs}/{number}", os.O_WRONLY | os.O_CREAT), number)
    loading.read_public = read_noise
    sys.exit(cli.main(arguments))
