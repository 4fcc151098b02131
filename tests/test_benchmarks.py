"""The benchmarks: how workers take turns, how absent peers are reported, and tiny runs."""

import shlex
import subprocess
import sys

import numpy as np
import pytest
from helpers import needs_data

from benchmarks import __main__ as command
from benchmarks import gates, measurements
from benchmarks.cases import CASES
from benchmarks.turns import take_turns, values
from highway_keras import data, models, training
from highway_keras.results import provenance, read_rows

PEERS = """
def note(folder, name):
    print("libraries print")
    yield
    while True:
        open(f"{folder}/notes", "a").write(name)
        yield {"said": name}

def missing():
    import nowhere
    yield
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)  # the workers' too
    (tmp_path / "peers_here.py").write_text(PEERS)
    return tmp_path


def test_peers_take_turns(folder):
    turns = take_turns({name: ("peers_here:note", folder, name) for name in "ab"}, 2)
    # The first turn is the work once, any other the work twice.
    assert (folder / "notes").read_text() == "ab" + "aabb" * 2
    assert [len(of_peer) for of_peer in turns.values()] == [3, 3]
    assert turns["a"][0].keys() == {"seconds", "cpu", "megabytes", "said"}
    assert values(turns["b"], "said") == ["b", "b"]


def test_a_peer_that_is_not_installed_is_named(folder, capsys):
    peers = {"a": ("peers_here:note", folder, "a"), "lost": ("peers_here:missing",)}
    turns = take_turns(peers, 1)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "without lost" in line]
    assert "No module named 'nowhere'" in line
    assert list(turns) == ["a"] and len(turns["a"]) == 2


def test_a_row_replaces_that_of_the_same_case(tmp_path, capsys):
    file = tmp_path / "speed.csv"
    for model, speeds in (("a", [1.0]), ("b", [2.0]), ("a", [3.0, 4.0, 8.0])):
        row = {"model": model, **measurements.middle("speed", speeds)}
        measurements.record([row], ("model",), file, "benchmarks", "f", model=model, turns=None)
    found = read_rows(file)
    assert [(row["model"], row["speed_high"]) for row in found] == [("a", "8.0"), ("b", "2.0")]
    assert found[0]["command"] == "python -m benchmarks f --model a"
    columns = set(provenance.COLUMNS) - {"commit"}  # empty without git
    assert all(row[key] for row in found for key in columns)
    assert '"speed": 4.0' in capsys.readouterr().out


def test_each_case_is_written_before_the_next(tmp_path, monkeypatch):
    """A row has the command that repeats it; a case that does not run loses no other."""
    first, second, third = list(CASES)[:3]
    written = []

    def measure(case, *options):
        written.append(len(read_rows(out)) if out.exists() else 0)
        return [] if case.name == second else [{"case": case.name, "peer": "plain"}]

    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")  # which the command sets
    out = tmp_path / "speed.csv"
    asked = ["--peer", "plain", "torch_eager", "--turns", "2"]
    command.main(["--case", first, second, third, *asked, "--out", str(out)])
    assert written == [0, 1, 1]
    lines = [f"python -m benchmarks --case '{case}' {' '.join(asked)}" for case in (first, third)]
    assert [row["command"] for row in read_rows(out)] == lines


def test_the_best_rate_lies_between_two_that_do_worse():
    tried = []
    assert gates.best_rate(lambda rate: tried.append(rate) or -abs(rate - 0.4)) == 0.4
    assert tried == [0.2, 0.1, 0.4, 0.8]
    assert gates.best_rate(lambda rate: 0.0 if rate > 0.04 else 1 - rate) < 1e-4
    assert gates.best_rate(lambda rate: 0.1 if rate == 0.025 else 0.0) == 0.025


def test_twins_of_highway_a():
    """`plain` is Highway A with open gates; `maxout` has as many weights, `WIDER` 7 % more."""
    original = models.create("highway-a", transform_bias=1e9, dropout=0.0)  # T = 1
    of_11 = {name: make() for name, make in gates.NETWORKS[11].items()}
    plain, residual = of_11["plain"], of_11["residual"]
    for layer in plain.layers:
        source = original.get_layer(layer.name)
        layer.set_weights(getattr(source, "block", source).get_weights())
    x = np.random.default_rng(0).standard_normal((4, 32, 32, 3)).astype("float32")
    np.testing.assert_allclose(plain(x), original(x), atol=1e-5)
    assert of_11["maxout"].count_params() == original.count_params()
    wider = of_11["plain, wider"].count_params()
    assert wider / original.count_params() == pytest.approx(1.07, abs=0.005)
    assert residual.count_params() == plain.count_params()
    assert of_11["residual, wider"].count_params() == wider
    layer, maps = residual.get_layer("stage1_highway1"), np.random.rand(4, 32, 32, 16)
    np.testing.assert_allclose(layer(maps), maps + layer.layers[1](maps), rtol=1e-6)
    start = np.asarray(layer.layers[1].kernel).std()
    assert start == pytest.approx((2 / 144) ** 0.5 / 6, rel=0.1)
    for name, network in of_11.items():
        if ", bias " in name:
            bias = np.asarray(network.get_layer("stage3_highway2").transform.bias)
            assert np.all(bias == float(name.split()[-1]))
    zero = of_11["highway, zero gate kernels"].get_layer("stage1_highway1")
    assert not np.any(zero.transform.kernel) and np.all(zero.transform.bias == -1.0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    network = models.create("thin-highway-10", depth=3, input_shape=(8, 8, 1))
    images = data.load("digits", limit=64)
    training.fit(network, images, "digits", out=out, epochs=1, verbose=0)
    return out / "best.keras"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "ratio"),
    [
        ("serving SAVED --turns 1", "ms_1"),
        ("search --depth 3 --trials 2 --stock-trials 2 --limit 256", "ratio_cpu"),
    ],
)
def test_a_benchmark(line, ratio, saved, tmp_path):
    if line.startswith("search"):
        needs_data("mnist")
    words = shlex.split(line.replace("SAVED", str(saved)))
    call = [sys.executable, "-m", f"benchmarks.{words[0]}", *words[1:], "--out", tmp_path / "rows"]
    done = subprocess.run(call, cwd=measurements.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ratio in done.stdout
    found = read_rows(tmp_path / "rows")
    assert all(float(row[ratio]) > 0 for row in found)
    assert all(f"python -m benchmarks.{words[0]} " in row["command"] for row in found)
