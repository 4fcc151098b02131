"""Figure 1 of searches on disk and at the paper's length, and section 4, in small."""

import json
import shutil

import keras
import matplotlib.image
import numpy as np
import pytest
from helpers import read_rows

from highway_keras import data, paper, tuning
from highway_keras.cli.command import main, parser
from highway_keras.io import write_json
from highway_keras.paper import finals, section4
from highway_keras.paper.figure1 import bias_rows, curve_rows, top_rows
from highway_keras.paper.searches import read_searches
from highway_keras.results import provenance
from highway_keras.training import RunFolder

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="the population search needs TensorFlow or JAX"
)
SMALL = {"candidates": 2, "candidate_epochs": 2, "epochs": 3, "limit": 256, "verbose": 0}


# Of searches on disk

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
    assert [(row["kind"], row["depth"], row["epoch"], row["loss"]) for row in rows] == [
        *[("highway", 10, 1, 0.5), ("highway", 10, 2, 0.25), ("highway", 50, 1, 2.0)],
        *[("highway", 50, 2, 1.0), ("plain", 10, 1, 0.75), ("plain", 10, 2, 1.0)],
    ]


def test_the_right_panel_is_the_mean_of_the_top_10(folder):
    row = top_rows(read_searches(folder))[1]
    assert (row["depth"], row["trials"], row["failed"], row["best"]) == (50, 13, 1, 1.0)
    scores = [1.0] + [2.0] * 9  # from the third on, the first epoch was the best
    assert row["top10_mean"] == np.mean(scores)
    assert row["top10_std"] == pytest.approx(np.std(scores, ddof=1))


def test_fewer_than_ten_trials_at_the_end_have_no_mean_of_the_top_10(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for count, known in ((9, False), (10, True)):
        trials = [([n + 1.0] * 2, 0.0) for n in range(count)] + [([50.0], 0.0)]  # left at a rung
        write_search(tmp_path / str(count), "plain", 20, trials)
        paper.draw_figure1(f"~/{count}", "~/drawn")  # without the mean an empty panel
        [row] = read_rows(tmp_path / "drawn" / "figure1-top10.csv")
        assert row["best"] == "1.0"
        assert (row["top10_mean"] != "") == (row["top10_std"] != "") == known


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


def test_steps_of_the_bias_are_those_of_the_searched_range(tmp_path):
    write_search(tmp_path, "highway", 5, [([2.0], -0.5), ([3.0], 1.25), ([4.0], 2.0)])
    file = tmp_path / "thin-highway-5" / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "transform_bias": [-0.5, 2.0]}))
    rows = [row for row in bias_rows(read_searches(tmp_path)) if row["activation"] == "tanh"]
    assert [(row["bias_from"], row["n"]) for row in rows] == [(-1, 1), (0, 0), (1, 2)]


def test_drawing_leaves_tables_and_pictures(folder, tmp_path):
    drawn = tmp_path / "drawn"
    paper.draw_figure1(folder, drawn)
    for name in ("figure1.png", "transform-bias.png"):
        assert matplotlib.image.imread(drawn / name).std() > 0.01
    rows = [(row["kind"], row["depth"]) for row in read_rows(drawn / "figure1-top10.csv")]
    assert rows == [("highway", "10"), ("highway", "50"), ("plain", "10")]
    for name in ("figure1-top10", "figure1-trials", "figure1-curves", "transform-bias"):
        for row in read_rows(drawn / f"{name}.csv"):
            assert all(row[key] for key in provenance.COLUMNS)
    with pytest.raises(ValueError, match="`searches`"):
        paper.draw_figure1(drawn, tmp_path / "again")  # none are there


def test_processes_that_share_take_one_search_at_a_time(monkeypatch, tmp_path):
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", "1")
    with pytest.raises(ValueError, match="depths"):
        tuning.run_searches([10, 20], ["plain"], dataset="digits", out=tmp_path)


# At the paper's length


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


@pytest.mark.slow
def test_the_best_candidate_is_trained_to_the_end(searches, tmp_path, monkeypatch):
    monkeypatch.setattr(finals, "LASTING", 2)  # no rate lasts so
    small = {**SMALL, "kinds": ["highway"]}
    rows = paper.run_finals(searches, tmp_path, **small)
    assert [(row["kind"], row["epoch"]) for row in rows] == [("highway", n) for n in (1, 2, 3)]
    folder = tmp_path / "thin-highway-10"
    losses = {
        path.name.removeprefix("trial-"): min(r["loss"] for r in RunFolder(path).read_history())
        for path in folder.glob("trial-*")
    }
    chosen = min(losses, key=losses.get)
    assert len(losses) == 2
    assert [path.name for path in folder.glob("final-*")] == [f"final-{chosen}"]
    final = RunFolder(folder / f"final-{chosen}").read_json()
    trial = json.loads((searches / folder.name / f"trial_{chosen}" / "trial.json").read_text())
    values = trial["hyperparameters"]["values"]
    assert final["recipe"]["learning_rate"] == values["learning_rate"]
    assert final["recipe"]["validation"] == 0.0
    assert final["model_options"]["activation"] == values["activation"]
    options = parser().parse_args(rows[0]["command"].split()[1:])  # the command that makes it
    assert (options.preset, options.searches) == ("finals", str(searches))
    assert (options.depths, options.kinds) == ([10], ["highway"])
    assert paper.run_finals(searches, tmp_path, **small) == rows
    assert (tmp_path / "figure1-finals.png").stat().st_size > 0
    for name, value in (("candidate_epochs", 4), ("limit", None)):
        with pytest.raises(ValueError, match=f"{name.removeprefix('candidate_')}: .* → {value}"):
            paper.run_finals(searches, tmp_path, **small | {name: value})


@pytest.mark.slow
def test_so_is_the_best_trial_whose_rate_lasts(searches, tmp_path, monkeypatch):
    (search,) = read_searches(searches, kinds=["plain"])
    lasting = max(search.completed, key=lambda trial: trial.values["decay"])
    monkeypatch.setattr(finals, "LASTING", lasting.values["decay"] ** SMALL["epochs"])
    rows = paper.run_finals(searches, tmp_path, kinds=["plain"], **SMALL)
    assert {row["kind"] for row in rows} == {"plain"}
    assert lasting.number in {row["trial"] for row in rows}
    lowest = min(rows, key=lambda row: float(row["loss"]))
    curves = finals.better_curves(rows)
    assert min(curves["plain", 10]) == float(lowest["loss"]) and len(curves["plain", 10]) == 3


@pytest.mark.slow
def test_where_a_final_diverges_the_next_trial_is_trained(searches, tmp_path, monkeypatch):
    (search,) = read_searches(searches, kinds=["plain"])
    monkeypatch.setattr(finals, "LASTING", 0)  # every rate lasts
    fit, diverging = finals.fit, search.completed[0].values["learning_rate"]

    def fails(name, recipe, out, **options):
        if recipe.learning_rate == diverging and "final" in out.name:
            recipe = recipe.override(learning_rate=1e38)
        return fit(name, recipe=recipe, out=out, **options)

    monkeypatch.setattr(finals, "fit", fails)
    rows = paper.run_finals(searches, tmp_path, kinds=["plain"], **SMALL)
    one, other = (
        [row["loss"] for row in rows if row["trial"] == trial.number]
        for trial in search.completed[:2]
    )
    assert one[-1] == "diverged" and len(other) == SMALL["epochs"]
    assert finals.better_curves(rows) == {("plain", 10): [float(loss) for loss in other]}
    # Trained again and killed on the way, it has fewer epochs than when it diverged.
    folder = RunFolder(tmp_path / "thin-plain-10" / f"final-{search.completed[0].number}")
    folder.write_json({**folder.read_json(), "diverged": len(one) + 1})
    rows = finals.final_rows(tmp_path, searches)
    assert "diverged" not in {row["loss"] for row in rows}
    folder.history.unlink()
    assert len(finals.final_rows(tmp_path, searches)) == len(rows) - len(one)


def test_figure1_says_what_it_cannot_do(searches, tmp_path, capsys):
    out = tmp_path / "x"
    for options, name in (
        ("--preset finals", "--search"),
        (f"--search {searches} --depth 10 20", "--depth"),
        (f"--preset finals --search {searches} --depth 10 20", "--depth"),
        (f"--search {searches} --epochs 2", "--epochs"),
        (f"--preset finals --search {searches} --trials 2", "--trials"),
    ):
        assert main(["reproduce", "figure1", *options.split(), "--out", str(out)]) == 2
        assert name in capsys.readouterr().err and not any(out.glob("*"))
    shutil.copytree(searches, tmp_path / "searches")
    run = RunFolder(tmp_path / "searches" / "thin-plain-10")  # the second to be trained
    run.write_json(run.read_json() | {"dataset": None})
    with pytest.raises(ValueError, match=r"`searches`.*thin-plain-10"):
        paper.run_finals(tmp_path / "searches", out, **SMALL)
    assert not any(out.glob("*"))


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
    sizes |= {"transform_bias": (-2, -2)}
    found = paper.reproduce_section4("digits", out=tmp_path, **sizes)
    (search,) = read_searches(tmp_path)
    assert [len(trial.losses) for trial in search.trials] == [2, 2, 1]
    for trial in search.trials:
        assert (trial.values["activation"], trial.values["transform_bias"]) == ("tanh", -2)
    for figure in ("figure2", "figure3", "figure4"):
        assert found.page.with_name(f"{figure}.png").stat().st_size > 0
    again = paper.reproduce_section4("digits", out=tmp_path, **sizes)
    assert again.needed == found.needed


def test_a_mistake_is_found_before_the_search(tmp_path):
    out = tmp_path / "none"
    for name in ("trials", "epochs"):
        with pytest.raises(ValueError, match=f"`{name}`"):
            paper.reproduce_section4("mnist", out=out, **{name: 0})
    with pytest.raises(ValueError, match="`candidates`"):
        paper.run_finals(tmp_path, out, candidates=0)
    with pytest.raises(ValueError, match="`dataset`"):
        paper.reproduce_section4("cifar10", out=out)
    assert not out.exists()
