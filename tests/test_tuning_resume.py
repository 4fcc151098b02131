"""Searches with rungs, killed ones, and those that several processes share."""

import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from helpers import Killed, all_but, kill_at, needs_populations
from keras_tuner.engine.trial import Trial

from highway_keras import data
from highway_keras.layers.backends import shim
from highway_keras.tuning import (
    HighwayHyperModel,
    PopulationRandomSearch,
    oracle,
    population,
    tuner,
)
from highway_keras.tuning.oracle import RungOracle, epochs_of
from highway_keras.tuning.population import Population
from highway_keras.util import files

pytestmark = needs_populations
TRIALS, EPOCHS, RUNGS = 7, 4, {1: 4, 2: 2}


@pytest.fixture(scope="module")
def digits():
    images = data.load("digits", limit=64)
    x, x_val = images.x_train / np.float32(256), images.x_val / np.float32(256)
    return x, images.y_train, (x_val, images.y_val)


def make(folder, trials=TRIALS, space=None, **arguments):
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4, **space or {})
    arguments = {"population": 4, "rungs": RUNGS, **arguments}
    return PopulationRandomSearch(hypermodel, max_trials=trials, directory=folder, **arguments)


def search(folder, digits, **arguments):
    tuner = make(folder, **arguments)
    tuner.search(*digits, epochs=EPOCHS, batch_size=32, verbose=0)
    return tuner


def trials_on_disk(folder):
    (file,) = pathlib.Path(folder).glob("*/search.json")
    return {trial["trial_id"]: trial for trial in json.loads(file.read_text())["trials"]}


def results(folder):
    """What must not depend on interruptions; a trial done twice has two values at one step."""
    return {
        name: (s["status"], s["score"], s["hyperparameters"]["values"], s["metrics"]["metrics"])
        for name, s in trials_on_disk(folder).items()
    }


def curve(state, name="loss"):
    points = state["metrics"]["metrics"][name]["observations"]
    assert [point["step"] for point in points] == list(range(len(points)))
    return [value for point in points for value in point["value"]]


# Rungs


@pytest.mark.parametrize("objective", all_but(["val_accuracy"], ["loss", "val_accuracy"]))
def test_a_halved_search_is_its_trials_trained_alone_to_their_rung(objective, tmp_path, digits):
    search(tmp_path / "whole", digits, objective=objective, rungs=None)
    halved = search(tmp_path / "halved", digits, objective=objective)
    alone, trials = trials_on_disk(tmp_path / "whole"), trials_on_disk(tmp_path / "halved")
    best = max if objective == "val_accuracy" else min
    going, ended = sorted(alone), {}
    for epoch, count in {**RUNGS, EPOCHS: 0}.items():
        scores = {name: best(curve(alone[name], objective)[:epoch]) for name in going}
        ranked = sorted(going, key=scores.get, reverse=best is max)
        ended |= {name: (epoch, scores[name]) for name in ranked[count:]}
        going = sorted(ranked[:count])
    for name, trial in trials.items():
        epoch, score = ended[name]
        assert trial["score"] == score
        for metric in ("loss", "val_accuracy"):
            assert curve(trial, metric) == curve(alone[name], metric)[:epoch]
    best_trials = halved.oracle.get_best_trials(2)
    for model, trial in zip(halved.get_best_models(2), best_trials, strict=True):
        _, accuracy = model.evaluate(*digits[2], verbose=0)
        # An epoch's loss is the mean over its batches, not the loss of the network after it.
        assert objective == "loss" or accuracy == pytest.approx(trial.score, abs=1e-6)


# Killed


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, digits):
    folder = tmp_path_factory.mktemp("uninterrupted")
    search(folder, digits)
    return results(folder)


MOMENTS = [(1, 20), *[(moment,) for moment in range(0, 27, 4)], (0, 1, 13), (14, 8), (25,)]


@pytest.mark.parametrize("moments", all_but([(1, 20)], MOMENTS))
def test_a_search_killed_at_any_file_loses_and_doubles_nothing(
    moments, tmp_path, digits, uninterrupted, monkeypatch
):
    monkeypatch.setattr(tuner, "CHECKPOINT_INTERVAL_S", -1)  # a state after every epoch
    tmp_path /= "lr[0.1]"  # no pattern
    for moment in moments:
        with monkeypatch.context() as patched:
            patched.setattr(files.os, "replace", kill_at(moment))
            with pytest.raises(Killed):
                search(tmp_path, digits)
    search(tmp_path, digits)
    assert results(tmp_path) == uninterrupted


def spy(monkeypatch, kill_at=()):
    """Return a list that gets the number of trials and the epoch of every training."""
    train, trained = Population.train, []

    def spied(self, images, epoch, order):
        if len(trained) in kill_at:
            kill_at.remove(len(trained))
            raise Killed
        trained.append((self.count, epoch))
        return train(self, images, epoch, order)

    monkeypatch.setattr(tuner, "CHECKPOINT_INTERVAL_S", -1)
    monkeypatch.setattr(Population, "train", spied)
    return trained


def test_an_interrupted_round_continues_from_its_last_state(tmp_path, digits, monkeypatch):
    wild = {"rungs": {3: 4}, "space": {"learning_rate": (0.01, 1e30)}}  # some diverge on the way
    whole = search(tmp_path / "whole", digits, **wild)
    statuses = [trial.status for trial in whole.oracle.trials.values()]
    assert {*statuses} == {"COMPLETED", "FAILED"}
    trained = spy(monkeypatch, kill_at=[1, 2, 3, 4])
    for _ in range(4):
        with pytest.raises(Killed):
            search(tmp_path / "killed", digits, **wild)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(RungOracle, "end_trial", kill_at(0))  # one has diverged, and not ended
        search(tmp_path / "killed", digits, **wild)
    folder = tmp_path / "killed" / "untitled_project"
    (folder / files.LEFTOVERS.replace("*", "0-state-1.npz")).touch()
    killed = search(tmp_path / "killed", digits, **wild)
    assert not list(folder.glob(files.LEFTOVERS))
    first_round = [epoch for _, epoch in trained if epoch < 3]
    assert first_round == [0, 1, 2, 0, 1, 2]  # none twice
    weights = [one.get_best_models()[0].get_weights() for one in (whole, killed)]
    assert all(np.array_equal(a, b) for a, b in zip(*weights, strict=True))
    assert results(tmp_path / "whole") == results(tmp_path / "killed")


@pytest.mark.parametrize("more", [{"population": 6}, {"population": 2}, {"trials": 9}], ids=str)
def test_other_populations_cost_no_epoch(more, tmp_path, digits, monkeypatch):
    trained = spy(monkeypatch, kill_at=[3])
    with pytest.raises(Killed):
        search(tmp_path, digits, rungs=None, **({"trials": 3} if "trials" in more else {}))
    search(tmp_path, digits, rungs=None, **more)
    assert sum(count for count, _ in trained) == EPOCHS * more.get("trials", TRIALS)


def test_a_kill_between_two_ends_costs_no_epoch(tmp_path, digits, uninterrupted, monkeypatch):
    monkeypatch.setattr(oracle, "KEPT_MODELS", 1)  # beyond those that wait at a rung
    trained, end, calls = spy(monkeypatch), RungOracle.end_trial, itertools.count()

    def killed(self, trial):
        if next(calls) == 3:
            raise Killed
        return end(self, trial)

    monkeypatch.setattr(RungOracle, "end_trial", killed)
    with pytest.raises(Killed):
        search(tmp_path, digits)
    search(tmp_path, digits)
    assert results(tmp_path) == uninterrupted
    epochs = [epoch for count, epoch in trained for _ in range(count)]
    assert sorted(epochs) == [0] * 7 + [1] * 4 + [2, 2, 3, 3]


def test_where_a_finalist_diverges_the_next_best_has_its_weights(tmp_path, digits, monkeypatch):
    monkeypatch.setattr(oracle, "KEPT_MODELS", 2)
    train = Population.train

    def diverging(self, images, epoch, order):
        loss, accuracy = train(self, images, epoch, order)
        return (np.where(np.arange(len(loss)) == 0, np.nan, loss) if epoch == 3 else loss), accuracy

    monkeypatch.setattr(Population, "train", diverging)
    halved = search(tmp_path, digits, rungs={2: 2})
    (failed,) = [t for t in halved.oracle.trials.values() if t.status == "FAILED"]
    assert failed.score is None and len(halved.get_best_models(2)) == 2
    with pytest.raises(ValueError, match="diverged"):
        halved.load_model(failed)


def test_a_round_on_an_accelerator_is_as_wide_as_its_trials(tmp_path, digits, monkeypatch):
    sizes, make_cohort = [], population._Cohort
    monkeypatch.setattr(shim, "accelerators", lambda: ["GPU"])
    monkeypatch.setattr(
        population, "_Cohort", lambda *a: sizes.append(len(a[-1])) or make_cohort(*a)
    )
    search(tmp_path, digits, population=None, trials=3, rungs={1: 2})
    assert sizes == [3, 2]


# Several processes


def ended(trial, losses, status="COMPLETED"):
    """As it comes from a worker: another object."""
    sent = Trial.from_proto(trial.to_proto())
    sent.metrics = type(sent.metrics)()
    for step, loss in enumerate(losses):
        sent.metrics.update("loss", loss, step=step)
    sent.status = status
    return sent


def test_killed_workers_get_their_trial_back_and_wait_at_a_rung(tmp_path):
    oracle = make(tmp_path, trials=3, rungs={1: 1}).oracle
    oracle.begin({"epochs": 2})
    first, second, third = (oracle.create_trial(f"worker-{slot}") for slot in range(3))
    assert oracle.create_trial("worker-0").trial_id == first.trial_id
    oracle.end_trial(ended(first, [1.0]))
    oracle.end_trial(ended(second, [2.0]))
    oracle.end_trial(ended(second, [0.0]))  # a second end changes nothing
    assert oracle.trials[second.trial_id].score == 2.0
    assert oracle.create_trial("worker-0").status == "IDLE" and "worker-0" in oracle.tuner_ids
    oracle.end_trial(ended(third, [], "FAILED"))
    again = oracle.create_trial("worker-0")
    assert (again.trial_id, epochs_of(again)) == ("0", 1)
    assert [oracle.create_trial(f"worker-{slot}").status for slot in (1, 2)] == ["STOPPED"] * 2
    oracle.end_trial(ended(again, [1.0, 0.5]))
    assert oracle.create_trial("worker-0").status == "STOPPED"
    assert not oracle.tuner_ids and oracle.has_ended


def test_a_chief_that_starts_again_has_all_trials(tmp_path):
    oracle = make(tmp_path, trials=3, rungs={1: 1}).oracle
    oracle.begin({"epochs": 2})
    trials = [oracle.create_trial(f"worker-{slot}") for slot in range(3)]
    for trial, loss in zip(trials[:2], (1.0, 2.0), strict=True):
        oracle.end_trial(ended(trial, [loss]))
    again = make(tmp_path, trials=3, rungs={1: 1}).oracle
    again.begin({"epochs": 2})
    assert again.create_trial("other").trial_id == trials[2].trial_id
    again.end_trial(ended(trials[2], [3.0]))  # of a worker that lived on
    again.end_trial(ended(trials[2], [3.0]))
    assert [trial.score for trial in again.trials.values()] == [1.0, 2.0, 3.0]
    assert again.create_trial("other").trial_id == trials[0].trial_id


SCRIPT = """
import sys
import numpy as np
from highway_keras import data, tuning

images = data.load("digits", limit=200)
network = tuning.HighwayHyperModel(3, input_shape=images.input_shape)
tuning.run_searches(images, [network], max_trials=12, population=3, rungs={5: 6, 10: 3},
                    epochs=30, out=sys.argv[1], resume=True)
"""


def start(folder, log=os.devnull, **environment):
    with open(log, "a") as output:
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(folder)],
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
        )


def wait_until(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert condition() or process.poll() is not None


def count_ended(folder):
    if not list(folder.glob("*/search.json")):
        return 0
    return sum(trial["status"] == "COMPLETED" for trial in trials_on_disk(folder).values())


@pytest.mark.slow
def test_a_chief_and_two_workers_one_of_them_killed(tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    shared = {"KERASTUNER_ORACLE_IP": "127.0.0.1", "KERASTUNER_ORACLE_PORT": str(port)}
    folder, log = tmp_path / "shared", tmp_path / "log"
    ids = [{"KERASTUNER_TUNER_ID": name, **shared} for name in ("chief", "worker0", "worker1")]
    processes = [start(folder, log, **environment) for environment in ids]
    try:
        wait_until(lambda: count_ended(folder) >= 4, processes[1])
        processes[1].kill()
        processes[1].wait()
        processes[1] = start(folder, log, **ids[1])
        assert [process.wait(300) for process in processes] == [0, 0, 0], log.read_text()
    finally:
        for process in processes:
            process.kill()
    for late in ids:  # the search has ended: nobody waits for anyone
        assert start(folder, log, **late).wait(60) == 0, log.read_text()
    assert start(tmp_path / "alone").wait(300) == 0
    assert results(folder) == results(tmp_path / "alone")


def test_a_worker_compares_its_settings_with_the_folders(tmp_path, digits, monkeypatch):
    search(tmp_path, digits)
    for name, value in (("IP", "127.0.0.1"), ("PORT", "1")):
        monkeypatch.setenv(f"KERASTUNER_ORACLE_{name}", value)
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker0")
    search(tmp_path, digits)  # has ended
    make(tmp_path, overwrite=True)  # which a worker leaves to its chief
    assert len(trials_on_disk(tmp_path)) == TRIALS
    for folder, seed, message in (
        (tmp_path, 1, "seed: 0 → 1"),
        (tmp_path / "other", 0, "directory"),
    ):
        worker = make(folder, seed=seed)
        monkeypatch.setattr(type(worker.oracle), "get_space", lambda oracle: None)
        with pytest.raises(ValueError, match=message):
            worker.search(*digits, epochs=EPOCHS, batch_size=32, verbose=0)
    with files.file_lock(tmp_path / "untitled_project" / "worker0"):
        with pytest.raises(files.BusyError):
            search(tmp_path, digits)
