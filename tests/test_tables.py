"""`reproduce table1` and `authors-log`: a row for each run or epoch, whatever interrupts them."""

import shutil

import pytest
from helpers import altered, read_rows

from highway_keras import models, paper, results, training
from highway_keras.cli import command as cli
from highway_keras.paper.tables import read_table
from highway_keras.runs import machine
from highway_keras.training import trainer

pytestmark = pytest.mark.usefixtures("untraced", "noise")
NAME = "mnist-highway-16"
TINY = {"models": [NAME], "runs": 2, "epochs": 2, "limit": 20, "verbose": 0}
COMMAND = f"reproduce table1 --recipe modern --model {NAME} --runs 2 --epochs 2 --limit 20"


@pytest.fixture(scope="module")
def whole(noise, tmp_path_factory):
    """A reproduction that nothing interrupted."""
    out = tmp_path_factory.mktemp("tables") / "whole"
    paper.reproduce_table("table1", "modern", out=out, **TINY)
    return out


def rows(out, *without, name="table1"):
    found = read_rows(out / f"{name}.csv")
    return [{k: v for k, v in row.items() if k not in without} for row in found]


def as_text(found):
    return [{key: str(value) for key, value in row.items()} for row in found]


def test_a_row_a_run(whole, tmp_path):
    first, second = rows(whole)
    assert list(first) == list(results.read("table1")[0])
    expected = {"table": "table1", "model": NAME, "dataset": "mnist", "recipe": "modern"}
    expected |= {"seed": "0", "epochs": "2", "images": "20", "best_epoch": "2"}
    expected |= {"hardware": machine.hardware(), "versions": machine.versions()}
    again = f"highway-keras reproduce table1 --recipe modern --model {NAME} --runs 1 --seed 0"
    expected["command"] = f"{again} --epochs 2 --limit 20"
    assert {key: first[key] for key in expected} == expected and first["commit"] and first["date"]
    for row, seed in ((first, 0), (second, 1)):
        folder = training.RunFolder(whole / f"{NAME}-modern" / f"seed-{seed}")
        run = folder.read_json()
        assert row["seed"] == str(seed) and run["recipe"]["name"] == "modern-mnist"
        for key in ("test_accuracy", "test_loss"):
            assert float(row[key]) == run["results"][key]
        took = machine.minutes(machine.sessions(folder))
        assert 0 < took < 10 and row["minutes"] == str(round(took, 2))
    assert first["test_loss"] != second["test_loss"]
    assert (whole / "table1.png").read_bytes().startswith(b"\x89PNG")
    assert not list(whole.rglob(".*"))
    # A command names only what is not the recipe's.
    recipe = {"epochs": 30, "dtype_policy": "mixed_bfloat16"}
    out = tmp_path / folder.path.relative_to(whole)
    altered(folder.path, out, recipe=recipe, limit=None)
    (changed,) = read_table("table1", tmp_path)
    assert changed["command"].endswith("--runs 1 --seed 1 --dtype-policy mixed_bfloat16")


def test_a_run_has_its_row_before_the_next_one_ends(whole, tmp_path, monkeypatch):
    def fit(seed, out, resume, **arguments):
        assert resume
        if seed == 1:
            raise KeyboardInterrupt
        shutil.copytree(whole / out.relative_to(tmp_path), out)

    monkeypatch.setattr(trainer, "fit", fit)
    with pytest.raises(KeyboardInterrupt):
        paper.reproduce_table("table1", "modern", out=tmp_path, **TINY)
    assert rows(tmp_path) == rows(whole)[:1]


def test_what_has_ended_is_not_trained_again(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "fit", None)
    copy = shutil.copytree(whole, tmp_path / "copy")  # as on another machine
    (copy / "table1.csv").unlink()
    found = paper.reproduce_table("table1", "modern", out=copy, **TINY)
    assert as_text(found) == rows(copy) == rows(whole)
    with pytest.raises(ValueError, match="limit: 20 → 10"):
        paper.reproduce_table("table1", "modern", out=whole, **{**TINY, "limit": 10})


def test_a_run_that_diverges_does_not_end_the_others(whole, tmp_path, capsys, monkeypatch):
    fit = trainer.fit

    def diverging(seed, **arguments):
        if seed == 0:
            raise training.TrainingDiverged("The loss is no longer finite.")
        return fit(seed=seed, **arguments)

    monkeypatch.setattr(trainer, "fit", diverging)
    assert cli.main([*COMMAND.split(), "--out", str(tmp_path)]) == 1
    varying = ("minutes", "hardware", "versions")
    assert rows(tmp_path, *varying) == rows(whole, *varying)[1:]
    printed = capsys.readouterr()
    for number in (1, 2):
        assert f"{NAME}, seed {number - 1}: run {number} of 2" in printed.out.splitlines()
    assert NAME in printed.out.splitlines()[-2]
    assert f"Without a row in table1.csv: {NAME} with seed 0 (The loss" in printed.err


def test_a_missing_part_leaves_the_minutes_open():
    def part(first, last):
        return {"first_epoch": first, "last_epoch": last, "seconds": 30.0}

    assert machine.minutes([part(0, 4)]) == 0.5
    assert machine.minutes([part(0, 4), part(3, 9)]) == 1  # an epoch half done is repeated
    assert machine.minutes([part(0, 4), part(6, 9)]) is None
    assert machine.minutes([part(6, 9)]) is None and machine.minutes([]) is None


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"table": "table4"}, "`table`"),
        ({"recipe": "muon"}, "`recipe`"),
        ({"models": ["highway-b"]}, "`models`.*highway-b"),
        ({"runs": 0}, "`runs`"),
    ],
)
def test_mistakes_leave_no_folder(arguments, name, tmp_path):
    options = {"table": "table1", "recipe": "modern", **TINY, **arguments}
    with pytest.raises(ValueError, match=name):
        paper.reproduce_table(**options, out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


# The authors' logs


def test_the_authors_logs_are_whole():
    """Their numbers are on pages, which `test_pages` compares with them."""
    for model, log in results.authors_logs().items():
        epochs = training.get_recipe(models.get(model).recipe).epochs
        assert [int(row["epoch"]) for row in log] == list(range(1, epochs + 1))


def test_our_training_beside_the_authors_log(tmp_path):
    found = paper.compare_with_authors("mnist-highway-32", epochs=2, out=tmp_path, verbose=0)
    assert rows(tmp_path, name="authors-log") == as_text(found)
    for row, theirs in zip(found, results.authors_logs()["mnist-highway-32"], strict=False):
        assert row["authors_accuracy"] == float(theirs["test_accuracy"])
        assert row["authors_loss"] == float(theirs["test_loss"])
    assert [(row["seed"], row["epoch"]) for row in found] == [(0, 1), (0, 2)]
    measured = training.RunFolder(tmp_path / "seed-0").read_json()["results"]
    assert found[1]["ours_loss"] == pytest.approx(measured["test_loss"], abs=1e-6)
    assert found[1]["ours_accuracy"] == pytest.approx(measured["test_accuracy"], abs=1e-6)
    again = paper.compare_with_authors("mnist-highway-32", epochs=2, out=tmp_path, verbose=0)
    assert again == found  # it goes on, here with nothing


# Several runs in one line


def test_results_of_runs_are_put_together():
    long = ("a", "modern", "30", "all")
    runs = [(*long, "float32", accuracy) for accuracy in ("0.99", "0.98", "0.97")]
    runs += [("a", "modern", "30", "100", "float32", "0.5"), (*long, "mixed_bfloat16", "0.96")]
    runs += [("a", "authors", "300", "all", "float32", "0.991")]
    keys = ("model", "recipe", "epochs", "images", "dtype_policy", "test_accuracy")
    found = results.summarize([dict(zip(keys, run, strict=True)) for run in runs])
    assert [row["n"] for row in found] == [3, 1, 1, 1]
    texts = ["99.00 (98.00 ± 1.00)", "50.00", "96.00", "99.10"]
    assert [results.text(row) for row in found] == texts


def test_the_accuracy_of_a_network_is_not_chosen_by_it(monkeypatch):
    columns = ("model", "recipe", "epochs", "images", "test_accuracy")
    runs = [("a", "modern", "30", "all", "0.98"), ("a", "modern", "30", "all", "0.97")]
    runs += [("a", "modern", "15", "all", "0.99"), ("b", "modern", "15", "all", "0.99")]
    runs += [("b", "authors", "300", "all", "0.98"), ("b", "authors", "400", "100", "0.1")]
    found = [dict(zip(columns, run, strict=True), dtype_policy="float32") for run in runs]
    monkeypatch.setattr(results.rows, "read", lambda name: found if name == "table1" else [])
    assert results.accuracies() == {"a": "97.50 ± 0.71, n=2", "b": "98.00, n=1"}
