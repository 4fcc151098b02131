"""A run that was killed and resumed ends like one that was not, to the last bit."""

import functools
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import time

import h5py
import keras
import numpy as np
import pytest
from processes import COMMAND

from highway_keras import io, training
from highway_keras.runs import provenance as machine

RECORDED = pathlib.Path(__file__).with_name("recorded")
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


def contents(file):
    """Every array of a HDF5 file, by path."""
    arrays = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            arrays[name] = np.asarray(item)

    with h5py.File(file) as content:
        content.visititems(visit)
    return arrays


def assert_same_end(first, second):
    assert (first / "history.csv").read_bytes() == (second / "history.csv").read_bytes()
    states = [contents(path / "state.weights.h5") for path in (first, second)]
    weights = [{}, {}]
    for found, path in zip(weights, (first, second), strict=True):
        for name in ("best", "final"):
            model = keras.models.load_model(path / f"{name}.keras")
            found |= {f"{name}/{v.path}": np.asarray(v) for v in model.weights}
    for one, other in (states, weights):
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
    sessions = machine.sessions(training.RunFolder(folder / "stopped"))
    assert len(sessions) == 3 and machine.minutes(sessions) > 0  # what was killed counts, too


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
    moments = [n for n, name in enumerate(written) if name in ("best.keras", "state.weights.h5")]
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


def test_half_a_row_of_history_is_dropped(whole, tmp_path):
    whole, _ = whole
    shutil.copytree(whole.folder.path, tmp_path / "run")
    with (tmp_path / "run" / "history.csv").open("a") as file:
        file.write("2,0.5")
    assert fit(tmp_path / "run", resume=True).history == whole.history


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow orders its images")
def test_a_run_of_version_0_1_0_goes_on(tmp_path):
    """Killed while it saved the third of six epochs; the numbers are those of one that was not."""
    shutil.copytree(RECORDED / "run-0.1.0", tmp_path / "run")
    options = {"limit": 128, "epochs": 6, "model_options": {"units": 6, "depth": 3}, "verbose": 0}
    result = training.fit("thin-highway-10", "digits", out=tmp_path / "run", resume=True, **options)
    losses = [2.2293978, 2.1520653, 2.0533483, 1.9240501, 1.7954636, 1.6459410]
    held_out = [0.2569444, 0.3402778, 0.4375000, 0.3750000, 0.4236111, 0.4305556]
    assert [row["loss"] for row in result.history] == pytest.approx(losses, abs=1e-5)
    assert [row["val_accuracy"] for row in result.history] == pytest.approx(held_out, abs=1e-6)
    assert result.best_epoch == 3
    assert result.test_loss == pytest.approx(2.0248048, abs=1e-5)
    assert result.test_accuracy == pytest.approx(0.4122563, abs=1e-6)
