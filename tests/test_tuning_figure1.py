"""Figure 1 from searches on disk, and the commands around it."""

import csv
import json

import keras
import matplotlib.image
import numpy as np
import pytest

from highway_keras import data, paper, tuning
from highway_keras.paper.figure1 import bias_rows, curve_rows, top_rows
from highway_keras.paper.searches import read_searches
from highway_keras.results import provenance

needs_loops = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="populations need TensorFlow or JAX"
)
SETTINGS = {"dataset": "mnist", "limit": 100, "epochs": 2, "batch_size": 128, "seed": 0}


def write_search(folder, kind, depth, trials):
    """A search as it lies on disk; `trials`: losses by epoch, or None for failed, and a bias."""
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


def test_the_left_panel_is_the_best_trials_curve(folder):
    rows = curve_rows(read_searches(folder))
    assert [(r["kind"], r["depth"], r["epoch"], r["loss"]) for r in rows] == [
        ("highway", 10, 1, 0.5),
        ("highway", 10, 2, 0.25),
        ("highway", 50, 1, 2.0),
        ("highway", 50, 2, 1.0),
        ("plain", 10, 1, 0.75),
        ("plain", 10, 2, 1.0),
    ]


def test_the_right_panel_is_the_mean_of_the_top_10(folder):
    row = top_rows(read_searches(folder))[1]
    assert (row["depth"], row["trials"], row["failed"], row["best"]) == (50, 13, 1, 1.0)
    scores = [1.0] + [2.0] * 9  # from the third on, the first epoch was the best
    assert row["top10_mean"] == np.mean(scores)
    assert row["top10_std"] == pytest.approx(np.std(scores, ddof=1))


def test_fewer_than_ten_trials_have_no_mean_of_the_top_10(folder, tmp_path, monkeypatch):
    for count, known in ((9, False), (10, True)):
        write_search(tmp_path / str(count), "plain", 20, [([n + 1.0], 0.0) for n in range(count)])
        [row] = top_rows(read_searches(tmp_path / str(count)))
        assert (row["top10_mean"] != "") == (row["top10_std"] != "") == known
    monkeypatch.setenv("HOME", str(tmp_path))
    paper.draw_figure1("~/9", "~/drawn")  # an empty panel
    with (tmp_path / "drawn" / "figure1-top10.csv").open() as file:
        [row] = csv.DictReader(file)
    assert (row["best"], row["top10_mean"], row["top10_std"]) == ("1.0", "", "")


def test_losses_by_transform_bias_and_depth(folder):
    rows = bias_rows(read_searches(folder))
    assert {row["depth"] for row in rows} == {10, 50}  # plain networks have no gates
    counted = {(r["depth"], r["bias_from"]): r for r in rows if r["activation"] == "tanh"}
    assert counted[50, -2]["n"] == 1  # -1.75
    assert counted[50, -10]["n"] == 2  # -9.25 and -10
    assert [counted[50, -10][key] for key in ("best", "median", "worst")] == [2.0, 2.0, 2.0]
    assert sum(row["n"] for (depth, _), row in counted.items() if depth == 50) == 12
    assert sum(row["n"] for row in rows if row["depth"] == 10) == 1  # at the end of the range
    relu = [row for row in rows if row["activation"] == "relu" and (row["n"] or row["failed"])]
    assert [(r["depth"], r["bias_from"], r["n"], r["failed"]) for r in relu] == [(50, -2, 0, 1)]
    assert relu[0]["median"] == ""  # the trial diverged


def test_drawing_leaves_tables_and_pictures(folder, tmp_path):
    paper.draw_figure1(folder, tmp_path / "drawn")
    for name in ("figure1.png", "transform-bias.png"):
        assert matplotlib.image.imread(tmp_path / "drawn" / name).std() > 0.01
    with (tmp_path / "drawn" / "figure1-top10.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["kind"], row["depth"]) for row in rows] == [
        ("highway", "10"),
        ("highway", "50"),
        ("plain", "10"),
    ]
    for name in ("figure1-top10", "figure1-trials", "figure1-curves", "transform-bias"):
        with (tmp_path / "drawn" / f"{name}.csv").open() as file:
            assert all(all(row[key] for key in provenance.COLUMNS) for row in csv.DictReader(file))


def test_a_folder_without_searches_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="`searches`"):
        paper.draw_figure1(tmp_path, tmp_path / "drawn")


def test_processes_that_share_take_one_search_at_a_time(monkeypatch, tmp_path):
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", "1")
    with pytest.raises(ValueError, match="depths"):
        tuning.run_searches([10, 20], ["plain"], dataset="digits", out=tmp_path)


@needs_loops
def test_best_keras_takes_raw_images(tmp_path):
    images = data.load("digits", validation=0.0, limit=64)
    [folder] = tuning.run_searches(
        [2], ["plain"], trials=2, epochs=1, dataset="digits", limit=64, out=tmp_path, verbose=0
    )
    best = keras.models.load_model(folder / "best.keras")
    [search] = read_searches(tmp_path)
    best.compile("sgd", "sparse_categorical_crossentropy")
    # An epoch of one step: the score is the loss before it, so the weights are one step better.
    assert best.evaluate(images.x_train, images.y_train, verbose=0) < search.trials[0].score
