"""Figure 1 at the paper's length and section 4, in small: candidates, the choice, the final."""

import csv
import json
import shutil

import keras
import pytest

from highway_keras import paper, tuning
from highway_keras.cli.command import main, parser
from highway_keras.io import write_json
from highway_keras.paper import finals, section4
from highway_keras.paper.searches import read_searches
from highway_keras.training import RunFolder

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="the population search needs TensorFlow or JAX"
)
SMALL = {"candidates": 2, "candidate_epochs": 2, "epochs": 3, "limit": 256, "verbose": 0}


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    out, size = tmp_path_factory.mktemp("searches"), {"trials": 4, "epochs": 1, "verbose": 0}
    tuning.run_searches([10], ["highway", "plain"], dataset="digits", out=out, **size)
    return out


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
    assert {row["kind"] for row in rows} == {"plain"} and not (
        tmp_path / "thin-highway-10"
    ).exists()
    assert lasting.number in {row["trial"] for row in rows}
    lowest = min(rows, key=lambda row: float(row["loss"]))
    best = finals.best_final(tmp_path / "thin-plain-10")
    assert best.path.name == f"final-{lowest['trial']}"
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
    assert finals.best_final(tmp_path / "thin-plain-10").has_ended
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
    copy = tmp_path / "searches"
    shutil.copytree(searches, copy)
    recorded = copy / "thin-highway-10" / "machine.json"
    (session,) = json.loads(recorded.read_text())
    assert session["hardware"] and session["versions"].startswith("python ")
    write_json(recorded, [session | {"versions": "an older one"}])
    (copy / "thin-plain-10" / "machine.json").unlink()
    rows = paper.draw_figure1(copy, tmp_path)
    with open(tmp_path / "figure1-top10.csv", newline="") as file:
        versions = {row["kind"]: row["versions"] for row in csv.DictReader(file)}
    assert len(rows) == 2 and versions == {"highway": "an older one", "plain": "not recorded"}
    lines = (tmp_path / "figure1-trials.csv").read_text().splitlines()
    assert lines[0].startswith("kind,depth,trial,learning_rate,one_minus_momentum,decay,activation")
    assert len(lines) == 1 + 2 * 4
    only = paper.draw_figure1(searches, tmp_path, kinds=["highway"])
    assert [row["kind"] for row in only] == ["highway"]


# Section 4


@pytest.mark.slow
def test_the_best_tanh_network_of_a_search_is_trained_and_looked_into(tmp_path, monkeypatch):
    monkeypatch.setattr(section4, "DATASETS", ("digits",))
    monkeypatch.setattr(section4, "DEPTH", 10)
    sizes = {"trials": 3, "search_epochs": 1, "limit": 500, "verbose": 0}
    sizes |= {"candidates": 1, "candidate_epochs": 1, "epochs": 2, "transform_bias": (-2, -2)}
    found = paper.reproduce_section4("digits", out=tmp_path, **sizes)
    (search,) = read_searches(tmp_path / "searches")
    assert [trial.values["activation"] for trial in search.trials] == ["tanh"] * 3
    final = finals.best_final(tmp_path / "finals" / "thin-highway-10").read_json()
    assert final["model_options"] == {"activation": "tanh", "transform_bias": -2}
    assert final["recipe"]["epochs"] == 2
    for figure in ("figure2", "figure3", "figure4"):
        assert found.page.with_name(f"{figure}.png").stat().st_size > 0
    again = paper.reproduce_section4("digits", out=tmp_path, **sizes)
    assert again.needed == found.needed


@pytest.mark.parametrize(
    "name", ["trials", "search_epochs", "candidates", "candidate_epochs", "epochs"]
)
def test_a_mistake_is_found_before_the_search(name, tmp_path):
    out = tmp_path / "none"
    with pytest.raises(ValueError, match=f"`{name}`"):
        paper.reproduce_section4("mnist", out=out, **{name: 0})
    if name in SMALL:
        with pytest.raises(ValueError, match=f"`{name}`"):
            paper.run_finals(tmp_path, out, **{name: 0})
    with pytest.raises(ValueError, match="`dataset`"):
        paper.reproduce_section4("cifar10", out=out)
    assert not out.exists()
