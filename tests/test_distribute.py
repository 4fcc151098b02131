"""Data-parallel training: two virtual devices, and two processes, next to one device."""

import json
import os
import socket
import subprocess
import sys

import keras
import numpy as np
import pytest
from helpers import needs_tensorflow

from highway_keras import training
from highway_keras.runs.folder import RunFolder
from highway_keras.training.engines.devices import Devices, data_parallel

BACKENDS = ("tensorflow", "jax")
# Takes a JSON list of runs, each the arguments of `fit`; prints a line for each, even on an error.
SCRIPT = """
import json, sys
import keras

if keras.backend.backend() == "tensorflow" and "virtual" in sys.argv:
    import tensorflow as tf

    cpu, = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from highway_keras import training


class Stopped(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == stop:
            raise ValueError("stopped")


for arguments in json.loads(sys.argv[1]):
    stop = arguments.pop("stop", None)
    try:
        result = training.fit(verbose=0, callbacks=[Stopped()], **arguments)
        found = {"history": result.history, "loss": result.test_loss}
        found["out"] = str(result.folder.path)
    except ValueError as error:
        found = {"error": str(error)}
    print(json.dumps(found))
"""
SMALL = {"model": "thin-highway-10", "dataset": "digits", "limit": 131, "epochs": 2}
SMALL |= {"model_options": {"depth": 3}, "batch_size": 32, "validation": 0.1}
# Both concern the whole batch: replicas that clipped or weighted alone would end elsewhere.
SMALL |= {"clip_norm": 0.1, "class_weight": {"0": 3.0}}
MUON = {"optimizer": "muon", "learning_rate": 0.01}
RANDOM = {"augmentation": ("crop8", "mirror"), "epochs": 1}


def start(backend, folder, *runs, virtual=False, **environment):
    environment |= {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if virtual:
        environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    command = [sys.executable, "-c", SCRIPT, json.dumps(runs), "virtual" if virtual else ""]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}, **pipes)


def ends(process):
    """Wait for a process and return the results of its runs."""
    try:
        printed, errors = process.communicate(timeout=400)
    finally:
        process.kill()
    assert process.returncode == 0, errors[-3000:]
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def assert_same_losses(history, other):
    assert len(history) == len(other)
    for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
        if name in other[0]:
            one, two = ([row[name] for row in rows] for rows in (history, other))
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-5)


@pytest.fixture(scope="module", params=BACKENDS)
def runs(request, tmp_path_factory):
    """On two virtual devices: the backend, the folder, and what each of several runs came to."""
    pytest.importorskip(request.param)
    folder = tmp_path_factory.mktemp("distribute")
    two = {"distribute": True}
    arguments = {
        "one": {},
        "two": two,
        "muon one": MUON,
        "muon two": {**MUON, **two},
        "odd batch": {**two, "batch_size": 33},
        "cut": {**two, "stop": 0},
        "resumed": {**two, "out": "cut", "resume": True},
    }
    if request.param == "jax":  # it draws for the whole batch, TensorFlow in each replica
        arguments |= {"random one": RANDOM, "random two": {**RANDOM, **two}}
    named = [{"out": name, **SMALL, **options} for name, options in arguments.items()]
    found = ends(start(request.param, folder, *named, virtual=True))
    return request.param, folder, dict(zip(arguments, found, strict=True))


@pytest.mark.slow
def test_two_devices_train_as_one(runs):
    """A stopped run resumes."""
    backend, folder, found = runs
    history = {name: run.get("history") for name, run in found.items()}
    assert_same_losses(history["two"], history["one"])
    assert_same_losses(history["muon two"], history["muon one"])
    assert found["two"]["loss"] == pytest.approx(found["one"]["loss"], abs=1e-5)
    assert found["cut"] == {"error": "stopped"}
    assert history["resumed"] == history["two"]
    assert "batch_size=32" in found["odd batch"]["error"] and not (folder / "odd batch").exists()
    if backend == "jax":
        assert_same_losses(history["random two"], history["random one"])


@pytest.mark.slow
def test_two_processes_train_as_one(runs, tmp_path):
    backend, _, found = runs
    processes = []
    with socket.socket() as one, socket.socket() as two:
        for s in (one, two):
            s.bind(("127.0.0.1", 0))
        hosts = ["{}:{}".format(*s.getsockname()) for s in (one, two)]
    for index in range(2):
        (tmp_path / str(index)).mkdir()
        task = {"type": "worker", "index": index}
        environment = {
            "TF_CONFIG": json.dumps({"cluster": {"worker": hosts}, "task": task}),
            "KERAS_DISTRIBUTION_JOB_ADDRESSES": ",".join(hosts),
            "KERAS_DISTRIBUTION_NUM_PROCESSES": "2",
            "KERAS_DISTRIBUTION_PROCESS_ID": str(index),
        }
        run = {**SMALL, "out": "run", "distribute": True}
        again = {**run, "resume": True}
        processes.append(start(backend, tmp_path / str(index), run, again, **environment))
    for index, process in enumerate(processes):
        result, again = ends(process)
        assert "`out` must be one folder" in again["error"]  # that of the chief alone holds the run
        assert_same_losses(result["history"], found["one"]["history"])
        assert result["loss"] == pytest.approx(found["one"]["loss"], abs=1e-5)
        assert result["out"] == "run"
        written = {path.name for path in (tmp_path / str(index)).rglob("*.*")}
        assert ("best.keras" in written) if index == 0 else not written


HOST = '{"cluster": {"worker": ["localhost:1"]}%s}'
BROKEN = ["nonsense", "[]", '{"cluster": 5}', HOST % ""]
BROKEN += [HOST % f', "task": {{"type": "worker", "index": {index}}}' for index in ("9", '"x"')]


@needs_tensorflow
def test_a_broken_cluster_is_named_and_none_is_none(monkeypatch, tmp_path):
    out = tmp_path / "run"
    data_parallel.cache_clear()
    for text in BROKEN:
        monkeypatch.setenv("TF_CONFIG", text)
        with pytest.raises(ValueError, match="TF_CONFIG"):
            training.fit("thin-highway-10", "digits", out=out, distribute=True, epochs=1)
        assert not out.exists()
    monkeypatch.setenv("TF_CONFIG", "{}")
    assert data_parallel.__wrapped__().is_chief  # it writes its run


def test_only_tensorflow_and_jax(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(ValueError, match="KERAS_BACKEND=torch"):
        data_parallel.__wrapped__()


def test_a_batch_that_does_not_divide():
    for size, replicas, better in ((33, 2, 32), (3, 8, 8)):
        Devices(replicas=replicas).check_shares(better, False)
        with pytest.raises(ValueError, match=rf"batch_size={size}\. Try batch_size={better}\."):
            Devices(replicas=replicas).check_shares(size, False)
    with pytest.raises(ValueError, match="`distribute`"):
        Devices(replicas=2).check_shares(32, True)  # images on disk
    Devices(replicas=4).check_shares(8, False, held_out=4)
    with pytest.raises(ValueError, match="`validation`"):
        Devices(replicas=4).check_shares(8, False, held_out=3)


def test_all_but_the_chief_write_elsewhere(tmp_path):
    folder = RunFolder(tmp_path)
    for file in (folder.state, folder.final):
        file.write_text("saved")
    with Devices(is_chief=False).writable(folder) as copy:
        assert copy.state.read_text() == copy.final.read_text() == "saved"
        assert not copy.history.exists()
        copy.history.write_text("written")
    assert not folder.history.exists() and not copy.path.exists()
    with Devices().writable(folder) as written:
        assert written is folder
