"""Data-parallel training: two virtual devices, and two processes, next to one device."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

BACKENDS = ("tensorflow", "jax")
# Takes a JSON list of runs, each with `distribute` and overrides of the recipe; prints a line each.
SCRIPT = """
import contextlib, json, sys
import keras

if keras.backend.backend() == "tensorflow" and "virtual" in sys.argv:
    import tensorflow as tf

    cpu, = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from highway_keras import data, training
from highway_keras.training.distribution import devices
from highway_keras.training.run import create_for

runs = json.loads(sys.argv[1])
scope = devices() if any(run["distribute"] for run in runs) else None
for run in runs:
    distribute, out = run.pop("distribute"), run.pop("out")
    resume, epochs = run.pop("resume", False), run.pop("epochs", 2)
    recipe = training.get_recipe("digits").override(batch_size=32, clip_norm=0.1, epochs=epochs)
    recipe = recipe.override(**run)
    images = data.load("digits", limit=131)
    with scope() if distribute else contextlib.nullcontext():
        network = create_for("thin-highway-10", images, recipe, 0, depth=3)
    options = {"out": out, "resume": resume, "verbose": 0, "class_weight": {0: 3.0}}
    try:
        result = training.fit(network, images, recipe, **options)
        print(json.dumps({"history": result.history, "loss": result.test_loss}))
    except ValueError as error:
        print(json.dumps({"error": str(error)}))
"""
MUON = {"optimizer": "muon", "learning_rate": 0.01}


def start(backend, folder, runs, virtual=False, **environment):
    environment |= {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if virtual:
        environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    command = [sys.executable, "-c", SCRIPT, json.dumps(runs), "virtual" if virtual else ""]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}, **pipes)


def results_of(process):
    """Wait for a process and return the results of its runs."""
    try:
        printed, errors = process.communicate(timeout=400)
    finally:
        process.kill()
    assert process.returncode == 0, errors[-3000:]
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def assert_same_losses(one, other):
    assert len(one["history"]) == len(other["history"])
    for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
        columns = [[row[name] for row in run["history"]] for run in (one, other)]
        np.testing.assert_allclose(*columns, rtol=0, atol=2e-5)
    assert one["loss"] == pytest.approx(other["loss"], abs=2e-5)


@pytest.fixture(scope="module", params=BACKENDS)
def one_device(request, tmp_path_factory):
    """The backend, and a run of each optimizer on one device."""
    pytest.importorskip(request.param)
    runs = [{"out": "sgd", "distribute": False}, {"out": "muon", "distribute": False, **MUON}]
    folder = tmp_path_factory.mktemp("one")
    return request.param, results_of(start(request.param, folder, runs))


@pytest.mark.slow
def test_two_devices_train_as_one_and_resume(one_device, tmp_path):
    backend, expected = one_device
    two = {"distribute": True}
    runs = [{"out": "sgd", **two}, {"out": "muon", **two, **MUON}]
    runs += [{"out": "odd", **two, "batch_size": 33}]
    runs += [{"out": "parts", **two, "epochs": 1}, {"out": "parts", **two, "resume": True}]
    sgd, muon, odd, _, resumed = results_of(start(backend, tmp_path, runs, virtual=True))
    assert_same_losses(sgd, expected[0])
    assert_same_losses(muon, expected[1])
    assert "batch_size" in odd["error"]
    assert resumed == sgd


@pytest.mark.slow
def test_two_processes_train_as_one_and_the_chief_alone_writes(one_device, tmp_path):
    backend, expected = one_device
    processes = []
    with socket.socket() as one, socket.socket() as two:
        for server in (one, two):
            server.bind(("127.0.0.1", 0))
        hosts = ["{}:{}".format(*server.getsockname()) for server in (one, two)]
    for index in range(2):
        folder = tmp_path / str(index)
        folder.mkdir()
        task = {"type": "worker", "index": index}
        environment = {
            "TF_CONFIG": json.dumps({"cluster": {"worker": hosts}, "task": task}),
            "KERAS_DISTRIBUTION_JOB_ADDRESSES": ",".join(hosts),
            "KERAS_DISTRIBUTION_NUM_PROCESSES": "2",
            "KERAS_DISTRIBUTION_PROCESS_ID": str(index),
        }
        run = {"out": "run", "distribute": True}
        processes.append(start(backend, folder, [run], **environment))
    for index, process in enumerate(processes):
        (result,) = results_of(process)
        assert_same_losses(result, expected[0])
        written = {path.name for path in (tmp_path / str(index)).rglob("*.*")}
        assert ("best.keras" in written) if index == 0 else not written
