"""A search that several processes share: what is waited for, how long, and how it ends."""

import json
import os
import socket
import subprocess

import grpc
import keras
import numpy as np
import pytest
from keras_tuner.src.distribute import oracle_chief
from processes import COMMAND

from highway_keras import data
from highway_keras.cli import command as cli
from highway_keras.tuning import HighwayHyperModel, PopulationRandomSearch, chief

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="populations need TensorFlow or JAX"
)
SEARCH = "search --depth 2 --kind plain --trials 1 --epochs 1 --dataset digits --limit 40 --out"


@pytest.fixture
def listener():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener


@pytest.fixture
def port(listener, monkeypatch):
    """A port that nobody listens on, as that of the chief."""
    port = listener.getsockname()[1]
    for name, value in {"IP": "127.0.0.1", "PORT": str(port)}.items():
        monkeypatch.setenv(f"KERASTUNER_ORACLE_{name}", value)
    return port


def search(folder):
    digits = data.load("digits", limit=64)
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4)
    tuner = PopulationRandomSearch(hypermodel, max_trials=1, directory=folder)
    tuner.search(digits.x_train / np.float32(256), digits.y_train, verbose=0)


def test_a_worker_says_that_it_waits_for_a_chief_and_ends(port, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker0")
    monkeypatch.setattr(chief, "SECONDS", 1)
    message = rf"No chief listens on 127.0.0.1:{port} after 1 s. Start it there, with"
    with pytest.raises(RuntimeError, match=message):
        search(tmp_path)
    said = capsys.readouterr().err
    assert said == f"Waiting up to 1 s for the chief on 127.0.0.1:{port}.\n"


def test_a_worker_does_not_overwrite_what_its_chief_has(port, tmp_path, monkeypatch):
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker0")
    (tmp_path / "untitled_project").mkdir()
    (tmp_path / "untitled_project" / "oracle.json").write_text("{}")
    hypermodel = HighwayHyperModel(2, input_shape=(8, 8, 1), units=4)
    PopulationRandomSearch(hypermodel, directory=tmp_path, overwrite=True)
    assert (tmp_path / "untitled_project" / "oracle.json").exists()


def test_a_worker_compares_its_settings_with_those_of_a_chief_that_comes_later(
    port, tmp_path, monkeypatch
):
    def start_chief():
        path = tmp_path / "untitled_project" / "oracle.json"
        path.write_text(json.dumps({"settings": {"depth": 9}}))

    monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker0")
    monkeypatch.setattr(chief, "wait", start_chief)
    with pytest.raises(ValueError, match=r"depth: 9 → 2"):
        search(tmp_path)


def test_a_worker_needs_the_folder_of_its_chief(listener, port, tmp_path, monkeypatch):
    listener.listen()
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker0")
    with pytest.raises(ValueError, match="`directory` must be that of the chief's search"):
        search(tmp_path)


def test_a_search_that_has_ended_needs_no_worker(tmp_path, request, monkeypatch):
    search(tmp_path)
    request.getfixturevalue("port")
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "chief")
    monkeypatch.setattr(oracle_chief, "start_server", None)
    search(tmp_path)


class Gone(grpc.RpcError):
    def code(self):
        return grpc.StatusCode.UNAVAILABLE


class Client:
    objective = "loss"

    def create_trial(self, tuner_id):
        raise Gone


def test_a_worker_whose_chief_dies_ends_in_one_line(listener, port):
    listener.listen()
    seen = chief.Chief(Client())
    assert seen.objective == "loss"
    with pytest.raises(RuntimeError, match=r"no longer answers \(UNAVAILABLE\). Start it again"):
        seen.create_trial("worker0-0")


def test_a_chief_needs_a_port_of_its_own(listener, port, tmp_path, monkeypatch, capsys):
    listener.listen()
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "chief")
    assert cli.main([*SEARCH.split(), str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"The chief cannot listen on 127.0.0.1:{port} (Address already in use)" in line


def test_a_chief_that_checks_its_port_does_not_listen_yet(listener, port, monkeypatch):
    listener.close()
    monkeypatch.setattr(socket.socket, "listen", None)
    chief.check_free()


@pytest.mark.parametrize("number", ["99999", "0", "-1", "http", "", "8000.5"])
@pytest.mark.parametrize("role", ["chief", "worker0"])
def test_a_port_must_be_one(number, role, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", number)
    monkeypatch.setenv("KERASTUNER_TUNER_ID", role)
    assert cli.main([*SEARCH.split(), str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"must be a port from 1 to 65535. Received: KERASTUNER_ORACLE_PORT='{number}'" in line


def test_the_command_shares_a_search(listener, port, tmp_path, monkeypatch):
    listener.close()  # the port is free now
    command = [*SEARCH.split(), str(tmp_path)]
    environment = {**os.environ, "KERASTUNER_TUNER_ID": "chief"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    leading = subprocess.Popen([*COMMAND, *command], env=environment, **quiet)
    try:
        # The worker comes first: the chief still has to import its backend.
        monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker0")
        assert cli.main(command) == 0
        assert leading.wait(120) == 0
    finally:
        leading.kill()
    (trial,) = tmp_path.glob("*/trial_*/trial.json")
    assert json.loads(trial.read_text())["status"] == "COMPLETED"
