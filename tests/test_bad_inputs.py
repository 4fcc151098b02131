"""What users get wrong: each mistake is one line that names it, and exit code 2."""

import os
import re
import shlex
import shutil

import keras
import numpy as np
import pytest
from PIL import Image

from highway_keras import models, training
from highway_keras.cli import command as cli


def arrays(shape=(8, 8, 1)):
    x = np.random.default_rng(0).integers(0, 256, (40, *shape), "uint8")
    y = np.arange(40) % 4
    return {"x_train": x, "y_train": y, "x_test": x, "y_test": y}


def write_data(w):
    good = arrays()
    for name, changes in {
        "good": {},
        "rgb": arrays((8, 8, 3)),
        "float": {"x_train": good["x_train"] / 255},
        "pickle": {"y_train": good["y_train"].astype(object)},
    }.items():
        np.savez(w / f"{name}.npz", **{**good, **changes})
    (w / "cut.npz").write_bytes((w / "good.npz").read_bytes()[:2000])


def write_networks(w):
    a, b, text = keras.Input((8, 8, 1)), keras.Input((8, 8, 1)), keras.Input((20,))
    flat = keras.layers.Flatten()(keras.layers.Add()([a, b]))
    keras.Model([a, b], keras.layers.Dense(4)(flat)).save(w / "two.keras")
    keras.Model(text, keras.layers.Dense(4)(text)).save(w / "text.keras")
    keras.Sequential([a, keras.layers.Conv2D(4, 3)]).save(w / "maps.keras")
    with pytest.warns(UserWarning, match="not yet been built"):
        keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(4)]).save(w / "unbuilt.keras")
    for name, bias in (("logits", 319.6), ("nan", np.nan)):
        top = [keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(4)]
        model = keras.Sequential(top, name=name)
        model.layers[-1].bias.assign([bias, 0, 0, 0])
        model.layers[-1].kernel.assign(np.zeros((64, 4)))
        model.save(w / f"{name}.keras")
    network = (w / "logits.keras").read_bytes()
    (w / "cut.keras").write_bytes(network[:2000])
    (w / "flipped.keras").write_bytes(network.replace(b"\x89HDF", b"\x88HDF"))
    (w / "lost.keras").write_bytes(network[:500] + network[900:])
    (w / "prose.keras").write_text("no network")
    (w / "network.h5").write_bytes(b"")


def write_runs(w):
    options = {"epochs": 1, "limit": 40, "model_options": {"depth": 2}, "verbose": 0}
    training.fit("thin-highway-10", "digits", out=w / "run", **options)
    for name, file, content in [
        ("bad-settings", "run.json", b'{"model": "thin'),
        ("other-settings", "run.json", b"3"),
        ("odd-dataset", "run.json", b'{"dataset": 5}'),
        ("few-names", "run.json", b'{"class_names": ["a", "b"]}'),
        ("odd-names", "run.json", b'{"class_names": 5}'),
    ]:
        shutil.copytree(w / "run", w / name)
        (w / name / file).write_bytes(content)
    (w / "lonely.keras").write_bytes((w / "run" / "best.keras").read_bytes())
    models.thin_mlp(4).save_weights(w / "deep.weights.h5")


def write_files(w, picture):
    write_data(w)
    write_networks(w)
    write_runs(w)
    picture.save(w / "picture.png")
    (w / "cut.png").write_bytes((w / "picture.png").read_bytes()[:60])
    (w / "file").write_text("a regular file")
    (w / "empty").mkdir()
    os.mkfifo(w / "fifo")


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    """A folder full of damaged and unsuitable files."""
    w = tmp_path_factory.mktemp("bad")
    write_files(w, Image.fromarray(arrays()["x_train"][0, ..., 0]))
    return w


# What is typed after `highway-keras`, and what the line must name. `FIT`, `RUN` and so on are
# written out below.
COMMANDS = {
    "the command itself": {
        "": "COMMAND",
        "tarin": "'tarin'",
        "FIT --epohcs 3": "--epohcs 3",
        "predict RUN": "IMAGE",
        "reproduce table4": "'table4'",
        "reproduce table1 --model highway-b --out new": "'highway-b'",
        "predict RUN {w}/picture.png --json --csv": "--csv",
    },
    "names": {
        "fit thin-higway-10": "Did you mean 'thin-highway-10'",
        "fit thin-plain-10 --dataset minst": "Did you mean 'mnist'",
        "FIT --recipe slow": "--recipe 'slow'",
        "FIT --weights none.h5": "--weights",
        "FIT --weights mnist": "--weights does not fit",
        "FIT --weights mnist --model-set weights=mnist": "--weights is given twice",
        "FIT --freeze": "--freeze",
        "evaluate thin-highway-10": "--weights mnist",
        "evaluate fitnet-a --weights mnist": "one of 'cifar10'",
        "evaluate RUN --weights mnist": "--weights",
    },
    "numbers": {
        "FIT --epochs 0": "--epochs 0",
        "FIT --learning-rate nan": "--learning-rate nan",
        "FIT --seed 4294967296": "--seed",
        "FIT --seed 2147483647 --runs 2": "--runs",
        "FIT --input-shape 8 8 1": "--input-shape",
        "reproduce table1 --seed 2147483647 --runs 2 --out new": "--runs",
        "SEARCH --trials 0": "trials",
        "SEARCH --depth 1": "depth=1",
        "predict RUN {w}/picture.png --top 11": "--top",
    },
    "recipes": {
        "FIT --set momentun=0.9": "momentun",
        "FIT --set schedule=[1]": "schedule",
        "FIT --set momentum=0.5 decay=0.9 momentum=0.5": "momentum is given twice",
        "FIT --set epochs=3": "--epochs is given twice",
    },
    "factories": {
        "FIT --model-set kind=dense": "kind",
        "FIT --model-set weights={w}/deep.weights.h5": "does not fit",
        "FIT --model-set weights=5": "weights",
        "FIT --model-set 'weights={1}'": "--model-set",
        f"FIT --model-set depth={30 * '9'}": "depth",
        "FIT --model-set include_top=False": "10 ",
        "FIT --model-set classifier_activation=None": "softmax",
    },
    "what an empty variable of the shell leaves": {
        "fit thin-plain-10 --dataset ''": "--dataset",
        "FIT --out ''": "--out",
        "predict RUN ''": "images",
    },
    "data": {
        "fit thin-plain-10 --dataset {w}/empty": "{w}/empty",
        "fit thin-plain-10 --dataset {w}/none.npz": "none.npz",
        "fit thin-plain-10 --dataset {w}/cut.npz": "cut.npz",
        "fit mnist-highway-16 --dataset digits --out new": "(8, 8",
        "evaluate RUN --dataset ~nobody/none": "~nobody/none",
        "FIT --dataset {w}/epochs=1.npz": "epochs=1.npz",
    },
    "folders": {
        "FIT --out {w}/file": "--out",
        "FIT --out {w}/run": "--resume",
        "RESUME --seed 3 --out {w}/run": "seed: 0",
        "RESUME --out {w}/bad-settings": "run.json",
        "RESUME --out {w}/other-settings": "run.json",
        "SEARCH --out {w}/file": "--out",
    },
    "saved networks": {
        "evaluate {w}/empty": "empty",
        "evaluate {w}/network.h5": "network.h5",
        "evaluate {w}/cut.keras": "cut.keras",
        "evaluate {w}/lost.keras": "lost.keras",
        "evaluate {w}/fifo": "fifo",
        "evaluate {w}/two.keras": "two.keras",
        "evaluate {w}/maps.keras": "maps.keras",
        "evaluate {w}/unbuilt.keras": "unbuilt.keras",
        "evaluate {w}/logits.keras --dataset {w}/good.npz": "'logits'",
        "evaluate {w}/nan.keras --dataset {w}/good.npz": "nan",
        "evaluate {w}/lonely.keras": "--dataset",
        "evaluate {w}/odd-dataset/best.keras": "run.json",
        "evaluate {w}/bad-settings/best.keras": "run.json",
        "evaluate RUN --dataset {w}/good.npz": "10 classes",
        "evaluate RUN --dataset {w}/rgb.npz": "(8, 8, 3)",
        "export {w}/none.keras --out new": "none.keras",
        "export RUN --out RUN --format keras": "--out",
    },
    "pictures": {
        "predict {w}/few-names/best.keras {w}/picture.png": "class_names",
        "predict {w}/odd-names/best.keras {w}/picture.png": "class_names",
        "predict {w}/logits.keras {w}/picture.png": "320",
        "predict RUN {w}/empty": "{w}/empty",
        "predict RUN '{w}/*.gif'": "*.gif",
    },
}
SHORT = {
    "RESUME": "FIT --model-set depth=2 --resume",
    "FIT": "fit thin-highway-10 --dataset digits --epochs 1 --limit 40 --out new",
    "SEARCH": "search --depth 2 --kind plain --trials 1 --dataset digits --limit 40 --out new",
    "RUN": "{w}/run/best.keras",
}


def complaint(command, w, capfd):
    """Return the one line on stderr, without the name of the command in front."""
    for word, written_out in SHORT.items():
        command = re.sub(rf"\b{word}\b", written_out, command)
    capfd.readouterr()
    try:
        code = cli.main(shlex.split(command.replace("{w}", str(w))))
    except SystemExit as end:  # argparse ends so
        code = end.code
    printed = capfd.readouterr()
    assert code == 2 and "Epoch 1" not in printed.out
    (line,) = printed.err.splitlines()
    assert "Traceback" not in line
    return re.fullmatch(r"highway-keras( [\w-]+)*: (.+)", line)[2]


@pytest.mark.parametrize("kind", COMMANDS)
def test_bad_commands(kind, w, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for command, named in COMMANDS[kind].items():
        try:
            said = complaint(command, w, capfd)
        except Exception as error:
            said = repr(error)
        if named.replace("{w}", str(w)) not in said or list(tmp_path.iterdir()):
            wrong.append(f"{command}: {said}")
            for left in tmp_path.iterdir():
                shutil.rmtree(left)
    assert not wrong, "\n".join(wrong)
