"""Kills and full disks, at random moments: nothing is lost, nothing is wrong.

A failure shows the seed; `SURVIVAL_SEED=… SURVIVAL_MOMENTS=…` repeats it or makes a longer one.
"""

import functools
import json
import os
import random
import re
import shutil
import subprocess
import time
import zipfile

import keras
import pytest
from forked_commands import run, start

from highway_keras.training.state import read_state

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="is about TensorFlow"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="commands are forked"),
]
SEED = int(os.environ.get("SURVIVAL_SEED", random.SystemRandom().randrange(10**6)))
MOMENTS = int(os.environ.get("SURVIVAL_MOMENTS", 25))
COMMANDS = {
    "fit": "fit thin-highway-10 --dataset digits --limit 200 --epochs 6 --resume --out out",
    "search": "search --depth 3 --kind plain --trials 9 --population 3 --epochs 4 --rungs 1:6 2:3 "
    "--dataset digits --limit 200 --resume --out out",
    "reproduce": "reproduce table1 --model mnist-highway-16 --runs 2 --epochs 2 --out out",
    "export": "export network.keras --dataset digits --format keras --out out.keras",
    "analyze": "analyze network.keras --dataset digits --limit 60 --out out",
}


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("network")
    options = "--dataset digits --limit 60 --epochs 1 --model-set depth=3"
    assert run(f"fit thin-highway-10 {options} --out run", folder).code == 0
    return folder / "run" / "best.keras"


@pytest.fixture(scope="module")
def references(network, tmp_path_factory):
    """A function that runs the command of a name undisturbed.

    It returns what the command leaves and prints, the bytes that it leaves, and how long it writes.
    """

    @functools.cache
    def reference(name):
        folder = tmp_path_factory.mktemp("reference")
        prepare(folder, network)
        job = start(COMMANDS[name], folder)
        began = wait_for_a_file(job)
        job.wait()
        assert job.code == 0, job.err
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {
            "seconds": time.monotonic() - began,
            "printed": numbers(job.out),
            "size": sum(path.stat().st_size for path in files if path.name != "network.keras"),
            "left": left(name, folder),
        }

    return reference


def prepare(folder, network):
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(network, folder / "network.keras")


def wait_for_a_file(job):
    """Wait until a command writes; return when that was."""
    while not job.has_ended() and len(list(job.folder.iterdir())) < 2:
        time.sleep(0.002)
    return time.monotonic()


def numbers(printed):
    """The lines that say a result, without the epochs and their times."""
    results = r"^test accuracy|^mnist-highway-16 .*float32|layers |^best: "
    return [line for line in printed.splitlines() if re.search(results, line)]


def weights(path):
    """The weights of a network, as bytes: the archive holds times."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    model = keras.models.load_model(path, compile=False)
    return b"".join(weight.tobytes() for weight in model.get_weights())


def left(name, folder):
    """What must not depend on what happened on the way."""
    out = folder / "out"
    if name == "fit":
        return left_by_a_run(out)
    if name == "search":
        folder = out / "thin-plain-3"
        return weights(folder / "best.keras"), (folder / "trials.csv").read_text()
    if name == "reproduce":
        runs = {path.parent.name: left_by_a_run(path.parent) for path in out.glob("*/*/run.json")}
        table = (out / "table1.csv").read_text().splitlines()
        return runs, [row.split(",")[:11] for row in table]
    if name == "export":
        return weights(folder / "out.keras"), (folder / "out.keras.json").exists()
    assert (out / "index.html").read_text().rstrip().endswith("</html>")
    assert (out / "live.html").read_text().rstrip().endswith("</html>")
    names = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
    return names, (out / "layers.csv").read_text()


def left_by_a_run(folder):
    state = read_state(folder / "state.npz")
    del state["run"]
    arrays = b"".join(array.tobytes() for array in state.values())
    results = json.loads((folder / "run.json").read_text())["results"]
    del results["seconds"]
    return arrays, weights(folder / "best.keras"), (folder / "history.csv").read_text(), results


def finish(name, folder, reference):
    """Run a command again after what happened; what it leaves must be what it always leaves."""
    job = run(COMMANDS[name], folder)
    there = name == "export" and "must not exist" in job.err
    assert job.code == 0 or there, job.err
    assert left(name, folder) == reference["left"]
    assert there or numbers(job.out) == reference["printed"]


def check_end(job):
    """A command that fails says so in one line; it never crashes."""
    assert job.code in (0, 1, 2), (job.code, job.err[-500:])
    assert "Traceback" not in job.err and "[Errno" not in job.err, job.err[-2000:]
    lines = [line for line in job.err.splitlines() if "could not be drawn" not in line]
    assert len(lines) == (1 if job.code else 0), job.err


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_random_moments(name, network, references, tmp_path):
    print(f"SURVIVAL_SEED={SEED}")
    drawn, reference = random.Random(f"{SEED} {name}"), references(name)
    for moment in range(MOMENTS):
        folder = tmp_path / str(moment)
        prepare(folder, network)
        job = start(COMMANDS[name], folder)
        wait_for_a_file(job)
        time.sleep(drawn.random() * reference["seconds"])
        if not job.has_ended():
            job.kill()
        job.wait()
        finish(name, folder, reference)
        shutil.rmtree(folder)


@pytest.fixture
def disk(tmp_path):
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", path])
    if mounted.returncode:
        pytest.skip("a small disk needs the right to mount one")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def fill(disk, free):
    """Leave `free` bytes on a disk."""
    with (disk / "filler").open("wb") as file:
        file.write(bytes(max(0, shutil.disk_usage(disk).free - free)))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_that_is_full_at_any_moment(name, network, references, disk):
    reference, codes = references(name), []
    for moment in range(MOMENTS):
        folder = disk / str(moment)
        prepare(folder, network)
        # From nothing to all that a command leaves and as much again, which it writes aside.
        fill(disk, int(2 * reference["size"] * (moment + 0.5) / MOMENTS))
        job = run(COMMANDS[name], folder)
        check_end(job)
        assert job.code in (0, 1)
        codes.append(job.code)
        (disk / "filler").unlink()
        finish(name, folder, reference)
        shutil.rmtree(folder)
    assert any(codes)
