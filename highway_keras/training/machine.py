"""Where something was computed: hardware, versions, commit and date."""

import datetime
import functools
import importlib
import pathlib
import platform
import subprocess

import keras

from highway_keras.layers.backends import shim
from highway_keras.util.cores import cores
from highway_keras.version import __version__


def here():
    """Return hardware, versions, commit and date of this process, a dictionary."""
    return {
        "hardware": hardware(),
        "versions": versions(),
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
    }


def hardware():
    """Return what Keras computes on: `"NVIDIA H200"`, `"2 x NVIDIA H200"`, `"2 CPU cores (…)"`."""
    names = shim.accelerators()
    if not names:
        return f"{cores()} CPU cores ({processor()})"
    return names[0] if len(names) == 1 else f"{len(names)} x {names[0]}"


def processor():
    """Return the name of the processor, on Linux from /proc/cpuinfo."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def versions():
    """Return the versions of Python, this library, Keras and its backend, in one line."""
    backend = keras.backend.backend()
    return (
        f"python {platform.python_version()} highway-keras {__version__} "
        f"keras {keras.__version__} {backend} {importlib.import_module(backend).__version__}"
    )


@functools.cache  # rows that are written after the first would make the clone dirty
def commit():
    """Return the abbreviated commit of this clone, with `-dirty` if files differ; else `""`."""
    root = pathlib.Path(__file__).parents[2]
    if not (root / ".git").exists():  # installed, perhaps within a clone of something else
        return ""
    ask = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(ask, cwd=root, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git
        return ""


def joined(sessions):
    """Return what `here()` returned in the sessions of a run, distinct values behind semicolons."""
    return {
        key: "; ".join(dict.fromkeys(session[key] for session in sessions))
        for key in ("hardware", "versions", "commit", "date")
    }
