"""What a result was computed on: hardware, versions, commit, and the sessions of a run."""

import datetime
import functools
import importlib
import json
import os
import pathlib
import platform
import subprocess
import time

import keras

from highway_keras.layers.backends import shim
from highway_keras.util.cores import cores
from highway_keras.util.files import read_text, write_json
from highway_keras.util.messages import notice

NVIDIA = pathlib.Path("/proc/driver/nvidia")  # of the driver, where there is one


def hardware(distribute=False):
    """Return what networks are trained on here: `"NVIDIA H200"`, `"2 CPU cores (AMD EPYC)"`."""
    names = shim.accelerators() if distribute else shim.accelerators()[:1]
    if not names:
        return f"{cores()} CPU cores ({processor()})"
    return names[0] if len(names) == 1 else f"{len(names)} x {names[0]}"


def processor():
    """Return the name of the processor, on Linux what /proc/cpuinfo says."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def versions():
    """Return the versions of Python, this library, Keras and its backend, in one line."""
    import highway_keras

    backend = keras.backend.backend()
    return (
        f"python {platform.python_version()} highway-keras {highway_keras.__version__} "
        f"keras {keras.__version__} {backend} {importlib.import_module(backend).__version__}"
    )


@functools.cache  # rows that are written after the first make a clone dirty
def commit():
    """Return the commit of the clone that this library is in, abbreviated; empty outside of one.

    It ends in -dirty if files differ from it.
    """
    root = pathlib.Path(__file__).parents[2]
    if not (root / ".git").exists():  # installed, perhaps within a clone of something else
        return ""
    try:
        ask = ["git", "describe", "--always", "--dirty", "--exclude=*"]
        return subprocess.run(ask, cwd=root, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git
        return ""


def here(distribute=False):
    """Return what says where something is computed: hardware, versions, commit and date."""
    return {
        "hardware": hardware(distribute),
        "versions": versions(),
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
    }


class Session(keras.callbacks.Callback):
    """Add a session to the `machine.json` of a `RunFolder`: `with Session(folder) as session:`.

    A session lasts from starting or resuming a run to its end or interruption. As a training
    callback, it is also written after every epoch, so that a kill loses only an unfinished epoch.
    """

    def __init__(self, folder, distribute=False):
        super().__init__()
        self.folder, self.before = folder, sessions(folder)
        self.first, self.started = self._epochs(), time.perf_counter()
        self.where = here(distribute)

    def __enter__(self):
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
        chosen |= bool({"JAX_PLATFORMS", "KERAS_TORCH_DEVICE"} & os.environ.keys())
        backend = keras.backend.backend()
        if self.before and backend not in self.before[-1]["versions"].split():
            notice(
                f"{self.folder.path} goes on by {backend}, unlike its last session: the result is "
                "not that of a run without interruption. KERAS_BACKEND chooses."
            )
        if NVIDIA.exists() and not chosen and not shim.accelerators():
            notice(f"{backend} uses the CPU, not the NVIDIA GPU of this machine: see docs/gpu.md.")
        self.on_epoch_end(None)  # now, because a search runs no callbacks and may be killed
        return self

    def __exit__(self, *error):
        self.on_epoch_end(None)

    def on_epoch_end(self, epoch, logs=None):
        took = {"first_epoch": self.first, "last_epoch": self._epochs()}
        took["seconds"] = round(time.perf_counter() - self.started, 1)
        write_json(self.folder.machine, [*self.before, self.where | took])

    def _epochs(self):
        file = self.folder.history  # bytes: it may be damaged, its last row cut short
        return max(0, file.read_bytes().count(b"\n") - 1) if file.is_file() else 0


def sessions(folder):
    """Return the sessions of a `RunFolder`, none if they were not recorded or cannot be read."""
    kinds = {"hardware": str, "versions": str, "first_epoch": int, "last_epoch": int}
    kinds |= {"seconds": int | float}
    try:
        found = json.loads(read_text(folder.machine))
        whole = all(isinstance(one[key], kind) for one in found for key, kind in kinds.items())
    except (KeyError, OSError, RecursionError, TypeError, ValueError):
        return []
    return found if whole else []


def minutes(sessions):
    """Return the minutes that all epochs took; `None` if a session is missing."""
    seen = 0
    for session in sessions:
        if session["first_epoch"] > seen + 1:  # one row may be written before its session is
            return None
        seen = session["last_epoch"]
    return sum(session["seconds"] for session in sessions) / 60 if sessions else None


def joined(sessions, key):
    """Return the distinct values of `key` in the sessions, joined by semicolons."""
    return "; ".join(dict.fromkeys(session.get(key, "") for session in sessions))
