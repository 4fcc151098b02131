"""Trained networks as files: saved, loaded, packed for the zoo, and what goes wrong."""

import json
import zipfile

import keras
import numpy as np
import pytest
from helpers import all_but, needs_data

from highway_keras import Highway, HighwayWrapper, data, models, results, training
from highway_keras.models import cards
from highway_keras.models.saved import SETTINGS
from highway_keras.results.spread import mean_text
from highway_keras.util.messages import Notice
from tools import pack
from tools.frames import RESULTS, rows

NAME = "thin-highway-10"
SHIPPED = [(entry["name"], entry["dataset"]) for entry in cards.read_index()]
FIRST_ENTRY = cards.read_index()[0]  # of NAME
ABOUT = {"dataset": "insects", "class_names": ["ant", "bee", "fly"]}


def predict(model, x):
    return keras.ops.convert_to_numpy(model(x))


def gated(name, input_shape, classes, activation="relu", units=8, **options):
    images = keras.Input(input_shape)
    x = keras.layers.Normalization()(images)
    x = keras.layers.Dense(units)(keras.layers.Flatten()(x))
    x = Highway(activation=activation, **options)(keras.layers.Dropout(0.4)(x))
    x = HighwayWrapper(keras.layers.Dense(units, "relu"))(x)
    return keras.Model(images, keras.layers.Dense(classes, "softmax")(x), name=name)


@pytest.fixture
def own():
    """A network of a user's own, registered; its layers have no names."""
    models.register("own", gated, "insects", (4, 4, 1), 3)
    model = models.create("own")
    model.layers[1].adapt(np.arange(32.0).reshape(2, 4, 4, 1))
    return model


@pytest.fixture
def complete(own):
    images = np.random.default_rng(0).integers(0, 256, (20, 4, 4, 1)).astype("uint8")
    preprocess = data.preprocessor(("scale", "mean"), images)
    return keras.Sequential([keras.Input((4, 4, 1)), preprocess, own], name="own")


PIXELS = np.random.default_rng(1).integers(0, 256, (5, 4, 4, 1)).astype("float32")


# Saving and loading


def test_a_saved_network_is_loaded_with_what_it_was_trained_on(complete, tmp_path):
    path = tmp_path / "best.keras"
    models.save(path, complete, **ABOUT, preprocessing=["scale", "mean"])
    for place in (path, str(path), tmp_path):  # the folder of a run
        trained = models.load(place)
        assert (trained.dataset, trained.class_names) == ("insects", ("ant", "bee", "fly"))
        assert trained.settings == {**ABOUT, "preprocessing": ["scale", "mean"]}
        assert trained.path == path and trained.network.name == "own"
        expected = predict(complete, PIXELS)
        for whole in (trained.model, keras.models.load_model(path)):
            np.testing.assert_allclose(predict(whole, PIXELS), expected, atol=1e-6)
        apart = predict(trained.network, trained.preprocess(PIXELS))
        np.testing.assert_allclose(apart, expected, atol=1e-6)


def test_load_reads_what_keras_writes(own, complete, tmp_path):
    complete.save(tmp_path / "complete.keras")
    trained = models.load(tmp_path / "complete.keras")
    assert (trained.dataset, trained.settings) == (None, {})
    assert trained.class_names == ("0", "1", "2")
    own.save(tmp_path / "own.keras")
    trained = models.load(tmp_path / "own.keras")
    assert trained.preprocess is None and trained.network is trained.model


DAMAGE = {
    "cut": lambda content: content[:1000],
    "one byte": lambda content: (
        content[: len(content) // 2] + b"?" + content[len(content) // 2 + 1 :]
    ),
    "text": lambda content: b"no network",
}


@pytest.mark.parametrize("damage", [*DAMAGE, "number of names"])
def test_damage_ends_in_one_line(complete, tmp_path, damage):
    path = tmp_path / "own.keras"
    names = ["ant"] if damage == "number of names" else ABOUT["class_names"]
    models.save(path, complete, class_names=names)
    if damage in DAMAGE:
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    for call in (models.load, lambda path: models.create("own", weights=path)):
        with pytest.raises(ValueError, match=r"own\.keras") as caught:
            call(path)
        assert len(str(caught.value).splitlines()) == 1


def test_a_network_that_does_not_classify(tmp_path):
    x = keras.Input((3,))
    keras.Model(x, [x, x]).save(tmp_path / "two.keras")
    with pytest.raises(ValueError, match="cannot be loaded"):
        models.load(tmp_path / "two.keras")


# Weights into a network


def test_weights_of_a_file_or_a_run(own, complete, tmp_path):
    """Layers without names are matched by their order."""
    models.save(tmp_path / "best.keras", complete)
    own.save(tmp_path / "bare.keras")
    x = np.random.default_rng(0).random((5, 4, 4, 1), "float32")
    for weights in (tmp_path, tmp_path / "best.keras", tmp_path / "bare.keras"):
        for dropout in (0.0, 1.0):
            again = models.create("own", weights=weights, dropout=dropout)
            np.testing.assert_array_equal(predict(again, x), predict(own, x))


@pytest.mark.parametrize("changes", [{"classes": 5}, {"input_shape": (64, 64, 1)}], ids=str)
def test_weights_with_other_classes_or_another_size_of_images(changes):
    with pytest.warns(Notice, match="newly initialized"):
        other = models.create("mnist-highway-16", weights="mnist", **changes)
    trained = models.create("mnist-highway-16", weights="mnist")
    for old, new in zip(trained.weights[:-2], other.weights[:-2], strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize(
    "changes",
    [
        {"activation": "tanh"},
        {"activation": keras.layers.LeakyReLU()},
        {"carry": "learned"},
        {"units": 7},
        {"input_shape": (8, 8, 1)},
    ],
)
def test_weights_of_a_network_that_computes_otherwise(own, tmp_path, changes):
    """With another activation, the network would run, and be wrong."""
    own.save(tmp_path / "own.keras")
    for classes in (3, 5):
        with pytest.raises(ValueError, match="weights"):
            models.create("own", weights=tmp_path / "own.keras", classes=classes, **changes)


MISTAKES = [
    ({"weights": "minst"}, FileNotFoundError, "weights.*mnist"),
    ({"weights": "cifar10"}, FileNotFoundError, "weights.*mnist"),
    ({"weights": "mnist", "units": 49}, ValueError, "weights.*plain.*shapes"),
    ({"weights": "mnist", "depth": 9}, ValueError, "weights"),
    ({"weights": "mnist", "activation": "relu"}, ValueError, "weights.*activation"),
]


@pytest.mark.parametrize(("options", "error", "argument"), MISTAKES)
def test_mistake(options, error, argument):
    with pytest.raises(error, match=argument):
        models.create(NAME, **options)


# What comes with the package


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """An empty folder of weights."""
    monkeypatch.setattr(cards, "WEIGHTS", tmp_path)
    monkeypatch.setattr(pack, "WEIGHTS", tmp_path)
    (tmp_path / cards.INDEX).write_text("[]")
    return tmp_path


def test_packed_weights_are_rounded_and_verified(zoo):
    network = models.create(NAME)
    preprocess = data.preprocessor(("scale",), np.zeros((1, 28, 28, 1), "uint8"))
    names = list("0123456789")
    about = {"dataset": "mnist", "class_names": names, "preprocessing": ["scale"]}
    file = zoo / f"{NAME}-mnist.keras"
    pack.write_weights(file, preprocess, network, about)
    entry = pack.add_to_index(FIRST_ENTRY, file)
    assert cards.read_index() == [entry] and models.get(NAME).weights == ("mnist",)
    halved = [w.astype("float16").astype("float32") for w in network.get_weights()]
    again = models.create(NAME, weights="mnist")
    np.testing.assert_equal(again.get_weights(), halved)
    assert models.load(file).class_names == tuple(names)
    assert entry["bytes"] < 2 * network.count_params()
    good = file.read_bytes()
    for damage in (good[:-1], good[:5000] + b"x" + good[5001:]):
        file.write_bytes(damage)
        with pytest.raises(ValueError, match="damaged"):
            models.create(NAME, weights="mnist")


@pytest.mark.parametrize(("name", "dataset"), SHIPPED)
def test_shipped_weights_are_whole_and_described(name, dataset):
    entry, file = models.get(name).weights_entry(dataset), models.get(name).weights_file(dataset)
    assert file.stat().st_size == entry["bytes"]
    assert file.with_suffix(".md").read_text() == pack.card_text(entry)
    assert min(entry["accuracies"]) > entry["accuracy"] - 0.01 and entry["hardware"]
    runs = results.spread([100 * accuracy for accuracy in entry["accuracies"]])
    assert mean_text(runs) == results.accuracies()[name]  # of all runs of the rows
    total = {"mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000}[dataset]
    held_out = round(total * training.get_recipe(entry["recipe"]).validation)
    assert (entry["images"], entry["held_out"]) == (total - held_out, held_out)
    recorded = json.loads(pack.RECORD.read_text("utf-8"))[entry["file"]]
    assert recorded["sha256"] == entry["sha256"]  # `tools.pack` records both
    with zipfile.ZipFile(file) as archive:
        settings = json.loads(archive.read(SETTINGS))
    assert (settings["model"], settings["dataset"]) == (name, dataset)
    assert settings["class_names"] == entry["class_names"]
    assert settings["preprocessing"] == entry["preprocessing"]


SMALL = [("thin-highway-100", "mnist"), ("mnist-highway-16", "mnist"), ("highway-a", "cifar10")]


@pytest.mark.parametrize("trained", all_but(SMALL, SHIPPED), ids="-".join)
def test_shipped_weights_compute_what_they_did(trained):
    name, dataset = trained
    recorded = json.loads(pack.RECORD.read_text("utf-8"))[f"{name}-{dataset}.keras"]
    np.testing.assert_allclose(pack.outputs(name, dataset), recorded["outputs"], atol=2e-3)
    shipped = models.load(models.get(name).weights_file(dataset)).network.get_weights()
    np.testing.assert_equal(models.create(name, weights=dataset).get_weights(), shipped)


@pytest.mark.parametrize("trained", all_but([(NAME, "mnist")], SHIPPED), ids="-".join)
def test_shipped_weights_reach_the_accuracy_of_their_card(trained):
    name, dataset = trained
    needs_data(dataset)
    model = models.load(models.get(name).weights_file(dataset)).model
    accuracy = training.evaluate(model, data.load(dataset)).accuracy
    # Another processor may decide a handful of the 10,000 images otherwise.
    assert accuracy == pytest.approx(models.get(name).weights_entry(dataset)["accuracy"], abs=3e-4)


SECTION_4 = sorted((RESULTS / "section4").glob("*.keras"))


@pytest.mark.parametrize("file", all_but(SECTION_4[-1:], SECTION_4), ids=lambda file: file.stem)
def test_a_network_of_section_4_reaches_what_its_rows_say(file):
    dataset, start, seed = file.stem.rsplit("-", 2)
    needs_data(dataset)
    layers = rows("analysis", dataset=dataset, start=-float(start), seed=int(seed[-1]))
    accuracy = training.evaluate(models.load(file).model, data.load(dataset)).accuracy
    assert accuracy == pytest.approx(layers["test_accuracy"].iloc[0], abs=3e-4)
