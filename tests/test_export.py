"""Exports: every format computes what Keras does, and what goes wrong is said."""

import dataclasses
import importlib.util
import io
import json
import os
import pathlib
import re
import signal
import site
import subprocess
import sys

import keras
import numpy as np
import pytest
from PIL import Image
from processes import COMMAND

from highway_keras import data, export, layers, models
from highway_keras.cli import command as cli
from highway_keras.export import FORMATS, ExportMismatch, exporting, runtimes, staging, verification
from highway_keras.export.card import model_card, write_card_beside
from highway_keras.training import SavedNetwork

TENSORFLOW = keras.backend.backend() == "tensorflow"
needs_tensorflow = pytest.mark.skipif(not TENSORFLOW, reason="exports are traced by TensorFlow")
JAX_ERROR = "the backend 'jax'.*KERAS_BACKEND=tensorflow"


def absent(format):
    return [package for package in format.packages if importlib.util.find_spec(package) is None]


def installed(name):
    packages = absent(FORMATS[name])
    return pytest.param(
        name, marks=pytest.mark.skipif(bool(packages), reason=f"not installed: {packages}")
    )


def shallow(images, *hidden):
    """An untrained network on raw digits that has a bit of everything."""
    return keras.Sequential(
        [
            keras.Input(images.input_shape),
            data.preprocessor(("scale", "gcn", "mean"), images.x_train),
            *hidden,
            keras.layers.Flatten(),
            keras.layers.Dense(12),
            layers.HighwayStack(6, activation="tanh"),
            keras.layers.Dense(images.classes, activation="softmax"),
        ],
        name="shallow",
    )


@pytest.fixture(scope="module")
def digits():
    return data.load("digits")


@pytest.fixture(scope="module")
def run(digits, tmp_path_factory):
    """A folder as `fit` leaves it: a network, and the settings beside it."""
    folder = tmp_path_factory.mktemp("run")
    convolution = layers.ConvHighway2D(4, 3)
    model = shallow(digits, keras.layers.Conv2D(4, 3, activation="relu"), convolution)
    model.save(folder / "best.keras")
    names = [f"class {n} é" for n in range(10)]
    settings = {"model": "shallow", "dataset": "digits", "class_names": names}
    (folder / "run.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def saved_model(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("serving") / "digits" / "1"
    return path, export.export(run / "best.keras", path)


# What is written


@needs_tensorflow
def test_saved_model_signatures(run, saved_model, digits):
    path, done = saved_model
    model = keras.models.load_model(run / "best.keras")
    expected = model.predict(digits.x_test, verbose=0)
    assert done.difference <= 1e-5 and done.images == len(digits.x_test)
    assert done.accuracy == done.keras_accuracy == (expected.argmax(-1) == digits.y_test).mean()
    assert done.size > 4 * model.count_params()
    classify, classify_encoded = runtimes.load_saved_model(path)
    for batch in (1, 7):
        outputs = classify(digits.x_test[:batch])
        assert outputs.keys() == {"probabilities", "class_id", "class_name"}
        np.testing.assert_allclose(outputs["probabilities"], expected[:batch], atol=1e-5)
        np.testing.assert_array_equal(outputs["class_id"], expected[:batch].argmax(-1))
        names = [name.decode() for name in outputs["class_name"]]
        assert names == [f"class {n} é" for n in expected[:batch].argmax(-1)]
    png = [encode(image[..., 0], "png") for image in digits.x_test[:7]]
    for key, value in classify_encoded(png).items():
        np.testing.assert_array_equal(value, outputs[key])


@needs_tensorflow
def test_saved_model_assets_and_graph(run, saved_model):
    import tensorflow as tf

    path, _ = saved_model
    assert (path / "assets" / "class_names.txt").read_text("utf-8").splitlines()[3] == "class 3 é"
    card = json.loads((path / "assets" / "model_card.json").read_text("utf-8"))
    assert card["name"] == "shallow" and card["class_names"][0] == "class 0 é"
    assert card["training"] == {"model": "shallow", "dataset": "digits"}
    assert card["inputs"] == {"images": "uint8 (batch, 8, 8, 1)"}
    # A server without XLA can run it, and one with XLA does not compile for every batch size.
    loaded = tf.saved_model.load(str(path))
    graph = loaded.signatures["serving_default"].graph.as_graph_def()
    functions = [node for f in graph.library.function for node in f.node_def]
    assert not {node.op for node in [*graph.node, *functions]} & {"While", "StatelessWhile"}
    file = (path / "saved_model.pb").read_bytes()
    assert b"_XlaMustCompile" not in file
    # The weights are constants, once for both signatures.
    kernel = keras.models.load_model(run / "best.keras").layers[-1].kernel
    assert file.count(keras.ops.convert_to_numpy(kernel).tobytes()) == 1


@needs_tensorflow
@pytest.mark.parametrize("format", [installed(f) for f in FORMATS if f != "saved_model"])
def test_other_formats(format, run, digits, tmp_path):
    path = tmp_path / "new" / f"digits{FORMATS[format].suffix}"
    done = export.export(run / "best.keras", path, format)
    assert done.difference <= 1e-5
    expected = keras.models.load_model(run / "best.keras").predict(digits.x_test[:5], verbose=0)
    outputs = runtimes.RUNTIMES[format](path)[0](digits.x_test[:5])
    assert outputs.keys() == {"probabilities", "class_id"}
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)
    assert outputs["class_id"].dtype == "int64"
    assert json.loads(path.with_suffix(".json").read_text("utf-8"))["format"] == format
    assert path.with_suffix(".txt").read_text("utf-8").startswith("class 0 é\n")


@needs_tensorflow
@pytest.mark.parametrize("format", [installed("litert"), installed("openvino")])
def test_quantized_files_are_smaller(format, digits, tmp_path):
    limits = {"litert": {"float16": 0.6, "int8": 0.4}, "openvino": {"float16": 0.6}}[format]
    assert limits.keys() == {*FORMATS[format].quantizations}
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Rescaling(1 / 256),
            keras.layers.Flatten(),
            keras.layers.Dense(800),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    sizes = {}
    for quantize in (None, *limits):
        path = tmp_path / f"{quantize}{FORMATS[format].suffix}"
        sizes[quantize] = export.export(model, path, format, quantize, digits).size
    for quantize, limit in limits.items():
        assert sizes[quantize] < limit * sizes[None]


@needs_tensorflow
def test_exporting_leaves_the_model_alone(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "verify", lambda *arguments: (0, 1))  # seconds
    model = shallow(digits)
    before, config = model.predict(digits.x_test[:9], verbose=0), model.get_config()
    export.export(model, tmp_path / "out", dataset=digits)
    np.testing.assert_array_equal(model.predict(digits.x_test[:9], verbose=0), before)
    assert model.get_config() == config


def test_a_data_set_with_labels_in_a_column(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "verify", lambda *arguments: (0, 1))  # seconds
    column = dataclasses.replace(digits, y_test=digits.y_test[:, None])
    model = shallow(digits)
    done = export.export(model, tmp_path / "out.keras", "keras", dataset=column)
    right = model.predict(digits.x_test, verbose=0).argmax(-1) == digits.y_test
    assert done.keras_accuracy == right.mean()


# Encoded pictures are read as `predict` reads them


def encode(array, kind, **options):
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind, **options)
    return file.getvalue()


@needs_tensorflow
@pytest.mark.parametrize("kind", ["png", "jpeg"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(20, 16), (41, 33), (10, 9)])
def test_pictures_are_read_as_predict_reads_them(kind, channels, size, tmp_path):
    from highway_keras.export.decoding import decode

    shape = (20, 16, channels)
    coarse = np.random.default_rng(0).integers(0, 256, (5, 4, 3), "uint8")
    picture = np.asarray(Image.fromarray(coarse).resize(size[::-1]))
    file = tmp_path / "picture"
    file.write_bytes(encode(picture, kind))
    ours = decode(file.read_bytes(), shape).numpy().astype(int)
    theirs = data.read_image(file, shape).astype(int)
    assert ours.shape == shape
    assert np.abs(ours - theirs).max() <= (0 if size == (20, 16) else 1)


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"verify": "no"}, "`verify` must be True or False. Received: verify='no'."),
        ({"overwrite": 1}, "`overwrite` must be True or False. Received: overwrite=1."),
        ({"format": "caffe"}, "`format` must be one of 'saved_model', 'onnx', 'litert', 'openv"),
        ({"quantize": "int8"}, "must be one of None. Received: quantize='int8'"),
        (
            {"format": "litert", "quantize": "int4"},
            "None, 'float16', 'int8'. Received: quantize='int4'",
        ),
        ({"format": "onnx"}, r"`path` must end in \.onnx for format='onnx'. Received: path=out"),
        pytest.param(
            {"path": "."}, "`path` must not exist yet. Received: path=.", marks=needs_tensorflow
        ),
    ],
)
def test_bad_arguments(arguments, text, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=text):
        export.export("best.keras", **{"path": "out", **arguments})


@needs_tensorflow
@pytest.mark.parametrize("format", ["onnx", "litert", "openvino"])
def test_a_missing_package_names_its_extra(format, monkeypatch, tmp_path):
    package = FORMATS[format].packages[0]
    monkeypatch.setitem(sys.modules, package, None)
    text = rf"{package}.* (is|are) missing\. Install the extra `{format}`: pip .*\[{format}\]"
    with pytest.raises(ImportError, match=text):
        export.export("best.keras", tmp_path / f"out{FORMATS[format].suffix}", format)


@needs_tensorflow
def test_a_model_needs_images_of_its_kind(digits, tmp_path):
    model = models.create("thin-highway-10", depth=2)
    with pytest.raises(ValueError, match=r"`dataset` must name the data set .*dataset=None"):
        export.export(model, tmp_path / "out")
    with pytest.raises(ValueError, match=r"takes images of shape \(28, 28, 1\).*'digits' with sh"):
        export.export(model, tmp_path / "out", dataset=digits)
    assert not (tmp_path / "out").exists()


def test_a_network_of_logits_is_refused(digits, tmp_path):
    model = shallow(digits)
    model.layers[-1].activation = keras.activations.linear
    with pytest.raises(ValueError, match=r"'shallow' must return class probabilities, .* Received"):
        export.export(model, tmp_path / "out.keras", "keras", dataset=digits)
    assert not without_locks(tmp_path)


@needs_tensorflow
def test_the_command(run, tmp_path, capsys):
    command = ["export", str(run / "best.keras"), "--out", str(tmp_path / "out")]
    assert cli.main(command) == 0
    text = capsys.readouterr().out
    assert "largest difference" in text and "359 images" in text
    assert f"saved {tmp_path / 'out'}  (" in text
    assert cli.main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("highway-keras: --out must not exist yet.")


def test_another_backend_is_told_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match=JAX_ERROR):
        export.export("best.keras", tmp_path / "out")


@needs_tensorflow
@pytest.mark.slow
def test_a_network_saved_by_jax_is_exported(tmp_path):
    """The remedy that the error names."""
    command = ["fit", "thin-highway-10", "--dataset", "digits", "--epochs", "1", "--out", "run"]
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    subprocess.run(
        [*COMMAND, *command], env=environment, cwd=tmp_path, check=True, capture_output=True
    )
    assert export.export(tmp_path / "run" / "best.keras", tmp_path / "out").difference <= 1e-5


# Files that are not to be trusted


class Evil:
    def __reduce__(self):
        return os.system, ("touch hacked",)


def foreign(run, kind):
    """The bytes of a file that only pretends to be a saved network."""
    import pickle
    import zipfile

    good = (run / "best.keras").read_bytes()
    if kind == "pickle":
        return pickle.dumps(Evil())
    if kind == "truncated":
        return good[: len(good) // 2]
    if kind == "tampered":
        middle = len(good) // 2
        return good[:middle] + bytes([good[middle] ^ 0xFF]) + good[middle + 1 :]
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "config.json" and kind == "another function":
                config = json.loads(content)
                config.update(module="os", class_name="system", registered_name="system")
                content = json.dumps(config).encode()
            new.writestr(name, b"hello" if kind == "text inside" else content)
    return file.getvalue()


@needs_tensorflow
@pytest.mark.parametrize(
    "kind", ["pickle", "truncated", "tampered", "another function", "text inside"]
)
def test_foreign_files_are_refused(kind, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "best.keras").write_bytes(foreign(run, kind))
    assert cli.main(["export", "best.keras", "--out", "out", "--dataset", "digits"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("highway-keras: best.keras cannot be loaded as a Keras model: ")
    assert os.listdir() == ["best.keras"]


@needs_tensorflow
def test_code_in_a_file_is_refused(digits, tmp_path):
    model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Lambda(lambda x: x)])
    model.save(tmp_path / "best.keras")
    with pytest.raises(ValueError, match=r"cannot be loaded as a Keras model: .*"):
        export.export(tmp_path / "best.keras", tmp_path / "out", dataset=digits)


# The verification


@needs_tensorflow
def test_the_new_process_can_import_neither_keras_nor_this_package():
    script = (
        "import runpy, sys; sys.argv = ['', 'onnx', 'no file', 'nowhere']\n"
        f"try: runpy.run_path({runtimes.__file__!r}, run_name='__main__')\n"
        "except Exception: pass\n"
        "for name in ('keras', 'highway_keras', 'tensorflow'):\n"
        "    try: __import__(name); print(name)\n"
        "    except ImportError: pass\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == ""


FINDS = """
import importlib.util, json, sys
found = [name for name in ("users", "around") if importlib.util.find_spec(name)]
sys.exit(f"{sys.argv[1:3]} and {found}")
"""


@pytest.mark.parametrize("has_them", [True, False])
def test_the_new_process_has_the_packages_of_the_user(has_them, tmp_path, monkeypatch):
    """If this one has them, as after `pip install --user`; what lies around shadows nothing."""
    (tmp_path / "around.py").touch()
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / "finds.py").write_text(FINDS)
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "PYTHONPATH"):
        monkeypatch.setenv(name, str(tmp_path))
    python = getattr(sys, "_base_executable", sys.executable)  # no virtual environment has them
    where = subprocess.run([python, "-I", "-m", "site", "--user-site"], stdout=subprocess.PIPE)
    users = pathlib.Path(os.fsdecode(where.stdout).strip())
    users.mkdir(parents=True)
    (users / "users.py").touch()
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setattr(site, "ENABLE_USER_SITE", has_them)
    monkeypatch.setattr(runtimes, "__file__", str(tmp_path / "finds.py"))
    found = ["users"] if has_them else []
    message = re.escape(f"the export does not run: ['onnx', 'file'] and {found}")
    with pytest.raises(ExportMismatch, match=f"^{message}$"):
        verification._run("file", "onnx", np.zeros((1, 2, 2, 1), "uint8"))


def test_a_wrong_export_is_an_error():
    expected = np.full((20, 10), 0.05, "float32")
    expected[range(20), np.arange(20) % 10] = 0.55
    labels, names = expected.argmax(-1), list("abcdefghij")
    results = {"probabilities": expected, "single_probabilities": expected[:1]}
    results |= {"encoded_probabilities": expected, "class_id": labels}
    results |= {"class_name": np.asarray(names)[labels]}

    def check(expected=expected, names=names, **changed):
        return verification.compare(None, results | changed, labels, expected, names)

    assert check() == (0, 1)
    shifted = expected.copy()
    shifted[3, 4] += 0.5
    text = r"^its probabilities differ from Keras's by up to 0\.5 \(image 3, "
    with pytest.raises(ExportMismatch, match=text + r"class 4: 0\.55\d+ instead of 0\.05\d+\); at"):
        check(probabilities=shifted)
    with pytest.raises(ExportMismatch, match="probabilities of PNG files differ"):
        check(encoded_probabilities=shifted)
    with pytest.raises(ExportMismatch, match="probabilities of a single image differ"):
        check(single_probabilities=shifted[3:4])
    shifted[7, 0] = np.nan
    with pytest.raises(ExportMismatch, match=r"up to nan \(image 7, class 0"):
        check(probabilities=shifted)
    with pytest.raises(ExportMismatch, match=r"shape \(20, 10\) instead of \(20, 9\)"):
        check(expected[:, :9])
    with pytest.raises(ExportMismatch, match="its class_name of image 0 is 'a' instead of 'z'"):
        check(names=list("zyxwvutsrq"))
    with pytest.raises(ExportMismatch, match="its accuracy is"):
        check(class_id=labels[::-1])


@needs_tensorflow
def test_an_export_that_does_not_run_is_an_error(digits, tmp_path):
    (tmp_path / "saved_model.pb").write_text("not a graph")
    with pytest.raises(ExportMismatch, match=r"^the export does not run: .*[Pp]ars"):
        verification.verify(
            tmp_path, "saved_model", None, digits.x_test[:2], digits.y_test[:2], None, ["a"]
        )


def test_lost_accuracy_is_an_error():
    verification._check_accuracy(0.98, 0.989)
    with pytest.raises(ExportMismatch, match=r"accuracy is 97\.00 % where Keras has 98\.90 %"):
        verification._check_accuracy(0.97, 0.989)


# Written whole or not at all


def without_locks(folder):
    return [entry for entry in folder.iterdir() if ".lock" not in entry.name]


@needs_tensorflow
@pytest.mark.parametrize("format", [installed(f) for f in FORMATS])
def test_an_export_has_no_name_before_it_is_verified(format, run, tmp_path, monkeypatch):
    path = tmp_path / f"digits{FORMATS[format].suffix}"

    def verify(aside, *arguments):
        assert aside.name == path.name and aside.exists()
        (folder,) = without_locks(tmp_path)
        assert folder.name.startswith(f".{path.name}-")
        raise ExportMismatch("its class_id is 'a'.")

    monkeypatch.setattr(exporting, "verify", verify)
    with pytest.raises(ExportMismatch, match=f"^{path} was not written: its class_id is 'a'.$"):
        export.export(run / "best.keras", path, format)
    assert not without_locks(tmp_path)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


INTERRUPTED = """
import os, pathlib, resource, signal, sys
from highway_keras.export import FORMATS, export, exporting
file, folder, how, *formats = sys.argv[1:]

def end(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

if how == "killed":
    exporting.verify = end
else:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, -1))  # the disk is full
for format in formats:
    path = pathlib.Path(folder, f"digits{FORMATS[format].suffix}")
    try:
        export(file, path, format, overwrite=True)
    except RuntimeError as error:
        print(error, flush=True)
"""


@needs_tensorflow
@pytest.mark.parametrize("how", ["killed", pytest.param("full", marks=pytest.mark.slow)])
def test_what_was_exported_before_stays_whole(how, run, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "verify", lambda *arguments: (0, 1))  # seconds
    formats = [name for name, format in FORMATS.items() if how == "full" and not absent(format)]
    formats = formats or ["saved_model"]
    for format in formats:
        path = tmp_path / f"digits{FORMATS[format].suffix}"
        export.export(run / "best.keras", path, format, overwrite=True)
    before = contents(tmp_path)
    script = [sys.executable, "-c", INTERRUPTED, run / "best.keras", tmp_path, how, *formats]
    done = subprocess.run(script, capture_output=True, text=True)
    after = contents(tmp_path)
    assert {path: after.pop(path) for path in before} == before
    if how == "killed":
        assert done.returncode == -signal.SIGKILL
        new = [path for path in after if ".lock" not in path.name]
        (left,) = {path.relative_to(tmp_path).parts[0] for path in new}
        assert left.startswith(".digits-")
    else:
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) == len(formats) and all("was not written: " in line for line in lines)
        assert all(line.endswith(" is unharmed.") and "[Errno" not in line for line in lines)
        assert not after


@needs_tensorflow
@pytest.mark.parametrize("format", ["saved_model", "keras"])
def test_an_earlier_export_is_replaced_on_request_only(format, run, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "verify", lambda *arguments: (0, 1))  # seconds
    path = tmp_path / f"digits{FORMATS[format].suffix}"
    export.export(run / "best.keras", path, format)
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=r"`path` must not exist yet. .*overwrite=True"):
        export.export(run / "best.keras", path, format)
    assert contents(tmp_path) == before
    names = list("abcdefghij")
    export.export(run / "best.keras", path, format, class_names=names, overwrite=True)
    after = contents(tmp_path)
    assert after.keys() == before.keys() and after != before
    (card,) = tmp_path.rglob("*.json")
    assert json.loads(card.read_text("utf-8"))["class_names"] == names


@needs_tensorflow
def test_a_folder_that_cannot_be_replaced_stays(run, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "verify", lambda *arguments: (0, 1))  # seconds
    path = tmp_path / "digits"
    export.export(run / "best.keras", path)
    before, rename = contents(tmp_path), os.rename

    def failing(source, target):
        if source.name == target.name:
            raise OSError("no")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(OSError, match="no"):
        export.export(run / "best.keras", path, overwrite=True)
    assert contents(tmp_path) == before


def test_files_of_others_are_not_replaced(run, tmp_path):
    """A card beside `run.keras` would be the `run.json` of the training."""
    (tmp_path / "run.json").write_text("settings")
    (tmp_path / "run.keras").write_text("a network")
    with pytest.raises(ValueError, match=r"must not exist yet\. .*run\.keras\. Name another\.$"):
        export.export(run / "best.keras", tmp_path / "run.keras", "keras")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "labels.txt").write_text("a user's own")
    (tmp_path / "pipe.txt").write_text("a user's own")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "deep.json").write_text("[" * 10**5)
    for name in ("run.json", "folder.json", "labels.txt", "pipe.json", "deep.json"):
        path = (tmp_path / name).with_suffix(".keras")
        found = path.name if path.exists() else name
        message = rf"replaces only an earlier export\. .*{found} is something else\. Name another"
        with pytest.raises(ValueError, match=message):
            export.export(run / "best.keras", path, "keras", overwrite=True)
    assert (tmp_path / "run.json").read_text() == "settings"
    assert (tmp_path / "run.keras").read_text() == "a network"


@pytest.mark.parametrize("beside", [".json", ".txt", ".bin"])
def test_what_is_next_to_an_export_belongs_to_its_card(beside, run, tmp_path):
    path, file = tmp_path / "digits.xml", tmp_path / f"digits{beside}"
    file.write_text((run / "run.json").read_text("utf-8"), encoding="utf-8")
    with pytest.raises(ValueError, match=f"digits{beside} is something else"):
        staging.check_place(path, "openvino", overwrite=True)
    write_card_beside(path, model_card(SavedNetwork(run / "best.keras"), ["a"], "openvino", None))
    path.with_suffix(".bin").write_text("weights")
    staging.check_place(path, "openvino", overwrite=True)


@needs_tensorflow
def test_only_a_saved_model_is_a_folder_to_replace(run, tmp_path):
    (tmp_path / "saved_model.pb").write_text("that of others")
    with pytest.raises(ValueError, match=r"overwrite=True replaces only an earlier export"):
        export.export(run / "best.keras", tmp_path, overwrite=True)


def test_images_sorted_by_class_are_verified_on_all_classes(run, digits, tmp_path, monkeypatch):
    order, seen = np.argsort(digits.y_test, kind="stable"), []
    images = dataclasses.replace(digits, x_test=digits.x_test[order], y_test=digits.y_test[order])

    def verify(aside, format, quantize, x, y, expected, names):
        seen.extend(y)
        return 0.0, 1.0

    monkeypatch.setattr(exporting, "VERIFIED_IMAGES", 60)
    monkeypatch.setattr(exporting, "verify", verify)
    done = export.export(run / "best.keras", tmp_path / "digits.keras", "keras", dataset=images)
    assert done.images == len(seen) == 60 and set(seen) == set(range(10))


# Without data


@needs_tensorflow
def test_a_network_of_others_is_exported_without_data(digits, tmp_path, capsys):
    shallow(digits).save(tmp_path / "foreign.keras")
    out, names = tmp_path / "out", [f"the {n}" for n in range(10)]
    command = ["export", str(tmp_path / "foreign.keras"), "--no-verify", "--out", str(out)]
    assert cli.main([*command, "--class-names", *names]) == 0
    assert capsys.readouterr().out.startswith(f"saved {out}  (")
    assert (out / "assets" / "class_names.txt").read_text("utf-8").splitlines() == names
    assert cli.main([*command, "--overwrite"]) == 0
    assert (out / "assets" / "class_names.txt").read_text("utf-8").split() == list("0123456789")
    capsys.readouterr()
    assert cli.main([*command, "--overwrite", "--class-names", "a"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("--class-names must name the 10 classes. Received: 1 names.")


@needs_tensorflow
@pytest.mark.parametrize("format", [installed("litert")])
def test_a_calibration_needs_images(format, digits, tmp_path):
    with pytest.raises(ValueError, match=r"`dataset` must name .* calibrate it"):
        export.export(shallow(digits), tmp_path / "a.tflite", format, "int8", verify=False)
