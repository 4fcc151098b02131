"""Rows say where they come from; the tools that make them, and the numbers made of them."""

import argparse
import dataclasses
import importlib
import importlib.util
import shlex
import sys

import matplotlib.image
import numpy as np
import pytest
from helpers import altered, read_rows

from highway_keras import results, training
from highway_keras.cli.command import main
from highway_keras.results import provenance
from highway_keras.training.recipes import RECIPES, get_recipe
from highway_keras.util.files import write_figure, write_rows
from tools import numbers, pictures, rows, templates
from tools.render import NONE, ROOT, number

TRANSCRIBED = "authors-logs"
FILES = sorted(path.stem for path in (ROOT / "results").glob("*.csv"))


@pytest.mark.parametrize("name", FILES)
def test_a_row_says_how_it_was_made(name):
    assert f"`{name}.csv`" in (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    if name != TRANSCRIBED:
        found = results.read(name)
        assert tuple(found[0])[-len(provenance.COLUMNS) :] == provenance.COLUMNS
        assert all(row[key] for row in found for key in provenance.COLUMNS)


class Understood(Exception):
    pass


def test_the_commands_of_the_rows_are_understood(monkeypatch):
    """Every option is checked: a command that is gone, or has changed, cannot be run again."""
    parse = argparse.ArgumentParser.parse_args

    def only_parse(self, arguments=None):
        changes = dict(getattr(parse(self, arguments), "set", None) or {})
        assert set(changes) <= {field.name for field in dataclasses.fields(training.Recipe)}
        raise Understood

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    recorded = (
        row["command"] for name in FILES if name != TRANSCRIBED for row in results.read(name)
    )
    for command in set(recorded):
        head, *arguments = shlex.split(command)
        run = main
        if head == "python":
            _, module, *arguments = arguments
            package = importlib.util.find_spec(module).submodule_search_locations
            run = importlib.import_module(f"{module}.__main__" if package else module).main
        monkeypatch.setattr("sys.argv", [head, *arguments])
        with pytest.raises(Understood):
            run()


# The tools


def record(monkeypatch, folder, *arguments):
    """Run `python -m tools.rows` with rows that go into a folder; return all that are there."""
    monkeypatch.setattr(rows, "RESULTS", folder)
    monkeypatch.setattr(sys, "argv", ["rows", *map(str, arguments)])
    rows.main()
    (file,) = folder.glob("*.csv")
    return read_rows(file)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of `fit` with settings of every kind, by the command."""
    out = tmp_path_factory.mktemp("run")
    assert main(["fit", *ARGUMENTS.split(), "--out", str(out)]) == 0
    return out


ARGUMENTS = (
    "thin-highway-10 --dataset digits --model-set depth=4 activation=tanh --epochs 2 "
    "--set decay=0.5 --limit 100 --seed 3"
)


def test_a_run_by_epoch_has_the_command_that_repeats_it(run, tmp_path, monkeypatch):
    """Even if the recipe that it was trained by has changed since."""
    first, second = record(monkeypatch, tmp_path, "curves", run)
    assert (first["epoch"], second["epoch"], first["seed"]) == ("1", "2", "3")
    assert float(first["loss"]) > 0 and first["val_accuracy"]
    assert [row["test_accuracy"] != "" for row in (first, second)].count(True) == 1
    assert all(first[key] for key in provenance.COLUMNS)
    changed = get_recipe("digits").override(learning_rate=0.01, l2=0.1)
    monkeypatch.setitem(RECIPES, "digits", changed)
    command = shlex.split(first["command"])
    assert main([*command[1:], "--out", str(tmp_path / "again")]) == 0
    options = argparse.Namespace(what=[tmp_path / "again"])
    again = next(rows.curves(options))
    assert (str(again["loss"]), again["command"]) == (first["loss"], first["command"])


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    """A run on all images with its recipe as it is, but shorter."""
    recipe = {**training.RunFolder(run).read_json()["recipe"], "decay": get_recipe("digits").decay}
    out = tmp_path_factory.mktemp("whole") / "run"
    return altered(run, out, recipe=recipe, limit=None, model_options={})


def test_a_file_that_something_else_wrote_is_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("kind,loss,note\nplain,2.0,mine\n")
    results.update_rows(path, [{"kind": "highway", "loss": 1.0}], ("kind",))
    assert [row["note"] for row in results.read_rows(path, ("kind",))] == ["mine", ""]
    for text in ("kind;loss\nplain;2.0\n", "kind,loss\nplain,2.0,more\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"rows\.csv.*kind"):
            results.read_rows(path, ("kind",))


def test_runs_as_one_row(whole, tmp_path, monkeypatch):
    before = altered(whole, tmp_path / "before", seed=2)
    (tmp_path / "rows").mkdir()
    (row,) = record(monkeypatch, tmp_path / "rows", "accuracy", whole, before)
    measured = training.RunFolder(whole).read_json()["results"]["test_accuracy"]
    assert row["mean"] == row["best"] == f"{100 * measured:.2f}"
    assert (row["n"], row["seeds"]) == ("2", "2 3")
    assert (row["model"], row["recipe"], row["epochs"]) == ("thin-highway-10", "digits", "2")
    once = rows.fit_command(training.RunFolder(before).read_json())
    assert row["command"] == f"{once} --runs 2" and "--dataset digits" in once
    started = {"weights": "mnist", "freeze": True}
    started = training.RunFolder(altered(whole, tmp_path / "started", **started)).read_json()
    assert rows.fit_command(started).count(" --weights mnist --freeze ") == 1


def test_a_row_is_of_the_recipe_as_it_is(whole, tmp_path):
    changed = altered(whole, tmp_path / "other", recipe={"l2": 0.1, "momentum": 0.5})
    with pytest.raises(ValueError, match="Runs "):
        list(rows.accuracy(argparse.Namespace(what=[changed])))


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_comes_out_of_rows(name, tmp_path):
    write_figure(tmp_path / name, pictures.PICTURES[name](), dpi=30)
    assert matplotlib.image.imread(tmp_path / name).std() > 0.01


# Numbers


def test_what_has_no_row_says_so_and_several_rows_are_no_number(monkeypatch, tmp_path):
    monkeypatch.setattr(templates, "RESULTS", tmp_path)
    assert number("cell speed {ms:.1f} case=a") == number("logs") == NONE
    write_rows(tmp_path / "speed.csv", [{"case": "a", "ms": 1.25}, {"case": "b", "ms": 2}])
    assert number("cell speed '{ms:.1f} {ms:.0%}' case=a") == "1.2 125"
    assert number("cell speed {ms} case=c") == NONE
    with pytest.raises(LookupError, match=r"2 rows of speed\.csv"):
        numbers.cell("speed", "{ms}")
    assert templates.table("speed", "case | ms", "{case} | {ms:.2f}")().splitlines()[1:] == [
        "| case | ms |",
        "| --- | ---: |",
        "| a | 1.25 |",
        "| b | 2.00 |",
    ]
    spread = {"s": 2.0, "s_low": 1.0, "s_high": 3.0}
    assert (
        templates.fill("{s:.1f~} {blank:.2f}", {**spread, "blank": np.nan}) == "2.0 (1.0 to 3.0) "
    )
    assert number("over speed '{ms.min:.1f} {ms}'") == "1.2 1.25, 2.0"
