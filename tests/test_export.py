"""Exports: every format computes what Keras does, or the file is not kept."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
from harness import array
from helpers import needs_tensorflow
from picture_folders import as_file
from picture_folders import little as classifier
from PIL import Image

from highway_keras import data, export, layers, training
from highway_keras.cli import command as cli
from highway_keras.export import FORMATS, ExportMismatch, exporting, runtimes, verification, writers
from highway_keras.util.messages import Notice

pytestmark = pytest.mark.filterwarnings("ignore:.* does not have a `quantize` method")
SCALE = keras.layers.Rescaling(1 / 256)
NAMES = [f"class {n} é" for n in range(10)]


def formats(*names):
    def marks(name):
        absent = [p for p in FORMATS[name].packages if importlib.util.find_spec(p) is None]
        installed = pytest.mark.skipif(bool(absent), reason=f"lacks {absent}")
        return [installed] if name == "keras" else [installed, needs_tensorflow]

    return pytest.mark.parametrize("format", [pytest.param(n, marks=marks(n)) for n in names])


def shallow(images, *hidden):
    """An untrained network on raw digits that has a bit of everything."""
    return keras.Sequential(
        [
            keras.Input(images.input_shape),
            data.preprocessor(("scale", "gcn", "mean"), images.x_train),
            *hidden,
            keras.layers.Flatten(),
            keras.layers.Dense(12),
            keras.Sequential([keras.Input((12,)), layers.HighwayStack(6, activation="tanh")]),
            keras.layers.Dense(images.classes, activation="softmax"),
        ],
        name="shallow",
    )


def write_run(folder, model):
    """Leave a network as `fit` does, with its settings beside it."""
    model.save(folder / "best.keras")
    settings = {"model": model.name, "dataset": "digits", "class_names": NAMES}
    (folder / "run.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(digits, tmp_path_factory):
    convolutions = keras.layers.Conv2D(4, 3, activation="relu"), layers.ConvHighway2D(4, 3)
    return write_run(tmp_path_factory.mktemp("run"), shallow(digits, *convolutions))


@pytest.fixture(scope="module")
def little(tmp_path_factory):
    """The smallest network, for what does not depend on its layers."""
    return write_run(tmp_path_factory.mktemp("little"), classifier(SCALE, classes=10))


@pytest.fixture
def unverified(monkeypatch):
    """Verification takes a process and seconds: here it only notes what it is asked."""
    asked = []
    monkeypatch.setattr(verification, "verify", lambda *arguments: asked.append(arguments) or {})
    return asked


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and ".lock" not in path.name)
    return {path: path.read_bytes() for path in files}


# What is written


@needs_tensorflow
def test_what_computes_in_16_bits_is_compared_as_such(unverified, tmp_path):
    model = classifier(SCALE, keras.layers.Dense(4, dtype="mixed_bfloat16"), classes=10)
    export.export(write_run(tmp_path, model) / "best.keras", tmp_path / "1")
    assert unverified[0][2] == "float16"


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
    pictures = [as_file(Image.fromarray(image)) for image in digits.x_test[:7, ..., 0]]
    for key, value in classify_encoded(pictures).items():
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
    assert json.loads(Path(f"{path}.json").read_text("utf-8"))["format"] == format
    assert Path(f"{path}.txt").read_text("utf-8").splitlines() == NAMES


@formats("litert", "openvino")
def test_quantized_files_are_smaller(format, digits, tmp_path):
    limits = {"litert": {"float16": 0.6, "int8": 0.4}, "openvino": {"float16": 0.6}}[format]
    model = classifier(SCALE, keras.layers.Dense(800), classes=10)
    sizes = {
        quantize: export.export(
            model, tmp_path / f"{quantize}{FORMATS[format].suffix}", format, quantize, digits
        ).size
        for quantize in (None, *limits)
    }
    assert all(sizes[quantize] < limit * sizes[None] for quantize, limit in limits.items())


def test_a_model_in_memory_is_left_alone_and_verified_on_all_classes(
    digits, tmp_path, monkeypatch, unverified
):
    monkeypatch.setattr(exporting, "VERIFIED_IMAGES", 60)
    order = np.argsort(digits.y_test, kind="stable")
    by_class = {"x_test": digits.x_test[order], "y_test": digits.y_test[order]}
    model = shallow(digits)
    before, config = model.get_weights(), model.get_config()
    images = dataclasses.replace(digits, **by_class)
    export.export(model, tmp_path / "out.keras", dataset=images)
    np.testing.assert_equal(model.get_weights(), before)
    assert model.get_config() == config
    [(_, _, _, x, y, expected, _)] = unverified
    assert len(x) == 60 and set(y) == set(range(10))
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, atol=1e-6)


def test_a_function_that_loads_as_another_is_found(digits, tmp_path):
    def relu(x):  # which Keras saves by its name
        return keras.activations.elu(x)

    with pytest.raises(ValueError, match="something else when loaded"):
        export.export(shallow(digits, keras.layers.Dense(4, relu)), tmp_path / "out.keras")


# Mistakes


BAD_ARGUMENTS = [
    ({"verify": "no"}, "verify"),
    ({"format": "caffe"}, "format"),
    ({"quantize": "int8"}, "quantize"),
    ({"format": "onnx"}, "path"),
    ({"path": "out.h5"}, "path"),
]


@pytest.mark.parametrize(("arguments", "name"), BAD_ARGUMENTS)
def test_bad_arguments(arguments, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"`{name}`"):
        export.export("best.keras", **{"path": "out", **arguments})


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(keras.backend, "backend", lambda: "tensorflow")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"onnxruntime.* `onnx`: pip .*\[onnx\]"):
        export.export("best.keras", tmp_path / "out.onnx")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match=r"'jax'.*KERAS_BACKEND=tensorflow"):
        export.export("best.keras", tmp_path / "out")


def test_a_network_needs_images_of_its_kind_and_probabilities(digits, tmp_path):
    small = keras.Sequential([keras.Input((9, 9, 1)), keras.layers.Flatten()])
    small.add(keras.layers.Dense(10, "softmax"))
    for dataset in (None, digits, "absent.npz"):
        said = r"takes images of shape" if dataset is digits else r"`dataset`.*verify=False does"
        refused = pytest.raises((ValueError, FileNotFoundError), match=said)
        with pytest.warns(Notice, match="no layer that scales its input"), refused:
            export.export(small, tmp_path / "out.keras", dataset=dataset)
    mixed = keras.Model([keras.Input((2,)), small.inputs[0]], small.outputs)
    any_size = keras.Sequential([keras.Input((None, None, 1)), keras.layers.Conv2D(1, 1)])
    for other in (mixed, any_size, keras.Sequential([keras.layers.Dense(10)])):
        with pytest.raises(ValueError, match=r"`model`.*model="):
            export.export(other, tmp_path / "out.keras", dataset=digits)
    folder = training.fit(
        "thin-highway-10",
        digits,
        "digits",
        out=tmp_path.parent / "arrays",
        epochs=1,
        limit=50,
        verbose=0,
    ).folder
    with pytest.raises(ValueError, match=r"`dataset` must name .*verify=False does"):
        export.export(folder.best, tmp_path / "out.keras")
    logits = shallow(digits)
    logits.layers[-1].activation = keras.activations.linear
    with pytest.raises(ValueError, match="must return class probabilities"):
        export.export(logits, tmp_path / "out.keras", verify=False)
    assert not contents(tmp_path)


def test_what_an_export_says_before_it_is_served(tmp_path):
    """Outputs may have a name."""
    model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Rescaling(1 / 256)])
    model.add(keras.layers.TimeDistributed(layers.HighwayStack(2, name="inside")))
    model.add(keras.layers.Flatten())
    model.add(keras.layers.Dense(3, "softmax"))
    named = keras.Model(model.inputs, {"probabilities": model.outputs[0]})
    named.save(tmp_path / "named.keras")
    images = np.zeros((2, 8, 8, 1), "uint8")
    run, _ = runtimes.load_keras(tmp_path / "named.keras")
    expected = np.asarray(model(images.astype("float32")))
    np.testing.assert_allclose(run(images)["probabilities"], expected, atol=1e-6)
    with pytest.warns(Notice, match="Inside other layers, inside stay loops"):
        found = writers.classifier(named)(images)
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-6)
    unscaled = classifier(classes=3)
    unscaled.save(tmp_path / "best.keras")
    (tmp_path / "run.json").write_text(json.dumps({"class_names": ["ant", "bee", "cat"]}))
    unsaid = {"verify": False, "class_names": ["bee", "ant", "cat"]}
    scales = pytest.warns(Notice, match="no layer that scales its input")
    with scales, pytest.warns(Notice, match="ant, bee, cat in another order"):
        export.export(tmp_path / "best.keras", tmp_path / "out.keras", **unsaid)


# The verification


def test_the_new_process_can_import_neither_keras_nor_this_package():
    script = (
        "import runpy, sys; sys.argv = ['', 'onnx', 'no file', 'nowhere', '1']\n"
        f"try: runpy.run_path({runtimes.__file__!r}, run_name='__main__')\n"
        "except Exception: pass\n"
        "for name in ('keras', 'highway_keras', 'tensorflow'):\n"
        "    try: __import__(name); print(name)\n"
        "    except ImportError: pass\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == ""


@needs_tensorflow
def test_a_killed_verification_is_named(little, monkeypatch, tmp_path):
    killed = subprocess.CompletedProcess([], -9, "", "")
    monkeypatch.setattr(subprocess, "run", lambda *command, **options: killed)
    with pytest.raises(ExportMismatch, match="killed by signal 9"):
        export.export(little, tmp_path / "1")
    assert not contents(tmp_path)


def test_images_that_exceed_the_memory_are_verified_in_part(
    little, unverified, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(exporting, "MOST_IN_MEMORY", 30 * 8 * 8)
    export.export(little, tmp_path / "small.keras", quantize="int8", verbose=1)
    assert len(unverified[0][3]) == len(unverified[0][5]) == 30
    assert "running it on 30 test images" in capsys.readouterr().out


def test_a_wrong_export_is_an_error(tmp_path):
    expected = np.full((20, 10), 0.05, "float32")
    expected[range(20), np.arange(20) % 10] = 0.55
    labels, names = expected.argmax(-1), list("abcdefghij")
    results = {"probabilities": expected, "single_probabilities": expected[:1]}
    results |= {"encoded_probabilities": expected, "class_id": labels, "runtime": np.array("none")}
    results |= {"class_name": np.asarray(names)[labels]}

    def check(quantize=None, expected=expected, names=names, **changed):
        return verification.compare(quantize, results | changed, labels, expected, names)

    found = check()
    assert (found["difference"], found["accuracy"], found["images"]) == (0, 1, 20)
    check("float16", probabilities=expected + 0.015)
    shifted, nan, wrong = expected.copy(), expected.copy(), labels.copy()
    shifted[3, 4] += 0.5
    nan[7, 0] = np.nan
    wrong[0] += 1  # 19 of 20 right instead of 20: too much for int8, whatever the probabilities
    for changed, text in [
        ({"probabilities": shifted}, r"image 3, class 4"),
        ({"encoded_probabilities": shifted}, "PNG files"),
        ({"single_probabilities": shifted[3:4]}, "single image"),
        ({"probabilities": nan}, "image 7, class 0"),
        ({"expected": expected[:, :9]}, r"\(20, 10\) instead of \(20, 9\)"),
        ({"names": list("zyxwvutsrq")}, "class_name of image 0"),
        ({"class_id": labels[::-1]}, "accuracy"),
        ({"quantize": "int8", "class_id": wrong}, "accuracy"),
        ({"quantize": "float16", "probabilities": expected + 0.03}, r"up to 0.03 \(image 0"),
        ({"probabilities": expected + 0.015}, r"up to 0.015 \(image 0"),
    ]:
        with pytest.raises(ExportMismatch, match=text):
            check(**changed)

    (tmp_path / "out.onnx").write_text("not a graph")  # fails with and without a runtime
    images = np.zeros((2, 8, 8, 1), "uint8")
    with pytest.raises(ExportMismatch, match="does not run: "):
        verification.verify(tmp_path / "out.onnx", "onnx", None, images, labels[:2], None, names)


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
    (tmp_path / "folder.keras.json").mkdir()
    (tmp_path / "labels.keras.txt").write_text("a user's own")
    os.mkfifo(tmp_path / "pipe.keras.json")
    (tmp_path / "deep.keras.json").write_text("[" * 10**5)
    (tmp_path / "trained.keras").write_bytes((little / "best.keras").read_bytes())
    before, network = contents(tmp_path), little / "best.keras"
    for name in ("folder", "labels", "pipe", "deep", "trained"):
        for overwrite in (False, True):
            with pytest.raises(ValueError, match=r"Name another\.$"):
                export.export(network, tmp_path / f"{name}.keras", overwrite=overwrite)
    with pytest.raises(ValueError, match="only an earlier export"):
        exporting.check_place(tmp_path, "saved_model", overwrite=True)
    assert contents(tmp_path) == before


# Networks in int8


def quantizable(digits):
    start = [keras.Input((8, 8, 1)), data.preprocessor(("scale", "mean"), digits.x_train)]
    start += [layers.ConvHighway2D(1, 3), keras.layers.Flatten(), keras.layers.Dense(24)]
    gated = [layers.HighwayStack(2, activation="tanh"), layers.Highway()]
    return keras.Sequential([*start, *gated, keras.layers.Dense(10, activation="softmax")])


@pytest.fixture(scope="module")
def quantized(digits, tmp_path_factory):
    """A network, and the int8 file of it."""
    model, path = quantizable(digits), tmp_path_factory.mktemp("small") / "small.keras"
    before = model.get_weights()
    export.export(model, path, "keras", "int8", verify=False)
    np.testing.assert_equal(model.get_weights(), before)
    return model, path


def test_what_is_exported_is_what_keras_quantizes(quantized, tmp_path):
    model, path = quantized
    chain = writers.unrolled(model)
    twin = keras.models.clone_model(chain)
    twin.set_weights(chain.get_weights())
    twin.quantize("int8")
    loaded = keras.models.load_model(path)
    np.testing.assert_equal(loaded.get_weights(), twin.get_weights())
    assert sum(w.dtype == "int8" for w in loaded.weights) == 2 * 3 + 2  # and no convolution
    loaded.save(tmp_path / "by_keras.keras")
    assert path.stat().st_size < 0.5 * (tmp_path / "by_keras.keras").stat().st_size
    card = json.loads(path.with_name(f"{path.name}.json").read_text("utf-8"))
    assert (card["format"], card["quantize"]) == ("keras", "int8")
    assert card["parameters"] == model.count_params()


@pytest.mark.slow
def test_exported_for_keras(digits, tmp_path):
    model = quantizable(digits)
    model.compile(keras.optimizers.Adam(0.005), "sparse_categorical_crossentropy")
    model.fit(digits.x_train, digits.y_train, epochs=12, verbose=0)
    done = export.export(model, tmp_path / "small.keras", "keras", "int8", digits)
    assert done.keras_accuracy > 0.9 and 0 < done.difference < 0.1
    # In floating point, the file leaves out the optimizer.
    assert export.export(model, tmp_path / "float.keras", "keras", None, digits).difference <= 1e-5
    with zipfile.ZipFile(tmp_path / "float.keras") as file:
        assert b"optimizer" not in file.read("model.weights.h5")


@needs_tensorflow
def test_a_quantized_network_is_served_by_tensorflow(quantized, digits):
    model = keras.models.load_model(quantized[1])
    expected = model.predict(digits.x_test[:50], verbose=0)
    outputs = writers.classifier(model)(digits.x_test[:50])
    np.testing.assert_allclose(array(outputs["probabilities"]), expected, atol=1e-5)


@needs_tensorflow
def test_other_runtimes_want_the_float_network(quantized, digits, tmp_path, monkeypatch):
    installed = dataclasses.replace(FORMATS["onnx"], packages=())
    monkeypatch.setitem(FORMATS, "onnx", installed)
    with pytest.raises(ValueError, match=r"`format='onnx'`.*int8"):
        export.export(quantized[1], tmp_path / "out.onnx", "onnx", dataset=digits)
    assert not (tmp_path / "out.onnx").exists()


# The command


def test_the_command(little, tmp_path, capsys):
    command = ["export", str(little / "best.keras"), "--out", str(tmp_path / "out.keras")]
    assert cli.main(command) == 0
    text = capsys.readouterr().out
    assert "largest difference" in text and "359 images" in text
    assert f"saved {tmp_path / 'out.keras'}  (" in text
    assert cli.main(command) == 2
    assert "--out must not exist yet." in capsys.readouterr().err

    (tmp_path / "foreign.keras").write_bytes((little / "best.keras").read_bytes())
    names = [f"the {n}" for n in range(10)]
    command[1] = str(tmp_path / "foreign.keras")
    command += ["--no-verify", "--overwrite", "--class-names"]
    assert cli.main([*command, *names]) == 0
    assert (tmp_path / "out.keras.txt").read_text("utf-8").splitlines() == names
    assert cli.main([*command, "a"]) == 2
    assert "--class-names must" in capsys.readouterr().err
