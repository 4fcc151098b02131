"""A run that was killed and resumed ends like one that was not, to the last bit."""

import functools
import os
import random
import re
import shlex
import signal
import subprocess
import time

import keras
import numpy as np
import pytest
from processes import COMMAND

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


def start(command, folder):
    return subprocess.Popen(
        [*COMMAND, *shlex.split(command)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Where the tests run in the background, their children would ignore it.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def ends(process):
    """Its exit code and what it wrote on stderr."""
    errors = process.communicate(timeout=200)[1]
    if keras.backend.backend() != "tensorflow":  # Keras imports TensorFlow all the same: greetings
        errors = re.sub(r"^(WARNING: All log|[IWE]0000).*\n", "", errors, flags=re.M)
    return process.returncode, errors


def stop(command, folder, rows, number):
    """Sends a signal at a random moment after `rows` epochs."""
    history = folder / command.split("--out ")[1].split()[0] / "history.csv"
    pause = random.uniform(0, 0.2)  # an epoch takes some 0.1 s: anywhere in one, or between two
    print(f"signal {number} at {pause:.3f} s after epoch {rows}")
    process, began = start(command, folder), time.monotonic()
    while process.poll() is None and time.monotonic() - began < 200:
        if history.exists() and history.read_text().count("\n") > rows:
            time.sleep(pause)
            process.send_signal(number)
            break
        time.sleep(0.002)
    return ends(process)


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


def test_stopped_and_killed(folder):
    command = f"{THIN} --out stopped"
    whole = start(f"{THIN} --out whole", folder)
    assert stop(command, folder, 1, signal.SIGINT) == (
        130,
        "highway-keras: Interrupted. Nothing finished is lost; continue with: "
        f"highway-keras {command} --resume\n",
    )
    assert stop(f"{command} --resume", folder, 5, signal.SIGKILL)[0] == -signal.SIGKILL
    assert ends(start(f"{command} --resume", folder)) == ends(whole) == (0, "")
    assert_same_end(folder / "whole", folder / "stopped")
    sessions = provenance.sessions(training.RunFolder(folder / "stopped"))
    assert len(sessions) == 3 and provenance.minutes(sessions) > 0  # what was killed counts, too


@pytest.mark.slow
def test_killed_with_random_numbers_in_training(folder):
    whole = start(f"{RANDOM} --out random", folder)
    command = f"{RANDOM} --out killed --resume"
    assert stop(command, folder, 2, signal.SIGKILL)[0] == -signal.SIGKILL
    assert ends(start(command, folder)) == ends(whole) == (0, "")
    assert_same_end(folder / "random", folder / "killed")


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
