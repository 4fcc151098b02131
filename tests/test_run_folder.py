"""Resuming: a run or a search continues only if its settings, history and state agree.

It then ends as if nothing had happened, to the last bit. `test_survival` kills processes.
"""

import contextlib
import errno
import itertools
import json
import os
import shutil

import keras
import numpy as np
import pytest
from helpers import Killed, kill_at

from highway_keras import paper, training
from highway_keras.runs import machine
from highway_keras.runs.folder import check_same_settings
from highway_keras.runs.machine import Session, minutes, sessions
from highway_keras.tuning import run_searches
from highway_keras.util import files
from highway_keras.util.messages import Notice

pytestmark = pytest.mark.usefixtures("untraced")
OPTIONS = {"limit": 96, "epochs": 3, "model_options": {"depth": 2}, "verbose": 0}


def fit(out, resume=True, **changes):
    return training.fit("thin-highway-10", "digits", out=out, resume=resume, **OPTIONS | changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("whole") / "run", resume=False)


def unfinished(folder):
    settings = folder.read_json()
    del settings["results"]
    folder.write_json(settings)
    return folder


@pytest.fixture
def run(whole, tmp_path):
    """A copy of the run without what its end left."""
    return unfinished(training.RunFolder(shutil.copytree(whole.folder.path, tmp_path / "run")))


def test_a_state_is_continued_under_its_own_settings_only(run, whole):
    other = {"seed": 1, "augmentation": ["mirror"], "model_options": {"depth": 4}}
    other |= {"test_curve": True, "dtype_policy": "mixed_bfloat16", "class_weight": "balanced"}
    for _ in range(2):  # with run.json and without
        before = {file: file.read_bytes() for file in run.path.glob("*.*")}
        for name, value in other.items():
            with pytest.raises(ValueError, match=name):
                fit(run.path, **{name: value})
        assert {file: file.read_bytes() for file in run.path.glob("*.*")} == before
        run.settings.unlink(missing_ok=True)
    with pytest.raises(ValueError, match="resume"):
        fit(run.path, resume=False)
    again = fit(run.path)
    assert (again.history, again.test_loss) == (whole.history, whole.test_loss)
    assert run.read_json()["seed"] == 0


def test_a_run_that_has_ended_goes_on_to_more_epochs(whole, tmp_path):
    shorter = fit(tmp_path / "run", epochs=2)
    assert len(shorter.history) == 2
    names = ("run.json", "history.csv", "machine.json", "best.keras", "final.keras")
    kept = [tmp_path / "run" / name for name in names]
    before = [file.read_bytes() for file in kept]
    state = shorter.folder.state.rename(tmp_path / "state.npz")
    with pytest.raises(ValueError, match="gone"):
        fit(tmp_path / "run")
    state.rename(shorter.folder.state)  # without which nothing was lost
    assert [file.read_bytes() for file in kept] == before
    stop = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit(tmp_path / "run", callbacks=[stop])
    with pytest.warns(Notice, match="2 epochs, no longer 3"):  # as if never asked
        assert fit(tmp_path / "run", epochs=2).test_loss == shorter.test_loss
    sessions, *networks = kept[2].read_bytes(), *before[3:]
    fit(tmp_path / "run", epochs=2)
    # No further session, and the networks with which other runs may have begun, which resume
    assert [file.read_bytes() for file in kept[2:]] == [sessions, *networks]
    longer = fit(tmp_path / "run")
    with pytest.raises(ValueError, match="epochs: 3 → 2"):
        fit(tmp_path / "run", epochs=2)
    assert (longer.history, longer.test_loss) == (whole.history, whole.test_loss)
    cosine = {"out": tmp_path / "cosine", "schedule": "cosine", "decay": 1.0}
    fit(**cosine, epochs=1)
    with pytest.raises(ValueError, match="epochs: 1 → 3"):  # whose rates would have been others
        fit(**cosine)


def test_the_state_of_another_run_is_refused(run):
    known = run.read_state()
    known["settings"]["seed"] = 1
    np.savez(run.state, **saved_arrays(run), run=json.dumps(known))
    with pytest.raises(ValueError, match="seed"):
        fit(run.path)


NO_MEMORY = RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")  # PyTorch's


@pytest.mark.parametrize(
    "error", [MemoryError(), NO_MEMORY, OSError(errno.EIO, "Input/output error")]
)
def test_what_passes_is_no_damage(error, run, monkeypatch):
    def load(path):
        raise error

    monkeypatch.setattr(np, "load", load)
    with pytest.raises(type(error)) as caught:
        run.read_state()
    assert caught.value is error


def test_without_its_state_or_any_settings_a_run_does_not_start_over(run):
    run.state.unlink()
    before = {file: file.read_bytes() for file in run.path.glob("*.*")}
    with pytest.raises(ValueError, match="gone"):
        fit(run.path)
    assert {file: file.read_bytes() for file in run.path.glob("*.*")} == before
    run.settings.unlink()
    for file in (run.history, run.best):
        with pytest.raises(ValueError, match=str(run.path)):
            fit(run.path)
        assert run.best.exists()
        file.unlink()


DAMAGE = {
    "half a row": lambda rows: [*rows[:3], rows[3][:5]],
    "a row is missing": lambda rows: [*rows[:2], *rows[3:]],
    "it is gone": lambda rows: [],
    "a column is missing": lambda rows: [row.partition(",")[2] for row in rows],
    "a field is huge": lambda rows: [*rows[:3], "2," + "9" * 200_000 + "\n"],
    "a byte is no UTF-8": lambda rows: [*rows[:2], "\udcc3" + rows[2][1:], *rows[3:]],
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_history_is_refused_once_the_run_has_ended(change, whole, tmp_path):
    """Before the end, it is restored from the state."""
    folder = training.RunFolder(shutil.copytree(whole.folder.path, tmp_path / "run"))
    rows = change(folder.history.read_text().splitlines(keepends=True))
    folder.history.write_text("".join(rows), encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ValueError, match=r"history\.csv"):
        folder.read_history()
    if change in (DAMAGE["half a row"], DAMAGE["it is gone"]):
        unfinished(folder)
        assert fit(folder.path).history == whole.history
        assert folder.history.read_text() == whole.folder.history.read_text()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("file", ["run.json", "history.csv", "state.npz", "machine.json"])
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(file, run):
    (run.path / file).unlink()
    os.mkfifo(run.path / file)
    if file == "machine.json":
        assert sessions(run) == []
        return
    read = {"run.json": run.read_json, "state.npz": run.read_state}
    with pytest.raises((ValueError, OSError), match=file):
        read.get(file, run.read_history)()


NETWORKS = {
    "gone": None,
    "cut short": lambda b: b[:-3000],
    "damaged": lambda b: b.replace(b"HDF", b"hdf"),
    "of another run": lambda b: b[:-18] + 16 * b"0" + b[-2:],  # whose mark ends the file
    "of another epoch": lambda b: b,
}


@pytest.mark.parametrize("change", NETWORKS.values(), ids=NETWORKS)
def test_without_its_best_network_a_run_does_not_go_on(change, run):
    known, network = run.read_state(), run.best.read_bytes()
    known["history"][0]["val_accuracy"] = "1.0"  # the best epoch, whose weights no state has
    np.savez(run.state, **saved_arrays(run), run=json.dumps(known))
    run.best.unlink()
    if change:
        run.best.write_bytes(change(network))
    with pytest.raises((ValueError, FileNotFoundError), match=r"best\.keras"):
        fit(run.path)
    assert run.saved_history() == known["history"]


@pytest.mark.parametrize("older", [False, True])
def test_the_best_network_of_the_last_epoch_is_in_the_state(older, run, whole, tmp_path):
    assert whole.best_epoch == 3
    run.best.unlink()  # killed before it was saved
    if older:
        shutil.copy(fit(tmp_path / "shorter", epochs=2).folder.best, run.best)
    assert fit(run.path).test_loss == whole.test_loss


def test_a_damaged_machine_json_costs_no_training(run):
    for content in ("", "5", '[{"hardware": 5}]', '[{"seconds": 1}]', "\udcff"):
        run.machine.write_bytes(content.encode(errors="surrogateescape"))
        with Session(run):
            assert len(json.loads(run.machine.read_text())) == 1  # a killed one says where it ran


def test_another_backend_than_before_is_told(run):
    (before,) = json.loads(run.machine.read_text())
    versions = before["versions"].replace(keras.backend.backend(), "another")
    run.machine.write_text(json.dumps([{**before, "versions": versions}]))
    with pytest.warns(Notice, match="goes on by"), Session(run):
        pass
    with Session(run):  # the last one is of this backend
        pass


def test_a_gpu_that_the_backend_does_not_see_is_told(run, monkeypatch):
    monkeypatch.setattr(machine, "NVIDIA", run.path)  # which exists
    monkeypatch.setattr(machine.shim, "accelerators", list)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.warns(Notice, match="not the NVIDIA GPU"), Session(run):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")  # hidden by the user
    with Session(run):
        pass


def test_results_without_numbers_are_not_believed(run):
    settings = run.read_json()
    for results in ({}, 5, {"test_accuracy": "high"}):
        run.write_json({**settings, "results": results})
        with pytest.raises(ValueError, match=r"run\.json"):
            assert not run.has_ended


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored in")  # files that a crash leaves open
def test_crash_at_every_file_that_training_writes(whole, tmp_path, monkeypatch):
    """Before the file has its name, and so also after the one before it has."""
    for moment in itertools.count():
        out = tmp_path / str(moment)
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            patch.setattr(files.os, "replace", kill_at(moment))
            fit(out, resume=False)
            break  # not killed: it writes no more files
        again = fit(out)
        assert again.history == whole.history and again.test_loss == whole.test_loss
        np.testing.assert_equal(saved_arrays(again.folder), saved_arrays(whole.folder))
        assert minutes(sessions(again.folder)) is not None  # of every epoch: what is killed counts
    assert moment > 12


def saved_arrays(folder):
    """Weights and optimizer of a state."""
    with np.load(folder.state) as state:
        return {name: state[name] for name in state.files if name != "run"}


# Searches


def test_a_search_is_continued_under_its_own_settings_only_and_undamaged(tmp_path):
    options = {"depths": [2], "kinds": ["plain"], "trials": 2, "epochs": 2, "verbose": 0}
    options |= {"dataset": "digits", "limit": 64, "out": tmp_path / "search"}
    (folder,) = run_searches(**options)
    options["resume"] = True
    before = json.loads((folder / "run.json").read_text())
    (folder / "run.json").unlink()
    for named, changes in [("seed", {"seed": 1}), ("epochs", {"epochs": 3}), ("64", {"limit": 60})]:
        with pytest.raises(ValueError, match=named):
            run_searches(**options | changes)
        assert not (folder / "run.json").exists()
    run_searches(**options)
    assert json.loads((folder / "run.json").read_text()) == before
    with pytest.raises(ValueError, match="settings differ"):
        fit(folder)
    (folder / "trial_0" / "trial.json").write_text("")
    with pytest.raises(ValueError, match=r"trial\.json"):
        paper.draw_figure1(folder.parent, tmp_path / "figure")
    assert not any((tmp_path / "figure").glob("*"))
    for file in folder.glob("*.json"):
        file.unlink()
    with pytest.raises(ValueError, match=str(folder)):
        run_searches(**options)


def test_what_one_passed_is_named_in_place_of_its_fingerprint():
    plain = {"images": "1", "image_shape": [8, 8, 1]}
    weighted = plain | {"loss_weights": "1", "class_weight": "balanced"}
    for before, now, named in (
        (plain, {"images": "2", "image_shape": [9, 9, 1]}, "image_shape"),
        (plain, plain | {"images": "2"}, "images"),
        ({"images": "1"}, plain | {"images": "2"}, "images"),  # of a run that said less
        (plain, weighted, "class_weight"),
        (plain | {"loss_weights": "2"}, weighted, "loss_weights"),
    ):
        with pytest.raises(ValueError, match=rf"differ \({named}: "):
            check_same_settings(before, now, "the run")


# Tables of runs


def test_stray_folders_are_no_runs_and_a_row_without_its_settings_is_named(tmp_path):
    """Before the work."""
    folder = training.RunFolder(tmp_path / "mnist-highway-16-modern" / "seed-0")
    folder.path.mkdir(parents=True)
    results = {"test_accuracy": 0.9, "test_loss": 0.3, "best_epoch": 1}
    settings = {"limit": None, "seed": 0, "recipe": {"epochs": 1}, "results": results}
    folder.write_json({**settings, "dataset": "mnist"})
    for name in ("seed-0.bak", "seed-", "seed-x", "seed-00"):
        shutil.copytree(folder.path, folder.path.with_name(name))
    assert len(paper.read_table("table1", tmp_path)) == 1
    folder.write_json(settings)
    with pytest.raises(ValueError, match="dataset"):
        paper.reproduce_table("table1", runs=1, out=tmp_path)
