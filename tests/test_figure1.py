"""Figure 1 of searches on disk, and section 4, in small."""

import json
import pathlib
import shutil

import keras
import matplotlib.image
import numpy as np
import pytest
from helpers import needs_populations, read_rows, run

from highway_keras import data, paper, tuning
from highway_keras.analysis import plots
from highway_keras.paper import section4
from highway_keras.results import provenance
from highway_keras.training import TrainingDiverged
from highway_keras.tuning.search_results import read_searches
from highway_keras.util.files import write_json
from highway_keras.util.messages import Notice

pytestmark = needs_populations


# Of searches on disk

SETTINGS = {"dataset": "mnist", "limit": 100, "epochs": 2, "batch_size": 128, "seed": 0}


def write_search(folder, kind, depth, trials):
    """Write a search; `trials` has the losses by epoch (None: failed) and the bias of each."""
    path = folder / f"thin-{kind}-{depth}"
    path.mkdir(parents=True)
    path.joinpath("oracle.json").write_text("{}")
    path.joinpath("run.json").write_text(json.dumps({"kind": kind, "depth": depth, **SETTINGS}))
    for number, (losses, bias, *rest) in enumerate(trials):
        [activation] = rest or ["tanh"]
        points = [{"value": [loss], "step": step} for step, loss in enumerate(losses or [])]
        state = {
            "trial_id": f"{number:03}",
            "status": "COMPLETED" if losses else "FAILED",
            "score": min(losses) if losses else None,
            "hyperparameters": {"values": {"transform_bias": bias, "activation": activation}},
            "metrics": {"metrics": {"loss": {"observations": points}} if losses else {}},
        }
        trial = path / f"trial_{number}"
        trial.mkdir()
        trial.joinpath("trial.json").write_text(json.dumps(state))


@pytest.fixture
def folder(tmp_path):
    deep = [([2.0, float(n)], -1.0 - 0.75 * n) for n in range(1, 13)]
    write_search(tmp_path, "highway", 50, [*deep, (None, -1.5, "relu")])
    write_search(tmp_path, "highway", 10, [([0.5, 0.25], -1.0)])
    write_search(tmp_path, "plain", 10, [([0.75, 1.0], 0.0)])
    return tmp_path


def test_the_command_searches_as_the_preset_says(tmp_path, monkeypatch, capsys):
    asked = {}

    def search(depths, kinds, out, **arguments):
        asked.update(arguments)
        write_search(out, *kinds, *depths, [([0.5, 0.25], 0.0)])

    monkeypatch.setattr("highway_keras.paper.figure1.run_searches", search)
    command = "reproduce figure1 --preset paper --depth 10 --kind plain"
    assert run(*command.split(), "--out", tmp_path) == 0
    header, line, _ = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["kind", "depth", "trials", "failed"]
    assert line.split() == ["plain", "10", "1", "0", "0.25", "-"]  # of one trial, not of ten
    expected = {"trials": 100, "epochs": 400, "rungs": {40: 30, 133: 10}, "limit": None}
    assert {key: asked[key] for key in expected} == expected and asked["resume"]
    (row,) = read_rows(tmp_path / "figure1-top10.csv")
    assert (row["best"], row["command"]) == ("0.25", f"highway-keras {command}")


def test_the_first_of_trials_that_tie_is_the_best(tmp_path, monkeypatch):
    write_search(tmp_path, "plain", 4, [([0.5], 0.0)] * 4)
    listed = pathlib.Path.glob  # as the file system happens to list them
    monkeypatch.setattr(pathlib.Path, "glob", lambda *a: sorted(listed(*a), reverse=True))
    (search,) = read_searches(tmp_path)
    assert [trial.number for trial in search.trials] == ["000", "001", "002", "003"]


def test_fewer_than_ten_trials_at_the_end_have_no_mean_of_the_top_10(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for count, known in ((9, False), (10, True)):
        trials = [([n + 1.0] * 2, 0.0) for n in range(count)] + [([50.0], 0.0)]  # left at a rung
        write_search(tmp_path / str(count), "plain", 20, trials)
        paper.draw_figure1(f"~/{count}", "~/drawn")  # without the mean an empty panel
        [row] = read_rows(tmp_path / "drawn" / "figure1-top10.csv")
        assert row["best"] == "1.0"
        assert (row["top10_mean"] != "") == (row["top10_std"] != "") == known


def test_losses_over_the_bias_have_medians_between_integers():
    trials = [(-1.5, 1.0), (-1.25, 3.0), (-1.1, 9.0), (-2.0, 4.0), (-3.5, "")]
    common = {"kind": "highway", "depth": 50, "activation": "tanh"}
    rows = [{**common, "transform_bias": bias, "score": score} for bias, score in trials]
    tanh, relu = plots.plot_biases(rows).axes
    medians = {
        tuple(map(float, line.get_xdata())): set(line.get_ydata()) for line in tanh.lines[2:]
    }
    assert medians == {(-2.0, -1.0): {3.5}} and not relu.lines[2:]


def test_drawing_leaves_tables_and_pictures(folder, tmp_path):
    drawn = tmp_path / "drawn"
    row = paper.draw_figure1(folder, drawn)[1]
    assert (row["depth"], row["trials"], row["failed"], row["best"]) == (50, 13, 1, 1.0)
    scores = [1.0] + [2.0] * 9  # of the top 10; from the third on, the first epoch was the best
    assert row["top10_mean"] == np.mean(scores)
    assert row["top10_std"] == pytest.approx(np.std(scores, ddof=1))
    for name in ("figure1.png", "transform-bias.png"):
        assert matplotlib.image.imread(drawn / name).std() > 0.01
    rows = [(row["kind"], row["depth"]) for row in read_rows(drawn / "figure1-top10.csv")]
    assert rows == [("highway", "10"), ("highway", "50"), ("plain", "10")]
    for name in ("figure1-top10", "figure1-trials"):
        for row in read_rows(drawn / f"{name}.csv"):
            assert all(row[key] for key in provenance.COLUMNS)
    with pytest.raises(ValueError, match="`searches`"):
        paper.draw_figure1(drawn, tmp_path / "again")  # none are there


def test_processes_that_share_take_one_search_at_a_time_and_no_experiment(monkeypatch, tmp_path):
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", "1")
    with pytest.raises(ValueError, match="depths"):
        tuning.run_searches([10, 20], ["plain"], dataset="digits", out=tmp_path)
    for experiment, of in ((paper.run_preset, "laptop"), (paper.reproduce_section4, "mnist")):
        with pytest.raises(ValueError, match="KERASTUNER_ORACLE_PORT"):
            experiment(of, out=tmp_path)


# Of searches that were run


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    out, size = tmp_path_factory.mktemp("searches"), {"trials": 4, "epochs": 1, "verbose": 0}
    tuning.run_searches([10], ["highway", "plain"], dataset="digits", out=out, **size)
    return out


def test_best_keras_takes_raw_images(searches):
    images = data.load("digits", validation=0.0)
    best = keras.models.load_model(searches / "thin-plain-10" / "best.keras")
    [search] = read_searches(searches, kinds=["plain"])
    best.compile("sgd", "sparse_categorical_crossentropy")
    # The score is the mean loss in the epoch, after which the weights are better.
    assert best.evaluate(images.x_train, images.y_train, verbose=0) < search.completed[0].score


def test_figure1_says_what_it_cannot_do(searches, tmp_path, capsys):
    out = tmp_path / "x"
    for options, name in (
        (f"--search {searches} --depth 10 20", "--depth"),
        (f"--search {searches} --epochs 2", "--epochs"),
        (f"--search {searches} --preset paper --data-dir x", "--preset, --data-dir"),
    ):
        assert run("reproduce", "figure1", *options.split(), "--out", out) == 2
        assert name in capsys.readouterr().err and not any(out.glob("*"))


def test_searches_that_diverged_are_left_out_or_said_to_be(searches, tmp_path):
    copy = shutil.copytree(searches, tmp_path / "searches")
    for file in copy.glob("thin-plain-10/trial_*/trial.json"):
        write_json(file, {**json.loads(file.read_text()), "status": "FAILED", "score": None})
    with pytest.warns(Notice, match="thin-plain-10 is left out"):
        assert [search.kind for search in read_searches(copy)] == ["highway"]
    with pytest.raises(TrainingDiverged, match="diverged"):
        read_searches(copy, kinds=["plain"])


def test_rows_say_what_a_search_was_trained_on_not_what_draws_it(searches, tmp_path):
    copy = shutil.copytree(searches, tmp_path / "searches")
    recorded = copy / "thin-highway-10" / "machine.json"
    (session,) = json.loads(recorded.read_text())
    assert session["hardware"] and session["versions"].startswith("python ")
    write_json(recorded, [session | {"versions": "an older one"}])
    (copy / "thin-plain-10" / "machine.json").unlink()
    rows = paper.draw_figure1(copy, tmp_path)
    versions = {row["kind"]: row["versions"] for row in read_rows(tmp_path / "figure1-top10.csv")}
    assert len(rows) == 2 and versions == {"highway": "an older one", "plain": "not recorded"}
    trials = read_rows(tmp_path / "figure1-trials.csv")
    assert len(trials) == 2 * 4 and {"one_minus_momentum", "activation"} <= trials[0].keys()
    only = paper.draw_figure1(searches, tmp_path, kinds=["highway"])
    assert [row["kind"] for row in only] == ["highway"]


# Section 4


@pytest.mark.slow
def test_the_best_tanh_network_of_a_search_is_looked_into(tmp_path, monkeypatch):
    monkeypatch.setattr(section4, "DATASETS", ("digits",))
    monkeypatch.setattr(section4, "DEPTH", 10)
    sizes = {"trials": 3, "epochs": 2, "rungs": {1: 2}, "limit": 500, "verbose": 0}
    found = paper.reproduce_section4("digits", out=tmp_path, **sizes)
    (search,) = read_searches(tmp_path)
    assert [len(trial.losses) for trial in search.trials] == [2, 2, 1]
    assert {trial.values["activation"] for trial in search.trials} == {"tanh"}
    for figure in ("figure2", "figure3", "figure4"):
        assert found.page.with_name(f"{figure}.png").stat().st_size > 0
    again = paper.reproduce_section4("digits", out=tmp_path, **sizes)
    assert again.needed == found.needed


def test_a_mistake_is_found_before_the_search(tmp_path):
    out = tmp_path / "none"
    for name in ("trials", "epochs"):
        with pytest.raises(ValueError, match=f"`{name}`"):
            paper.reproduce_section4("mnist", out=out, **{name: 0})
    with pytest.raises(ValueError, match="`dataset`"):
        paper.reproduce_section4("cifar10", out=out)
    assert not out.exists()
