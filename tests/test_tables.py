"""`reproduce table1` and its kin: one row per run, whatever interrupts them."""

import csv
import shutil

import keras
import numpy as np
import pytest

from highway_keras import data, models, paper, results, training
from highway_keras.cli import command as cli
from highway_keras.paper.table_plot import plot_runs
from highway_keras.paper.tables import COLUMNS, read_table
from highway_keras.runs import provenance as machine
from highway_keras.training.callbacks import Checkpoint

NAME = "mnist-highway-16"
TINY = {"models": [NAME], "runs": 2, "epochs": 2, "limit": 20, "verbose": 0}
COMMAND = f"reproduce table1 --recipe modern --model {NAME} --runs 2 --epochs 2 --limit 20"


def images(name, data_dir=None, validation=0.1, limit=None, input_shape=None):
    """Ten kinds of noise, in the shape of the data set that is asked for."""
    shape, classes = {"mnist": ((28, 28, 1), 10), "cifar10": ((32, 32, 3), 10)}[name]
    y = np.arange(60) % classes
    noise = np.random.default_rng(0).integers(0, 100, (60, *shape))
    x = (noise + 15 * y[:, None, None, None]).astype("uint8")
    kept, held = slice(0, limit), slice(40, 50 if validation else 40)
    parts = (x[kept], y[kept], x[held], y[held], x[50:], y[50:])
    return data.Dataset(name, *parts, tuple("0123456789"))


@pytest.fixture(autouse=True)
def small_images(monkeypatch):
    monkeypatch.setattr(data, "load", images)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A reproduction that nothing interrupted."""
    out = tmp_path_factory.mktemp("tables") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "load", images)
        paper.reproduce_table("table1", "modern", out=out, **TINY)
    return out


def rows(out, *without):
    with (out / "table1.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if k not in without} for row in csv.DictReader(file)]


def test_a_row_a_run(whole):
    first, second = rows(whole)
    assert tuple(first) == COLUMNS and first["commit"] and first["date"]
    again = f"highway-keras reproduce table1 --recipe modern --model {NAME} --runs 1"
    assert first["command"] == f"{again} --seed 0 --epochs 2 --limit 20"
    expected = {"table": "table1", "model": NAME, "dataset": "mnist", "recipe": "modern"}
    expected |= {"seed": "0", "epochs": "2", "images": "20", "best_epoch": "2"}
    assert {key: first[key] for key in expected} == expected and second["seed"] == "1"
    for row, seed in ((first, 0), (second, 1)):
        kept = training.RunFolder(whole / f"{NAME}-modern" / f"seed-{seed}").read_json()
        assert kept["recipe"]["name"] == "modern-mnist"
        assert float(row["test_accuracy"]) == kept["results"]["test_accuracy"]
        assert float(row["test_loss"]) == kept["results"]["test_loss"]
        assert 0 < float(row["minutes"]) < 10
        assert row["hardware"] == machine.hardware() and row["versions"] == machine.versions()
    assert first["test_loss"] != second["test_loss"]
    assert (whole / "table1.png").read_bytes().startswith(b"\x89PNG")
    assert not list(whole.rglob(".*"))


def test_the_command_of_a_row_names_what_is_not_the_recipes(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "half")
    folder = training.RunFolder(tmp_path / "half" / f"{NAME}-modern" / "seed-1")
    settings = folder.read_json()
    settings["recipe"] |= {"epochs": 30, "dtype_policy": "mixed_bfloat16"}
    folder.write_json({**settings, "limit": None})
    command = read_table("table1", tmp_path / "half")[1]["command"]
    assert command.endswith("--runs 1 --seed 1 --dtype-policy mixed_bfloat16")


def interrupt(monkeypatch, after):
    """Ctrl-C at the end of an epoch, counted over all runs, before it is saved."""
    save, ended = Checkpoint.on_epoch_end, iter(range(after + 1))

    def on_epoch_end(self, *arguments):
        if next(ended) == after:
            raise KeyboardInterrupt
        save(self, *arguments)

    monkeypatch.setattr(Checkpoint, "on_epoch_end", on_epoch_end)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored in")  # files left open, as by a real one
@pytest.mark.parametrize(
    "after", [pytest.param(2, id="after a run"), pytest.param(3, id="amid a run")]
)
def test_continued_on_another_machine_it_ends_with_the_same_rows(whole, after, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt(patch, after)
        paper.reproduce_table("table1", "modern", out=here, **TINY)
    assert rows(here, "minutes") == rows(whole, "minutes")[:1]
    before = rows(here)
    shutil.move(here, there)
    again = paper.reproduce_table("table1", "modern", out=there, **TINY)
    assert rows(there, "minutes") == rows(whole, "minutes")
    assert rows(there)[0] == before[0]  # what had ended was left alone
    assert [{k: str(v) for k, v in row.items()} for row in again] == rows(there)


def test_rows_are_rebuilt_from_the_runs(whole, tmp_path, monkeypatch):
    monkeypatch.setattr("highway_keras.training.trainer.fit", None)  # nothing is trained
    shutil.copytree(whole, tmp_path / "copy")
    (tmp_path / "copy" / "table1.csv").unlink()
    paper.reproduce_table("table1", "modern", out=tmp_path / "copy", **TINY)
    assert rows(tmp_path / "copy") == rows(whole)


def test_a_run_that_diverges_does_not_end_the_others(whole, tmp_path, capsys, monkeypatch):
    def fit(seed, **arguments):
        if seed == 0:
            raise training.TrainingDiverged("The loss is no longer finite.")
        return training.fit(seed=seed, **arguments)

    monkeypatch.setattr("highway_keras.training.trainer.fit", fit)
    assert cli.main([*COMMAND.split(), "--out", str(tmp_path)]) == 1
    varying = ("minutes", "hardware", "versions")
    assert rows(tmp_path, *varying) == rows(whole, *varying)[1:]
    printed = capsys.readouterr()
    assert NAME in printed.out.splitlines()[-2]
    assert f"Without a row in table1.csv: {NAME} with seed 0 (The loss" in printed.err


def test_a_missing_part_leaves_the_minutes_open():
    def part(first, last):
        return {"first_epoch": first, "last_epoch": last, "seconds": 30.0}

    assert machine.minutes([part(0, 4)]) == 0.5
    assert machine.minutes([part(0, 4), part(3, 9)]) == 1  # an epoch half done is repeated
    assert machine.minutes([part(0, 4), part(6, 9)]) is None
    assert machine.minutes([part(6, 9)]) is None and machine.minutes([]) is None


def test_both_recipes_share_a_folder_and_a_picture(whole, tmp_path, capsys, monkeypatch):
    drawn = {}

    def plot(runs, path, title):
        runs = list(runs)
        drawn["runs"] = [(card.name, recipe) for card, recipe, _ in runs]
        plot_runs(runs, path, title)

    monkeypatch.setattr("highway_keras.paper.tables.plot_runs", plot)
    shutil.copytree(whole, tmp_path / "both")
    command = COMMAND.replace("modern", "authors").replace("--runs 2 --epochs 2", "--runs 1")
    assert cli.main([*command.split(), "--epochs", "1", "--out", str(tmp_path / "both")]) == 0
    assert [row["recipe"] for row in rows(tmp_path / "both")] == ["authors", "modern", "modern"]
    assert drawn["runs"] == [(NAME, "authors"), (NAME, "modern"), (NAME, "modern")]
    header, authors, modern, saved = capsys.readouterr().out.splitlines()[-4:]
    assert header.split("  ")[0] == "model" and "ours %" in header and "paper %" in header
    assert authors.split()[:6] == [NAME, "authors", "1", "20", "1", "float32"]
    assert modern.split()[:6] == [NAME, "modern", "2", "20", "2", "float32"]
    assert authors.endswith(models.get(NAME).paper) and modern.endswith(models.get(NAME).paper)
    assert saved == f"saved {tmp_path / 'both'}"


@pytest.mark.parametrize(
    ("model", "start", "last", "best"),
    [
        ("mnist-highway-32", 2.51641, 0.9954, 0.9958),
        ("highway-gap-10", 2.49712, 0.9214, 0.9244),
        ("highway-gap-100", 5.71903, 0.6809, 0.6809),
    ],
)
def test_the_authors_logs_are_whole(model, start, last, best):
    log = [row for row in results.read("authors-logs") if row["model"] == model]
    assert [int(row["epoch"]) for row in log] == list(range(len(log)))
    assert len(log) - 1 == training.get_recipe(models.get(model).recipe).epochs
    accuracies = [float(row["test_accuracy"]) for row in log]
    assert (accuracies[-1], max(accuracies)) == (last, best)
    # Before the first step no network does better than chance. One that starts with about the
    # logarithm of 100 in a log of 10 classes has 100 outputs.
    before = float(log[0]["test_loss"])
    classes = models.get(model).classes
    assert before == start and np.log(classes) < before < np.log(classes) + 1.2


AUTHORS = {"model": "mnist-highway-32", "verbose": 0}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Two epochs beside the authors' log: the folder and the rows."""
    out = tmp_path_factory.mktemp("authors") / "log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "load", images)
        return out, paper.compare_with_authors(epochs=2, out=out, **AUTHORS)


def test_our_training_beside_the_authors_log(compared):
    out, found = compared
    with (out / "authors-log.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{k: str(v) for k, v in row.items()} for row in found]
    authors = results.authors_logs()["mnist-highway-32"]
    for row, theirs in zip(found, authors, strict=False):
        assert row["authors_accuracy"] == float(theirs["test_accuracy"])
        assert row["authors_loss"] == float(theirs["test_loss"])
    assert [(row["seed"], row["epoch"]) for row in found] == [(0, 1), (0, 2)]
    assert found[0]["authors_accuracy"] == 0.9588
    results_of_run = training.RunFolder(out / "seed-0").read_json()["results"]
    measured = (results_of_run["test_loss"], results_of_run["test_accuracy"])
    assert (found[1]["ours_loss"], found[1]["ours_accuracy"]) == pytest.approx(measured, abs=1e-6)


def test_the_authors_test_images_choose_nothing(compared, tmp_path, monkeypatch):
    """A network trained on all images: the best one is the last, whatever the test images say."""
    out, _ = compared
    other = {"first best": (1.0, 0.5), "last best": (0.5, 1.0)}
    for name, accuracies in other.items():
        said = iter([(0.1, accuracy) for accuracy in accuracies])
        with monkeypatch.context() as patch:
            patch.setattr("highway_keras.training.callbacks.measure", lambda *_, s=said: next(s))
            rows = paper.compare_with_authors(epochs=2, out=tmp_path / name, **AUTHORS)
        assert tuple(row["ours_accuracy"] for row in rows) == accuracies
        folder = training.RunFolder(tmp_path / name / "seed-0")
        assert folder.read_json()["results"]["best_epoch"] == 2
        for one, two in zip(*weights(folder, out / "seed-0"), strict=True):
            np.testing.assert_array_equal(one, two)
    assert {"val_loss", "val_accuracy"}.isdisjoint(folder.read_history()[0])


def weights(folder, other):
    paths = (folder.best, folder.final, other / "best.keras")
    best, final, others = (keras.models.load_model(path).get_weights() for path in paths)
    for one, two in zip(best, final, strict=True):
        np.testing.assert_array_equal(one, two)
    return best, others


@pytest.mark.filterwarnings("ignore:Exception ignored in")
def test_the_comparison_goes_on_where_it_was(compared, tmp_path, capsys):
    _, whole = compared
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt(patch, 1)
        paper.compare_with_authors(epochs=3, out=tmp_path, **AUTHORS)
    assert paper.compare_with_authors(epochs=2, out=tmp_path, **AUTHORS) == whole
    command = f"reproduce authors-log --model mnist-highway-32 --epochs 3 --out {tmp_path}"
    assert cli.main(command.split()) == 0
    printed = capsys.readouterr().out.splitlines()
    assert not any("Epoch 2/3" in line for line in printed) and "Epoch 3/3" in printed
    header, *lines, saved = printed[-5:]
    assert header.split("  ")[0] == "seed" and saved == f"saved {tmp_path}"
    for line, row in zip(lines, whole, strict=False):
        assert line.split()[3] == f"{100 * row['ours_accuracy']:.2f}"
    assert paper.compare_with_authors(epochs=2, out=tmp_path, **AUTHORS) == whole
    paper.compare_with_authors(epochs=1, seeds=[1], out=tmp_path, **AUTHORS)
    with (tmp_path / "authors-log.csv").open(newline="") as file:
        found = [(row["seed"], row["epoch"]) for row in csv.DictReader(file)]
    assert found == [("0", "1"), ("0", "2"), ("0", "3"), ("1", "1")]  # of all calls


def test_a_folder_of_other_runs_is_left_alone(whole, tmp_path):
    shutil.copytree(whole / f"{NAME}-modern", tmp_path / "runs")
    before = (tmp_path / "runs" / "seed-0" / "run.json").read_bytes()
    with pytest.raises(ValueError, match="settings differ"):
        paper.compare_with_authors(epochs=3, out=tmp_path / "runs", **AUTHORS)
    assert (tmp_path / "runs" / "seed-0" / "run.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "mnist-highway-16"}, "`model` must be one of 'mnist-highway-32', 'highway-gap"),
        (
            {"epochs": 301},
            "`epochs` must be an integer of at least 1 and at most 300. Received",
        ),
        ({"seeds": [0, -1]}, "`seeds` must be an integer from 0"),
    ],
)
def test_mistakes_in_a_comparison_leave_no_folder(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        paper.compare_with_authors(out=tmp_path / "none", **{**AUTHORS, **arguments})
    assert not (tmp_path / "none").exists()


def test_the_command_says_where_it_is(tmp_path, capsys, monkeypatch):
    def diverge(**arguments):
        raise training.TrainingDiverged("The loss is no longer finite.")

    monkeypatch.setattr("highway_keras.training.trainer.fit", diverge)
    assert cli.main([*COMMAND.split(), "--out", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"{NAME}, seed {n}: run {n + 1} of 2" for n in (0, 1)]


def test_interrupted_it_names_the_command_that_continues(tmp_path, capsys, monkeypatch):
    interrupt(monkeypatch, 0)
    arguments = [*COMMAND.split(), "--out", str(tmp_path / "run")]
    assert cli.main(arguments) == 130
    error = capsys.readouterr().err
    assert error.endswith(f"continue with: highway-keras {' '.join(arguments)}\n")


def test_distribute_is_passed_on(tmp_path, monkeypatch):
    asked = []

    def reproduce_table(*arguments, **options):
        asked.append(options)
        return []

    monkeypatch.setattr("highway_keras.paper.tables.reproduce_table", reproduce_table)
    for flag in ([], ["--distribute"]):
        cli.main([*COMMAND.split(), "--out", str(tmp_path), *flag])
    assert [options["distribute"] for options in asked] == [False, True]


def test_the_tables_and_their_recipes():
    found = {table: [] for table in ("Table 1", "Table 2", "Table 3")}
    for card in map(models.get, models.list_models()):
        if card.table in found:
            found[card.table].append(card.name)
            modern = training.get_recipe(f"modern-{card.recipe}")
            authors = training.get_recipe(card.recipe)
            assert modern.epochs * 4 <= authors.epochs and modern.validation == 0
            assert modern.preprocessing == authors.preprocessing
    assert found == {
        "Table 1": ["mnist-highway-16", "mnist-highway-32"],
        "Table 2": ["highway-a", "highway-b", "highway-c", "fitnet-a", "fitnet-b"],
        "Table 3": ["highway-gap-10", "highway-gap-100"],
    }


def test_cifar_goes_the_same_way(tmp_path):
    sizes = {**TINY, "models": ["highway-a"], "runs": 1, "epochs": 1}
    (row,) = paper.reproduce_table("table2", "modern", out=tmp_path / "t", **sizes)
    assert row["dataset"] == "cifar10" and (tmp_path / "t" / "table2.csv").exists()
    keras.models.load_model(tmp_path / "t" / "highway-a-modern" / "seed-0" / "best.keras")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"table": "table4"},
            "`table` must be one of 'table1', 'table2', 'table3'. Received: .*table4",
        ),
        ({"models": ["highway-b"]}, "networks of Table 1: mnist-highway-16, .*Received: highway-b"),
        (
            {"recipe": "quick"},
            "`recipe` must be one of 'authors', 'modern'. Received: recipe='quick'",
        ),
        ({"runs": 0}, "`runs` must be a positive integer. Received: runs=0"),
        ({"epochs": 0}, "`epochs` must be a positive integer. Received: epochs=0"),
        ({"seed": -1}, "`seed` must be an integer from 0"),
    ],
)
def test_mistakes_leave_no_folder(arguments, message, tmp_path):
    options = {"table": "table1", "recipe": "modern", **TINY, **arguments}
    with pytest.raises(ValueError, match=message):
        paper.reproduce_table(**options, out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_other_settings_are_another_reproduction(whole):
    with pytest.raises(ValueError, match=r"settings differ .limit: 20 → 10"):
        paper.reproduce_table("table1", "modern", out=whole, **{**TINY, "limit": 10})


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
    rows = [dict(zip(columns, run, strict=True), dtype_policy="float32") for run in runs]
    monkeypatch.setattr(results.rows, "read", lambda name: rows if name == "table1" else [])
    assert results.accuracies() == {"a": "97.50 ± 0.71, n=2", "b": "98.00, n=1"}
