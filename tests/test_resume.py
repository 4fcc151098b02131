"""A run that was killed and resumed ends like one that was not, to the last bit."""

import os
import random
import re
import signal
import time

import keras
import numpy as np
import pytest
from nursery import Nursery

from highway_keras import io, training
from highway_keras.runs import provenance

THIN = "fit thin-highway-10 --dataset digits --limit 400 --epochs 12"
# Dropout, crops and mirrors draw random numbers; no images are held out.
RANDOM = "fit mnist-highway-16 --dataset small.npz --recipe cifar --epochs 12 --batch-size 10"
RANDOM += " --model-set width=4 --set learning_rate=0.01"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    x = (rng.integers(0, 100, (120, 12, 12, 1)) + 70 * y[:, None, None, None]).astype("uint8")
    np.savez(folder / "small.npz", x_train=x, y_train=y, x_test=x[:30], y_test=y[:30])
    return folder


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as nursery:
        yield nursery


def ends(job):
    """Its exit code and what it wrote on stderr."""
    job.wait()
    if keras.backend.backend() != "tensorflow":  # Keras imports TensorFlow all the same: greetings
        job.err = re.sub(r"^(WARNING: All log|[IWE]0000).*\n", "", job.err, flags=re.M)
    return job.code, job.err


def stop(job, out, rows):
    """Kill at a random moment after `rows` epochs."""
    history = job.folder / out / "history.csv"
    pause = random.uniform(0, 0.2)  # an epoch takes some 0.1 s: anywhere in one, or between two
    print(f"killed at {pause:.3f} s after epoch {rows}")
    began = time.monotonic()
    while not job.poll() and time.monotonic() - began < 200:
        if history.exists() and history.read_text().count("\n") > rows:
            time.sleep(pause)
            job.kill()
            break
        time.sleep(0.002)
    return ends(job)


def assert_same_end(first, second):
    assert (first / "history.csv").read_bytes() == (second / "history.csv").read_bytes()
    found = []
    for path in (first, second):
        with np.load(path / "state.npz") as state:
            arrays = {name: state[name] for name in state.files if name != "run"}
        for name in ("best", "final"):
            model = keras.models.load_model(path / f"{name}.keras")
            arrays |= {f"{name}/{v.path}": np.asarray(v) for v in model.weights}
        found.append(arrays)
    one, other = found
    assert one.keys() == other.keys() and len(one) > 10
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.slow
def test_killed(folder, nursery):
    command = f"{THIN} --out killed --resume"
    whole = nursery.start(f"{THIN} --out whole", folder)
    assert stop(nursery.start(command, folder), "killed", 3)[0] == -signal.SIGKILL
    assert ends(nursery.start(command, folder)) == ends(whole) == (0, "")
    assert_same_end(folder / "whole", folder / "killed")
    sessions = provenance.sessions(training.RunFolder(folder / "killed"))
    assert len(sessions) == 2 and provenance.minutes(sessions) > 0  # what was killed counts, too


@pytest.mark.slow
def test_killed_with_random_numbers_in_training(folder, nursery):
    whole = nursery.start(f"{RANDOM} --out random", folder)
    command = f"{RANDOM} --out random-killed --resume"
    assert stop(nursery.start(command, folder), "random-killed", 2)[0] == -signal.SIGKILL
    assert ends(nursery.start(command, folder)) == ends(whole) == (0, "")
    assert_same_end(folder / "random", folder / "random-killed")


class Crash(BaseException):
    pass


def fit(out, resume=False):
    options = {"limit": 96, "epochs": 2, "model_options": {"depth": 2}, "verbose": 0}
    return training.fit("thin-highway-10", "digits", out=out, resume=resume, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run, and the files that it replaced, in their order."""
    written = []

    def replace(source, target, replace=os.replace):
        written.append(target.name)
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io.os, "replace", replace)
        return fit(tmp_path_factory.mktemp("fit") / "whole"), written


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored in")  # files that a crash leaves open
def test_crash_at_every_file_that_training_writes(whole, tmp_path, monkeypatch):
    """Crash before `os.replace` at the even calls, after it at the odd ones."""
    whole, written = whole
    replace = os.replace
    moments = [n for n, name in enumerate(written) if name in ("best.keras", "state.npz")]
    assert len(moments) >= 3
    for moment in moments:
        count = iter(range(len(written)))

        def crash(source, target, moment=moment, count=count):
            now = next(count)
            if now < moment or now % 2:
                replace(source, target)
            if now == moment:
                raise Crash

        out = tmp_path / f"crash-{moment}"
        with monkeypatch.context() as patch, pytest.raises(Crash):
            patch.setattr(io.os, "replace", crash)
            fit(out)
        again = fit(out, resume=True)
        assert again.history == whole.history, written[moment]
        assert (again.test_loss, again.best_epoch) == (whole.test_loss, whole.best_epoch)
        assert_same_end(out, whole.folder.path)
