"""Figure 1 of searches on disk, and section 4, in small."""

import json

import matplotlib.image
import numpy as np
import pytest
from helpers import needs_populations, run

from highway_keras import data, paper, plots, tuning
from highway_keras.paper import figure1, section4
from highway_keras.results import provenance, read_rows

pytestmark = needs_populations


# Of searches on disk

SETTINGS = {"dataset": "mnist", "train_images": 100, "epochs": 2, "batch_size": 128, "seed": 0}
SETTINGS |= {"objective": "loss", "direction": "min", "rungs": ""}
SESSION = {"hardware": "a CPU", "versions": "python", "commit": "abc", "date": "2026-01-01"}
SESSION |= {"seconds": 60.5}


def write_search(folder, kind, depth, trials, **settings):
    """Write a search; `trials` has the losses by epoch (None: failed) and the bias of each."""
    path = folder / f"thin-{kind}-{depth}"
    path.mkdir(parents=True)
    states = []
    for number, (losses, bias, *rest) in enumerate(trials):
        [activation] = rest or ["tanh"]
        points = [{"value": [loss], "step": step} for step, loss in enumerate(losses or [])]
        state = {
            "trial_id": f"{number:03}",
            "status": "COMPLETED" if losses else "FAILED",
            "score": min(losses) if losses else None,
            "hyperparameters": {"values": {"transform_bias": bias, "activation": activation}},
            "metrics": {"metrics": {"loss": {"observations": points}}},
        }
        states.append(state)
    settings = {"kind": kind, "depth": depth, **SETTINGS, **settings}
    content = {"settings": settings, "trials": states, "sessions": 2 * [SESSION]}
    (path / "search.json").write_text(json.dumps(content))


@pytest.fixture
def folder(tmp_path):
    deep = [([2.0, float(n)], -1.0 - 0.75 * n) for n in range(1, 13)]
    write_search(tmp_path, "highway", 50, [*deep, (None, -1.5, "relu")])
    write_search(tmp_path, "highway", 10, [([0.5, 0.25], -1.0)])
    write_search(tmp_path, "plain", 10, [([0.75, 1.0], 0.0)])
    return tmp_path


def test_the_command_searches_as_the_preset_says(tmp_path, monkeypatch, capsys, digits):
    write_search(tmp_path / "searches", "plain", 20, [([0.5, 0.25], 0.0)])  # of another command
    asked = {}

    def search(images, hypermodels, out, **arguments):
        asked.update(arguments)
        (network,) = hypermodels
        write_search(out, network.kind, network.depth, [([0.5, 0.25], 0.0)])
        return [out / "thin-plain-10"]

    monkeypatch.setattr(figure1, "run_searches", search)
    monkeypatch.setattr(data, "load", lambda name, **options: asked.update(options) or digits)
    command = "reproduce figure1 --preset paper --depth 10 --kind plain --trials 100 --seed 3"
    assert run(*command.split(), "--out", tmp_path) == 0
    header, line, _ = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["kind", "depth", "trials", "failed"]
    assert line.split() == ["plain", "10", "1", "0", "0.25", "-"]  # of one trial, not of ten
    expected = {"max_trials": 100, "epochs": 400, "rungs": {40: 30, 133: 10}, "limit": None}
    expected |= {"seed": 3, "validation": 0.0}
    assert {key: asked[key] for key in expected} == expected and asked["resume"]
    (row,) = read_rows(tmp_path / "figure1-top10.csv")
    assert (row["best"], row["command"]) == ("0.25", f"highway-keras {command}")


def test_the_command_draws_the_searches_asked_for(folder):
    asked = ("--search", folder, "--kind", "highway", "--depth", 10)
    assert run("reproduce", "figure1", *asked, "--out", folder / "drawn") == 0
    (row,) = read_rows(folder / "drawn" / "figure1-top10.csv")
    assert (row["kind"], row["depth"], row["best"]) == ("highway", "10", "0.25")


def test_fewer_than_ten_trials_at_the_end_have_no_mean_of_the_top_10(tmp_path):
    for count, has_mean in ((9, False), (10, True)):
        trials = [([n + 1.0] * 2, 0.0) for n in range(count)] + [([50.0], 0.0)]  # left at a rung
        write_search(tmp_path / str(count), "plain", 20, trials)
        drawn = tmp_path / "drawn"
        searches = tuning.read_searches(tmp_path / str(count))
        paper.draw_figure1(searches, drawn)  # without the mean an empty panel
        [row] = read_rows(drawn / "figure1-top10.csv")
        assert row["best"] == "1.0"
        assert (row["top10_mean"] != "") == (row["top10_std"] != "") == has_mean


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
    row = paper.draw_figure1(tuning.read_searches(folder), drawn)[1]
    assert (row["depth"], row["trials"], row["failed"], row["best"]) == (50, 13, 1, 1.0)
    scores = [1.0] + [2.0] * 9  # of the top 10; from the third on, the first epoch was the best
    assert row["top10_mean"] == np.mean(scores)
    assert row["top10_std"] == pytest.approx(np.std(scores, ddof=1))
    assert row["search_seconds"] == 2 * 60.5
    first, *_ = read_rows(drawn / "figure1-trials.csv")
    assert [first[f"loss_{epoch}"] for epoch in (1, 2)] == ["0.5", "0.25"]
    for name in ("figure1.png", "transform-bias.png"):
        assert matplotlib.image.imread(drawn / name).std() > 0.01
    rows = [(row["kind"], row["depth"]) for row in read_rows(drawn / "figure1-top10.csv")]
    assert rows == [("highway", "10"), ("highway", "50"), ("plain", "10")]
    for name in ("figure1-top10", "figure1-trials"):
        for row in read_rows(drawn / f"{name}.csv"):
            assert all(row[key] for key in provenance.COLUMNS)


# Of searches that were run


@pytest.mark.slow
def test_the_best_tanh_network_of_a_search_is_looked_into(tmp_path, monkeypatch):
    monkeypatch.setattr(section4, "DATASETS", ("digits",))
    monkeypatch.setattr(section4, "DEPTH", 10)
    sizes = {"trials": 3, "epochs": 2, "rungs": {1: 2}, "verbose": 0}
    report = paper.reproduce_section4("digits", out=tmp_path, **sizes)
    (search,) = tuning.read_searches(tmp_path)
    assert [len(trial.losses) for trial in search.trials] == [2, 2, 1]
    assert {trial.values["activation"] for trial in search.trials} == {"tanh"}
    for figure in ("figure2", "figure3", "figure4"):
        assert report.page.with_name(f"{figure}.png").stat().st_size > 0
    again = paper.reproduce_section4("digits", out=tmp_path, **sizes)
    assert again.needed == report.needed


def test_a_mistake_is_found_before_the_search(tmp_path):
    with pytest.raises(ValueError, match="`dataset`"):
        paper.reproduce_section4("cifar10", out=tmp_path / "none")
    assert not (tmp_path / "none").exists()
