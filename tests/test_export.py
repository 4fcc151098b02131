"""Exports: every format computes what Keras does, and nothing else gets a name."""

import dataclasses
import importlib.util
import io
import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from PIL import Image
from processes import COMMAND

from highway_keras import data, export, layers
from highway_keras.cli import command as cli
from highway_keras.export import FORMATS, ExportMismatch, exporting, runtimes, verification

TENSORFLOW = keras.backend.backend() == "tensorflow"
needs_tensorflow = pytest.mark.skipif(not TENSORFLOW, reason="exports are traced by TensorFlow")
NAMES = [f"class {n} é" for n in range(10)]


def absent(format):
    return [p for p in FORMATS[format].packages if importlib.util.find_spec(p) is None]


def formats(*names):
    marks = {n: pytest.mark.skipif(bool(absent(n)), reason=f"lacks {absent(n)}") for n in names}
    marks |= {n: needs_tensorflow for n in names if n != "keras" and not TENSORFLOW}
    return pytest.mark.parametrize("format", [pytest.param(n, marks=marks[n]) for n in names])


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
    convolutions = keras.layers.Conv2D(4, 3, activation="relu"), layers.ConvHighway2D(4, 3)
    shallow(digits, *convolutions).save(folder / "best.keras")
    settings = {"model": "shallow", "dataset": "digits", "class_names": NAMES}
    (folder / "run.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def little(digits, tmp_path_factory):
    """A folder with the smallest network, for what does not depend on its layers."""
    folder = tmp_path_factory.mktemp("little")
    top = keras.layers.Dense(digits.classes, activation="softmax")
    layers = [keras.Input(digits.input_shape), keras.layers.Flatten(), top]
    keras.Sequential(layers).save(folder / "best.keras")
    settings = {"model": "little", "dataset": "digits", "class_names": NAMES}
    (folder / "run.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


@pytest.fixture
def unverified(monkeypatch):
    """Verification takes a process and seconds: here it only notes what it is asked."""
    asked = []
    measured = {"difference": 0.0, "accuracy": 1.0, "images": 1, "runtime": "none"}

    def verify(*arguments):
        asked.append(arguments)
        return {**measured, "keras_accuracy": 1.0}

    monkeypatch.setattr(verification, "verify", verify)
    return asked


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and ".lock" not in path.name)
    return {path: path.read_bytes() for path in files}


# What is written


@needs_tensorflow
def test_a_saved_model_has_two_signatures_names_and_a_card(run, digits, tmp_path):
    import tensorflow as tf

    path, model = tmp_path / "serving" / "1", keras.models.load_model(run / "best.keras")
    done = export.export(run / "best.keras", path)
    expected = model.predict(digits.x_test, verbose=0)
    assert done.difference <= 1e-5 and done.images == len(digits.x_test)
    assert done.accuracy == done.keras_accuracy == (expected.argmax(-1) == digits.y_test).mean()
    classify, classify_encoded = runtimes.load_saved_model(path)
    for batch in (1, 7):
        outputs = classify(digits.x_test[:batch])
        assert outputs.keys() == {"probabilities", "class_id", "class_name"}
        np.testing.assert_allclose(outputs["probabilities"], expected[:batch], atol=1e-5)
        np.testing.assert_array_equal(outputs["class_id"], expected[:batch].argmax(-1))
        names = [name.decode() for name in outputs["class_name"]]
        assert names == [NAMES[n] for n in outputs["class_id"]]
    for key, value in classify_encoded([encode(x[..., 0]) for x in digits.x_test[:7]]).items():
        np.testing.assert_array_equal(value, outputs[key])

    assert (path / "assets" / "class_names.txt").read_text("utf-8").splitlines() == NAMES
    card = json.loads((path / "assets" / "model_card.json").read_text("utf-8"))
    assert card["name"] == "shallow" and card["class_names"] == NAMES
    assert card["training"] == {"model": "shallow", "dataset": "digits"}
    assert card["inputs"] == {"images": "uint8 (batch, 8, 8, 1)"}
    verified = {key: getattr(done, key) for key in card["verification"]}
    assert card["verification"] == verified and len(verified) == 5
    assert done.runtime == f"tensorflow {tf.__version__}"

    # A server without XLA can run it, and one with XLA does not compile for every batch size.
    loaded = tf.saved_model.load(str(path))
    graph = loaded.signatures["serving_default"].graph.as_graph_def()
    functions = [node for f in graph.library.function for node in f.node_def]
    assert not {node.op for node in [*graph.node, *functions]} & {"While", "StatelessWhile"}
    file = (path / "saved_model.pb").read_bytes()
    assert b"_XlaMustCompile" not in file
    # The weights are constants, once for both signatures.
    kernel = keras.ops.convert_to_numpy(model.layers[-1].kernel)
    assert file.count(kernel.tobytes()) == 1


@formats("onnx", "litert", "openvino")
def test_the_suffix_names_the_format(format, run, digits, tmp_path):
    path = tmp_path / "new" / f"digits{FORMATS[format].suffix}"
    assert export.export(run / "best.keras", path).difference <= 1e-5
    expected = keras.models.load_model(run / "best.keras").predict(digits.x_test[:5], verbose=0)
    outputs = runtimes.RUNTIMES[format](path)[0](digits.x_test[:5])
    assert outputs.keys() == {"probabilities", "class_id"}
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)
    assert outputs["class_id"].dtype == "int64"
    assert json.loads(path.with_suffix(".json").read_text("utf-8"))["format"] == format
    assert path.with_suffix(".txt").read_text("utf-8").splitlines() == NAMES


@formats("litert", "openvino")
def test_quantized_files_are_smaller(format, digits, tmp_path):
    limits = {"litert": {"float16": 0.6, "int8": 0.4}, "openvino": {"float16": 0.6}}[format]
    assert limits.keys() == {*FORMATS[format].quantizations}
    hidden = [keras.layers.Rescaling(1 / 256), keras.layers.Flatten(), keras.layers.Dense(800)]
    top = keras.layers.Dense(10, activation="softmax")
    model = keras.Sequential([keras.Input((8, 8, 1)), *hidden, top])
    sizes = {}
    for quantize in (None, *limits):
        path = tmp_path / f"{quantize}{FORMATS[format].suffix}"
        sizes[quantize] = export.export(model, path, format, quantize, digits).size
    for quantize, limit in limits.items():
        assert sizes[quantize] < limit * sizes[None]


def test_a_model_in_memory_is_left_alone_and_verified_on_all_classes(
    digits, tmp_path, monkeypatch, unverified
):
    monkeypatch.setattr(exporting, "VERIFIED_IMAGES", 60)
    order = np.argsort(digits.y_test, kind="stable")
    by_class = {"x_test": digits.x_test[order], "y_test": digits.y_test[order]}
    model = shallow(digits)
    before, config = model.predict(digits.x_test[:9], verbose=0), model.get_config()
    images = dataclasses.replace(digits, **by_class)
    export.export(model, tmp_path / "out.keras", dataset=images)
    np.testing.assert_array_equal(model.predict(digits.x_test[:9], verbose=0), before)
    assert model.get_config() == config
    [(_, _, _, x, y, expected, _)] = unverified
    assert len(x) == 60 and set(y) == set(range(10))
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, atol=1e-6)


# Encoded pictures are read as `predict` reads them


def encode(array, kind="png"):
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind)
    return file.getvalue()


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"verify": "no"}, "verify"),
        ({"overwrite": 1}, "overwrite"),
        ({"format": "caffe"}, "format"),
        ({"quantize": "int8"}, "quantize"),
        ({"path": "out.tflite", "quantize": "int4"}, "quantize"),
        ({"format": "onnx"}, "path"),
        ({"path": "out.onnx", "format": "saved_model"}, "path"),
        pytest.param({"path": "."}, "path", marks=needs_tensorflow),
    ],
)
def test_bad_arguments(arguments, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"`{name}`"):
        export.export("best.keras", **{"path": "out", **arguments})


@needs_tensorflow
@pytest.mark.parametrize("format", ["onnx", "litert", "openvino"])
def test_a_missing_package_names_its_extra(format, monkeypatch, tmp_path):
    package = FORMATS[format].packages[0]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package}.* `{format}`: pip .*\[{format}\]"):
        export.export("best.keras", tmp_path / f"out{FORMATS[format].suffix}")


def test_another_backend_is_told_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match=r"'jax'.*KERAS_BACKEND=tensorflow"):
        export.export("best.keras", tmp_path / "out")


def test_a_network_needs_images_of_its_kind_and_probabilities(digits, tmp_path):
    small = keras.Sequential([keras.Input((9, 9, 1)), keras.layers.Flatten()])
    small.add(keras.layers.Dense(10, "softmax"))
    for dataset in (None, digits):
        with pytest.raises(ValueError, match=r"`dataset`|takes images of shape"):
            export.export(small, tmp_path / "out.keras", dataset=dataset)
    logits = shallow(digits)
    logits.layers[-1].activation = keras.activations.linear
    with pytest.raises(ValueError, match="must return class probabilities"):
        export.export(logits, tmp_path / "out.keras", dataset=digits)
    assert not contents(tmp_path)


@formats("litert")
def test_a_calibration_needs_images(format, digits, tmp_path):
    with pytest.raises(ValueError, match="`dataset`"):
        export.export(shallow(digits), tmp_path / "a.tflite", format, "int8", verify=False)


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


# The verification


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


def test_a_wrong_export_is_an_error():
    expected = np.full((20, 10), 0.05, "float32")
    expected[range(20), np.arange(20) % 10] = 0.55
    labels, names = expected.argmax(-1), list("abcdefghij")
    results = {"probabilities": expected, "single_probabilities": expected[:1]}
    results |= {"encoded_probabilities": expected, "class_id": labels, "runtime": np.array("none")}
    results |= {"class_name": np.asarray(names)[labels]}

    def check(expected=expected, names=names, **changed):
        return verification.compare(None, results | changed, labels, expected, names)

    found = check()
    assert (found["difference"], found["accuracy"], found["images"]) == (0, 1, 20)
    shifted = expected.copy()
    shifted[3, 4] += 0.5
    nan = expected.copy()
    nan[7, 0] = np.nan
    for changed, text in [
        ({"probabilities": shifted}, r"image 3, class 4: 0\.55\d+ instead of 0\.05\d+"),
        ({"encoded_probabilities": shifted}, "PNG files"),
        ({"single_probabilities": shifted[3:4]}, "single image"),
        ({"probabilities": nan}, "image 7, class 0"),
        ({"expected": expected[:, :9]}, r"\(20, 10\) instead of \(20, 9\)"),
        ({"names": list("zyxwvutsrq")}, "class_name of image 0 is 'a' instead of 'z'"),
        ({"class_id": labels[::-1]}, "accuracy is 0.00 % where Keras has 100.00 %"),
    ]:
        with pytest.raises(ExportMismatch, match=text):
            check(**changed)
    # 18 of 20 right instead of 19: too much for int8, whatever the probabilities are.
    wrong = labels.copy()
    wrong[0] += 1
    with pytest.raises(ExportMismatch, match="accuracy"):
        verification.compare("int8", results | {"class_id": wrong}, labels, expected, names)


def test_an_export_that_does_not_run_is_an_error(digits, tmp_path):
    (tmp_path / "out.onnx").write_text("not a graph")  # or there is no runtime for one
    some = digits.x_test[:2], digits.y_test[:2]
    with pytest.raises(ExportMismatch, match="does not run: "):
        verification.verify(tmp_path / "out.onnx", "onnx", None, *some, None, ["a"])


# Written whole or not at all


@formats(*FORMATS)
def test_an_export_has_no_name_before_it_is_verified(format, little, tmp_path, monkeypatch):
    path = tmp_path / f"digits{FORMATS[format].suffix}"

    def verify(aside, *arguments):
        assert aside.name == path.name and aside.exists() and not path.exists()
        raise ExportMismatch("its class_id is 'a'.")

    monkeypatch.setattr(verification, "verify", verify)
    with pytest.raises(ExportMismatch, match="its class_id is 'a'"):
        export.export(little / "best.keras", path, format)
    assert not contents(tmp_path)


@formats("saved_model", "keras")
def test_an_earlier_export_is_replaced_on_request_only(
    format, little, tmp_path, monkeypatch, unverified
):
    path, network = tmp_path / f"digits{FORMATS[format].suffix}", little / "best.keras"
    export.export(network, path)
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=r"`path` must not exist yet. .*overwrite=True"):
        export.export(network, path)
    assert contents(tmp_path) == before
    names = list("abcdefghij")
    export.export(network, path, class_names=names, overwrite=True)
    after = contents(tmp_path)
    assert after.keys() == before.keys() and after != before
    (card,) = tmp_path.rglob("*.json")
    assert json.loads(card.read_text("utf-8"))["class_names"] == names
    if format == "keras":
        return
    own = path / "assets" / "notes.txt"
    own.write_text("a user's own")
    with pytest.raises(ValueError, match=r"notes\.txt is something else"):
        export.export(network, path, overwrite=True)
    own.unlink()

    replace = os.replace

    def failing(source, target):
        if source.is_dir():
            raise OSError("no")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="no"):
        export.export(network, path, overwrite=True)
    assert contents(tmp_path) == after


def test_files_of_others_are_not_replaced(little, tmp_path):
    """A card beside `run.keras` would be the `run.json` of the training."""
    (tmp_path / "run.json").write_text((little / "run.json").read_text("utf-8"), "utf-8")
    (tmp_path / "run.keras").write_text("a network")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "labels.txt").write_text("a user's own")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "deep.json").write_text("[" * 10**5)
    before, network = contents(tmp_path), little / "best.keras"
    for name in ("run", "folder", "labels", "pipe", "deep"):
        for overwrite in (False, True):
            with pytest.raises(ValueError, match=r"Name another\.$"):
                export.export(network, tmp_path / f"{name}.keras", overwrite=overwrite)
    (tmp_path / "digits.bin").write_text("weights of something")
    with pytest.raises(ValueError, match=r"digits\.bin"):
        exporting.check_place(tmp_path / "digits.xml", "openvino", overwrite=True)
    with pytest.raises(ValueError, match="only an earlier export"):
        exporting.check_place(tmp_path, "saved_model", overwrite=True)
    (tmp_path / "digits.bin").unlink()
    assert contents(tmp_path) == before


# The command


@needs_tensorflow
def test_the_command(little, tmp_path, capsys):
    command = ["export", str(little / "best.keras"), "--out", str(tmp_path / "out.keras")]
    assert cli.main(command) == 0
    text = capsys.readouterr().out
    assert "largest difference" in text and "359 images" in text
    assert f"saved {tmp_path / 'out.keras'}  (" in text
    assert cli.main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("highway-keras: --out must not exist yet.")

    (tmp_path / "foreign.keras").write_bytes((little / "best.keras").read_bytes())
    out, names = tmp_path / "out", [f"the {n}" for n in range(10)]
    command = ["export", str(tmp_path / "foreign.keras"), "--no-verify", "--out", str(out)]
    assert cli.main([*command, "--class-names", *names]) == 0
    assert (out / "assets" / "class_names.txt").read_text("utf-8").splitlines() == names
    assert cli.main([*command, "--overwrite", "--class-names", "a"]) == 2
    assert "--class-names must be a list of the names of the 10 classes" in capsys.readouterr().err
