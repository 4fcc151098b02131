"""What strangers write is data: nothing in their files runs, and no terminal obeys their names."""

import csv
import pickle
import re

import keras
import numpy as np
import pytest
from picture_folders import little

from highway_keras import data, models
from highway_keras.cli import command as cli
from highway_keras.util import files, messages

# Spellings of `keras.utils.get_file`, which would fetch a file while the network predicts.
DOWNLOADS = {
    "a function": ("keras.utils", "function", "get_file"),
    "a class": ("keras.utils", "get_file", {}),
    "where it is defined": ("keras.src.utils.file_utils", "function", "get_file"),
    "TensorFlow's face": ("keras._tf_keras.keras.utils", "function", "get_file"),
    "of another package": ("os", "function", "system"),
}
EVIL = "\x1b]0;owned\x07\u202e\n=1+1"


def save_with_lambda(path, function):
    """Save a network whose Lambda calls `function` with a file of this machine."""
    secret = path.with_name("secret.txt")
    secret.write_text("secret")
    module, kind, name = function
    stored = {"module": module, "class_name": kind, "config": name, "registered_name": kind}
    where = {"origin": secret.as_uri(), "cache_dir": str(path.with_name("stolen"))}
    layer = keras.layers.Lambda(lambda x: x)
    layer.get_config = lambda: {"name": "evil", "function": stored, "arguments": where}
    little(layer).save(path)


@pytest.mark.parametrize("spelling", DOWNLOADS)
def test_a_network_cannot_download(spelling, tmp_path, capsys):
    path, stolen = tmp_path / "evil.keras", tmp_path / "stolen"
    stolen.mkdir()  # else Keras would download to another folder
    save_with_lambda(path, DOWNLOADS[spelling])
    with pytest.raises(ValueError, match=r"evil.keras") as error:
        models.load(path)
    by_keras = str(error.value.__cause__)  # for what it calls, not for a mistake in the file
    assert re.search("not deserialize .*get_file|not locate function 'system'", by_keras)
    with pytest.raises(ValueError, match=r"evil.keras"):
        models.create("thin-highway-10", weights=path)
    assert cli.main(["evaluate", str(path), "--dataset", "digits"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "evil.keras" in line
    assert not any(stolen.iterdir())


def test_the_python_code_of_a_lambda_is_not_run(tmp_path):
    marker = tmp_path / "marker"
    file = str(marker)  # which Keras must be able to save
    code = keras.layers.Lambda(lambda x: (open(file, "w"), x)[1], output_shape=(64,))
    little(code).save(tmp_path / "code.keras")
    marker.unlink(missing_ok=True)
    with pytest.raises(ValueError, match=r"code.keras"):
        models.load(tmp_path / "code.keras")
    assert not marker.exists()


class Bomb:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


def test_the_pickle_in_a_data_set_is_not_read(tmp_path):
    bomb = np.array([Bomb(tmp_path / "marker")], object)
    np.savez(tmp_path / "bomb.npz", x_train=bomb, y_train=bomb, x_test=bomb, y_test=bomb)
    (tmp_path / "plain.npz").write_bytes(pickle.dumps(Bomb(tmp_path / "marker")))
    for name in ("bomb.npz", "plain.npz"):
        with pytest.raises(data.DataError):
            data.load(str(tmp_path / name))
    assert not (tmp_path / "marker").exists()


# Names on a terminal, in CSV files and in pictures


def test_what_a_terminal_obeys_is_escaped():
    assert messages.printable(EVIL) == r"\x1b]0;owned\x07\u202e\n=1+1"
    assert messages.printable("é 数 ± \udcff") == r"é 数 ± \udcff"
    assert messages.printable("9.41\u202fPM\u00a0\u2028") == "9.41\u202fPM\u00a0\\u2028"


def test_formulas_are_disarmed(tmp_path):
    for value in ("=1+1", "+x", "-x", "@SUM(A1)", "=cmd|' /C calc'!A0"):
        assert messages.spreadsheet_text(value) == "'" + value
    for value in ("-1.5", "+3", "1e-3", "-inf", "a=b", "", 3, -2.5, None):
        assert messages.spreadsheet_text(value) == value
    files.write_rows(tmp_path / "rows.csv", [{"name": "=1+1", "loss": -0.5, "text": EVIL}])
    lines = (tmp_path / "rows.csv").read_text("utf-8").splitlines()
    assert [*csv.reader(lines)][1] == ["'=1+1", "-0.5", messages.printable(EVIL)]
