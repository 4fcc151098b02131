"""Several runs at once: the results of one after the other, and nothing lost or left behind."""

import os
import re
import signal
import subprocess
import time

import keras
import pytest
from processes import COMMAND

from highway_keras import training

SMALL = {"dataset": "digits", "limit": 150, "epochs": 2, "verbose": 0}
pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="says nothing of the backend"
)


def test_runs_side_by_side_give_what_one_after_the_other_gives(tmp_path):
    threads = os.environ.get("TF_NUM_INTRAOP_THREADS")
    apart = training.fit_runs("thin-highway-10", 2, tmp_path / "apart", jobs=2, **SMALL)
    alone = training.fit_runs("thin-highway-10", 2, tmp_path / "alone", **SMALL)
    assert [r.folder.path.name for r in apart] == ["seed-0", "seed-1"]
    for one, other in zip(apart, alone, strict=True):
        assert one.test_accuracy == other.test_accuracy
        for a, b in zip(one.history, other.history, strict=True):
            assert a["loss"] == pytest.approx(b["loss"], rel=1e-5)
    assert os.environ.get("TF_NUM_INTRAOP_THREADS") == threads


@pytest.mark.slow
def test_runs_that_diverge_are_named(tmp_path):
    with pytest.raises(training.TrainingDiverged, match=r"seed 0: .*; seed 1: .*no longer finite"):
        options = {**SMALL, "learning_rate": 1e30, "model_options": {"activation": "relu"}}
        training.fit_runs("thin-highway-10", 2, tmp_path / "runs", jobs=2, **options)


@pytest.mark.parametrize("runs", [1, 2])
def test_jobs_must_be_a_positive_integer(runs, tmp_path):
    with pytest.raises(ValueError, match=r"`jobs` must be a positive integer\. Received: jobs=0"):
        training.fit_runs("thin-highway-10", runs, tmp_path / "runs", jobs=0, **SMALL)
    assert not (tmp_path / "runs").exists()


def start(out):
    arguments = "fit thin-highway-10 --dataset digits --epochs 40 --runs 2 --jobs 2 --resume --out"
    return subprocess.Popen(
        [*COMMAND, *arguments.split(), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def children_of(group):
    found = subprocess.run(["ps", "-o", "pid=", "-g", str(group)], capture_output=True, text=True)
    return found.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_runs_end_with_the_command_and_resume(how, tmp_path):
    histories = [tmp_path / "runs" / f"seed-{seed}" / "history.csv" for seed in (0, 1)]
    process = start(tmp_path / "runs")
    wait_until(lambda: all(h.exists() and h.read_text().count("\n") > 3 for h in histories))
    if how == signal.SIGINT:
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=60)
        assert process.returncode == 130 and "continue with:" in error and "--jobs 2" in error
    else:
        process.kill()
        process.communicate()
    wait_until(lambda: not children_of(process.pid), 30)
    output, error = start(tmp_path / "runs").communicate(timeout=300)
    assert len(re.findall(r"test accuracy [\d.]+ %", output)) == 2, error
    for history in histories:
        assert [row.split(",")[0] for row in history.read_text().split()[1:]] == [
            str(epoch) for epoch in range(40)
        ]
