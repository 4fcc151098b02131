"""`reproduce table1` and `authors-log`: a row for each run or epoch, whatever interrupts them."""

import json
import shutil

import keras
import pytest
from helpers import run

from highway_keras import models, paper, results, training
from highway_keras.paper import tables

pytestmark = pytest.mark.usefixtures("untraced", "noise")
NAME = "mnist-highway-16"
TINY = {"models": [NAME], "seeds": (0, 1), "epochs": 2, "limit": 20, "verbose": 0}
COMMAND = f"reproduce table1 --recipe modern --model {NAME} --runs 2 --epochs 2 --limit 20"


@pytest.fixture(scope="module")
def reproduced(noise, tmp_path_factory):
    """A reproduction that nothing interrupted."""
    out = tmp_path_factory.mktemp("tables") / "reproduced"
    paper.reproduce_table("table1", "modern", out=out, **TINY)
    return out


def rows(out, *without, name="table1"):
    return [
        {key: value for key, value in row.items() if key not in without}
        for row in results.read_rows(out / f"{name}.csv")
    ]


def as_text(rows):
    return [{key: str(value) for key, value in row.items()} for row in rows]


def test_a_row_a_run(reproduced):
    first, second = rows(reproduced)
    assert list(first) == list(results.read("table1")[0])
    expected = {"table": "table1", "model": NAME, "dataset": "mnist", "recipe": "modern"}
    expected |= {"seed": "0", "epochs": "2", "images": "20", "best_epoch": "2"}
    again = f"highway-keras reproduce table1 --recipe modern --model {NAME} --runs 1 --seed 0"
    expected["command"] = f"{again} --epochs 2 --limit 20"
    assert first.items() >= expected.items()
    assert first["hardware"] and first["versions"] and first["date"]
    for row, seed in ((first, 0), (second, 1)):
        folder = reproduced / f"{NAME}-modern" / f"seed-{seed}"
        content = json.loads((folder / "run.json").read_text())
        assert row["seed"] == str(seed) and content["recipe"]["name"] == "modern-mnist"
        for key in ("test_accuracy", "test_loss"):
            assert float(row[key]) == content["results"][key]
    assert first["test_loss"] != second["test_loss"]


def test_the_options_reach_every_run(tmp_path, monkeypatch):
    asked = []

    def fit(name, images, recipe, *, seed, **options):
        asked.append((len(images.x_train), recipe.epochs, recipe.dtype_policy, seed))
        raise training.BusyError("busy")

    monkeypatch.setattr(tables, "fit", fit)
    command = f"{COMMAND} --seed 3 --dtype-policy mixed_bfloat16"
    assert run(*command.split(), "--out", tmp_path) == 1
    assert asked == [(20, 2, "mixed_bfloat16", seed) for seed in (3, 4)]


def test_a_finished_run_is_not_trained_again(reproduced, tmp_path, monkeypatch):
    copy = shutil.copytree(reproduced, tmp_path / "copy")  # as on another machine
    (copy / "table1.csv").unlink()
    monkeypatch.setattr(keras.Model, "fit", None)
    again = paper.reproduce_table("table1", "modern", out=copy, **TINY)
    assert as_text(again) == rows(copy) == rows(reproduced)
    with pytest.raises(ValueError, match="limit: 20 → 10"):
        paper.reproduce_table("table1", "modern", out=copy, **{**TINY, "limit": 10})


def test_an_interrupted_reproduction_continues(reproduced, tmp_path, monkeypatch):
    fit = tables.fit

    def interrupted(*arguments, seed, **options):
        if seed == 1:
            raise KeyboardInterrupt
        return fit(*arguments, seed=seed, **options)

    monkeypatch.setattr(tables, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        paper.reproduce_table("table1", "modern", out=tmp_path, **TINY)
    varying = ("minutes", "commit")
    assert rows(tmp_path, *varying) == rows(reproduced, *varying)[:1]
    monkeypatch.setattr(tables, "fit", fit)
    paper.reproduce_table("table1", "modern", out=tmp_path, **TINY)
    assert rows(tmp_path, *varying) == rows(reproduced, *varying)


def test_a_run_that_diverges_does_not_end_the_others(reproduced, tmp_path, capsys, monkeypatch):
    fit = tables.fit

    def diverging(*arguments, seed, **options):
        if seed == 0:
            raise training.TrainingDiverged("The loss is no longer finite.")
        return fit(*arguments, seed=seed, **options)

    monkeypatch.setattr(tables, "fit", diverging)
    assert run(*COMMAND.split(), "--out", tmp_path) == 1
    varying = ("minutes", "commit")
    assert rows(tmp_path, *varying) == rows(reproduced, *varying)[1:]
    printed = capsys.readouterr()
    assert f"{NAME} with seed 0" in printed.err and NAME in printed.out


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"table": "table4"}, "`table`"),
        ({"recipe": "muon"}, "`recipe`"),
        ({"models": ["highway-b"]}, "`models`.*highway-b"),
        ({"seeds": [-1]}, "`seed`"),
    ],
)
def test_mistakes_leave_no_folder(arguments, name, tmp_path):
    options = {"table": "table1", "recipe": "modern", **TINY, **arguments}
    with pytest.raises(ValueError, match=name):
        paper.reproduce_table(**options, out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


# The authors' logs


def test_the_authors_logs_are_complete():
    """Their numbers are on pages, which `test_pages` compares with them."""
    for model, log in results.authors_logs().items():
        epochs = training.get_recipe(models.get(model).recipe).epochs
        assert [int(row["epoch"]) for row in log] == list(range(1, epochs + 1))


def test_our_training_beside_the_authors_log(tmp_path):
    compared = paper.compare_with_authors("mnist-highway-32", epochs=2, out=tmp_path, verbose=0)
    assert rows(tmp_path, name="authors-log") == as_text(compared)
    for row, theirs in zip(compared, results.authors_logs()["mnist-highway-32"], strict=False):
        assert row["authors_accuracy"] == float(theirs["test_accuracy"])
        assert row["authors_loss"] == float(theirs["test_loss"])
    assert [(row["seed"], row["epoch"]) for row in compared] == [(0, 1), (0, 2)]
    history = results.read_rows(tmp_path / "seed-0" / "history.csv")
    assert [r["ours_training_loss"] for r in compared] == [float(r["loss"]) for r in history]
    measured = json.loads((tmp_path / "seed-0" / "run.json").read_text())["results"]
    assert compared[1]["ours_loss"] == pytest.approx(measured["test_loss"], abs=1e-5)
    assert compared[1]["ours_accuracy"] == pytest.approx(measured["test_accuracy"], abs=1e-6)


# Several runs in one line


def test_results_of_runs_are_put_together():
    long = ("a", "modern", "30", "all")
    runs = [(*long, "float32", accuracy) for accuracy in ("0.99", "0.98", "0.97")]
    runs += [("a", "modern", "30", "100", "float32", "0.5"), (*long, "mixed_bfloat16", "0.96")]
    runs += [("a", "authors", "300", "all", "float32", "0.991")]
    keys = ("model", "recipe", "epochs", "images", "dtype_policy", "test_accuracy")
    summary = results.summarize([dict(zip(keys, run, strict=True)) for run in runs])
    assert [row["n"] for row in summary] == [3, 1, 1, 1]
    texts = ["99.00 (98.00 ± 1.00)", "50.00", "96.00", "99.10"]
    assert [results.text(row) for row in summary] == texts


def test_the_accuracy_of_a_network_is_not_chosen_by_it(monkeypatch):
    columns = ("model", "recipe", "epochs", "images", "test_accuracy")
    runs = [("a", "modern", "30", "all", "0.98"), ("a", "modern", "30", "all", "0.97")]
    runs += [("a", "modern", "15", "all", "0.99"), ("b", "modern", "15", "all", "0.99")]
    runs += [("b", "authors", "300", "all", "0.98"), ("b", "authors", "400", "100", "0.1")]
    table = [dict(zip(columns, run, strict=True), dtype_policy="float32") for run in runs]
    monkeypatch.setattr(results.measurements, "read", lambda name: table * (name == "table1"))
    assert results.accuracies() == {"a": "97.50 ± 0.71, n=2", "b": "98.00, n=1"}
