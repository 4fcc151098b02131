"""One writer at a time: the second says who has it, and a dead process keeps nothing."""

import contextlib
import errno
import os
import pathlib
import platform
import subprocess
import sys
import threading

import numpy as np
import pytest
from filelock import FileLock

from highway_keras import analysis, data, models, training
from highway_keras.export.exporting import staged
from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch
from highway_keras.util.files import BusyError, file_lock, folder_lock, replacing

HOLDS = """
import importlib.util, sys
# Without the package's `__init__`, which imports Keras
package = importlib.util.module_from_spec(importlib.util.find_spec("highway_keras"))
sys.modules["highway_keras"] = package
from highway_keras.util.files import folder_lock
with folder_lock(sys.argv[1]):
    print("has it", flush=True)
    sys.stdin.read()
"""


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")
    with pytest.raises(OSError, match="full"), replacing(file) as temporary:
        temporary.write_text("half")
        raise OSError("full")
    assert file.read_text() == "old" and [*tmp_path.iterdir()] == [file]


def test_the_second_process_says_who_has_it_until_it_dies(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLDS, tmp_path], **pipes) as process:
        assert process.stdout.readline() == "has it\n"
        owner = f"{tmp_path} is being written by process {process.pid} on {platform.node()}"
        with pytest.raises(BusyError, match=owner):
            with folder_lock(tmp_path, seconds=0.1):
                raise AssertionError
        with folder_lock(tmp_path / "other"):
            pass
        process.kill()
    with folder_lock(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_what_another_machine_may_have_left_can_be_deleted(tmp_path):
    with folder_lock(tmp_path):
        (tmp_path / ".lock-owner").write_text("process 1 on elsewhere")
        with pytest.raises(BusyError, match=r"If it was killed, delete .*\.lock"):
            with folder_lock(tmp_path, seconds=0.1):
                raise AssertionError


def test_a_link_in_the_place_of_the_owner_is_not_followed(tmp_path):
    mine, folder = tmp_path / "mine.txt", tmp_path / "run"
    mine.write_text("mine")
    folder.mkdir()
    for name in (".lock-owner", ".lock"):
        (folder / name).symlink_to(mine)
        with contextlib.suppress(OSError):
            with folder_lock(folder):
                pass
        (folder / name).unlink(missing_ok=True)
    assert mine.read_text() == "mine"


def test_a_thread_is_another_writer_and_waits_for_one_that_ends_soon(tmp_path):
    found = []

    def second(seconds):
        try:
            with folder_lock(tmp_path, seconds):
                found.append("has it")
        except BusyError as error:
            found.append(f"process {os.getpid()} on" in str(error))

    with folder_lock(tmp_path):
        threads = [threading.Thread(target=second, args=(seconds,)) for seconds in (0.1, 20)]
        for thread in threads:
            thread.start()
        threads[0].join()
    threads[1].join()
    assert found == [True, "has it"]


def test_the_search_of_another_writer_is_left_alone(tmp_path):
    """Nor can it be overwritten until that writer has ended."""
    digits = data.load("digits", limit=64)
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4)
    options = {"max_trials": 2, "directory": tmp_path, "project_name": "a"}
    tuner, oracle = PopulationRandomSearch(hypermodel, **options), tmp_path / "a" / "oracle.json"
    with folder_lock(tmp_path / "a"):
        oracle.write_text("{}")
        with pytest.raises(BusyError, match=f"process {os.getpid()}"):
            tuner.search(digits.x_train / np.float32(256), digits.y_train, verbose=0)
        with pytest.raises(BusyError, match=f"process {os.getpid()}"):
            PopulationRandomSearch(hypermodel, overwrite=True, **options)
        assert oracle.exists()
    PopulationRandomSearch(hypermodel, overwrite=True, **options)
    assert not oracle.exists()


def test_runs_of_another_writer_are_left_alone_and_do_not_keep_the_others(tmp_path):
    options = {"limit": 40, "epochs": 1, "verbose": 0, "model_options": {"depth": 2}}
    said = r"seed 0: .*process \d+.*seed 1 ended, test accuracy \d"
    with folder_lock(tmp_path / "seed-0"), pytest.raises(BusyError, match=said):
        training.fit_runs("thin-plain-10", 2, tmp_path, dataset="digits", **options)
    assert not list((tmp_path / "seed-0").iterdir())
    assert training.RunFolder(tmp_path / "seed-1").has_ended


def test_a_lock_that_cannot_be_had_is_named(tmp_path, monkeypatch):
    def acquire(lock, timeout):
        pathlib.Path(lock.lock_file).touch()
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("filelock.FileLock.acquire", acquire)
    with pytest.raises(OSError, match=r"\.lock cannot be locked \(No locks available\)"):
        with folder_lock(tmp_path):
            raise AssertionError


def test_an_export_has_one_writer(tmp_path):
    """Its lock lies beside it."""
    path = tmp_path / "model.keras"
    with file_lock(path), file_lock(tmp_path / "other.keras"):
        assert not path.exists()
        with pytest.raises(BusyError, match=r"model.keras is being written by"):
            with staged(path, "keras", overwrite=False):
                raise AssertionError
    with staged(path, "keras", overwrite=False) as aside:
        aside.write_bytes(b"whole")
    assert [file.name for file in tmp_path.iterdir()] == ["model.keras"]


def test_an_analysis_has_one_writer(tmp_path, monkeypatch):
    """A second one is refused before it starts to work."""
    for work in ("lesioning.by_batch", "gating.mean_gates"):
        monkeypatch.setattr(f"highway_keras.analysis.{work}", None)
    model = models.thin_mlp(depth=3, input_shape=(8,), classes=3)
    x, y = np.zeros((6, 8), "float32"), np.arange(6) % 3
    with folder_lock(tmp_path), pytest.raises(BusyError, match=str(os.getpid())):
        analysis.analyze(model, x, y, tmp_path, verbose=0)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="out"):
        analysis.analyze(model, x, y, tmp_path / "file", verbose=0)


def test_what_a_killed_process_left_is_put_back_or_removed(tmp_path):
    left, path = tmp_path / ".served-unfinished", tmp_path / "served"
    (left / "old").mkdir(parents=True)  # killed when the earlier export had no name
    (left / "new").mkdir()
    with pytest.raises(ValueError), staged(path, "saved_model", overwrite=False):
        assert path.exists() and not list((left / "new").iterdir())
        raise ValueError
    assert [file.name for file in tmp_path.iterdir()] == ["served"]
    half = path / ".tmp-00000000-state.npz"
    half.write_bytes(b"half")
    with training.RunFolder(path).locked():
        assert not half.exists()


def test_a_writer_that_comes_while_another_leaves_keeps_its_lock(tmp_path, monkeypatch):
    """As of filelock 3.29.5."""
    second, unlink = FileLock(tmp_path / ".lock"), pathlib.Path.unlink

    def unlink_and_lock(path, **options):
        unlink(path, **options)
        if path == tmp_path / ".lock" and not second.is_locked:
            second.acquire(timeout=1)

    with monkeypatch.context() as patch, folder_lock(tmp_path):
        patch.setattr(pathlib.Path, "unlink", unlink_and_lock)
    with pytest.raises(BusyError), folder_lock(tmp_path, seconds=0.1):
        pass
    second.release()
