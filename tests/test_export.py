"""Exports: every format computes what Keras computes, or the file is not kept."""

import dataclasses
import hashlib
import importlib.util
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import keras
import numpy as np
import pytest
from helpers import Killed, kill_at, needs_tensorflow
from picture_folders import as_file
from PIL import Image

from highway_keras import analysis, data, layers, models
from highway_keras.export import FORMATS, ExportMismatch, cards, export, formats, verification
from highway_keras.export.exporting import staged
from highway_keras.export.serving_model import serving_model, unrolled
from highway_keras.util.files import BusyError

NAMES = [f"class {number} é" for number in range(10)]
WAYS = [(name, way) for name, one in FORMATS.items() for way in (None, *one.quantizations)]


def format_marks(name):
    absent = [p for p in FORMATS[name].packages if importlib.util.find_spec(p) is None]
    installed = pytest.mark.skipif(bool(absent), reason=f"lacks {absent}")
    return [installed] if name == "keras" else [installed, needs_tensorflow]


def noise(shape, count=40, classes=10):
    """Images of a pattern for each class, with noise."""
    rng, y = np.random.default_rng(0), np.arange(count) % classes
    patterns = rng.integers(0, 200, (classes, *shape))
    x = (patterns[y] + rng.integers(0, 50, (count, *shape))).astype("uint8")
    return data.Dataset("noise", x, y, x[:0], y[:0], x, y, tuple(NAMES))


def trained(model):
    """Train a network until it is sure enough for a comparison of int8."""
    images = noise(model.input_shape[1:])
    model.compile(keras.optimizers.Adam(0.002), "sparse_categorical_crossentropy")
    model.fit(images.x_train, images.y_train, epochs=30, verbose=0)
    return model


def complete(network):
    start = [keras.Input(network.input_shape[1:]), keras.layers.Rescaling(1 / 255)]
    return keras.Sequential([*start, network])


def own():
    """A user's network that has a bit of everything."""
    images = noise((8, 8, 1))
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            data.preprocessor(("scale", "gcn", "mean"), images.x_train),
            keras.layers.Conv2D(4, 3, activation="relu"),
            layers.ConvHighway2D(4, 3),
            keras.layers.Flatten(),
            keras.layers.Dense(12),
            keras.Sequential([keras.Input((12,)), layers.HighwayStack(2, activation="tanh")]),
            layers.Highway(),
            keras.layers.Dense(10, activation="softmax"),
        ],
        name="own",
    )


def tiny(classes=10):
    """The smallest network, for what does not depend on its layers."""
    end = keras.layers.Dense(classes, activation="softmax")
    start = [keras.Input((8, 8, 1)), keras.layers.Rescaling(1 / 255), keras.layers.Flatten()]
    return keras.Sequential([*start, end], name="tiny")


NETWORKS = {
    "own": own,
    "thin-highway-10": lambda: complete(models.create("thin-highway-10")),
    "mnist-highway-16": lambda: complete(models.create("mnist-highway-16")),
}


# Not Keras's int8, which another test compares with Keras's own bit by bit
QUICK = [(way, "own") for way in WAYS if way != ("keras", "int8")]


@pytest.fixture(scope="module")
def networks():
    built = {}

    def build(name):
        if name not in built:
            keras.utils.set_random_seed(0)
            built[name] = trained(NETWORKS[name]())
        return built[name]

    return build


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".lock" not in path.name and "-unfinished" not in str(path)
    }


# Formats and networks


@pytest.mark.parametrize(
    ("format", "quantize", "network"),
    [
        pytest.param(
            *way,
            network,
            marks=[*format_marks(way[0]), *([] if (way, network) in QUICK else [pytest.mark.slow])],
        )
        for way, network in itertools.product(WAYS, NETWORKS)
    ],
)
def test_every_format_computes_what_keras_computes(format, quantize, network, networks, tmp_path):
    model = networks(network)
    before = model.get_weights()
    images = noise(model.input_shape[1:])
    path = tmp_path / "new" / f"network{FORMATS[format].suffix}"
    done = export(model, path, images, quantize=quantize)
    assert done.difference <= {None: 1e-5, "float16": 2e-2, "int8": 1}[quantize]
    assert done.images == 40 and done.same_class >= (40 if quantize is None else 38)
    assert f"same class on {done.same_class} of 40 images" in str(done)
    np.testing.assert_equal(model.get_weights(), before)
    outputs = FORMATS[format].run(path)(images.x_test[:5])
    assert outputs.keys() - {"class_name"} == {"probabilities", "class_id"}
    expected = model.predict(images.x_test[:5], verbose=0)
    most = {None: 1e-5, "float16": 2e-2, "int8": 0.2}[quantize]
    np.testing.assert_allclose(outputs["probabilities"], expected, rtol=0, atol=most)
    assert format == "keras" or outputs["class_id"].dtype == "int64"
    check_card(path, images, done, format, quantize)


def test_an_export_with_other_weights_is_not_kept(monkeypatch, tmp_path):
    def other(model, path, *arguments):
        formats.write_keras(keras.models.clone_model(model), path, *arguments)

    changed = {**FORMATS, "keras": dataclasses.replace(FORMATS["keras"], write=other)}
    monkeypatch.setattr("highway_keras.export.exporting.FORMATS", changed)
    with pytest.raises(ExportMismatch, match="its probabilities differ"):
        export(tiny(), tmp_path / "tiny.keras", noise((8, 8, 1)))
    assert not list(tmp_path.iterdir())


def check_card(path, images, done, format, quantize):
    """A card says what a client needs."""
    card_path = path / "assets" / "model_card.json" if path.is_dir() else f"{path}.json"
    with open(card_path, encoding="utf-8") as file:
        card = json.load(file)
    assert (card["format"], card["quantize"], card["class_names"]) == (format, quantize, NAMES)
    shape = ", ".join(map(str, images.input_shape))
    assert card["inputs"]["images"] == f"uint8 (batch, {shape}), 0 to 255"
    assert card["outputs"]["probabilities"] == "float32 (batch, 10)"
    assert list(card.get("signatures", ())) == (
        ["serving_default", "encoded"] if format == "saved_model" else []
    )
    lines = cards.picture_code(images.input_shape).splitlines()
    assert card["images_from_a_picture"] == lines
    measured = dict(card["verification"])
    assert measured.pop("dataset") == "noise"
    assert measured == {name: getattr(done, name) for name in measured} and len(measured) == 6
    root, size = path if path.is_dir() else path.parent, 0
    for name, digest in card["sha256"].items():
        file = (root / name).read_bytes()
        assert hashlib.sha256(file).hexdigest() == digest
        size += len(file)
    assert size == done.size


@needs_tensorflow
def test_a_saved_model_has_two_signatures_and_constants_for_weights(networks, tmp_path):
    import tensorflow as tf

    model, images, path = networks("own"), noise((8, 8, 1)), tmp_path / "1"
    export(model, path, verify=False, class_names=NAMES)
    expected = model.predict(images.x_test[:7], verbose=0)
    classify = formats.run_saved_model(path)
    for batch in (1, 7):
        outputs = classify(images.x_test[:batch])
        np.testing.assert_allclose(outputs["probabilities"], expected[:batch], atol=1e-5)
        np.testing.assert_array_equal(outputs["class_id"], expected[:batch].argmax(-1))
        names = [name.decode() for name in outputs["class_name"]]
        assert names == [NAMES[number] for number in outputs["class_id"]]
    pictures = [as_file(Image.fromarray(image)) for image in images.x_test[:7, ..., 0]]
    for name, value in formats.run_saved_model(path, "encoded")(pictures).items():
        np.testing.assert_array_equal(value, outputs[name])

    # A server without XLA can run it, and a server with XLA does not compile each batch size.
    graph = tf.saved_model.load(str(path)).signatures["serving_default"].graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    assert not {node.op for node in nodes} & {"While", "StatelessWhile"}
    file = (path / "saved_model.pb").read_bytes()
    assert b"_XlaMustCompile" not in file
    kernel = keras.ops.convert_to_numpy(model.layers[-1].kernel)
    assert file.count(kernel.tobytes()) == 1  # for both signatures


def test_the_keras_format_leaves_the_optimizer_out_and_is_what_keras_quantizes(networks, tmp_path):
    model, chain = networks("own"), unrolled(networks("own"))
    twin = keras.models.clone_model(chain)
    twin.set_weights(chain.get_weights())
    with pytest.warns(UserWarning, match="does not have a `quantize` method"):
        twin.quantize("int8")
    export(model, tmp_path / "small.keras", quantize="int8", verify=False)
    loaded = keras.models.load_model(tmp_path / "small.keras")
    np.testing.assert_equal(loaded.get_weights(), twin.get_weights())
    assert sum(weight.dtype == "int8" for weight in loaded.weights) == 2 * 3 + 2
    export(model, tmp_path / "float.keras", verify=False, class_names=NAMES)
    assert models.load(tmp_path / "float.keras").class_names == tuple(NAMES)
    with zipfile.ZipFile(tmp_path / "float.keras") as file:
        assert b"optimizer" not in file.read("model.weights.h5")
    if keras.backend.backend() == "tensorflow":
        images = noise((8, 8, 1)).x_test
        outputs = serving_model(loaded)(images)
        expected = loaded.predict(images, verbose=0)
        np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)


# Verification


def test_a_wrong_export_is_an_error():
    expected = np.full((20, 10), 0.05, "float32")
    expected[range(20), np.arange(20) % 10] = 0.55
    labels, names = expected.argmax(-1), list("abcdefghij")
    right = {"probabilities": expected, "probabilities of PNG files": expected[:5]}
    right |= {"class_id": labels, "class_name": np.asarray(names)[labels]}
    right |= {"runtime": np.array("none")}

    def check(precision=None, **changed):
        return verification.compare(right | changed, expected, labels, precision, names)

    def changed_to(value):
        outputs = expected.copy()
        outputs[3, 4] = value
        return outputs

    measured = check()
    assert (measured["difference"], measured["accuracy"], measured["same_class"]) == (0, 1, 20)
    check("float16", probabilities=expected + 0.015)
    wrong = expected.copy()
    wrong[0] = wrong[1]
    one_wrong = {"probabilities": wrong, "class_id": wrong.argmax(-1)}  # too many for int8
    one_wrong["class_name"] = np.asarray(names)[one_wrong["class_id"]]
    for outputs, word in [
        ({"probabilities": changed_to(0.1)}, "probabilities"),
        ({"probabilities": changed_to(np.nan)}, "nan"),
        ({"probabilities": expected + 0.015}, "1e-05"),
        ({"precision": "float16", "probabilities": expected + 0.03}, r"0\.02"),
        ({"precision": "int8", **one_wrong}, "accuracy"),
        ({"precision": "int8", "probabilities": changed_to(np.nan)}, "nan"),
        ({"probabilities of PNG files": expected[1:6]}, "PNG"),
        ({"class_name": np.asarray(names)[::-1][labels]}, "class_name"),
        ({"probabilities": wrong, "precision": "int8"}, "class_id"),
    ]:
        with pytest.raises(ExportMismatch, match=word):
            check(**outputs)


@needs_tensorflow
@pytest.mark.parametrize(
    ("dtype", "precision"), [("float32", None), ("mixed_bfloat16", "float16"), ("int8", "int8")]
)
def test_the_network_decides_how_close_an_export_must_be(dtype, precision):
    policy = keras.dtype_policies.get(dtype if dtype != "int8" else "int8_from_float32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4, dtype=policy)])
    nested = keras.Sequential([keras.Input((4,)), model])
    assert verification.precision(nested, None) == precision
    assert verification.precision(nested, "int8") == "int8"


def test_the_new_process_can_import_neither_keras_nor_this_package(tmp_path):
    script = (
        "import runpy, sys; sys.argv = ['', 'onnx', 'no file', 'nowhere', '1']\n"
        f"try: runpy.run_path({formats.__file__!r}, run_name='__main__')\n"
        "except Exception: pass\n"
        "for name in ('keras', 'highway_keras', 'tensorflow'):\n"
        "    try: __import__(name); print(name)\n"
        "    except ImportError: pass\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == ""


def test_the_new_process_runs_no_modules_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "__file__", shutil.copy(formats.__file__, tmp_path))
    (tmp_path / "numpy.py").write_text("raise ValueError('a stranger ran')")
    with pytest.raises(ExportMismatch, match=r"does not run: KeyError: 'caffe'"):
        verification.run_in_new_process(tmp_path / "absent", "caffe", np.zeros((1, 8, 8, 1)))


# Arguments


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"format": "caffe"}, "format"),
        ({"quantize": "int8"}, "quantize"),
        ({"path": "out.h5"}, "path"),
        ({"images": None}, "images"),
        ({"model": keras.Sequential([keras.Input((9,)), keras.layers.Dense(2)])}, "model"),
        ({"class_names": ["a", "b"]}, "class_names"),
    ],
)
@needs_tensorflow
def test_bad_arguments(arguments, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    call = {"model": tiny(), "path": "out", "images": noise((8, 8, 1)), **arguments}
    with pytest.raises(ValueError, match=f"`{name}`"):
        export(**call)
    assert not list(tmp_path.iterdir())


def test_a_missing_package_or_backend_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(keras.backend, "backend", lambda: "tensorflow")
    for package in FORMATS["onnx"].packages:
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"tf2onnx.*\[onnx\]"):
        export(tiny(), tmp_path / "out.onnx", verify=False)
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="KERAS_BACKEND"):
        export(tiny(), tmp_path / "out", verify=False)


# Whole or not at all


@pytest.fixture(params=[pytest.param(n, marks=format_marks(n)) for n in ("saved_model", "keras")])
def earlier(request, tmp_path):
    """The path of an earlier export."""
    path = tmp_path / f"tiny{FORMATS[request.param].suffix}"
    export(tiny(), path, verify=False)
    return path


def fail(monkeypatch, at):
    """Have a step of an export fail."""

    def mismatch(*arguments):
        raise ExportMismatch("it computes something else")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    if at == "verify":
        monkeypatch.setattr(verification, "verify", mismatch)
    if at == "write":
        changed = {n: dataclasses.replace(one, write=full) for n, one in FORMATS.items()}
        monkeypatch.setattr("highway_keras.export.exporting.FORMATS", changed)
    if at == "rename":
        replace = os.replace

        def full_for_new(source, target):
            return full() if source.parent.name == "new" else replace(source, target)

        monkeypatch.setattr(os, "replace", full_for_new)


@pytest.mark.parametrize("at", ["write", "verify", "rename"])
def test_what_fails_leaves_the_earlier_export(at, earlier, monkeypatch):
    before = contents(earlier.parent)
    fail(monkeypatch, at)
    with pytest.raises((OSError, RuntimeError)):
        export(tiny(), earlier, noise((8, 8, 1)), verify=at == "verify", overwrite=True)
    assert contents(earlier.parent) == before
    assert not list(earlier.parent.glob(".*"))


def test_an_export_is_replaced_on_request_only(earlier):
    folder = earlier.parent
    before = contents(folder)
    (card,) = folder.rglob("*.json")
    assert json.loads(card.read_text("utf-8"))["class_names"] == list("0123456789")
    with pytest.raises(ValueError, match="overwrite"):
        export(tiny(), earlier, verify=False)
    assert contents(folder) == before
    export(tiny(), earlier, verify=False, class_names=list("abcdefghij"), overwrite=True)
    after = contents(folder)
    assert after.keys() == before.keys() and after != before
    assert json.loads(card.read_text("utf-8"))["class_names"] == list("abcdefghij")


@pytest.mark.parametrize(
    "foreign", ["tiny.keras", pytest.param("1/saved_model.pb", marks=needs_tensorflow)]
)
def test_what_has_no_card_is_never_replaced(foreign, tmp_path):
    path = tmp_path / foreign.partition("/")[0]
    (tmp_path / foreign).parent.mkdir(exist_ok=True)
    (tmp_path / foreign).write_text("mine")
    with pytest.raises(ValueError, match="`path`"):
        export(tiny(), path, verify=False, overwrite=True)
    assert contents(tmp_path) == {foreign: b"mine"}


def test_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "tiny.keras"
    with staged(path, "keras", False) as aside:
        with pytest.raises(BusyError, match=r"tiny\.keras"):
            export(tiny(), path, verify=False)
        aside.write_text("first")
    assert contents(tmp_path) == {"tiny.keras": b"first"}


def test_a_kill_between_the_renames_of_a_folder_is_repaired(tmp_path):
    old = tmp_path / ".1-unfinished" / "old" / "1"
    old.mkdir(parents=True)
    (old / "saved_model.pb").write_text("old")
    with pytest.raises(ValueError, match="exists"), staged(tmp_path / "1", "saved_model", False):
        pass
    assert contents(tmp_path) == {"1/saved_model.pb": b"old"}


@pytest.mark.parametrize("renames", range(6))
def test_a_kill_between_the_renames_of_two_files_mixes_no_exports(renames, tmp_path, monkeypatch):
    path = tmp_path / "tiny.xml"
    names = ("tiny.xml", "tiny.bin", "tiny.xml.json")
    for name in names:
        (tmp_path / name).write_text("old")
    killing = kill_at(renames)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        with staged(path, "openvino", True) as aside:
            for name in names:
                (aside.parent / name).write_text("new")
            patch.setattr(os, "rename", killing)
            patch.setattr(os, "replace", killing)
    assert contents(tmp_path).get("tiny.xml", b"old") == b"old"
    with pytest.raises(ValueError, match="exists"), staged(path, "openvino", False):
        pass
    assert contents(tmp_path) == dict.fromkeys(names, b"old")


# The serving page


def blocks_of_the_page():
    page = pathlib.Path(__file__).parents[1] / "docs" / "serving.md"
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_serving_page_has_the_lines_of_the_cards():
    assert cards.picture_code((28, 28, 1)) in blocks_of_the_page()


@needs_tensorflow
def test_the_gates_of_the_serving_page_are_served(tmp_path, monkeypatch):
    import tensorflow as tf

    monkeypatch.chdir(tmp_path)
    pathlib.Path("run").mkdir()
    images = data.load("digits")
    network = models.create("thin-highway-10", input_shape=images.input_shape)
    models.save("run/best.keras", complete(network), dataset="digits")
    (block,) = [block for block in blocks_of_the_page() if "gate_model" in block]
    exec(block, {})
    x = images.x_test[:4].astype("float32")
    classify = tf.saved_model.load("serving/watched/1").signatures["serving_default"]
    (name,) = classify.structured_input_signature[1]
    served = {key: value.numpy() for key, value in classify(**{name: tf.constant(x)}).items()}
    model = models.load("run").model
    np.testing.assert_allclose(served["probabilities"], model.predict(x, verbose=0), atol=1e-5)
    gates = [gate.mean(axis=-1) for gate in analysis.gates(model, x).values()]
    np.testing.assert_allclose(served["gates"], np.stack(gates, axis=-1), atol=1e-5)
