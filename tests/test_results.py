"""Rows say where they come from, and the tools that make them."""

import argparse
import dataclasses
import importlib
import importlib.util
import json
import re
import shlex
import shutil
import sys

import matplotlib.image
import numpy as np
import pytest

from highway_keras import analysis, data, models, results, training
from highway_keras.cli.command import main
from highway_keras.results import provenance
from highway_keras.training.recipes import RECIPES, get_recipe
from tools import frames, pictures, record, tables

TRANSCRIBED = "authors-logs"
# whose commands exist only at their commits
GONE = ("compact", "figure1-finals", "footprint", "halving", "speed-epoch")
FILES = sorted(path.stem for path in frames.RESULTS.glob("*.csv"))


@pytest.mark.parametrize("name", FILES)
def test_a_row_says_how_it_was_made(name):
    assert f"`{name}.csv`" in (frames.RESULTS / "README.md").read_text(encoding="utf-8")
    if name != TRANSCRIBED:
        rows = results.read(name)
        assert tuple(rows[0])[-len(provenance.COLUMNS) :] == provenance.COLUMNS
        assert all(row[key] for row in rows for key in provenance.COLUMNS)


class Understood(Exception):
    pass


def commands_of_pages():
    """Yield the commands of README and docs that start with `highway-keras` or `python -m`."""
    for page in tables.pages():
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith(("highway-keras ", "python -m benchmarks", "python -m tools")):
                    yield re.split(" [>|&#]", line)[0]


def test_the_commands_of_rows_and_pages_are_understood(monkeypatch):
    """A command that is gone, or has changed, cannot be run again."""
    parse = argparse.ArgumentParser.parse_args

    def only_parse(self, arguments=None):
        changes = dict(getattr(parse(self, arguments), "set", None) or {})
        assert set(changes) <= {field.name for field in dataclasses.fields(training.Recipe)}
        raise Understood

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    recorded = (
        row["command"]
        for name in FILES
        if name not in (TRANSCRIBED, *GONE)
        for row in results.read(name)
    )
    for command in {*recorded, *commands_of_pages()}:
        # The module had another name when the older rows were made.
        head, *arguments = shlex.split(command.replace("tools.rows", "tools.record"))
        run = main
        if head == "python":
            _, module, *arguments = arguments
            package = importlib.util.find_spec(module).submodule_search_locations
            run = importlib.import_module(f"{module}.__main__" if package else module).main
        monkeypatch.setattr("sys.argv", [head, *arguments])
        with pytest.raises(Understood):
            run()


# The tools


def recorded(monkeypatch, folder, *arguments):
    """Run `python -m tools.record` with rows that go into a folder; return all that are there."""
    monkeypatch.setattr(record, "RESULTS", folder)
    monkeypatch.setattr(sys, "argv", ["record", *map(str, arguments)])
    record.main()
    (file,) = folder.glob("*.csv")
    return results.read_rows(file)


ARGUMENTS = (
    "thin-highway-10 --dataset digits --model-set depth=4 activation=tanh transform_bias=-2.0 "
    "--epochs 2 --set decay=0.5 --limit 100 --seed 3"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory, untraced):
    """A run of `fit` with settings of every kind, by the command."""
    out = tmp_path_factory.mktemp("run")
    assert main(["fit", *ARGUMENTS.split(), "--out", str(out)]) == 0
    return out


def test_a_run_by_epoch_has_the_command_that_repeats_it(run, tmp_path, monkeypatch):
    """Even if the recipe that it was trained by has changed since."""
    first, second = recorded(monkeypatch, tmp_path, "curves", run)
    assert (first["epoch"], second["epoch"], first["seed"]) == ("1", "2", "3")
    assert float(first["loss"]) > 0 and first["val_accuracy"]
    assert [row["test_accuracy"] != "" for row in (first, second)].count(True) == 1
    assert all(first[key] for key in provenance.COLUMNS)
    changed = get_recipe("digits").override(learning_rate=0.01, l2=0.1)
    monkeypatch.setitem(RECIPES, "digits", changed)
    command = shlex.split(first["command"])
    assert main([*command[1:], "--out", str(tmp_path / "again")]) == 0
    options = argparse.Namespace(what=[tmp_path / "again"])
    again = next(record.curves(options))
    assert (str(again["loss"]), again["command"]) == (first["loss"], first["command"])


def test_runs_as_one_row(run, tmp_path, monkeypatch):
    other = shutil.copytree(run, tmp_path / "other")
    settings = json.loads((run / "run.json").read_text("utf-8"))
    (other / "run.json").write_text(json.dumps({**settings, "seed": 4}))
    (tmp_path / "rows").mkdir()
    (row,) = recorded(monkeypatch, tmp_path / "rows", "accuracy", run, other)
    assert row["mean"] == row["best"] == f"{100 * settings['results']['test_accuracy']:.2f}"
    assert (row["n"], row["seeds"], row["epochs"]) == ("2", "3 4", "2")
    assert (row["model"], row["recipe"]) == ("thin-highway-10", "digits")
    assert row["command"] == f"{record.fit_command(settings)} --runs 2"


def test_the_layers_of_a_network_and_its_rounded_weights(run, tmp_path, monkeypatch):
    intact, *layers = recorded(monkeypatch, tmp_path, "section4", run)
    assert [row["layer"] for row in layers] == ["1", "2", "3"] and intact["layer"] == "0"
    assert {(row["searched_bias"], row["seed"]) for row in layers} == {("at -2", "3")}
    shipped = models.load(tmp_path / "section4" / "digits-2-seed3.keras")
    for weight, rounded in zip(
        models.load(run).network.get_weights(), shipped.network.get_weights(), strict=True
    ):
        np.testing.assert_equal(rounded, weight.astype("float16").astype("float32"))
    accuracy = training.evaluate(shipped.model, data.load("digits")).accuracy
    assert float(intact["test_accuracy"]) == accuracy
    images = data.load("digits", validation=0)
    biases = list(analysis.transform_biases(shipped.model).values())
    gates, outputs = (
        list(watch(shipped.model, images.x_train).values())
        for watch in (analysis.gates, analysis.block_outputs)
    )
    for n, row in enumerate(layers):
        routed = np.abs(gates[n][images.y_train == 7].mean(0) - gates[n].mean(0)).mean()
        expected = {"below_start": (biases[n] < -2).mean(), "routing_7": routed}
        expected |= {"change": np.abs(outputs[n] - outputs[n - 1]).mean()} if n else {}
        for name, value in expected.items():
            assert float(row[name]) == pytest.approx(value, rel=1e-3), name


def test_only_a_run_with_frozen_features_or_balanced_classes_says_so(run):
    settings = json.loads((run / "run.json").read_text("utf-8"))
    assert not {"--freeze", "--class-weight"} & {*record.fit_command(settings).split()}
    assert "--class-weight balanced" in record.fit_command({**settings, "class_weight": [1.0, 2.0]})
    weights = settings["weights"]
    averages = [weights[0], [[50], False], *weights[1:]]  # of a batch normalization
    assert "--freeze" not in record.fit_command({**settings, "weights": averages})
    frozen = [[shape, n >= len(weights) - 2] for n, (shape, _) in enumerate(weights)]
    assert " --freeze " in record.fit_command({**settings, "weights": frozen})


def test_rows_are_added_beside_those_of_other_cases(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("kind,loss,note\nplain,2.0,mine\n")
    results.update_rows(path, [{"kind": "highway", "loss": 1.0}], ("kind",))
    assert [row["note"] for row in results.read_rows(path)] == ["mine", ""]


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_comes_out_of_rows(name, tmp_path):
    pictures.PICTURES[name]().savefig(tmp_path / name, dpi=30)
    assert matplotlib.image.imread(tmp_path / name).std() > 0.01
