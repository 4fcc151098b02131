"""Names from files and users, on a terminal, in CSV files and in pictures."""

import csv
import json

import keras
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from highway_keras import analysis, io, messages
from highway_keras.cli import command as cli

EVIL = "\x1b]0;owned\x07\u202e\n=1+1"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (EVIL, r"\x1b]0;owned\x07\u202e\n=1+1"),
        ("é 数 ±", "é 数 ±"),
        ("\udcff", r"\udcff"),  # a byte of a file name that is not UTF-8
        (3, "3"),
    ],
)
def test_what_a_terminal_obeys_is_escaped(text, shown):
    assert messages.printable(text) == shown


@pytest.mark.parametrize("value", ["=1+1", "+x", "-x", "@SUM(A1)", "=cmd|' /C calc'!A0"])
def test_formulas_are_disarmed(value):
    assert messages.cell(value) == "'" + value


@pytest.mark.parametrize("value", ["-1.5", "+3", "1e-3", "-inf", "a=b", "", 3, -2.5, None])
def test_other_cells_stay(value):
    assert messages.cell(value) == value


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("name", ["$", "a$b$c", "$x^{$", r"\$", "\x00", "\udcff", "名", 500 * "x"])
def test_any_name_can_be_drawn_and_reads_as_it_is(name, tmp_path):
    figure = Figure()
    label = figure.subplots().set_title(messages.in_picture(name))
    figure.savefig(tmp_path / "name.png")
    drawn, is_mathematics = label._preprocess_math(label.get_text())
    assert not is_mathematics
    assert drawn == messages.printable(name) or (len(name) == 500 and len(drawn) == 60)


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_csv_files(tmp_path):
    io.write_rows(tmp_path / "rows.csv", [{"name": "=1+1", "loss": -0.5, "text": EVIL}])
    assert rows_of(tmp_path / "rows.csv")[1] == ["'=1+1", "-0.5", messages.printable(EVIL)]
    gates = analysis.NamedArray(np.ones((1, 1)), {"layer": ("=1+1",), "unit": (0,)})
    gates.to_csv(tmp_path / "gates.csv")
    assert rows_of(tmp_path / "gates.csv")[1] == ["'=1+1", "0", "1.0"]


def test_the_command_prints_no_control_characters(tmp_path, capsys):
    layers = [keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(2, "softmax")]
    keras.Sequential(layers).save(tmp_path / "best.keras")
    settings = {"dataset": "digits", "class_names": [EVIL, EVIL]}
    (tmp_path / "run.json").write_text(json.dumps(settings))
    picture = tmp_path / "\x1b[2J.png"
    Image.new("L", (8, 8)).save(picture)
    assert cli.main(["predict", str(tmp_path / "best.keras"), str(picture)]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and len(printed.splitlines()) == 2
    assert messages.printable(EVIL) in printed and r"\x1b[2J.png" in printed
    assert cli.main(["fit", "\x1b[2J"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "\x1b" not in line
