"""What users get wrong: each mistake is one line that says what to do, and exit code 2."""

import os
import re
import shlex
import shutil

import keras
import numpy as np
import pytest
from PIL import Image

from highway_keras import ConvHighway2D, Highway, TransformBias, layers, models, training
from highway_keras.cli import command as cli
from highway_keras.data import public


def arrays(shape=(8, 8, 1)):
    x = np.random.default_rng(0).integers(0, 256, (40, *shape), "uint8")
    y = np.arange(40) % 4
    return {"x_train": x, "y_train": y, "x_test": x, "y_test": y}


def write_data(w):
    good = arrays()
    nan = np.where(good["y_train"] == 3, np.nan, good["y_train"])
    for name, changes in {
        "good": {},
        "rgb": arrays((8, 8, 3)),
        "nan": {"y_train": nan},
        "float": {"x_train": good["x_train"] / 255},
        "flat": {"x_train": good["x_train"].reshape(40, 64)},
        "pickle": {"y_train": good["y_train"].astype(object)},
    }.items():
        np.savez(w / f"{name}.npz", **{**good, **changes})
    np.savez(w / "keys.npz", images=good["x_train"], labels=good["y_train"])
    (w / "cut.npz").write_bytes((w / "good.npz").read_bytes()[:2000])


def write_networks(w):
    keras_layers = keras.layers
    a, b, text = keras.Input((8, 8, 1)), keras.Input((8, 8, 1)), keras.Input((20,))
    flat = keras_layers.Flatten()(keras_layers.Add()([a, b]))
    keras.Model([a, b], keras_layers.Dense(4)(flat)).save(w / "two.keras")
    keras.Model(text, keras_layers.Dense(4)(text)).save(w / "text.keras")
    keras.Sequential([a, keras_layers.Conv2D(4, 3)]).save(w / "maps.keras")
    with pytest.warns(UserWarning, match="not yet been built"):
        keras.Sequential([keras_layers.Flatten(), keras_layers.Dense(4)]).save(w / "unbuilt.keras")
    for name, bias in (("logits", 319.6), ("nan", np.nan)):
        layers = [keras.Input((8, 8, 1)), keras_layers.Flatten(), keras_layers.Dense(4)]
        model = keras.Sequential(layers, name=name)
        model.layers[-1].bias.assign([bias, 0, 0, 0])
        model.layers[-1].kernel.assign(np.zeros((64, 4)))
        model.save(w / f"{name}.keras")
    (w / "cut.keras").write_bytes((w / "two.keras").read_bytes()[:2000])
    network = (w / "logits.keras").read_bytes()
    (w / "flipped.keras").write_bytes(network.replace(b"\x89HDF", b"\x88HDF"))
    (w / "lost.keras").write_bytes(network[:500] + network[900:])
    (w / "prose.keras").write_text("no network")
    (w / "network.h5").write_bytes(b"")


def write_runs(w):
    options = {"epochs": 1, "limit": 40, "model_options": {"depth": 2}, "verbose": 0}
    training.fit("thin-highway-10", "digits", out=w / "run", **options)
    for name, file, content in [
        ("bad-state", "state.weights.h5", b"damaged"),
        ("cut-state", "state.weights.h5", (w / "run" / "state.weights.h5").read_bytes()[:3000]),
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


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    """A folder full of damaged and unsuitable files."""
    w = tmp_path_factory.mktemp("bad")
    write_files(w, Image.fromarray(arrays()["x_train"][0, ..., 0]))
    (w / "prose.png").write_text("no picture")
    os.mkfifo(w / "fifo")
    return w


FIT = "fit thin-highway-10 --dataset digits --epochs 1 --limit 40 --out new "
SEARCH = "search --depth 2 --kind plain --trials 1 --dataset digits --limit 40 --out new "
RESUME = "fit thin-highway-10 --dataset digits --epochs 1 --limit 40 --model-set depth=2 --resume "
COMMANDS = {
    # the command itself
    "": "the following arguments are required: COMMAND.* See highway-keras --help",
    "tarin": r"invalid choice: 'tarin' \(choose from '?list'?, '?fit'?",
    "fit": "the following arguments are required: MODEL. See highway-keras fit --help",
    "list --all": "unrecognized arguments: --all",
    f"{FIT} --epohcs 3": "unrecognized arguments: --epohcs 3",
    "evaluate": "required: MODEL_OR_FILE",
    "predict run/best.keras": "required: IMAGE",
    "reproduce": "required: EXPERIMENT. See highway-keras reproduce --help",
    "reproduce table4": r"invalid choice: 'table4' \(choose from '?figure1'?, .*'?table1'?",
    "reproduce table1 --model highway-b --out new": "argument --model: invalid choice: 'highway-b'",
    "reproduce table3 --runs 0 --out new": "--runs must be a positive integer. Received: --runs 0",
    "reproduce table2 --epochs 0 --out new": "--epochs must be a positive integer. Received",
    # names
    "fit thin-higway-10": "Received: name='thin-higway-10'. Did you mean thin-highway-10 or",
    "fit resnet50": "must be a registered network.* Known: thin-highway-10, thin-highway-20",
    "fit thin-plain-10 --dataset minst": "path that ends in .npz.*Did you mean 'mnist'",
    f"{FIT} --recipe slow": "--recipe must be one of 'thin', 'digits', .*Received: --recipe 'slow'",
    # numbers
    f"{FIT} --epochs 0": "--epochs must be a positive integer. Received: --epochs 0",
    f"{FIT} --epochs 2.5": "argument --epochs: invalid int value: '2.5'",
    f"{FIT} --epochs many": "argument --epochs: invalid int value: 'many'",
    f"{FIT} --batch-size -1": "--batch-size must be a positive integer. Received: .* -1",
    f"{FIT} --learning-rate -0.1": "--learning-rate must be a number above 0. Received: .* -0.1",
    f"{FIT} --learning-rate nan": "--learning-rate must be a number above 0. Received: .* nan",
    f"{FIT} --learning-rate fast": "argument --learning-rate: invalid float value: 'fast'",
    f"{FIT} --runs 0": "--runs must be a positive integer. Received: --runs 0",
    f"{FIT} --seed -1": r"--seed must be an integer from 0 to 2\*\*31 - 1. Received: --seed -1",
    f"{FIT} --seed 4294967296": "--seed must be an integer from 0 to",
    f"{FIT} --limit 0": "--limit must be a positive integer, or None .* Received: --limit 0",
    f"{FIT} --seed 2147483647 --runs 2": "The seeds of all --runs must be",
    "reproduce table1 --seed 2147483647 --runs 2 --out new": "seeds of all --runs must be below",
    "reproduce starts --epochs 0 --out new": "--epochs must be a positive integer. Received: .* 0",
    f"{SEARCH} --epochs 0": "--epochs must be a positive integer. Received: --epochs 0",
    f"{SEARCH} --trials 0": "--trials must be a positive integer. Received: --trials 0",
    f"{SEARCH} --population 0": "--population must be a positive integer",
    f"{SEARCH} --depth 1": "`depth` must be an integer of at least 2. Received: depth=1",
    # recipes and factories
    f"{FIT} --set momentun=0.9": "must name an attribute.*Received: momentun. Known: .*momentum",
    f"{FIT} --set verbose=0": "must name an attribute of the recipe. Received: verbose",
    f"{FIT} --set momentum": "argument --set: expected KEY=VALUE, received 'momentum'",
    f"{FIT} --set momentum=1.5": "`momentum` must be a number of at least 0 and below 1",
    f"{FIT} --set schedule=linear": "`schedule` must be one of 'steps', 'exponential', 'cosine'",
    f"{FIT} --set decay_epochs=5": "`decay_epochs` must be a tuple of rising positive integers",
    f"{FIT} --set validation=1": "`validation` must be a number of at least 0 and below 1",
    f"{FIT} --set preprocessing=wash": "`preprocessing` must be a tuple of names",
    f"{FIT} --model-set depth=0": "`depth` must be a positive integer. Received: depth=0",
    f"{FIT} --model-set kind=dense": "`kind` must be one of 'highway', 'plain', 'residual'",
    f"{FIT} --model-set colour=red": "`colour` must be an argument that .* colour='red'",
    f"{FIT} --model-set activation=magic": "must be an activation of Keras.*'magic'",
    f"{FIT} --model-set weights=none.h5": "--weights must be None or an existing file",
    f"{FIT} --model-set weights={{w}}/deep.weights.h5": "`*weights`* does not fit",
    f"{FIT} --model-set depth=2 --model-set depth=3": "--model-set: depth is given twice, 2 and 3",
    f"{FIT} --set momentum=0.5 --set momentum=0.9": "--set: momentum is given twice, 0.5 and 0.9",
    f"{FIT} --set momentum=0.5 decay=0.9 momentum=0.5": "--set: momentum is given twice, 0.5 and",
    f"{FIT} --set epochs=3": "--epochs is given twice. Received: --epochs 1 and --set epochs=3",
    f"{FIT} --set decay={400 * '9'}": "`decay` must be .* Received: decay=9{200}… .400 char",
    f"{FIT} --set preprocessing=5": "`preprocessing` must be a tuple .* Received: preprocessing=5",
    f"{FIT} --set augmentation=5": "`augmentation` must be a tuple .* Received: augmentation=5",
    f"{FIT} --set source=5": "`source` of a recipe must be a str. Received: source=5",
    f"{FIT} --set schedule=[1]": r"`schedule` must be one of .* Received: schedule=\[1\]",
    f"{FIT} --model-set weights=5": "--weights must be a path. Received: --weights 5",
    f"{FIT} --model-set 'weights={{{{1}}}}'": "expected a number, text, a list, True, False or",
    f"{FIT} --model-set activation=[1]": r"`activation` must be .* Received: activation=\[1\]",
    f"{FIT} --model-set kernel_initializer=[1]": "kernel_initializer|initializer",
    f"{FIT} --model-set units=1000000000": "would need .*GiB; .*GiB are free.*units=10{9}",
    f"{FIT} --model-set depth=100000000": "would need .*GiB; .*GiB are free.*depth=10{8}",
    f"{FIT} --model-set depth={30 * '9'}": r"`depth` must be a positive integer below 2\*\*63",
    f"{FIT} --model-set classes=3": "without --input-shape and `classes`, .* Received: .*3",
    f"{FIT} --model-set input_shape=5": "without --input-shape and `classes`, .* Received: .*5",
    f"{FIT} --model-set include_top=False": "a probability for each of 10 .* from .* to .*50",
    f"{FIT} --model-set classifier_activation=None": "must return class prob.*softmax.* Received",
    f"{FIT} --model-set classifier_activation=sigmoid": "must return class prob.* Received: 0",
    "fit mnist-highway-16 --dataset digits --model-set width=abc": "`width` must be a positive int",
    "fit mnist-highway-16 --dataset digits --model-set width=1000000000": "width=10{9}",
    f"{FIT} --weights none.h5": "--weights must be None or an existing file, or one of .* mnist",
    f"{FIT} --weights mnist": "--weights does not fit the model 'thin-highway-10'",
    f"{FIT} --freeze": "--freeze needs --weights: .* Received: --freeze, --weights None",
    f"{FIT} --weights mnist --model-set weights=mnist": "--weights is given twice",
    f"{FIT} --input-shape 8 8 1": "--input-shape is for pictures in a folder.* for 'digits'",
    # folders of pictures
    "fit thin-plain-10 --dataset {w}/empty": "a folder of pictures for each of two or .* none",
    "fit thin-plain-10 --dataset {w}/none": "one of digits, .*, a folder of pictures, or a path",
    "evaluate {w}/logits.keras --dataset {w}/empty": "a folder of pictures for each of two or more",
    # what an empty variable of the shell leaves
    "fit thin-plain-10 --dataset ''": "argument --dataset: expected text, received ''. See",
    f"{FIT} --out ''": "argument --out: expected text, received ''",
    "evaluate {w}/run/best.keras --dataset ''": "argument --dataset: expected text, received ''",
    "predict {w}/run/best.keras ''": "argument images: expected text, received ''",
    # data
    "fit thin-plain-10 --dataset {w}/none.npz": "--dataset must be an existing file. .*none.npz",
    "fit thin-plain-10 --dataset {w}/cut.npz": "it is damaged, cut short.*numpy.savez",
    "fit thin-plain-10 --dataset {w}/pickle.npz": "not a .npz of plain arrays. Write it with",
    "fit thin-plain-10 --dataset {w}/keys.npz": "must hold the arrays x_train, .*Missing: x_train",
    "fit thin-plain-10 --dataset {w}/nan.npz": "`y_train` .* must not be NaN: .*10 of 40 labels",
    "fit thin-plain-10 --dataset {w}/float.npz": r"must be uint8.* save \(255 \* x_train\)",
    "fit thin-plain-10 --dataset {w}/flat.npz": r"must be of shape \(n, height, width\)",
    "fit mnist-highway-16 --dataset digits --out new": r"sides of at least 12. Received: .*\(8, 8",
    "fit highway-b --dataset digits --out new": "sides of at least 32",
    # folders
    f"{FIT} --out {{w}}/file/below": "--out must be a folder that can be written. Received: .*file",
    f"{FIT} --out {{w}}/file": "--out must be a folder that can be written",
    f"{FIT} --out {{w}}/run": "--out already holds a run.* Pass --resume to continue it, or name",
    f"{RESUME} --seed 3 --out {{w}}/run": "settings differ .seed: 0 → 3",
    f"{RESUME} --out {{w}}/bad-state": "bad-state.* cannot be read. Delete the folder to start",
    f"{RESUME} --out {{w}}/cut-state": "cut-state.* cannot be read. Delete the folder to start",
    f"{RESUME} --out {{w}}/bad-settings": "run.json cannot be read. Delete that file to",
    f"{RESUME} --out {{w}}/other-settings": "run.json cannot be read",
    f"{SEARCH} --out {{w}}/file": "--out must be a folder that can be written. Received: .*file",
    f"{SEARCH} --out {{w}}/file/below": "--out must be a folder that can be written",
    # saved networks
    "evaluate thin-highway-10": "without weights. Use trained ones with --weights mnist, or give",
    "evaluate thin-higway-10 --weights mnist": "Did you mean thin-highway-10",
    "evaluate fitnet-a --weights mnist": "--weights must name trained weights of 'fitnet-a'",
    "evaluate thin-higway-10": "Did you mean thin-highway-10",
    "evaluate {w}/run/best.keras --weights mnist": "--weights is for a name that `list` shows",
    "evaluate {w}/none.keras": "`network` must be an existing file. Received: .*none.keras",
    "evaluate {w}/none": "`network` must be an existing file. Received: .*none",
    "evaluate {w}/empty": "`network` must be an existing file. Received: .*empty",
    "evaluate {w}/network.h5": "A saved network is a .keras file. Received: .*network.h5",
    "evaluate {w}/cut.keras": "cut.keras cannot be loaded as a Keras model",
    "evaluate {w}/flipped.keras": r"Keras model: Bad CRC-32 for file 'model.*'\. Restore it from a",
    "evaluate {w}/lost.keras": "Keras model: it is damaged, cut short, or .* Restore it from",
    "evaluate {w}/prose.keras": "prose.keras cannot be .*: it is damaged, cut short, or was not",
    "evaluate {w}/logits.keras --dataset {w}/good.npz": "'logits' must return class probabilities",
    "evaluate {w}/nan.keras --dataset {w}/good.npz": "'nan' must return class .* Received: nan to",
    "evaluate {w}/odd-dataset/best.keras": "in the run.json .* must be a name. Received: .*5",
    "evaluate {w}/fifo": "`network` must be an existing file. .*fifo, which is not a regular file",
    "evaluate {w}/two.keras": "two.keras must take one image of a fixed size",
    "evaluate {w}/text.keras": "text.keras must take one image of a fixed size",
    "evaluate {w}/maps.keras": "maps.keras must take one image .* a probability for each class",
    "evaluate {w}/unbuilt.keras": "unbuilt.keras must take one image",
    "evaluate {w}/lonely.keras": "No run.json next to .* its data set: pass --dataset",
    "evaluate {w}/bad-settings/best.keras": "run.json cannot be read",
    "evaluate {w}/run/best.keras --dataset {w}/good.npz": r"\(8, 8, 1\) in 10 classes. .* in 4",
    "evaluate {w}/run/best.keras --dataset {w}/rgb.npz": r"Received: .*'rgb' .*\(8, 8, 3\)",
    "export {w}/none.keras --out new": "`network` must be an existing file. Received: .*none",
    "export {w}/run/best.keras --out {w}/run/best.keras --format keras": "--out must not exist yet",
    "export {w}/run/best.keras --out new.onnx": "--out must be a folder .* as for --format 'onnx'",
    "evaluate {w}/run/best.keras --dataset ~nobody/none": "--dataset must be one of digits, mnist",
    f"{FIT} --dataset {{w}}/epochs=1.npz": "Received: --dataset .*/epochs=1.npz",
    # pictures
    "predict {w}/few-names/best.keras {w}/picture.png": "`class_names` .* must be .* 10 classes",
    "predict {w}/odd-names/best.keras {w}/picture.png": "`class_names` .* Received: class_names=5",
    "predict {w}/logits.keras {w}/picture.png": "must return class .* Received: .*320 together",
    "predict {w}/run/best.keras {w}/empty": "must name pictures. .*empty, a folder without PNG or",
    "predict {w}/run/best.keras '{w}/*.gif'": r"pictures. .*\*.gif, a pattern that no file matches",
    "predict {w}/run/best.keras {w}/picture.png --top 11": "--top must .* at most 10",
    "predict {w}/run/best.keras {w}/picture.png --top 0": "--top must be .*Received: --top 0",
    "predict {w}/run/best.keras {w}/picture.png --json --csv": "--csv: not allowed with .* --json",
}


def complaint(command, w, capfd):
    """Return the one line on stderr, without the name of the command in front."""
    capfd.readouterr()
    try:
        code = cli.main(shlex.split(command.format(w=w)))
    except SystemExit as end:  # argparse ends so
        code = end.code
    printed = capfd.readouterr()
    assert code == 2 and "Epoch 1" not in printed.out
    (line,) = printed.err.splitlines()
    assert "Traceback" not in line
    return re.fullmatch(r"highway-keras( [\w-]+)*: (.+)", line)[2]


@pytest.mark.parametrize(("command", "message"), COMMANDS.items(), ids=COMMANDS)
def test_bad_command(command, message, w, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert re.search(message, complaint(command, w, capfd))
    assert not list(tmp_path.iterdir())


def test_missing_data_offline(w, capfd, monkeypatch):
    pytest.importorskip("tensorflow", reason="TFDS reads through TensorFlow")
    monkeypatch.setattr(public, "_answers", lambda url: False)
    message = complaint("fit thin-plain-10 --data-dir {w}/empty", w, capfd)
    assert re.match(r"No prepared copy of 'mnist' in .*empty", message)
    for remedy in ("--data-dir", "'digits'", ".npz"):
        assert remedy in message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConvHighway2D(8, 3, strides=2), "`strides` must be 1: .* strides=2. Sub-sample"),
        (lambda: ConvHighway2D(8, 3, padding="valid"), "`padding` must be 'same'.*shrinks"),
        (lambda: ConvHighway2D(8, 0), "`kernel_size` must be a positive integer"),
        (lambda: TransformBias(1.0), "`value` must be negative and finite.*Received: value=1"),
        (lambda: Highway(8).build((None, 5)), r"`units` must equal .*MatchSize\(8\)"),
        (lambda: Highway(carry="open"), "`carry` must be 'coupled'"),
        (
            lambda: layers.HighwayWrapper(keras.layers.Dense(3)).build((None, 5)),
            "must preserve the shape",
        ),
        (
            lambda: models.thin_mlp(3, kind="dense"),
            "`kind` must be one of 'highway', 'plain', 'residual'",
        ),
        (
            lambda: training.get_recipe("mnist").override(epochs=True),
            "`epochs` must be a positive integer",
        ),
    ],
)
def test_bad_arguments_in_python(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
