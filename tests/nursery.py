"""Commands in processes of their own that start in a second: forks of one that has imported all.

`Nursery` starts this file as a script. It reads jobs from stdin, a line of JSON each, and forks a
process for each; it answers with the number of the process, and with the exit code once asked.
"""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time


class Nursery:
    """Start commands and wait for them: `with Nursery() as nursery: ...`."""

    def __enter__(self):
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTEROP_THREADS": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, __file__]
        self.process = subprocess.Popen(command, env=environment, **pipes)
        self.said = tempfile.TemporaryDirectory()  # what the commands print; their disk may be full
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.wait()
        self.said.cleanup()

    def _ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, command, folder):
        """Start `highway-keras` with the arguments in `command` in a folder; return a `Job`."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        question = {"start": shlex.split(command), "folder": str(folder), "said": self.said.name}
        return Job(self, self._ask(**question), folder)

    def run(self, command, folder):
        """Run to the end; return the `Job`."""
        job = self.start(command, folder)
        job.wait()
        return job


class Job:
    """A process: `pid`; after `wait` also `code`, what it printed in `out`, and errors in `err`."""

    def __init__(self, nursery, pid, folder):
        self.nursery, self.pid, self.folder, self.code = nursery, pid, folder, None

    def poll(self):
        """Return whether it has ended."""
        if self.code is None:
            self.code = self.nursery._ask(poll=self.pid)
            if self.code is not None:
                said = pathlib.Path(self.nursery.said.name)
                files = (said / f"{self.pid}.{end}" for end in ("out", "err"))
                self.out, self.err = (file.read_text(errors="replace") for file in files)
        return self.code is not None

    def wait(self, seconds=120):
        end = time.monotonic() + seconds
        while not self.poll():
            if time.monotonic() > end:
                self.kill()
                raise AssertionError(f"hangs: over {seconds} s")
            time.sleep(0.01)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


def _serve():
    from highway_keras.cli import command as cli

    _import_everything()
    for line in sys.stdin:
        question = json.loads(line)
        if "poll" in question:
            pid, status = os.waitpid(question["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if not answer:
                _become(question["folder"], question["said"])
                sys.exit(cli.main(question["start"]))
        print(json.dumps(answer), flush=True)


def _import_everything():
    import numpy as np

    from highway_keras import analysis, export  # noqa: F401
    from highway_keras.data import loading

    def few(name, data_dir=None):
        """Stand in for a download: 120 images of noise."""
        x = np.random.default_rng(0).integers(0, 256, (120, 28, 28, 1), "uint8")
        y = np.arange(120) % 10
        return x, y, x, y, tuple(map(str, range(10)))

    loading.read_public = few


def _become(folder, said):
    os.chdir(folder)
    sys.stdin.close()
    for number, end in ((1, "out"), (2, "err")):
        file = os.open(f"{said}/{os.getpid()}.{end}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)


if __name__ == "__main__":
    _serve()
