"""One writer at a time: the second is refused, and a dead process keeps nothing."""

import pathlib
import subprocess
import sys
import threading

import pytest
from filelock import FileLock

from highway_keras.util.files import BusyError, folder_lock, replacing

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


def test_the_second_process_is_refused_until_the_first_dies(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLDS, tmp_path], **pipes) as process:
        assert process.stdout.readline() == "has it\n"
        with pytest.raises(BusyError, match=f"{tmp_path} is being written by another process"):
            with folder_lock(tmp_path, seconds=0.1):
                raise AssertionError
        with folder_lock(tmp_path / "other"):
            pass
        process.kill()
    with folder_lock(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_writer_waits_for_one_that_ends_soon(tmp_path):
    outcomes = []

    def second(seconds):
        try:
            with folder_lock(tmp_path, seconds):
                outcomes.append("has it")
        except BusyError:
            outcomes.append("refused")

    with folder_lock(tmp_path):
        threads = [threading.Thread(target=second, args=(seconds,)) for seconds in (0.1, 20)]
        for thread in threads:
            thread.start()
        threads[0].join()
    threads[1].join()
    assert outcomes == ["refused", "has it"]


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
