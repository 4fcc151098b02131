"""Trained weights of the zoo: packing, finding and loading them, and what goes wrong."""

import json
import os
import pathlib
import types
import zipfile

import keras
import numpy as np
import pytest
from helpers import all_but, altered, read_noise

from highway_keras import Highway, HighwayStack, data, models, results, training
from highway_keras.cli import command as cli
from highway_keras.data import loading
from highway_keras.models import shipped
from highway_keras.models.weight_files import load_features, load_weights
from highway_keras.results.spread import mean_text
from highway_keras.training.saved_network import settings_beside
from highway_keras.util import files
from highway_keras.util.messages import Notice
from tools.pack import RECORD, outputs, pack

pytestmark = pytest.mark.usefixtures("untraced")
NAME = "thin-highway-10"
SHIPPED = [(entry["name"], entry["dataset"]) for entry in shipped.read_index()]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of two runs that differ in their seeds, and of others."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "read_public", read_noise)
        training.fit(NAME, "mnist", out=folder / "0", seed=3, epochs=1, verbose=0)
    altered(folder / "0", folder / "1", seed=4)
    altered(folder / "0", folder / "deep", model_options={"depth": 3})
    altered(folder / "0", folder / "other", model="thin-plain-10", seed=4)
    return folder


@pytest.fixture
def zoo(runs, tmp_path, monkeypatch):
    """An empty folder of weights, and images of noise under the name of MNIST."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "weights")
    monkeypatch.setattr(loading, "read_public", read_noise)
    return tmp_path / "weights"


@pytest.fixture
def packed(zoo, runs):
    return pack([runs / "0", runs / "1"])


# Packing and loading


def test_packed_weights_are_those_of_the_run_rounded(packed, runs):
    network = models.create(NAME, weights="mnist")
    trained = keras.models.load_model(runs / "0" / "best.keras").layers[-1].get_weights()
    halved = [w.astype("float16").astype("float32") for w in trained]
    np.testing.assert_equal(network.get_weights(), halved)
    whole = keras.models.load_model(models.get(NAME).weights_file("mnist"))
    np.testing.assert_equal(whole.layers[-1].get_weights(), network.get_weights())
    preprocess, x = models.get(NAME).preprocessor("mnist"), data.load("mnist").x_test
    np.testing.assert_allclose(network(preprocess(x)), whole(x), atol=1e-6)
    assert packed["dtype"] == "float16" and packed["bytes"] < 2 * network.count_params()
    measured = training.evaluate(whole, data.load("mnist"))
    assert (packed["loss"], packed["accuracy"]) == (measured.loss, measured.accuracy)
    assert shipped.read_index() == [packed] and models.get(NAME).weights == ("mnist",)
    ended = [training.RunFolder(runs / n).read_json()["results"] for n in "01"]
    assert packed["accuracies"] == [run["test_accuracy"] for run in ended]
    text = models.get(NAME).weights_file("mnist").with_suffix(".md").read_text()
    assert text == models.card_text(NAME, "mnist")
    facts = ("85,660 parameters", "| `thin`, 1 epoch |", "2 (seeds 3, 4)", packed["sha256"])
    facts += ("| 54 training images, preprocessed by `scale` (gray levels / 256); 6 others held",)
    assert [fact for fact in facts if fact not in text] == []
    files.write_json(shipped.FOLDER / shipped.INDEX, [{**packed, "dtype_policy": "mixed_bfloat16"}])
    assert "| `thin`, 1 epoch, in `mixed_bfloat16` |" in models.card_text(NAME, "mnist")


# Mistakes


def test_damaged_weights(packed, zoo):
    file = zoo / packed["file"]
    good = file.read_bytes()
    for damage in (good[:-1], good[:5000] + b"x" + good[5001:]):
        file.write_bytes(damage)
        with pytest.raises(ValueError, match=r"damaged"):
            models.create(NAME, weights="mnist")
    file.unlink()
    with pytest.raises(FileNotFoundError):
        models.get(NAME).weights_file("mnist")


def test_files_of_the_zoo_have_the_dropout_of_their_network():
    file = models.get("mnist-highway-16").weights_file("mnist")
    layers = keras.models.load_model(file)._flatten_layers()
    assert max(getattr(layer, "rate", 0) for layer in layers) == 0.5
    settings = settings_beside(file)
    assert (settings["dropout_in_file"], settings["recipe"]["dropout"]) == (1.0, 0.5)


def test_weights_of_a_run_are_named_by_its_folder(runs):
    by_folder, by_file = runs / "0", runs / "0" / "best.keras"
    one, other = (models.create(NAME, weights=path) for path in (by_folder, by_file))
    np.testing.assert_equal(one.get_weights(), other.get_weights())
    assert models.get(NAME).preprocessor(by_folder).layers
    with pytest.raises(ValueError, match="`weights` must be those of a network with its prepro"):
        models.get(NAME).preprocessor(None)


def test_weights_of_adapters_are_those_of_their_network(tmp_path):
    network = models.create("mnist-highway-16", weights="mnist")
    for layer in network.layers:
        if hasattr(layer, "enable_lora") and layer.weights:
            layer.enable_lora(2, b_initializer=keras.initializers.Constant(0.05))
    network.save(tmp_path / "lora.keras")
    loaded = models.create("mnist-highway-16", weights=tmp_path / "lora.keras")
    x = np.random.default_rng(0).random((5, 28, 28, 1))
    expected = network.predict(x, verbose=0)
    np.testing.assert_allclose(loaded.predict(x, verbose=0), expected, atol=1e-5)


def own(activation="relu", include_top=True, classes=3, rematerialize=False):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
    model.add(HighwayStack(3, activation=activation, rematerialize=rematerialize))
    if include_top:
        model.add(keras.layers.Dense(classes, name="predictions"))
        model.add(keras.layers.Activation("softmax"))
    return model


def test_the_classifier_is_the_last_layer_with_weights(tmp_path):
    """What follows it has none; a network without it has no classifier."""
    own(rematerialize=True).save(tmp_path / "own.keras")
    with pytest.warns(Notice, match="predictions of .* is newly initialized"):
        load_weights(own(classes=5), tmp_path / "own.keras", new_classifier=True)
    own(include_top=False).save(tmp_path / "features.keras")
    options = {"include_top": False}
    load_features(own(**options), tmp_path / "features.keras", own)
    with pytest.raises(ValueError, match="other settings"):
        load_features(own("tanh", **options), tmp_path / "features.keras", own)


def test_weights_of_a_stack_load_into_a_chain():
    x = np.random.default_rng(0).random((5, 28, 28, 1))
    forms = ("stack", "layers")
    for top in (True, False):
        options = {"weights": "mnist", "include_top": top}
        made = [models.create(NAME, implementation=f, **options) for f in forms]
        one, other = (model.predict(x, verbose=0) for model in made)
        assert len(made[1].layers) > 10 and np.allclose(one, other, atol=1e-5)


def test_runs_that_cannot_be_packed(zoo, runs):
    for names in (["0", "other"], ["0", "0"], ["deep"]):
        with pytest.raises(ValueError, match="Runs must"):
            pack([runs / name for name in names])
    assert shipped.read_index() == []


# What comes with the package


@pytest.mark.parametrize(("name", "dataset"), SHIPPED)
def test_shipped_weights_are_whole_and_described(name, dataset):
    entry, file = shipped.find_entry(name, dataset), models.get(name).weights_file(dataset)
    assert file.stat().st_size == entry["bytes"]
    text = models.card_text(name, dataset)
    assert file.with_suffix(".md").read_text() == text
    assert min(entry["accuracies"]) > entry["accuracy"] - 0.01 and entry["hardware"]
    runs = results.spread([100 * accuracy for accuracy in entry["accuracies"]])
    assert mean_text(runs) == results.accuracies()[name]  # of all runs of the rows
    total = {"mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000}[dataset]
    held_out = round(total * training.get_recipe(entry["recipe"]).validation)
    assert (entry["images"], entry["held_out"]) == (total - held_out, held_out)
    assert f"| {total - held_out:,} training images" in text
    recorded = json.loads(RECORD.read_text("utf-8"))[entry["file"]]
    assert recorded["sha256"] == entry["sha256"]  # `tools.pack` records both


SMALL = [("thin-highway-100", "mnist"), ("mnist-highway-16", "mnist"), ("highway-a", "cifar10")]


def test_shipped_weights_stay_small():
    assert sum(entry["bytes"] for entry in shipped.read_index()) <= 25_000_000


@pytest.mark.parametrize("trained", all_but(SMALL, SHIPPED), ids="-".join)
def test_shipped_weights_compute_what_they_did(trained):
    name, dataset = trained
    recorded = json.loads(RECORD.read_text("utf-8"))[f"{name}-{dataset}.keras"]
    np.testing.assert_allclose(outputs(name, dataset), recorded["outputs"], atol=2e-3)
    assert models.create(name, weights=dataset).count_params() == models.get(name).parameters


@pytest.mark.parametrize("trained", all_but([(NAME, "mnist")], SHIPPED), ids="-".join)
def test_shipped_weights_reach_the_accuracy_of_their_card(trained, capsys):
    name, dataset = trained
    if not pathlib.Path(os.environ.get("TFDS_DATA_DIR", "none"), dataset).is_dir():
        pytest.skip(f"TFDS_DATA_DIR has no {dataset}")
    assert cli.main(["evaluate", name, "--weights", dataset]) == 0
    printed = capsys.readouterr().out
    # Another processor may decide a handful of the 10,000 images otherwise.
    stated = 100 * shipped.find_entry(name, dataset)["accuracy"]
    assert float(printed.split()[2]) == pytest.approx(stated, abs=0.03)
    assert f"its model card says {stated:.2f} %" in printed


def test_a_python_without_lzma_does_not_call_them_damaged(monkeypatch):
    monkeypatch.setattr(zipfile, "lzma", None)
    with pytest.raises(ValueError, match="lzma"):
        training.SavedNetwork(models.get(NAME).weights_file("mnist"))


def test_weights_on_the_hub(tmp_path, monkeypatch):
    """Keras saves and loads there; a folder stands in for the hub."""
    from keras.src.saving import saving_lib

    hub = types.SimpleNamespace(snapshot_download=lambda repo_id, **_: str(tmp_path / repo_id))
    monkeypatch.setattr(saving_lib, "huggingface_hub", hub)
    saved = keras.models.load_model(models.get(NAME).weights_file("mnist"))
    saved.save(tmp_path / "owner" / NAME, zipped=False)
    ours = models.create(NAME, weights="mnist").get_weights()
    np.testing.assert_equal(models.create(NAME, weights=f"hf://owner/{NAME}").get_weights(), ours)
    features = models.create(NAME, weights=f"hf://owner/{NAME}", include_top=False)
    np.testing.assert_equal(features.get_weights(), ours[:-2])
    monkeypatch.setattr(saving_lib, "huggingface_hub", None)
    with pytest.raises(ImportError, match="huggingface_hub"):
        models.create(NAME, weights=f"hf://owner/{NAME}")


def test_a_network_saved_without_its_top_loads_without_it(tmp_path):
    features = models.create(NAME, weights="mnist", include_top=False)
    features.save(tmp_path / "features.keras")
    again = models.create(NAME, weights=tmp_path / "features.keras", include_top=False)
    np.testing.assert_equal(again.get_weights(), features.get_weights())


def test_features_at_several_depths():
    name, layers = "mnist-highway-16", ["stage1_highway2", "stage3_pool"]
    whole = models.create(name, weights="mnist")
    x = np.random.default_rng(0).random((2, *whole.input_shape[1:]), "float32")
    expected = [keras.Model(whole.input, whole.get_layer(layer).output)(x) for layer in layers]
    single = models.create(name, weights="mnist", features_at=layers[0])(x)
    np.testing.assert_array_equal(single, expected[0])
    for options in ({}, {"include_top": False}):
        found = models.create(name, weights="mnist", features_at=layers, **options)(x)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="stage9"):
        models.create(name, features_at=["stage9"])


# Networks of a user's own


def gated(name, input_shape, classes, gate="sigmoid", activation="relu", pool="max", rows=2, **of):
    images = keras.Input(input_shape)
    pools = {"max": keras.layers.MaxPooling2D, "avg": keras.layers.AveragePooling2D}
    x = pools[pool](2)(keras.layers.Normalization()(images))
    x = keras.layers.Permute((2, 1))(keras.layers.Reshape((rows, -1))(x))
    x = keras.layers.Flatten()(x)
    x = Highway(activation=activation, transform_activation=gate, **of)(x)
    return keras.Model(images, keras.layers.Dense(classes, "softmax")(x), name=name)


@pytest.mark.parametrize(
    "changes", [{"gate": "hard_sigmoid"}, {"activation": "tanh"}, {"pool": "avg"}, {"rows": 1}]
)
def test_weights_of_a_network_that_computes_otherwise_do_not_fit(changes, tmp_path):
    """Their shapes are the same: the network would run, and be wrong."""
    models.register("gated", gated, "digits", (4, 4, 1), 3)
    models.create("gated", **changes).save(tmp_path / "other.keras")
    for classes in ({}, {"classes": 5}):
        with pytest.raises(ValueError, match="weights"):
            models.create("gated", weights=tmp_path / "other.keras", **classes)
    again = models.create("gated", weights=tmp_path / "other.keras", **changes)
    again.layers[-2].transform.trainable = False  # which changes no output
    again.save(tmp_path / "frozen.keras")
    models.create("gated", weights=tmp_path / "frozen.keras", **changes)
    learned = models.create("gated", carry="learned")
    learned.layers[-2].carry.activation = keras.activations.hard_sigmoid
    learned.save(tmp_path / "learned.keras")
    with pytest.raises(ValueError, match="weights"):
        models.create("gated", weights=tmp_path / "learned.keras", carry="learned")


def test_weights_that_keras_derives_others_from_are_copied_whole(tmp_path):
    models.register("normalized", gated, "digits", (4, 4, 1), 3)
    model, x = models.create("normalized"), np.arange(32.0).reshape(2, 4, 4, 1)
    model.layers[1].adapt(x)
    model.save(tmp_path / "adapted.keras")
    copy = models.create("normalized", weights=tmp_path / "adapted.keras")
    np.testing.assert_array_equal(copy(x), model(x))
