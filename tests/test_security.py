"""Files from strangers: what they hold is data, and nothing in them runs."""

import configparser
import json
import pathlib
import pickle
import re
import zipfile

import keras
import numpy as np
import pytest

from highway_keras import data, export, models, training
from highway_keras.cli import command as cli

ROOT = pathlib.Path(__file__).parents[1]
# Spellings of `keras.utils.get_file`, which would fetch a file while the network predicts.
DOWNLOADS = {
    "a function": ("keras.utils", "function", "get_file"),
    "a class": ("keras.utils", "get_file", {}),
    "where it is defined": ("keras.src.utils.file_utils", "function", "get_file"),
    "TensorFlow's face": ("keras._tf_keras.keras.utils", "function", "get_file"),
    "a built-in": ("builtins", "function", "get_file"),
    "of another package": ("os", "function", "system"),
}


def with_lambda(path, function, tmp_path):
    """A `.keras` file whose Lambda calls `function` with a file of this machine."""
    inputs = keras.Input((8, 8, 1))
    layers = [inputs, keras.layers.Rescaling(1.0), keras.layers.Flatten(), keras.layers.Dense(4)]
    keras.Sequential(layers).save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(parts["config.json"])
    module, kind, name = function
    (tmp_path / "secret.txt").write_text("secret")
    stored = {"module": module, "class_name": kind, "config": name, "registered_name": kind}
    where = {"origin": (tmp_path / "secret.txt").as_uri(), "cache_dir": str(tmp_path / "stolen")}
    config["config"]["layers"][1] = {
        "module": "keras.layers",
        "class_name": "Lambda",
        "config": {"name": "evil", "function": stored, "arguments": where},
        "registered_name": None,
    }
    parts["config.json"] = json.dumps(config).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("spelling", DOWNLOADS)
def test_a_network_cannot_download(spelling, tmp_path, capsys):
    path = tmp_path / "evil.keras"
    with_lambda(path, DOWNLOADS[spelling], tmp_path)
    with pytest.raises(ValueError, match=r"evil.keras cannot be loaded as a Keras model"):
        training.SavedNetwork(path)
    with pytest.raises(ValueError, match="does not fit"):
        models.create("thin-highway-10", weights=path)
    for command in ("evaluate", "analyze"):
        assert cli.main([command, str(path), "--dataset", "digits"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "cannot be loaded as a Keras model" in line
    with pytest.raises(ValueError, match="cannot be loaded as a Keras model"):
        export.export(path, tmp_path / "out.keras", "keras", dataset="digits")
    assert not (tmp_path / "stolen").exists()


def test_the_python_code_of_a_lambda_is_not_run(tmp_path):
    marker = str(tmp_path / "marker")
    layer = keras.layers.Lambda(lambda x: (open(marker, "w"), x)[1], output_shape=(8, 8, 1))
    layers = [keras.Input((8, 8, 1)), layer, keras.layers.Flatten(), keras.layers.Dense(4)]
    keras.Sequential(layers).save(tmp_path / "code.keras")
    (tmp_path / "marker").unlink(missing_ok=True)
    with pytest.raises(ValueError, match=r"code.keras cannot be loaded as a Keras model"):
        training.SavedNetwork(tmp_path / "code.keras")
    assert not (tmp_path / "marker").exists()


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


def test_the_policy_names_kinds_of_files_and_the_least_keras():
    """3.10.0 loads four of the networks above; 3.11.0 reads local files for them."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    (keras_needed,) = re.findall("^keras>=(.*)", setup["options"]["install_requires"], re.M)
    assert tuple(map(int, keras_needed.split("."))) >= (3, 12)
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for kind in (".keras", ".npz", ".weights.h5", "run.json", "PNG", "JPEG", keras_needed):
        assert kind in policy
