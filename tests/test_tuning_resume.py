"""Searches with rungs, killed ones, and those that several processes share."""

import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import grpc
import keras
import numpy as np
import pytest
from helpers import COMMAND, Killed, all_but, kill_at, needs_populations, needs_tensorflow
from keras_tuner.engine.trial import Trial
from keras_tuner.src.distribute import oracle_client

from highway_keras import data
from highway_keras.cli import command as cli
from highway_keras.layers.backends import shim
from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch, chief, population, tuner
from highway_keras.tuning.oracle import ENDED, PopulationOracle, rounds_of
from highway_keras.tuning.population import Images, Population
from highway_keras.tuning.progress import Progress
from highway_keras.util import files

pytestmark = needs_populations
TRIALS, EPOCHS, RUNGS = 7, 4, {1: 4, 2: 2}
PLACE = ("tuner/round", "tuner/initial_epoch", "tuner/epochs")


@pytest.fixture(scope="module")
def digits():
    images = data.load("digits", limit=64)
    x, x_val = images.x_train / np.float32(256), images.x_val / np.float32(256)
    return x, images.y_train, (x_val, images.y_val)


def make(folder, trials=TRIALS, space=None, **arguments):
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4, **space or {})
    arguments = {"population": 4, "keep_models": 2, "rungs": RUNGS, **arguments}
    return PopulationRandomSearch(hypermodel, max_trials=trials, directory=folder, **arguments)


def search(folder, digits, **arguments):
    tuner = make(folder, **arguments)
    tuner.search(*digits, epochs=EPOCHS, batch_size=32, verbose=0)
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


def curve(state, name="loss"):
    points = state["metrics"]["metrics"][name]["observations"]
    assert [point["step"] for point in points] == list(range(len(points)))
    return [value for point in points for value in point["value"]]


# Rungs


@pytest.mark.parametrize("objective", all_but(["val_accuracy"], ["loss", "val_accuracy"]))
def test_a_halved_search_is_its_trials_trained_alone_to_their_rung(objective, tmp_path, digits):
    search(tmp_path / "whole", digits, objective=objective, rungs=None)
    halved = search(tmp_path / "halved", digits, objective=objective)
    alone, found = trials_on_disk(tmp_path / "whole"), trials_on_disk(tmp_path / "halved")
    best = max if objective == "val_accuracy" else min
    going, ended = sorted(alone), {}
    for number, (epoch, count) in enumerate({**RUNGS, EPOCHS: 0}.items()):
        scores = {name: best(curve(alone[name], objective)[:epoch]) for name in going}
        ranked = sorted(going, key=scores.get, reverse=best is max)
        ended |= {name: (number, epoch, scores[name]) for name in ranked[count:]}
        going = sorted(ranked[:count])
    for name, state in found.items():
        values, (number, epoch, score) = state["hyperparameters"]["values"], ended[name]
        assert (values["tuner/round"], values["tuner/epochs"]) == (number, epoch)
        assert state["score"] == score
        for metric in ("loss", "val_accuracy"):
            assert curve(state, metric) == curve(alone[name], metric)[:epoch]
    trials = halved.oracle.get_best_trials(2)
    for model, trial in zip(halved.get_best_models(2), trials, strict=True):
        _, accuracy = model.evaluate(*digits[2], verbose=0)
        # An epoch's loss is the mean over its batches, not the loss of the network after it.
        assert objective == "loss" or accuracy == pytest.approx(trial.score, abs=1e-6)
    assert not list(tmp_path.glob("*/*/*/state-*"))
    kept = {path.parent.name for path in tmp_path.glob("halved/*/*/*.keras")}
    assert kept == {f"trial_{trial.trial_id}" for trial in trials}


def test_a_search_with_rungs_says_which(tmp_path, digits, capsys):
    make(tmp_path, project_name="tiny").search(*digits, epochs=EPOCHS, batch_size=32)
    lines = [", ".join(line.split(", ")[:2]) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        *[f"tiny: round 1 of 3 to epoch 1, {done}/7 trials" for done in (4, 7)],
        "tiny: round 2 of 3 to epoch 2, 4/4 trials",
        "tiny: round 3 of 3 to epoch 4, 2/2 trials",
    ]
    with pytest.raises(ValueError, match=r"\(rungs:"):
        search(tmp_path, digits, project_name="tiny", rungs={1: 4})


# Killed


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, digits):
    folder = tmp_path_factory.mktemp("uninterrupted")
    search(folder, digits)
    return results(trials_on_disk(folder))


# About 70 files are replaced: lists, trials, states at a rung and between rungs, weights.
@pytest.mark.parametrize(
    "moments",
    all_but(
        [(1, 40)],
        [(1, 40), *[(moment,) for moment in range(2, 60, 6)], (0, 1, 17), (25, 40), (50,)],
    ),
)
def test_a_search_killed_at_any_file_loses_and_doubles_nothing(
    moments, tmp_path, digits, uninterrupted, monkeypatch
):
    monkeypatch.setattr(tuner, "SAVING", -1)  # a state after every epoch
    tmp_path /= "lr[0.1]"  # no pattern
    for moment in moments:
        with monkeypatch.context() as patched:
            patched.setattr(files.os, "replace", kill_at(moment))
            with pytest.raises(Killed):
                search(tmp_path, digits)
    search(tmp_path, digits)
    assert results(trials_on_disk(tmp_path)) == uninterrupted


def spy(monkeypatch, kill_at=()):
    """Return a list that gets the number of trials and the epoch of every training."""
    train, trained = Population.train, []

    def spied(self, images, epoch, order):
        if len(trained) in kill_at:
            kill_at.remove(len(trained))
            raise Killed
        trained.append((self.count, epoch))
        return train(self, images, epoch, order)

    monkeypatch.setattr(tuner, "SAVING", -1)
    monkeypatch.setattr(Population, "train", spied)
    return trained


def test_an_interrupted_round_goes_on_from_its_last_state(tmp_path, digits, monkeypatch):
    wild = {"rungs": {3: 4}, "space": {"learning_rate": (0.01, 1e30)}}  # some diverge on the way
    whole = search(tmp_path / "whole", digits, **wild)
    assert {trial.status for trial in whole.oracle.trials.values()} == set(ENDED)
    trained = spy(monkeypatch, kill_at=[1, 2, 3, 4])
    for _ in range(4):
        with pytest.raises(Killed):
            search(tmp_path / "killed", digits, **wild)
    (trial, *_) = tmp_path.glob("killed/*/trial_*")
    half_written = files.LEFTOVERS.replace("*", "0-state-1.npz")
    analysis = trial.parent / "analysis"  # where another process may be writing
    analysis.mkdir()
    for folder in (trial, analysis):
        folder.joinpath(half_written).touch()
    search(tmp_path / "killed", digits, **wild)
    assert list(tmp_path.glob(f"killed/*/*/{files.LEFTOVERS}")) == [analysis / half_written]
    assert [epoch for _, epoch in trained] == [0, 1, 2, 0, 1, 2, 3]  # none twice
    weights = [sorted(tmp_path.glob(f"{name}/*/*/*.keras")) for name in ("whole", "killed")]
    found = [[keras.models.load_model(file).get_weights() for file in files] for files in weights]
    for one, other in zip(*map(list, found), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    states = [results(trials_on_disk(tmp_path / name)) for name in ("whole", "killed")]
    assert states[0] == states[1]
    assert not list(tmp_path.glob("*/*/*/state-*"))


@pytest.mark.parametrize("more", [{"population": 6}, {"trials": 9}], ids=str)
def test_trials_that_join_a_round_cost_the_others_nothing(more, tmp_path, digits, monkeypatch):
    trained = spy(monkeypatch, kill_at=[3])
    with pytest.raises(Killed):
        search(tmp_path, digits, rungs=None, **({"trials": 3} if "trials" in more else {}))
    search(tmp_path, digits, rungs=None, **more)
    before = 3 if "trials" in more else 4
    assert (before, 3) in trained
    assert sum(count for count, _ in trained) == EPOCHS * more.get("trials", TRIALS)


def test_a_kill_between_two_ends_costs_no_epoch(tmp_path, digits, uninterrupted, monkeypatch):
    trained, end, calls = spy(monkeypatch), PopulationOracle.end_trial, itertools.count()

    def killed(self, trial):
        if next(calls) == 3:
            raise Killed
        return end(self, trial)

    monkeypatch.setattr(PopulationOracle, "end_trial", killed)
    with pytest.raises(Killed):
        search(tmp_path, digits)
    search(tmp_path, digits)
    assert results(trials_on_disk(tmp_path)) == uninterrupted
    epochs = [epoch for count, epoch in trained for _ in range(count)]
    assert sorted(epochs) == [0] * 7 + [1] * 4 + [2, 2, 3, 3]


@pytest.mark.parametrize("moment", [2, 5, 9, 12])  # between ends of the first round and later
def test_a_chief_that_starts_again_forgets_nothing(
    moment, tmp_path, digits, uninterrupted, monkeypatch
):
    """As its workers see it: another oracle, read from disk, which does not know their objects."""
    searching, calls = make(tmp_path), itertools.count(1)
    create, end = PopulationOracle.create_trial, PopulationOracle.end_trial

    def create_copy(oracle, slot):
        trial = create(searching.oracle, slot)
        copy = Trial.from_proto(trial.to_proto())
        copy.hyperparameters = trial.hyperparameters.copy()  # with all digits
        return copy

    def restarted(oracle, trial):
        if next(calls) == moment:
            new = make(tmp_path).oracle
            new.settings, new.epochs = oracle.settings, oracle.epochs
            new.reload()
            searching.oracle = new
        return end(searching.oracle, trial)

    monkeypatch.setattr(PopulationOracle, "create_trial", create_copy)
    monkeypatch.setattr(PopulationOracle, "end_trial", restarted)
    searching.search(*digits, epochs=EPOCHS, batch_size=32, verbose=0)
    assert next(calls) > moment and results(trials_on_disk(tmp_path)) == uninterrupted


def test_what_another_worker_has_ended_is_not_saved_again(tmp_path, digits):
    """The chief, started again, gave both the same trials, and the other has gone on."""
    ended = search(tmp_path, digits)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/trial_*/[ct]*")}
    trials = [Trial.from_proto(trial.to_proto()) for trial in ended.oracle.trials.values()]
    for trial in trials:
        trial.status = "RUNNING"
        trial.hyperparameters.values |= dict(zip(PLACE, (0, 0, 1), strict=True))
    x, y, held_out = digits
    images = {"": Images(x, y, 32), "val_": Images(*held_out, 32)}
    rounds = rounds_of(RUNGS, EPOCHS, TRIALS)
    with Progress("late", rounds, [0, 0, 0], "loss", verbose=0) as progress:
        ended._train(trials, 0, 0, images, rounds, progress)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/trial_*/[ct]*")} == files


def test_where_a_finalist_diverges_the_next_best_has_its_weights(tmp_path, digits, monkeypatch):
    train = Population.train

    def diverging(self, images, epoch, order):
        loss, accuracy = train(self, images, epoch, order)
        return (np.where(np.arange(len(loss)) == 0, np.nan, loss) if epoch == 3 else loss), accuracy

    monkeypatch.setattr(Population, "train", diverging)
    found = search(tmp_path, digits, rungs={2: 2})
    (failed,) = [t for t in found.oracle.trials.values() if t.status == "FAILED"]
    assert len(found.get_best_models(2)) == 2
    with pytest.raises(ValueError, match="it diverged"):
        found.load_model(failed)


def test_a_round_on_an_accelerator_is_as_wide_as_its_trials(tmp_path, digits, monkeypatch):
    sizes, make_cohort = [], population._Cohort
    monkeypatch.setattr(shim, "accelerators", lambda: ["GPU"])
    monkeypatch.setattr(population, "_Cohort", lambda *a: sizes.append(a[-1]) or make_cohort(*a))
    search(tmp_path, digits, population=None, trials=3, rungs={1: 2})
    assert sizes == [3, 2]


@needs_tensorflow
def test_hidden_gpus_are_not_used(monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [f"hidden {kind}"])
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [])
    assert shim.accelerators() == []


DAMAGE = [  # the text of a file, or what changes in it
    ("oracle.json", "{"),
    ("oracle.json", "{}"),
    ("oracle.json", {"settings": 5}),
    ("trial_1/trial.json", ""),
    ("trial_0/trial.json", {"status": None, "metrics": {}}),
    ("trial_0/trial.json", {"score": "x"}),
    ("trial_0/trial.json", {"hyperparameters": {"values": {}}}),
]


def test_a_damaged_search_is_refused(tmp_path, digits):
    search(tmp_path / "sound", digits)
    for number, (name, damage) in enumerate(DAMAGE):
        folder = shutil.copytree(tmp_path / "sound", tmp_path / str(number))
        file = folder / "untitled_project" / name
        if isinstance(damage, dict):
            damage = json.dumps(json.loads(file.read_text()) | damage)
        file.write_text(damage)
        with pytest.raises(ValueError, match=f"{folder}.* delete the folder"):
            search(folder, digits)
    shutil.rmtree(tmp_path / "sound" / "untitled_project" / "trial_1")  # not the last one
    with pytest.raises(ValueError, match="missing or damaged"):
        search(tmp_path / "sound", digits)


def test_killed_workers_get_their_trial_back_and_wait_at_a_rung(tmp_path):
    """Several processes as the oracle sees them, simulated in one."""
    oracle = make(tmp_path, trials=3, rungs={1: 1}).oracle
    oracle.epochs = 2
    first, second, third = (oracle.create_trial(f"worker-{slot}") for slot in range(3))

    def end(trial, loss, step):
        of_worker = Trial.from_proto(trial.to_proto())
        of_worker.metrics.update("loss", loss, step=step)
        of_worker.status = "COMPLETED"
        oracle.end_trial(of_worker)

    assert oracle.create_trial("worker-0").trial_id == first.trial_id
    for trial, loss in ((first, 1.0), (second, 2.0)):
        end(trial, loss, step=0)
    state = oracle.file(second, "state-1.npz")
    state.touch()
    end(second, 0.0, step=0)  # a second end changes nothing
    assert not state.exists() and second.metrics.get_history("loss")[0].value == [2.0]
    assert first.metrics.get_history("loss")[0].value == [1.0]
    waiting = oracle.create_trial("worker-0")
    assert waiting.status == "IDLE" and "worker-0" in oracle.tuner_ids
    third.status = "FAILED"
    oracle.end_trial(third)
    again = oracle.create_trial("worker-0")
    assert (again.trial_id, again.hyperparameters["tuner/initial_epoch"]) == ("0", 1)
    assert [oracle.create_trial(f"worker-{slot}").status for slot in (1, 2)] == ["STOPPED"] * 2
    end(again, 0.5, step=1)
    assert oracle.create_trial("worker-0").status == "STOPPED"
    assert not oracle.tuner_ids and oracle.has_ended


SEARCH = "search --depth 3 --kind highway --dataset digits --limit 200 --out"
SIZES = "--trials 40 --population 5 --rungs 5:20 10:8 --epochs 30"


def start(folder, log=os.devnull, **environment):
    command = [*COMMAND, *SEARCH.split(), str(folder), *SIZES.split()]
    with open(log, "a") as output:
        streams = {"stdout": output, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, env={**os.environ, **environment}, **streams)


def wait_until(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert condition() or process.poll() is not None


def ended(folder):
    return sum(state["status"] in ENDED for state in trials_on_disk(folder).values())


@pytest.fixture
def listener():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener


@pytest.mark.slow
def test_a_chief_and_two_workers_one_of_them_killed(listener, tmp_path):
    shared = {"KERASTUNER_ORACLE_PORT": str(listener.getsockname()[1])}
    listener.close()
    leading = start(tmp_path, KERASTUNER_TUNER_ID="chief", **shared)
    wait_until(lambda: list(tmp_path.glob("*/tuner0.json")), leading)
    log = tmp_path / "log"
    ids = [{"KERASTUNER_TUNER_ID": f"worker{i}", **shared} for i in range(2)]
    workers = [start(tmp_path, log, **worker) for worker in ids]
    wait_until(lambda: ended(tmp_path) >= 5, workers[0])
    workers[0].send_signal(signal.SIGKILL)
    workers[0].wait()
    workers[0] = start(tmp_path, log, **ids[0])
    try:
        assert [worker.wait(300) for worker in workers] == [0, 0]
        # Each counts the trials of the other, too: whoever ends a round last has seen all of them.
        assert all(f" {done} trials" in log.read_text() for done in ("40/40", "20/20", "8/8"))
        assert "saved" not in log.read_text()  # only the chief saves
        assert leading.wait(60) == 0
    finally:
        for process in (leading, *workers):
            process.kill()
    assert start(tmp_path / "alone").wait(300) == 0
    assert results(trials_on_disk(tmp_path)) == results(trials_on_disk(tmp_path / "alone"))


# Chief and workers


@pytest.fixture
def port(listener, monkeypatch):
    """A port that nobody listens on, as that of the chief."""
    port = listener.getsockname()[1]
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", str(port))
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker0")
    return port


def test_what_a_worker_needs(listener, port, tmp_path, digits, monkeypatch, capsys):
    """A chief that listens, and its folder with its settings."""
    monkeypatch.setattr(chief, "SECONDS", 1)
    with pytest.raises(RuntimeError, match=rf"No chief listens on 127.0.0.1:{port}"):
        search(tmp_path, digits)
    assert f"the chief on 127.0.0.1:{port}" in capsys.readouterr().err
    listener.listen()
    with pytest.raises(ValueError, match="`directory` must be that of the chief's search"):
        search(tmp_path, digits)
    path = tmp_path / "untitled_project" / "oracle.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"settings": {"depth": 9}}))
    with pytest.raises(ValueError, match="depth: 9"):
        search(tmp_path, digits)
    make(tmp_path, overwrite=True)
    assert path.exists()  # it is the chief's


def test_the_chief_of_another_search_gives_no_trials(listener, port, tmp_path, digits, monkeypatch):
    listener.listen()
    monkeypatch.setattr(tuner, "check_recorded", lambda *arguments: True)
    other = make(tmp_path / "other").oracle._oracle
    other.settings = {"depth": 9}
    monkeypatch.setattr(oracle_client.OracleClient, "get_space", lambda client: other.get_space())
    with pytest.raises(ValueError, match=rf"127.0.0.1:{port} leads another search"):
        search(tmp_path, digits)


def test_a_restarted_worker_may_have_another_population(port, tmp_path, monkeypatch):
    make(tmp_path, population=4).save()
    again = make(tmp_path, population=2)
    assert (again.slots, again.population) == (4, 2)  # it asks for all four, and trains two at once
    monkeypatch.setattr(tuner.PopulationRandomSearch, "is_worker", False)
    alone = make(tmp_path, population=None)
    assert (alone.slots, alone.population) == (0, None)  # the default is this machine's own


def test_a_search_that_has_ended_needs_nobody(tmp_path, digits, request, monkeypatch):
    search(tmp_path, digits)
    make(tmp_path).save()  # which keeps the settings
    request.getfixturevalue("port")
    search(tmp_path, digits)  # a worker that came late
    monkeypatch.setattr(chief, "SECONDS", 1)
    with pytest.raises(RuntimeError, match="No chief listens"):  # which would replace the search
        search(tmp_path, digits, overwrite=True)
    late = make(tmp_path, overwrite=True)
    late.oracle_here.epochs = EPOCHS
    with monkeypatch.context() as patch:
        patch.setattr(chief, "wait", lambda is_over: True)
        late.has_chief()
    assert late._is_over()  # that of the chief that has come and gone
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "chief")
    monkeypatch.setattr(chief, "lead", None)
    search(tmp_path, digits)


def test_a_chief_that_was_killed_starts_again(port, tmp_path, monkeypatch):
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "chief")
    make(tmp_path).save()
    assert make(tmp_path).is_chief
    for name in ("TUNER_ID", "ORACLE_PORT"):  # forgotten, which is no damage
        with monkeypatch.context() as without:
            without.delenv(f"KERASTUNER_{name}")
            with pytest.raises(ValueError, match=rf"Missing: KERASTUNER_{name}\."):
                make(tmp_path)
    for name in ("ORACLE_IP", "ORACLE_PORT"):
        with monkeypatch.context() as without:
            without.delenv(f"KERASTUNER_{name}")
            with pytest.raises(ValueError, match="Unset KERASTUNER_ORACLE_IP and"):
                chief.check_alone()
    for name in ("ORACLE_IP", "ORACLE_PORT", "TUNER_ID"):
        monkeypatch.delenv(f"KERASTUNER_{name}")
    assert not make(tmp_path).is_chief  # a process on its own goes on with it


class Gone(grpc.RpcError):
    def code(self):
        return grpc.StatusCode.UNAVAILABLE


def fail(*arguments):
    raise Gone


def test_a_worker_whose_chief_dies_ends_in_one_line(listener, port, tmp_path, digits, monkeypatch):
    listener.listen()
    monkeypatch.setattr(chief, "SECONDS", 1)
    monkeypatch.setattr(tuner, "check_recorded", lambda *arguments: True)
    monkeypatch.setattr(PopulationRandomSearch, "_search", fail)
    with pytest.raises(RuntimeError, match="UNAVAILABLE"):
        search(tmp_path, digits)


def test_a_worker_outlives_a_chief_that_starts_again(listener, port):
    listener.listen()
    calls = iter([fail, fail, lambda: "done"])
    assert chief.outlive(lambda: next(calls)()) == "done"


def test_a_chief_that_fails_hands_out_nothing_more(listener, port, tmp_path, monkeypatch):
    listener.close()
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "chief")
    leading = make(tmp_path)
    leading.save()
    oracle = leading.oracle
    trial = oracle.create_trial("worker0")
    with monkeypatch.context() as full:
        full.setattr(PopulationOracle, "save", lambda oracle: open("/dev/full/absent"))
        with pytest.raises(OSError):
            oracle.create_trial("worker1")
    for call in (lambda: oracle.create_trial("worker2"), lambda: oracle.end_trial(trial)):
        with pytest.raises(RuntimeError, match="has failed"):
            call()
    with pytest.raises(OSError):
        chief.lead(oracle)
    assert trial.trial_id in make(tmp_path).oracle.trials  # and it can be continued


def test_a_worker_needs_an_id_of_its_own(port, tmp_path, digits):
    make(tmp_path).save()
    with files.file_lock(tmp_path / "untitled_project" / "worker0.json"):
        with pytest.raises(files.BusyError, match=r"worker 'worker0'.*KERASTUNER_TUNER_ID"):
            search(tmp_path, digits)


def test_a_chief_needs_a_port_of_its_own(listener, port, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "chief")
    command = [*SEARCH.split(), str(tmp_path)]
    for number in ("99999", "http"):
        monkeypatch.setenv("KERASTUNER_ORACLE_PORT", number)
        assert cli.main(command) == 2
        assert number in capsys.readouterr().err
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", str(port))
    listener.listen()
    assert cli.main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"The chief cannot listen on 127.0.0.1:{port}" in line
    listener.close()
    monkeypatch.setattr(socket.socket, "listen", None)
    chief.check_port()  # without listening
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "192.0.2.1")  # of no machine
    with pytest.raises(ValueError, match="KERASTUNER_ORACLE_IP to an address of this machine"):
        chief.check_port()
