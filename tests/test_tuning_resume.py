"""Searches that are killed, resumed, or shared between processes."""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
from selection import all_but

from highway_keras import data, io
from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch
from highway_keras.tuning.oracle import ENDED

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="populations need TensorFlow or JAX"
)
TRIALS = 6


class Killed(BaseException):
    """Not an `Exception`: nothing is to catch it."""


@pytest.fixture(scope="module")
def digits():
    images = data.load("digits", limit=64)
    return images.x_train / np.float32(256), images.y_train


def search(folder, digits):
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4)
    tuner = PopulationRandomSearch(
        hypermodel, max_trials=TRIALS, population=4, keep_models=2, directory=folder
    )
    tuner.search(*digits, epochs=2, batch_size=32, verbose=0)
    return tuner


def trials_on_disk(folder):
    files = pathlib.Path(folder).glob("*/trial_*/trial.json")
    return {state["trial_id"]: state for state in (json.loads(f.read_text()) for f in files)}


def results(states):
    """What must not depend on interruptions; a trial done twice has two values at one step."""
    return {
        name: (s["status"], s["score"], s["hyperparameters"]["values"], s["metrics"]["metrics"])
        for name, s in states.items()
    }


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, digits):
    folder = tmp_path_factory.mktemp("uninterrupted")
    search(folder, digits)
    return results(trials_on_disk(folder))


class KillAt:
    """Stands in for `os` where files are replaced, and kills before a given replacement."""

    getpid, path = staticmethod(os.getpid), os.path

    def __init__(self, moment):
        self.left = moment

    def replace(self, *paths):
        if not self.left:
            raise Killed
        self.left -= 1
        os.replace(*paths)


# The files that are replaced: 2 before the first trial, 2 for each trial that begins (4, then 2),
# at most 2 for weights, 2 for each trial that ends.
@pytest.mark.parametrize("moment", all_but((0, 9, 27), [0, 1, 3, 9, 13, 19, 21, 23, 25, 27]))
def test_a_search_killed_at_any_file_loses_and_doubles_nothing(
    moment, tmp_path, digits, uninterrupted, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr(io, "os", KillAt(moment))
        with pytest.raises(Killed):
            search(tmp_path, digits)
    tuner = search(tmp_path, digits)
    assert results(trials_on_disk(tmp_path)) == uninterrupted
    assert sorted(tuner.oracle.end_order) == sorted(uninterrupted)
    assert tuner.get_best_models()[0].count_params() > 0


def test_a_finished_search_has_nothing_to_resume(tmp_path, digits, uninterrupted):
    search(tmp_path, digits)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/trial_*/trial.json")}
    search(tmp_path, digits)
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_killed_workers_get_their_trial_back_and_no_stopped_slot_asks_again(tmp_path):
    """The oracle's side of several processes, without them."""
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4)
    tuner = PopulationRandomSearch(hypermodel, max_trials=2, directory=tmp_path)
    oracle = tuner.oracle
    first, second = (oracle.create_trial(f"worker-{slot}") for slot in range(2))
    oracle.update_trial(first.trial_id, {"loss": 3.0}, step=0)
    again = oracle.create_trial("worker-0")
    assert again.trial_id == first.trial_id
    assert not again.metrics.metrics  # it starts anew
    for trial in (first, second, first):  # the second end of `first` counts for nothing
        oracle.update_trial(trial.trial_id, {"loss": 1.0}, step=0)
        trial.status = "COMPLETED"
        oracle.end_trial(trial)
    assert oracle.end_order == [first.trial_id, second.trial_id]
    assert [oracle.create_trial(f"worker-{s}").status for s in range(2)] == ["STOPPED"] * 2
    assert not oracle.tuner_ids


PROCESS = """
import sys
import numpy as np
from highway_keras import data, io
from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch
images = data.load("digits", limit=200)
hypermodel = HighwayHyperModel(3, input_shape=(8, 8, 1), units=8)
tuner = PopulationRandomSearch(
    hypermodel, max_trials=40, population=5, keep_models=3, directory=sys.argv[1]
)
tuner.search(images.x_train / np.float32(256), images.y_train, epochs=20, batch_size=32, verbose=0)
"""


def start(folder, **environment):
    command = [sys.executable, "-c", PROCESS, str(folder)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env={**os.environ, **environment}, **quiet)


def wait_until(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert condition() or process.poll() is not None


def ended(folder):
    return sum(state["status"] in ENDED for state in trials_on_disk(folder).values())


@pytest.fixture(scope="module")
def forty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forty")
    assert start(folder).wait(300) == 0
    return results(trials_on_disk(folder))


def assert_same_forty(folder, forty):
    found = results(trials_on_disk(folder))
    assert len(found) == 40
    for name, (status, score, values, metrics) in found.items():
        assert (status, values) == (forty[name][0], forty[name][2])
        assert score == pytest.approx(forty[name][1], rel=1e-4)
        assert [len(p["value"]) for p in metrics["loss"]["observations"]] == [1] * 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_kill_at_a_random_moment(seed, tmp_path, forty):
    process = start(tmp_path)
    wait_until(lambda: list(tmp_path.glob("*/tuner0.json")), process)
    goal = random.Random(seed).randrange(40)
    wait_until(lambda: ended(tmp_path) >= goal, process)
    time.sleep(random.Random(seed).random() / 10)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert start(tmp_path).wait(300) == 0
    assert_same_forty(tmp_path, forty)


@pytest.mark.slow
def test_a_chief_and_two_workers_one_of_them_killed(tmp_path, forty):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"KERASTUNER_ORACLE_PORT": port}
    chief = start(tmp_path, KERASTUNER_TUNER_ID="chief", **shared)
    wait_until(lambda: list(tmp_path.glob("*/chief.json")), chief)
    workers = [start(tmp_path, KERASTUNER_TUNER_ID=f"worker{i}", **shared) for i in range(2)]
    wait_until(lambda: ended(tmp_path) >= 5, workers[0])
    workers[0].send_signal(signal.SIGKILL)
    workers[0].wait()
    workers[0] = start(tmp_path, KERASTUNER_TUNER_ID="worker0", **shared)
    try:
        assert [worker.wait(300) for worker in workers] == [0, 0]
        assert chief.wait(60) == 0
    finally:
        for process in (chief, *workers):
            process.kill()
    assert_same_forty(tmp_path, forty)
