"""The benchmarks: who takes turns when, what is said of peers that do not, and tiny cases whole."""

import csv
import os
import re
import shutil
import subprocess
import sys
import types

import pytest

from benchmarks import __main__ as command
from benchmarks import jobs, lesions, report, run
from benchmarks.cases import CASES, Case
from benchmarks.peers import maxout, two_convolutions
from benchmarks.turns import ROOT, Worker, take_turns
from highway_keras import models, training
from highway_keras.results import provenance

ROOMS = ("models", "results", "tuning")  # beside the package in a clone, within it installed
TINY = Case("thin-highway-3", True, batch=8, steps=3, peers=("ours", "plain", "machine"))
NOTES = """
import subprocess

def note(name):
    with open("{folder}/notes", "a") as file:
        file.write(name)

def work(turns, name):
    print("libraries print")
    subprocess.run(["echo", "and so do their processes"])
    turns.wait()
    turns.repeat(lambda: note(name))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "peer.py").write_text(NOTES.format(folder=tmp_path))
    return tmp_path


def worker(folder, name, module="peer", **options):
    return Worker(name, module, name, library=folder, **options)


def module(folder, code):
    (folder / "other.py").write_text(f"import os, sys, time\ndef work(turns, name):\n    {code}\n")
    return "other"


# The protocol


def test_workers_take_turns(folder):
    said = []
    present = take_turns([worker(folder, name) for name in "ab"], 2, said.append)
    # The first turn is the work once, any other the work twice.
    assert (folder / "notes").read_text() == "ab" + "aabb" * 2
    assert [w.name for w in present] == ["a", "b"]
    assert [len(w.turns) for w in present] == [3, 3]
    assert present[0].turns[0].keys() == {"seconds", "cpu", "megabytes"}
    assert said == ["a: first turn", "b: first turn", "turn 1 of 2", "turn 2 of 2"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("turns.wait(); sys.exit('out of order')", "out of order"),
        ("os.kill(os.getpid(), 9)", "killed by signal 9"),
        ("turns.wait()", "ended with code 0 and without an answer"),
        ("turns.wait(); turns.end(); turns.wait(); sys.exit('tired')", "tired"),
    ],
)
def test_a_peer_that_dies_is_named(folder, code, reason):
    said = []
    workers = [worker(folder, "a"), worker(folder, "dead", module(folder, code))]
    assert take_turns(workers, 1, said.append) == workers[:1]
    assert said[-1] == f"without dead: {reason}"
    assert len(workers[0].turns) == 2


def test_a_peer_that_takes_too_long_is_given_up(folder):
    said = []
    slow = worker(folder, "slow", module(folder, "turns.wait(); time.sleep(60)"), limit=1)
    assert take_turns([slow], 1, said.append) == []
    assert said[-1] == "without slow: no answer within 1 s"


# What is asked for


def test_a_case_is_chosen_by_its_network_or_its_name():
    names = [f"thin-highway-100 {step}" for step in ("train", "predict", "train batch 512")]
    assert [case.name for case in run.select(["thin-highway-100"])] == names
    assert [case.name for case in run.select([names[1]], ["plain"])] == names[1:2]
    assert run.select() == list(CASES.values())


def test_every_peer_is_there():
    peers = {peer for case in CASES.values() for peer in case.peers}
    assert all((ROOT / "benchmarks" / "peers" / f"{peer}.py").is_file() for peer in peers)


@pytest.mark.parametrize("block", [two_convolutions.block, maxout.block])
@pytest.mark.parametrize("model", ["highway-b", "highway-gap-10"])
def test_convolutional_peers_are_of_our_size(block, model):
    network = two_convolutions.build(CASES[f"{model} train"], block)
    assert network.count_params() == models.get(model).parameters


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--case", "thin"], "`case` must be one of thin-highway-10, thin-highway-50, .*: thin."),
        (["--peer", "theirs"], "`peer` must be one of ours, dense_chain, .*Received: theirs."),
        (
            ["--case", "highway-b", "--peer", "plain"],
            "`peer` must be one of ours, ours_bfloat16, machine, .*two_conv.*: pl",
        ),
        (["--turns", "0"], "--turns: must be a positive integer. Received: 0"),
        (["--turns", "many"], "--turns: must be a positive integer. Received: many"),
        (["--out", "nowhere/speed.csv"], "--out: must be in a folder that exists. .*nowhere/speed"),
        (["--before", "nowhere"], "`before` must be a folder with the package highway_keras"),
    ],
)
def test_mistakes(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))


# Rows


def test_a_row_replaces_that_of_the_same_case(tmp_path):
    file = tmp_path / "speed.csv"
    for model, speed in (("a", 1), ("b", 2), ("a", 3)):
        report.save(file, [{"model": model, "speed": speed}], ("model",), f"time {model}")
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    found = [(row["model"], row["speed"], row["command"]) for row in rows]
    assert found == [("a", "3", "time a"), ("b", "2", "time b")]
    assert all(row[key] for row in rows for key in provenance.COLUMNS)


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (RuntimeError("ours does not run"), SystemExit),
        (OSError("No space left on device"), SystemExit),
    ],
)
def test_measured_rows_are_printed_whatever_comes_after_them(error, ends, monkeypatch):
    def measure(case, *arguments):
        if case is second:
            raise error
        return [case.name]

    (first, second, *_), printed = CASES.values(), []
    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "print_rows", printed.extend)
    with pytest.raises(ends, match=str(error)):
        command.main([])
    assert printed == [first.name]


def test_a_row_has_the_command_that_measures_it_again(tmp_path, monkeypatch):
    """The options that it depends on; rows of other options do not take its place."""
    row = {"case": "thin-highway-10 train", "peer": "plain"}
    monkeypatch.setattr(command, "measure", lambda *arguments: [row])
    monkeypatch.setattr(command, "print_rows", list)
    asked = ["--peer", "plain", "machine", "--before", "old", "--turns", "2"]
    command.main(["--case", row["case"], *asked, "--out", str(tmp_path / "speed.csv")])
    line = f"python -m benchmarks --case '{row['case']}' {' '.join(asked)}"
    assert [r["command"] for r in read(tmp_path / "speed.csv")] == [line]

    monkeypatch.setattr(jobs, "_train", lambda options, jobs: 1.0)
    for size in ([], ["--limit", "9"], ["--turns", "2"]):
        jobs.main([*size, "--out", str(tmp_path / "jobs.csv")])
    start = "python -m benchmarks.jobs --model mnist-highway-16 --epochs 2"
    lines = [f"{start} --turns 2", f"{start} --limit 9 --turns 3"]
    assert [r["command"] for r in read(tmp_path / "jobs.csv")] == lines

    saved = types.SimpleNamespace(dataset="digits", model=None)
    monkeypatch.setattr(lesions.training, "SavedNetwork", lambda file: saved)
    monkeypatch.setattr(lesions, "_compare", lambda model, x, y, turns: {"images": len(x)})
    for size in ([], ["--limit", "9"]):
        lesions.main(["best.keras", *size, "--out", str(tmp_path / "lesions.csv")])
    lines = [f"python -m benchmarks.lesions best.keras{size}" for size in ("", " --limit 9")]
    assert [r["command"] for r in read(tmp_path / "lesions.csv")] == [
        f"{line} --turns 5" for line in lines
    ]


# Tiny cases, whole


@pytest.mark.slow
def test_a_case_from_a_clone(monkeypatch, tmp_path, capsys):
    """A peer of ours, one of others', and an older build that cannot be imported."""
    library = tmp_path / "before" / "highway_keras"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("raise ImportError('an old build')")
    monkeypatch.setitem(CASES, TINY.name, TINY)
    monkeypatch.chdir(tmp_path)
    arguments = ["--case", TINY.name, "--turns", "1", "--out", "table.csv", "--before", "before"]
    command.main(arguments)
    done = capsys.readouterr()
    assert f"{TINY.name}: without before: ImportError: an old build" in done.err
    with open("table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == (*run.COLUMNS, *provenance.COLUMNS)
    assert [(row["peer"], row["n"]) for row in rows] == [("ours", "1"), ("plain", "1")]
    ours, plain = ({key: float(row[key]) for key in run.COLUMNS[2:12]} for row in rows)
    assert ours["ours_over_peer"] == 1
    assert plain["ours_over_peer"] == pytest.approx(ours["ms_a_step"] / plain["ms_a_step"])
    assert 0 < ours["share_of_machine"] < 1 and ours["cpu_ms_a_step"] > 0
    assert ours["first_step_s"] > ours["ms_a_step"] / 1000 > 0
    assert [line.split()[4] for line in done.out.splitlines()[1:]] == ["ours", "plain"]


@pytest.mark.slow
def test_without_ours_there_is_nothing_to_compare(monkeypatch):
    case = Case("no-such-network", False, batch=2, steps=1, peers=("ours",))
    monkeypatch.setitem(CASES, case.name, case)
    with pytest.raises(SystemExit, match=r"predict batch 2: ours does not run\. .*Received"):
        command.main(["--case", case.name, "--turns", "1"])


@pytest.fixture
def before(tmp_path):
    """A folder as `pip install --target` fills it, of a build that says its name."""
    for room, inside in {"highway_keras": "", **dict.fromkeys(ROOMS, "highway_keras")}.items():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, tmp_path / "site" / inside / room, ignore=ignored)
    with (tmp_path / "site" / "highway_keras" / "models" / "thin.py").open("a") as file:
        file.write(f"\nopen({str(tmp_path / 'imported')!r}, 'a').write('thin')\n")
    return tmp_path


@pytest.mark.slow
def test_an_older_build_takes_turns(before):
    case = Case("thin-highway-3", False, batch=8, steps=3, peers=("ours",))
    rows = run.measure(case, 1, before=before / "site", say=print)
    assert [row["peer"] for row in rows] == ["ours", "before"]
    assert (before / "imported").read_text() == "thin"


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_the_epoch_benchmark(backend, tmp_path):
    sizes = "--model", "thin-highway-10", "--images", "300", "--turns", "1"
    printed = call("epoch", *sizes, "--out", tmp_path / "rows.csv", KERAS_BACKEND=backend)
    [row] = read(tmp_path / "rows.csv")
    assert row["model"] == "thin-highway-10" and float(row["fit_over_ours"]) > 0
    assert f"{backend} on cpu:0" in printed.lower()
    assert re.search(r"fit +\d.*\ntrainer +\d.*\nfit / trainer: \d.*\nfloor: \d", printed)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    options = {"epochs": 1, "limit": 64, "verbose": 0, "model_options": {"depth": 3}}
    training.fit("thin-highway-10", "digits", out=out, **options)
    return out / "best.keras"


@pytest.mark.slow
def test_the_serving_benchmark(saved, tmp_path):
    printed = call("serving", saved, "--turns", "1", "--out", tmp_path / "rows.csv")
    rows = {row["format"]: row for row in read(tmp_path / "rows.csv")}
    assert float(rows["keras predict"]["times_faster_1"]) == 1
    assert rows["saved_model"]["file"] == "best.keras"
    assert re.search(r"\nkeras predict +\d", printed) and re.search(r"\nsaved_model +\d", printed)


@pytest.mark.slow
def test_the_lesions_benchmark(saved, tmp_path):
    sizes = "--turns", "1", "--limit", "50"
    printed = call("lesions", saved, *sizes, "--out", tmp_path / "rows.csv")
    [row] = read(tmp_path / "rows.csv")
    assert (row["file"], row["layers"], row["images"]) == ("best.keras", "2", "50")
    assert row["command"] == f"python -m benchmarks.lesions {saved} --limit 50 --turns 1"
    assert float(row["over_evaluate_500"]) > 0
    assert "thin-highway-10: 2 lesions, 50 images, n=1" in printed
    assert printed.count("all lesions / this one") == 2


@pytest.mark.slow
def test_the_search_benchmark(tmp_path):
    if not os.environ.get("TFDS_DATA_DIR"):
        pytest.skip("needs MNIST: TFDS_DATA_DIR is not set")
    sizes = {"--depth": 3, "--trials": 2, "--stock-trials": 2, "--limit": 256}
    sizes["--out"] = tmp_path / "rows.csv"
    printed = call("search", *(part for size in sizes.items() for part in size))
    [row] = read(tmp_path / "rows.csv")
    assert (row["depth"], row["n"], row["stock_n"]) == ("3", "2", "2")
    assert float(row["ratio_seconds"]) > 0 and float(row["projected_ratio"]) > 0
    assert re.search(r"trials an hour: \d.*\n.*trials an hour of processor time: \d", printed)
    assert re.search(r"projected to .*, trials an hour of processor time: \d", printed)


def read(file):
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def call(name, *arguments, **environment):
    command = [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
