"""Rows say where they come from, and the tools that make them."""

import argparse
import csv
import dataclasses
import importlib
import importlib.util
import shlex
import shutil
import sys

import keras
import matplotlib.image
import numpy as np
import pytest
from tools.numbers.rows import NONE

from highway_keras import analysis, data, models, results, training
from highway_keras.cli.command import main
from highway_keras.export import Exported
from highway_keras.io import write_figure
from highway_keras.results import provenance
from highway_keras.training.recipes import RECIPES, get_recipe
from tools import accuracy, conversions, curves, exports, gates, layers, pictures, render
from tools.numbers import rows as numbers
from tools.numbers import zoo

RESULTS = render.ROOT / "results"
TRANSCRIBED = "authors-logs.csv"
FILES = sorted(path.name for path in RESULTS.glob("*.csv") if path.name != TRANSCRIBED)


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", FILES)
def test_a_row_says_how_it_was_made(name):
    rows = read(RESULTS / name)
    assert tuple(rows[0])[-len(provenance.COLUMNS) :] == provenance.COLUMNS
    for row in rows:
        assert all(row[key] for key in provenance.COLUMNS), row


@pytest.mark.parametrize("name", [*FILES, TRANSCRIBED])
def test_a_file_is_described(name):
    assert f"`{name}`" in (RESULTS / "README.md").read_text(encoding="utf-8")


NETWORKS_OF_TABLES = [
    name for name in models.list_models() if models.get(name).table in results.TABLES.values()
]


@pytest.mark.parametrize("name", NETWORKS_OF_TABLES)
def test_a_line_of_the_papers_tables_is_the_networks_card(name):
    card, page = models.get(name), (render.ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    (line,) = (
        line for line in page.splitlines() if line.startswith(f"| `{name}`") and "<!--" in line
    )
    cells = [cell.strip() for cell in line.split("|")]
    assert f"{card.parameters:,}" in cells
    assert card.paper in cells
    if card.table == "Table 2":
        assert cells[2:5:2] == [str(card.layers), f"{card.multiplications / 1e6:.1f}"]


class Understood(Exception):
    pass


def test_the_commands_of_the_rows_are_understood(monkeypatch):
    """To the last option: a command that is gone, or has changed, cannot be run again."""
    parse = argparse.ArgumentParser.parse_args

    def only_parse(self, arguments=None):
        parse(self, arguments)
        raise Understood

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    for command in {row["command"] for name in FILES for row in read(RESULTS / name)}:
        head, *arguments = shlex.split(command)
        if head == "python":
            _, module, *arguments = arguments
            package = importlib.util.find_spec(module).submodule_search_locations
            run = importlib.import_module(f"{module}.__main__" if package else module).main
            if not arguments:
                continue  # some have no parser
        else:
            assert head == "highway-keras"
            run = main
        monkeypatch.setattr("sys.argv", [head, *arguments])
        with pytest.raises(Understood):
            run()


def test_the_commands_of_finals_name_their_searches():
    for row in read(RESULTS / "figure1-finals.csv"):
        assert f"--depth {row['depth']} --kind {row['kind']}" in row["command"]
        assert "--search " in row["command"]


# The tools


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


def test_a_run_by_epoch(run):
    first, second = curves.curve_rows(run)
    assert (first["epoch"], second["epoch"], first["seed"]) == (1, 2, 3)
    assert first["loss"] > 0 and first["val_accuracy"] >= 0
    assert [row["test_accuracy"] != "" for row in (first, second)].count(True) == 1
    assert all(first[key] for key in provenance.COLUMNS)


def test_the_command_of_a_row_repeats_the_run(run, tmp_path, monkeypatch):
    """Whatever has become of the recipe that it was trained by."""
    first = curves.curve_rows(run)[0]
    changed = get_recipe("digits").override(learning_rate=0.01, l2=0.1)
    monkeypatch.setitem(RECIPES, "digits", changed)
    command = shlex.split(first["command"])
    assert main([*command[1:], "--out", str(tmp_path / "again")]) == 0
    assert curves.curve_rows(tmp_path / "again")[0]["loss"] == first["loss"]
    assert curves.curve_rows(tmp_path / "again")[0]["command"] == first["command"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run on all images with its recipe as it is, but shorter."""
    out = tmp_path_factory.mktemp("whole")
    options = "thin-highway-10 --dataset digits --epochs 2 --seed 3"
    assert main(["fit", *options.split(), "--out", str(out)]) == 0
    return out


def altered(run, out, **changes):
    """A copy of a run's folder whose `run.json` says something else."""
    folder = training.RunFolder(shutil.copytree(run, out))
    settings = folder.read_json()
    recipe = settings["recipe"] | changes.pop("recipe", {})
    results = settings["results"] | changes.pop("results", {})
    folder.write_json({**settings, "recipe": recipe, "results": results, **changes})
    return folder.path


def test_runs_as_one_row(whole, tmp_path):
    before = altered(whole, tmp_path / "before", seed=2)
    row = accuracy.accuracy_row([whole, before])
    measured = training.RunFolder(whole).read_json()["results"]["test_accuracy"]
    assert row["mean"] == row["best"] == f"{100 * measured:.2f}"
    assert (row["n"], row["seeds"]) == (2, "2 3")
    assert (row["model"], row["recipe"], row["epochs"]) == ("thin-highway-10", "digits", 2)
    assert row["command"] == f"{curves.command(training.RunFolder(before).read_json())} --runs 2"
    words = row["command"].split()
    assert words[:5] == ["highway-keras", "fit", "thin-highway-10", "--dataset", "digits"]
    assert words[words.index("--epochs") + 1] == "2" and words[-2:] == ["--runs", "2"]


UNLIKE = {
    "must be alike. They differ in: limit": {"seed": 4, "limit": 50},
    "must be alike. They differ in: freeze, weights": {"seed": 4, "weights": "x", "freeze": True},
    r"must have different seeds. Received: \[3, 3\]": {},
    r"must follow one another. Received: \[3, 5\]": {"seed": 5},
    "must have all epochs of their recipe. .*, stopped after 1 of 2": {"results": {"epochs": 1}},
}


@pytest.mark.parametrize("message", UNLIKE)
def test_runs_of_one_row_are_alike(message, whole, tmp_path):
    with pytest.raises(ValueError, match=message):
        accuracy.accuracy_row([whole, altered(whole, tmp_path / "other", **UNLIKE[message])])


PARTIAL = {
    "all images and the values of their recipe. Received: limit=50, changed: none": {"limit": 50},
    "limit=None, changed: l2, momentum": {"recipe": {"l2": 0.1, "momentum": 0.5}},
    "must have started from scratch. Received: weights=mnist": {"weights": "mnist"},
    "the network as it is registered. .*'depth': 4": {"model_options": {"depth": 4}},
}


@pytest.mark.parametrize("message", PARTIAL)
def test_a_row_is_of_the_network_and_its_recipe_as_they_are(message, whole, tmp_path):
    with pytest.raises(ValueError, match=message):
        accuracy.accuracy_row([altered(whole, tmp_path / "other", **PARTIAL[message])])


def test_a_command_names_the_weights_it_started_from(whole, tmp_path):
    started = altered(whole, tmp_path / "started", weights="mnist", freeze=True)
    assert curves.curve_rows(started)[0]["command"].count(" --weights mnist --freeze ") == 1


@pytest.fixture
def unfinished(run, tmp_path):
    """The folder of a run after its first epoch."""
    folder = training.RunFolder(tmp_path)
    settings = training.RunFolder(run).read_json()
    del settings["results"]
    folder.write_json(settings)
    folder.history.write_text("epoch,accuracy,loss,val_accuracy,val_loss\n0,0.5,2.0,0.4,2.1\n")
    return folder


def test_a_run_that_diverged_ends_so(unfinished):
    with pytest.raises(SystemExit, match="has not ended"):
        curves.curve_rows(unfinished.path)
    unfinished.write_json({**unfinished.read_json(), "diverged": 1})
    (row,) = curves.curve_rows(unfinished.path)
    assert (row["epoch"], row["loss"], row["val_accuracy"]) == (1, "diverged", "diverged")


def test_layers_as_rows():
    keras.utils.set_random_seed(0)
    network = models.thin_mlp(depth=5, units=6, input_shape=(8,), transform_bias=-2.0)
    x = np.random.default_rng(0).standard_normal((30, 8)).astype("float32")
    whole, *layers = gates.layer_rows(network, x, np.arange(30) % 10)
    network.compile(loss="sparse_categorical_crossentropy")
    loss = network.evaluate(x, np.arange(30) % 10, verbose=0)
    assert whole["layer"] == 0 and whole["lesion_loss"] == pytest.approx(loss, rel=1e-5)
    assert [row["layer"] for row in layers] == [1, 2, 3, 4]
    assert layers[0]["change"] == "" and all(row["change"] > 0 for row in layers[1:])
    for row in layers:
        assert (row["start"], row["mean_bias"], row["below_start"]) == (-2, -2, 0)
        assert 0 < row["mean_gate"] < 1 and row["routing_0"] > 0


def test_whole_runs_are_those_on_all_training_images(monkeypatch):
    def run(validation, accuracy):
        flags = "--epochs 100 --batch-size 10 --learning-rate 1 --dtype-policy float32"
        command = f"highway-keras fit highway-a {flags} --set validation={validation}"
        return [{"model": "highway-a", "command": command, "accuracy": accuracy}]

    curves = run(0.05, "0.2")
    part = run(0.0, "0.3")[0]
    curves.append({**part, "command": part["command"] + " --limit 10"})
    monkeypatch.setattr(results, "read", lambda name: curves)
    assert numbers.whole_runs("highway-a") == [] and zoo.training_accuracy("highway-a", 1) == NONE
    curves += run(0.0, "0.925")
    assert zoo.training_accuracy("highway-a", 1) == "92.5"
    command = curves[-1]["command"]
    curves += [{**run(0.0, "0.895")[0], "command": f"{command} --seed 1"}]
    assert len(numbers.whole_runs("highway-a")) == 2
    assert zoo.training_accuracy("highway-a", 1) == "91.0"
    curves += [{**run(0.0, "0.9")[0], "command": command.replace("100", "50") + " --seed 2"}]
    with pytest.raises(LookupError, match="2 settings of highway-a, not one"):
        numbers.whole_runs("highway-a")


def test_layers_of_a_convolutional_network_as_rows(tmp_path):
    network = models.mnist_highway(2, input_shape=(12, 12, 1), transform_bias=-2.0)
    x = np.random.default_rng(0).standard_normal((30, 12, 12, 1)).astype("float32")
    found = analysis.analyze(network, x, np.arange(30) % 10, tmp_path, verbose=0)
    whole, *rows = layers.layer_rows(found, [-2.0] * 8)
    assert (whole["layer"], whole["lesion_error"]) == (0, found.lesions.intact_error)
    assert [row["name"] for row in rows] == list(found.lesions.layers)
    assert [row["lesion_error"] for row in rows] == found.lesions.error.tolist()
    for row in rows:
        assert (row["start"], row["mean_bias"]) == (-2, -2) and 0 < row["mean_gate"] < 1


def test_the_tool_of_layers_writes_rows_and_a_picture(monkeypatch, tmp_path, images):
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    monkeypatch.setattr(layers, "FILE", tmp_path / "layers.csv")
    monkeypatch.setattr(data, "load", lambda *arguments: images)
    monkeypatch.setattr(sys, "argv", ["layers", "thin-highway-10", "--limit", "10"])
    layers.main()
    found = read(tmp_path / "layers.csv")
    assert [row["layer"] for row in found] == [str(layer) for layer in range(10)]  # 0: intact
    assert {(row["seed"], row["samples"]) for row in found} == {("0", "10")}
    assert matplotlib.image.imread(tmp_path / "docs" / "figure4-thin-highway-10.png").std() > 0.01


@pytest.mark.slow
def test_exports_as_rows(monkeypatch, tmp_path, images):
    kept = dataclasses.replace(exports.FORMATS["keras"], quantizations=())
    monkeypatch.setattr(exports, "FORMATS", {"keras": kept})
    [row] = exports.export_rows("thin-highway-10", "mnist", tmp_path, images)
    assert (row["model"], row["format"], row["quantize"]) == ("thin-highway-10", "keras", "")
    assert row["bytes"] > 0 and row["images"] == len(images.x_test)
    assert row["accuracy"] == row["keras_accuracy"] and row["difference"] < 1e-5


def test_an_export_whose_package_is_missing_keeps_the_others(monkeypatch, tmp_path, capsys):
    def export(file, path, format, *arguments):
        if format == "onnx":
            raise ImportError("pip install onnx")
        return Exported(path, 1)

    monkeypatch.setattr(exports, "export", export)
    rows = exports.export_rows("thin-highway-50", "mnist", tmp_path, None)
    assert {row["format"] for row in rows} == set(exports.FORMATS) - {"onnx"}
    assert "without onnx: pip install onnx" in capsys.readouterr().err


def test_the_command_of_an_export_names_its_weights(monkeypatch, tmp_path, images):
    monkeypatch.setattr(exports, "FILE", tmp_path / "export.csv")
    monkeypatch.setattr(data, "load", lambda *arguments, **options: images)
    monkeypatch.setattr(exports, "export", lambda file, path, *arguments: Exported(path, 1))
    for name, weights in (("thin-highway-50", "mnist"), ("highway-a", "cifar10")):
        monkeypatch.setattr(sys, "argv", ["exports", name, "--weights", weights])
        exports.main()
    assert {row["command"] for row in read(tmp_path / "export.csv")} == {
        "python -m tools.rows exports thin-highway-50",
        "python -m tools.rows exports highway-a --weights cifar10",
    }


@pytest.fixture
def images():
    """Noise in the shape of MNIST."""

    x = np.random.default_rng(0).integers(0, 256, (30, 28, 28, 1)).astype("uint8")
    y = np.arange(30) % 10
    parts = (x[:10], y[:10], x[10:20], y[10:20], x[20:], y[20:])
    return data.Dataset("mnist", *parts, tuple("0123456789"))


def test_conversions_as_rows():
    found = list(conversions.differences())
    assert len(found) == 8 and all(0 < difference < 1e-5 for _, _, difference in found)


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_comes_out_of_rows(name, tmp_path):
    write_figure(tmp_path / name, pictures.PICTURES[name]())
    assert matplotlib.image.imread(tmp_path / name).std() > 0.01


# Numbers


def test_what_has_no_row_says_so(monkeypatch):
    monkeypatch.setattr(results, "read", lambda name: [])
    assert numbers.number("speed", "ms", ".1f", case="a")() == numbers.NONE
    assert zoo.beside_the_logs() == numbers.NONE
    assert zoo.of_runs("highway-a", "modern") == ""


def test_several_rows_are_no_number(monkeypatch):
    monkeypatch.setattr(results, "read", lambda name: [{"case": "a", "ms": "1"}] * 2)
    with pytest.raises(LookupError, match=r"2 rows of speed\.csv fit \{'case': 'a'\}, not one"):
        numbers.number("speed", "ms", ".1f", case="a")()
