"""Figure 1 at the paper's length, in small: candidates, the choice among them, and the final."""

import csv
import json
import shutil

import keras
import pytest

from highway_keras import paper, tuning
from highway_keras.cli.command import main, parser
from highway_keras.paper import finals, finals_plot
from highway_keras.paper.searches import read_searches
from highway_keras.runs.folder import RunFolder

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="the population search needs TensorFlow or JAX"
)
SMALL = {"candidates": 2, "candidate_epochs": 2, "epochs": 3, "limit": 256, "verbose": 0}


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    out = tmp_path_factory.mktemp("searches")
    tuning.run_searches(
        [10], ["highway", "plain"], trials=4, epochs=1, dataset="digits", out=out, verbose=0
    )
    return out


def test_the_best_candidate_is_trained_to_the_end(searches, tmp_path, monkeypatch):
    monkeypatch.setattr(finals, "LASTING", 2)  # no rate lasts so
    rows = paper.run_finals(searches, tmp_path, **SMALL)
    assert [(row["kind"], row["epoch"]) for row in rows] == [
        (kind, epoch) for kind in ("highway", "plain") for epoch in (1, 2, 3)
    ]
    for kind in ("highway", "plain"):
        folder = tmp_path / f"thin-{kind}-10"
        losses = {}
        for path in folder.glob("trial-*"):
            losses[path.name.removeprefix("trial-")] = min(
                float(line.split(",")[2]) for line in (path / "history.csv").read_text().split()[1:]
            )
        chosen = min(losses, key=losses.get)
        assert len(losses) == 2
        assert [path.name for path in folder.glob("final-*")] == [f"final-{chosen}"]
        final = json.loads((folder / f"final-{chosen}" / "run.json").read_text())
        trial = json.loads((searches / folder.name / f"trial_{chosen}" / "trial.json").read_text())
        values = trial["hyperparameters"]["values"]
        assert final["recipe"]["learning_rate"] == values["learning_rate"]
        assert final["recipe"]["validation"] == 0.0
        assert final["model_options"]["activation"] == values["activation"]
    options = parser().parse_args(rows[0]["command"].split()[1:])  # the command that makes it
    assert (options.preset, options.searches) == ("finals", str(searches))
    assert (options.depths, options.kinds) == ([10], ["highway"])
    again = paper.run_finals(searches, tmp_path, **SMALL)
    assert again == rows
    assert (tmp_path / "figure1-finals.png").stat().st_size > 0
    with pytest.raises(ValueError, match=r"epochs: 2 → 4.*name another folder"):
        paper.run_finals(searches, tmp_path, **SMALL | {"candidate_epochs": 4})
    with pytest.raises(ValueError, match="limit: 256 → None"):
        paper.run_finals(searches, tmp_path, **SMALL | {"limit": None})


@pytest.mark.slow
def test_so_is_the_best_trial_whose_rate_lasts(searches, tmp_path, monkeypatch):
    found = {search.name: search.completed for search in read_searches(searches)}
    trials = found["thin-plain-10"]
    decays = sorted(trial.values["decay"] for trial in trials)
    monkeypatch.setattr(finals, "LASTING", decays[-1] ** SMALL["epochs"])
    (lasting,) = (trial for trial in trials if trial.values["decay"] == decays[-1])
    rows = paper.run_finals(searches, tmp_path, kinds=["plain"], **SMALL)
    assert lasting.number in {row["trial"] for row in rows}
    lowest = min(rows, key=lambda row: float(row["loss"]))
    best = finals.best_final(tmp_path / "thin-plain-10")
    assert best.path.name == f"final-{lowest['trial']}"
    curves = finals_plot.better_curves(rows)
    assert min(curves["plain", 10]) == float(lowest["loss"]) and len(curves["plain", 10]) == 3


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
    assert finals_plot.better_curves(rows) == {("plain", 10): [float(loss) for loss in other]}
    assert finals.best_final(tmp_path / "thin-plain-10").has_ended
    # Trained again and killed on the way, it has fewer epochs than when it diverged.
    folder = RunFolder(tmp_path / "thin-plain-10" / f"final-{search.completed[0].number}")
    folder.write_json({**folder.read_json(), "diverged": len(one) + 1})
    rows = finals.final_rows(tmp_path, searches)
    assert "diverged" not in {row["loss"] for row in rows}
    folder.history.unlink()
    assert len(finals.final_rows(tmp_path, searches)) == len(rows) - len(one)


def test_finals_need_searches(tmp_path, capsys):
    assert main(["reproduce", "figure1", "--preset", "finals", "--out", str(tmp_path / "x")]) == 2
    assert "--preset finals needs --search FOLDER" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_finals_of_a_search_on_arrays_are_refused(searches, tmp_path):
    copy = tmp_path / "searches"
    shutil.copytree(searches, copy)
    path = copy / "thin-plain-10" / "run.json"  # the second to be trained
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dataset": None}))
    with pytest.raises(ValueError, match="thin-plain-10, a search on arrays"):
        paper.run_finals(copy, tmp_path / "finals", **SMALL)
    assert not (tmp_path / "finals").exists()


@pytest.mark.parametrize("preset", ["laptop", "finals"])
def test_a_depth_that_was_not_searched(searches, preset, tmp_path, capsys):
    command = f"reproduce figure1 --preset {preset} --search {searches} --depth 10 20"
    assert main([*command.split(), "--out", str(tmp_path / "x")]) == 2
    assert "--depth must be those of searches in" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_only_the_named_kinds_are_trained_and_drawn(searches, tmp_path):
    rows = paper.run_finals(searches, tmp_path, kinds=["plain"], **SMALL)
    assert {row["kind"] for row in rows} == {"plain"}
    assert not (tmp_path / "thin-highway-10").exists()
    rows = paper.draw_figure1(searches, tmp_path, kinds=["highway"])
    assert [row["kind"] for row in rows] == ["highway"]


def test_every_trial_has_a_row(searches, tmp_path):
    paper.draw_figure1(searches, tmp_path)
    lines = (tmp_path / "figure1-trials.csv").read_text().splitlines()
    assert lines[0].startswith("kind,depth,trial,learning_rate,one_minus_momentum,decay,activation")
    assert len(lines) == 1 + 2 * 4


def test_rows_say_what_a_search_was_trained_on_not_what_draws_it(searches, tmp_path):
    copy = tmp_path / "searches"
    shutil.copytree(searches, copy)
    recorded = copy / "thin-highway-10" / "machine.json"
    (session,) = json.loads(recorded.read_text())
    assert session["hardware"] and session["versions"].startswith("python ")
    recorded.write_text(json.dumps([session | {"versions": "an older one"}]))
    (copy / "thin-plain-10" / "machine.json").unlink()
    rows = paper.draw_figure1(copy, tmp_path)
    with open(tmp_path / "figure1-top10.csv", newline="") as file:
        versions = {row["kind"]: row["versions"] for row in csv.DictReader(file)}
    assert len(rows) == 2 and versions == {"highway": "an older one", "plain": "not recorded"}
