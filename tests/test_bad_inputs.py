"""What users get wrong: each mistake is one line that names it, and exit code 2."""

import os
import re
import shlex
import shutil
import zipfile

import keras
import numpy as np
import pytest
from helpers import run
from PIL import Image

from highway_keras import training


def write_data(w):
    x, y = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), "uint8"), np.arange(40) % 4
    np.savez(w / "good.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    (w / "cut.npz").write_bytes((w / "good.npz").read_bytes()[:2000])
    Image.fromarray(x[0, ..., 0]).save(w / "picture.png")
    (w / "cut.png").write_bytes((w / "picture.png").read_bytes()[:60])


def write_networks(w):
    a, b = keras.Input((8, 8, 1)), keras.Input((8, 8, 1))
    flat = keras.layers.Flatten()(keras.layers.Add()([a, b]))
    keras.Model([a, b], keras.layers.Dense(4)(flat)).save(w / "two.keras")
    keras.Sequential([a, keras.layers.Conv2D(4, 3)]).save(w / "maps.keras")
    with pytest.warns(UserWarning, match="not yet been built"):
        keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(4)]).save(w / "unbuilt.keras")
    bias = keras.initializers.Constant(320)
    top = keras.layers.Dense(4, kernel_initializer="zeros", bias_initializer=bias)
    keras.Sequential([a, keras.layers.Flatten(), top], name="logits").save(w / "logits.keras")
    network = (w / "logits.keras").read_bytes()
    (w / "cut.keras").write_bytes(network[:2000])
    (w / "lost.keras").write_bytes(network[:500] + network[900:])


def write_runs(w):
    options = {"epochs": 1, "limit": 40, "model_options": {"depth": 2}, "verbose": 0}
    training.fit("thin-highway-10", "digits", out=w / "run", **options)
    for name, settings in {
        "bad-settings": '{"model": "thin',
        "odd-dataset": '{"dataset": 5}',
        "few-names": '{"class_names": ["a", "b"]}',
    }.items():
        shutil.copytree(w / "run", w / name)
        (w / name / "run.json").write_text(settings)
        with zipfile.ZipFile(w / name / "best.keras", "a") as archive:
            archive.comment = b""  # else run.json is ignored as another run's
    network = (w / "run" / "best.keras").read_bytes()
    (w / "lonely.keras").write_bytes(network)
    shutil.copytree(w / "run", w / "spoilt")
    (w / "spoilt" / "best.keras").write_bytes(network.replace(b"PK\1\2", b"PK\0\0"))


def write_files(w):
    write_data(w)
    write_networks(w)
    write_runs(w)
    (w / "file").write_text("a regular file")
    (w / "empty").mkdir()
    os.mkfifo(w / "fifo")


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    """A folder full of damaged and unsuitable files."""
    w = tmp_path_factory.mktemp("bad")
    write_files(w)
    return w


# What is typed after `highway-keras`, and what the line must name.
FIT = "fit thin-highway-10 --dataset digits --epochs 1 --limit 40 --out new"
RESUME = f"{FIT} --model-set depth=2 --resume"
RUN = "run/best.keras"
COMMANDS = {
    "tarin": "'tarin'",
    "search --dept 10": "search --help",
    # Names.
    "fit thin-plain-10 --dataset minst": "Did you mean 'mnist'",
    f"{FIT} --weights none.h5": "--weights",
    f"{FIT} --weights spoilt/best.keras": "spoilt/best.keras",
    "evaluate thin-highway-10": "--weights mnist",
    "evaluate fitnet-a --weights mnist": "--weights",
    f"compact {RUN} --budget 1 --layers 1 --out new": "not allowed with",
    f"{FIT} --skip-broken": "--skip-broken",
    f"evaluate {RUN} --weights mnist": "--weights",
    # Numbers.
    f"{FIT} --seed 2147483647 --runs 2": "--seed",
    f"{FIT} --resume --runs 2 --out run": "Name another folder",
    "fit file": "A saved network is a .keras file",
    f"predict {RUN} picture.png --top 11": "--top",
    # Fields of the recipe, and arguments of the network.
    f"{FIT} --set momentun=0.9": "Did you mean 'momentum'",
    f"{FIT} --set transform_bias=-3": "--model-set",
    f"{FIT} --model-set bias=-3": "transform_bias",
    f"{FIT} --set epochs=3": "'epochs'",
    f"{FIT} --model-set weights=mnist": "--model-set",
    f"{FIT} --model-set depth={30 * '9'}": "depth",
    # What an empty variable of the shell leaves.
    f"{FIT} --out ''": "--out: expected text, received ''. See highway-keras fit --help",
    f"predict {RUN} ''": "IMAGE",
    # Data and folders.
    "fit thin-plain-10 --dataset cut.npz": "cut.npz",
    "fit mnist-highway-16 --dataset digits --out new": "(8, 8",
    f"evaluate {RUN} --dataset ~nobody/none": "~nobody/none",
    f"{FIT} --out run": "--resume",
    f"{RESUME} --out bad-settings": "run.json",
    f"{FIT} --out file": "--out",
    # Saved networks.
    "fit none.keras": "MODEL none.keras",
    "fit empty": "MODEL empty",
    "evaluate file": "file",
    "evaluate cut.keras": "cut.keras",
    "evaluate lost.keras": "lost.keras",
    "evaluate fifo": "fifo",
    "evaluate two.keras": "two.keras",
    "evaluate maps.keras": "maps.keras",
    "evaluate unbuilt.keras": "unbuilt.keras",
    "evaluate logits.keras --dataset good.npz": "'logits'",
    "evaluate lonely.keras": "--dataset",
    "evaluate odd-dataset/best.keras": "run.json",
    f"evaluate {RUN} --dataset good.npz": "10 classes",
    f"export {RUN} --out 'served [1]'": "--out",
    "reproduce gradients --seed 7": "--seed",  # not `--seeds`, which would be seven of them
    # Pictures.
    "predict few-names/best.keras picture.png": "class_names",
    "predict logits.keras picture.png": "320",
    f"predict {RUN} empty": "empty",
    f"predict {RUN} '*.gif'": "*.gif",
    f"predict {RUN} 'nowhere/**'": "nowhere",
}


@pytest.mark.parametrize(("command", "named"), COMMANDS.items(), ids=COMMANDS)
def test_bad_commands(command, named, w, capfd, monkeypatch):
    monkeypatch.chdir(w)
    before = contents(w)
    code = run(*shlex.split(command))
    printed = capfd.readouterr()
    assert code == 2 and "Epoch 1" not in printed.out
    (line,) = printed.err.splitlines()
    assert named in re.fullmatch(r"highway-keras( [\w-]+)*: (.+)", line)[2]
    assert contents(w) == before


def contents(folder):
    """Every path, of files with the time at which they were last written."""
    return {p: p.is_file() and p.stat().st_mtime_ns for p in folder.rglob("*")}
