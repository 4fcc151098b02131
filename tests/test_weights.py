"""Trained weights of the zoo: packing, finding and loading them, and what goes wrong."""

import json
import os
import pathlib
import shutil
import types
import warnings

import keras
import numpy as np
import pytest
from PIL import Image
from selection import all_but

from highway_keras import Highway, data, io, models, training
from highway_keras.cli import command as cli
from highway_keras.models import shipped
from tools import outputs
from tools.pack import pack

pytestmark = pytest.mark.usefixtures("untraced")
NAME = "thin-highway-10"
SHIPPED = [(entry["name"], entry["dataset"]) for entry in shipped.read_index()]


def noise(*arguments, **options):
    """Ten kinds of noise, in the shape of MNIST."""
    y = np.arange(80) % 10
    x = np.random.default_rng(0).integers(0, 100, (80, 28, 28, 1)) + 15 * y[:, None, None, None]
    x = x.astype("uint8")
    parts = (x[:50], y[:50], x[50:60], y[50:60], x[60:], y[60:])
    return data.Dataset("mnist", *parts, tuple("0123456789"))


def small_fit(out, name=NAME, **changes):
    options = {"epochs": 1, "verbose": 0, "resume": True, **changes}
    return training.fit(name, "mnist", out=out, **options)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of two runs that differ in their seeds, and of two others."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "load", noise)
        small_fit(folder / "0", seed=3)
        small_fit(folder / "gcn", "thin-plain-10", preprocessing=("gcn", "mean"))
    altered(folder / "0", folder / "1", seed=4)
    altered(folder / "0", folder / "deep", model_options={"depth": 3})
    return folder


def altered(run, out, **changes):
    """Copy a run's folder to one whose `run.json` says something else."""
    folder = training.RunFolder(shutil.copytree(run, out))
    io.write_json(folder.path / "run.json", {**folder.read_json(), **changes})
    return folder.path


@pytest.fixture
def zoo(runs, tmp_path, monkeypatch):
    """An empty folder of weights, and images of noise under the name of MNIST."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "weights")
    monkeypatch.setattr(data, "load", noise)
    return tmp_path / "weights"


@pytest.fixture
def packed(zoo, runs):
    return pack([runs / "0", runs / "1"])


def assert_equal(first, second):
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def saved_network(run):
    return keras.models.load_model(run / "best.keras").layers[-1]


# Packing and loading


def test_packed_weights_are_those_of_the_run_rounded(packed, runs):
    network = models.create(NAME, weights="mnist")
    trained = saved_network(runs / "0").get_weights()
    assert_equal(network.get_weights(), [w.astype("float16").astype("float32") for w in trained])
    whole = keras.models.load_model(models.get(NAME).weights_file("mnist"))
    assert_equal(whole.layers[-1].get_weights(), network.get_weights())
    assert packed["dtype"] == "float16" and packed["bytes"] < 2 * network.count_params()
    measured = training.evaluate(whole, noise())
    assert (packed["loss"], packed["accuracy"]) == (measured.loss, measured.accuracy)
    x = noise().x_test.astype("float32")
    raw, scaled = whole.predict(x, verbose=0), network.predict(x / 256, verbose=0)
    np.testing.assert_allclose(raw, scaled, rtol=1e-4, atol=1e-6)


def test_statistics_of_the_preprocessing_come_along(zoo, runs):
    entry = pack([runs / "gcn"])
    assert entry["accuracy"] == pytest.approx(entry["accuracy_before"], abs=1e-2)
    steps = keras.models.load_model(models.get("thin-plain-10").weights_file("mnist")).layers[0]
    original = keras.models.load_model(runs / "gcn" / "best.keras").layers[0]
    assert [layer.name for layer in steps.layers] == ["gcn", "mean"]
    for one, other in zip(steps.get_weights(), original.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_the_index_and_the_card_say_what_was_trained(packed, runs, zoo):
    (entry,) = shipped.read_index()
    assert entry == packed
    results = [training.RunFolder(runs / n).read_json()["results"] for n in "01"]
    assert entry["accuracies"] == [result["test_accuracy"] for result in results]
    assert entry["seeds"] == [3, 4] and (entry["recipe"], entry["epochs"]) == ("thin", 1)
    assert (entry["images"], entry["held_out"]) == (50, 10) and entry["preprocessing"] == ["scale"]
    assert "CPU" in entry["hardware"] and f"keras {keras.__version__}" in entry["versions"]
    assert models.get(NAME).weights == ("mnist",) and models.get("thin-plain-10").weights == ()
    text = (zoo / f"{NAME}-mnist.md").read_text()
    assert text == models.card_text(NAME, "mnist")
    facts = ("85,660 parameters", "| `thin`, 1 epoch |", "2 (seeds 3, 4)", entry["sha256"])
    facts += ("| 50 training images, preprocessed by `scale` (gray levels / 256); 10 others held",)
    head = text.split("---\n", 2)[1]  # what the hub reads
    assert "library_name: keras\n" in head and "- ylecun/mnist\n" in head
    facts += (f"Test accuracy | {100 * entry['accuracy']:.2f} %", "Apache-2.0")
    assert [fact for fact in facts if fact not in text] == []
    io.write_json(zoo / shipped.INDEX, [{**entry, "dtype_policy": "mixed_bfloat16"}])
    assert "| `thin`, 1 epoch, in `mixed_bfloat16` |" in models.card_text(NAME, "mnist")


def test_packing_again_replaces_the_entry(packed, runs):
    pack([runs / "1"], "float32")
    pack([runs / "gcn"])
    entries = [(e["name"], e["dtype"], e["seeds"]) for e in shipped.read_index()]
    assert entries == [(NAME, "float32", [4]), ("thin-plain-10", "float16", [0])]


# Mistakes


def test_damaged_weights(packed, zoo):
    file = zoo / packed["file"]
    good = file.read_bytes()
    for damage in (good[:-1], good[:5000] + b"x" + good[5001:]):
        file.write_bytes(damage)
        with pytest.raises(ValueError, match=r"damaged"):
            models.create(NAME, weights="mnist")
    file.unlink()
    with pytest.raises(FileNotFoundError, match="weights"):
        models.get(NAME).weights_file("mnist")


def test_weights_that_are_not_there_or_do_not_fit(packed):
    absent, create = FileNotFoundError, models.create
    for call, error, message in [
        (lambda: create(NAME, weights="minst"), absent, "weights.*: mnist.*minst"),
        (lambda: create("thin-plain-10", weights="mnist"), absent, "weights"),
        (lambda: models.get(NAME).weights_file("cifar10"), ValueError, "weights.*mnist"),
        (lambda: models.card_text("thin-plain-10", "cifar10"), ValueError, "none yet"),
        (lambda: create(NAME, weights="mnist", units=49), ValueError, "weights.*shapes"),
        (lambda: create(NAME, weights="mnist", implementation="layers"), ValueError, "layers"),
    ]:
        with pytest.raises(error, match=message):
            call()


def test_runs_that_cannot_be_packed(zoo, runs, tmp_path):
    large = shutil.copytree(runs / "0", tmp_path / "large")
    model = keras.models.load_model(large / "best.keras")
    model.layers[-1].set_weights([value + 1e5 for value in model.layers[-1].get_weights()])
    model.save(large / "best.keras")
    for folders, dtype, message in [
        ([runs / "0", runs / "gcn"], "float16", "model, recipe"),
        ([runs / "0", runs / "0"], "float16", "seeds 3, 3"),
        ([runs / "none"], "float16", "folders"),
        ([runs / "deep"], "float16", "model_options"),
        ([runs / "0"], "int8", "dtype"),
        ([large], "float16", "float16"),
    ]:
        with pytest.raises(ValueError, match=message):
            pack(folders, dtype)
    assert shipped.read_index() == []


# The command


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def test_the_command_uses_them(packed, tmp_path, capsys):
    assert run("evaluate", NAME, "--weights", "mnist") == 0
    accuracy = f"{100 * packed['accuracy']:.2f} %"
    printed = capsys.readouterr().out
    assert f"test accuracy {accuracy}" in printed
    assert f"its model card says {accuracy}" in printed
    pictures = [tmp_path / f"{n}.png" for n in range(3)]
    for n, path in enumerate(pictures):
        Image.fromarray(noise().x_test[n, ..., 0]).save(path)
    whole = keras.models.load_model(models.get(NAME).weights_file("mnist"))
    expected = whole.predict(noise().x_test[:3], verbose=0).argmax(-1)
    assert run("predict", NAME, *pictures, "--weights", "mnist") == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [int(line.split()[1]) for line in lines] == expected.tolist()
    assert run("list") == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.endswith("weights")
    assert [line.split()[0] for line in lines if line.endswith("mnist")] == [NAME]


# What comes with the package


def test_something_is_shipped():
    assert (NAME, "mnist") in SHIPPED
    assert sum(entry["bytes"] for entry in shipped.read_index()) <= 25e6


@pytest.mark.parametrize(("name", "dataset"), SHIPPED)
def test_shipped_weights_are_whole_and_described(name, dataset):
    entry, file = shipped.find_entry(name, dataset), models.get(name).weights_file(dataset)
    assert file.stat().st_size == entry["bytes"]
    text = models.card_text(name, dataset)
    assert file.with_suffix(".md").read_text() == text
    assert min(entry["accuracies"]) > entry["accuracy"] - 0.01 and entry["hardware"]
    total = {"mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000}[dataset]
    held_out = round(total * training.get_recipe(entry["recipe"]).validation)
    assert (entry["images"], entry["held_out"]) == (total - held_out, held_out)
    assert f"| {total - held_out:,} training images" in text
    recorded = json.loads(outputs.RECORD.read_text("utf-8"))[entry["file"]]
    assert recorded["sha256"] == entry["sha256"]  # new weights: `python -m tools.outputs`


SMALL = [("thin-highway-100", "mnist"), ("mnist-highway-16", "mnist"), ("highway-a", "cifar10")]


@pytest.mark.parametrize("trained", all_but(SMALL, SHIPPED), ids="-".join)
def test_shipped_weights_compute_what_they_did(trained):
    name, dataset = trained
    recorded = json.loads(outputs.RECORD.read_text("utf-8"))[f"{name}-{dataset}.keras"]
    np.testing.assert_allclose(outputs.outputs(name, dataset), recorded["outputs"], atol=2e-3)
    assert models.create(name, weights=dataset).count_params() == models.get(name).parameters


def test_shipped_weights_read_other_digits():
    """Not MNIST's: scikit-learn's, enlarged from 8x8 to MNIST's size and margin."""
    images = data.load("digits")
    enlarged = np.zeros((len(images.x_test), 28, 28, 1), "uint8")
    for image, small in zip(enlarged, images.x_test[..., 0], strict=True):
        large = Image.fromarray(small).resize((20, 20), Image.Resampling.BICUBIC)
        image[4:24, 4:24, 0] = large
    saved = training.SavedNetwork(models.get(NAME).weights_file("mnist"))
    assert saved.dataset == "mnist"
    guesses = saved.model.predict(enlarged, verbose=0).argmax(-1)
    assert (guesses == images.y_test).mean() > 0.6


QUICK = [("thin-highway-10", "mnist")]


@pytest.mark.parametrize("trained", all_but(QUICK, SHIPPED), ids="-".join)
def test_shipped_weights_reach_the_accuracy_of_their_card(trained, capsys):
    name, dataset = trained
    if not pathlib.Path(os.environ.get("TFDS_DATA_DIR", "none"), dataset).is_dir():
        pytest.skip(f"TFDS_DATA_DIR has no {dataset}")
    assert run("evaluate", name, "--weights", dataset) == 0
    measured = float(capsys.readouterr().out.split()[2])
    # Another processor may decide a handful of the 10,000 images otherwise.
    stated = 100 * shipped.find_entry(name, dataset)["accuracy"]
    assert measured == pytest.approx(stated, abs=0.03)


def test_weights_on_the_hub(tmp_path, monkeypatch):
    """Keras saves and loads there; a folder stands in for the hub."""
    from keras.src.saving import saving_lib

    hub = types.SimpleNamespace(snapshot_download=lambda repo_id, **_: str(tmp_path / repo_id))
    monkeypatch.setattr(saving_lib, "huggingface_hub", hub)
    saved = keras.models.load_model(models.get(NAME).weights_file("mnist"))
    saved.save(tmp_path / "owner" / NAME, zipped=False)
    ours = models.create(NAME, weights="mnist").get_weights()
    assert_equal(models.create(NAME, weights=f"hf://owner/{NAME}").get_weights(), ours)
    features = models.create(NAME, weights=f"hf://owner/{NAME}", include_top=False)
    assert_equal(features.get_weights(), ours[:-2])
    with pytest.raises(ValueError, match="weights"):
        models.create("thin-plain-10", weights=f"hf://owner/{NAME}")
    monkeypatch.setattr(saving_lib, "huggingface_hub", None)
    with pytest.raises(ImportError, match="huggingface_hub"):
        models.create(NAME, weights=f"hf://owner/{NAME}")


def test_features_at_several_depths():
    name, layers = "mnist-highway-16", ["stage1_highway2", "stage3_pool"]
    whole = models.create(name, weights="mnist")
    x = np.random.default_rng(0).random((2, *whole.input_shape[1:]), "float32")
    expected = [keras.Model(whole.input, whole.get_layer(layer).output)(x) for layer in layers]
    for options in ({}, {"include_top": False}):
        found = models.create(name, weights="mnist", features_at=layers, **options)(x)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="stage9"):
        models.create(name, features_at=["stage9"])


# Another top


@pytest.mark.parametrize("name", ["thin-highway-10", "mnist-highway-16"])
def test_with_another_top_the_layers_below_have_the_weights(name):
    whole = models.create(name, weights="mnist")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # such as Keras's of layers that it skips
        features = models.create(name, weights="mnist", include_top=False)
    layer = whole.get_layer(features.layers[-1].name)
    x = np.random.default_rng(0).random((2, *whole.input_shape[1:]), "float32")
    expected = keras.Model(whole.input, layer.output)(x)
    np.testing.assert_array_equal(features(x), expected)
    with pytest.warns(UserWarning, match=f"predictions of '{name}' is newly initialized"):
        model = models.create(name, weights="mnist", classes=5)
    assert model.output_shape == (None, 5)
    for old, new in zip(whole.layers[:-1], model.layers[:-1], strict=True):
        assert_equal(old.get_weights(), new.get_weights())


def test_another_top_does_not_excuse_another_network(tmp_path):
    with pytest.raises(ValueError, match="weights"):
        models.create(NAME, weights="mnist", classes=5, units=20)
    deeper = models.thin_mlp(12, "plain", units=8)
    deeper.save(tmp_path / "deeper.keras")
    with pytest.raises(ValueError, match="weights"):
        weights = tmp_path / "deeper.keras"
        models.create("thin-plain-10", units=8, weights=weights, include_top=False)


@pytest.mark.parametrize(
    "other", [{"classes": 5}, {"include_top": False}, {"classes": 3, "classifier_activation": None}]
)
@pytest.mark.filterwarnings("ignore:predictions of 'thin-highway-10' is newly initialized")
def test_a_file_may_have_another_top(other, tmp_path):
    source = models.create(NAME, units=8, classes=3)
    source.save(tmp_path / "three.keras")
    model = models.create(NAME, units=8, weights=tmp_path / "three.keras", **other)
    for old, new in zip(source.layers[:-1], model.layers, strict=False):
        assert_equal(old.get_weights(), new.get_weights())


def gated(name, input_shape, classes, gate="sigmoid", activation="relu", pool="max"):
    images = keras.Input(input_shape)
    pools = {"max": keras.layers.MaxPooling2D, "avg": keras.layers.AveragePooling2D}
    x = keras.layers.Flatten()(pools[pool](2)(images))
    x = Highway(activation=activation, transform_activation=gate)(x)
    return keras.Model(images, keras.layers.Dense(classes, "softmax")(x), name=name)


@pytest.mark.parametrize(
    "changes", [{"gate": "hard_sigmoid"}, {"activation": "tanh"}, {"pool": "avg"}]
)
def test_weights_of_a_network_that_computes_otherwise_do_not_fit(changes, tmp_path):
    """Their shapes are the same: the network would run, and be wrong."""
    models.register("gated", gated, "digits", (4, 4, 1), 3)
    models.create("gated", **changes).save(tmp_path / "other.keras")
    for classes in ({}, {"classes": 5}):
        with pytest.raises(ValueError, match="weights"):
            models.create("gated", weights=tmp_path / "other.keras", **classes)
    models.create("gated", weights=tmp_path / "other.keras", **changes)
