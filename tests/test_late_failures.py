"""What fails after the work is done costs nothing but itself."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from highway_keras import analysis, data, models, training
from highway_keras.analysis import plots
from highway_keras.cli import command as cli
from highway_keras.io import optional_picture
from highway_keras.messages import PictureWarning
from highway_keras.paper import figure1, tables
from highway_keras.paper.searches import Search
from highway_keras.training import trainer

QUICK = {"epochs": 1, "limit": 40, "verbose": 0}


def broken(*arguments, **options):
    raise RuntimeError("no fonts\nhere")


def test_a_failed_picture_is_a_warning():
    with pytest.warns(PictureWarning, match=r"^a.png could not be drawn: no fonts here$"):
        with optional_picture("a.png"):
            broken()


def test_a_data_set_with_dollars_stops_nothing(tmp_path):
    digits = data.load("digits", validation=0, limit=40)
    path = tmp_path / "cost_$x^{$.npz"
    arrays = {name: getattr(digits, name) for name in ("x_train", "y_train", "x_test", "y_test")}
    np.savez(path, **arrays)
    options = {"out": tmp_path / "run", "model_options": {"depth": 2}}
    result = training.fit("thin-highway-10", path, **options, **QUICK)
    assert result.folder.has_ended and result.folder.curves.stat().st_size > 1000


def test_results_are_there_when_the_curves_cannot_be_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(plots, "plot_losses", broken)
    command = "fit thin-highway-10 --dataset digits --epochs 1 --limit 40 --model-set depth=2 --out"
    assert cli.main([*command.split(), str(tmp_path / "run")]) == 0
    printed = capsys.readouterr()
    assert "test accuracy" in printed.out
    (line,) = printed.err.splitlines()
    assert line.startswith("highway-keras: ") and "curves.png could not be drawn" in line
    assert "results" in json.loads((tmp_path / "run" / "run.json").read_text())


def test_an_analysis_without_a_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "plot_routing", broken)
    model = models.thin_mlp(depth=3, input_shape=(8,), classes=3)
    x, y = np.zeros((6, 8), "float32"), np.arange(6) % 3
    with pytest.warns(PictureWarning, match="figure3.png could not be drawn"):
        found = analysis.analyze(model, x, y, tmp_path, verbose=0)
    assert (tmp_path / "layers.csv").exists() and (tmp_path / "figure4.png").exists()
    page = found.page.read_text(encoding="utf-8")
    assert page.count("data:image/png") == 2 and "This picture could not be drawn." in page


def test_classes_with_dollars_are_drawn(tmp_path):
    model = models.thin_mlp(depth=3, input_shape=(8,), classes=3)
    x, y = np.zeros((6, 8), "float32"), np.arange(6) % 3
    names = ["$", "a$b$", r"$\frac{$"]
    analysis.analyze(model, x, y, tmp_path, class_names=names, verbose=0)
    assert (tmp_path / "figure3.png").stat().st_size > 1000


@pytest.mark.parametrize("names", [["a"], list("abcd")])
def test_class_names_are_checked_before_the_work(names, tmp_path, monkeypatch):
    monkeypatch.setattr("highway_keras.analysis.lesioning.lesions", broken)
    model = models.thin_mlp(depth=3, input_shape=(8,), classes=3)
    with pytest.raises(ValueError, match=f"`class_names` must name the 3 .* {len(names)} names"):
        analysis.analyze(model, np.zeros((3, 8)), np.arange(3), tmp_path, class_names=names)


@pytest.mark.parametrize("names", ["abc", {"a", "b", "c"}, dict.fromkeys("abc"), [0, 1, 2], 5])
def test_class_names_are_strings_in_their_order(names, tmp_path):
    model = models.thin_mlp(depth=3, input_shape=(8,), classes=3)
    with pytest.raises(TypeError, match=r"`class_names` must be a list of strings, .* Received: "):
        analysis.analyze(model, np.zeros((3, 8)), np.arange(3), tmp_path, class_names=names)


def test_a_routing_plot_names_its_classes():
    by_class = analysis.NamedArray(
        np.zeros((2, 3, 4)), {"class": (0, 1), "layer": ("a", "b", "c"), "unit": range(4)}
    )
    with pytest.raises(ValueError, match=r"`names` must name all classes, .* Received: 1 names"):
        plots.plot_routing(by_class, names=["a"])


def test_a_table_without_its_picture(tmp_path, monkeypatch):
    def fit(*arguments, out, resume, **options):
        folder = training.RunFolder(out)
        folder.path.mkdir(parents=True)
        results = {"test_accuracy": 0.9, "test_loss": 0.3, "best_epoch": 1}
        settings = {"dataset": "mnist", "limit": None, "recipe": {"epochs": 1}}
        folder.write_json({**settings, "seed": options["seed"], "results": results})

    monkeypatch.setattr(trainer, "fit", fit)
    monkeypatch.setattr(tables, "draw_table", broken)
    with pytest.warns(PictureWarning, match=r"table1.png could not be drawn"):
        rows = tables.reproduce_table("table1", runs=1, out=tmp_path, verbose=0)
    assert len(rows) == 2 and (tmp_path / "table1.csv").exists()


def test_figure_1_without_its_pictures(tmp_path, monkeypatch):
    search = Search("highway", 2, {}, [], training.RunFolder(tmp_path / "search"))
    monkeypatch.setattr(figure1, "read_searches", lambda folder, *which: [search])
    for name in ("curve_rows", "top_rows", "bias_rows", "trial_rows"):
        monkeypatch.setattr(figure1, name, lambda searches: [{"depth": 2, "kind": "highway"}])
    monkeypatch.setattr(plots, "plot_figure1", broken)
    monkeypatch.setattr(plots, "plot_biases", broken)
    with pytest.warns(PictureWarning, match=r"figure1.png could not be drawn"):
        figure1.draw_figure1("searches", tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv"}
    assert (tmp_path / "transform-bias.csv").exists()


@pytest.mark.parametrize("runs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_terminal_that_lacks_a_letter_ends_no_run(runs, tmp_path):
    """`±` and a name in another script, where only ASCII can be printed."""
    script = "import sys; from highway_keras.cli.command import main; sys.exit(main())"
    command = "fit thin-plain-10 --dataset digits --epochs 1 --limit 40 --model-set depth=2"
    done = subprocess.run(
        [sys.executable, "-c", script, *command.split(), "--runs", str(runs), "--out", "läufe"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert b"saved l\\xe4ufe" in done.stdout and (runs == 1 or b"\\xb1" in done.stdout)
