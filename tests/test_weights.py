"""Trained weights of the zoo: packing, finding and loading them, and what goes wrong."""

import hashlib
import importlib.util
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
from PIL import Image
from selection import all_but

from highway_keras import Highway, data, io, models, training
from highway_keras.cli import command as cli
from highway_keras.data import preprocessing
from highway_keras.models import model_cards, shipped
from tools import outputs
from tools.pack import pack

NAME = "thin-highway-10"
PARAMETERS = 85_660
SHIPPED = [(entry["name"], entry["dataset"]) for entry in shipped.read_index()]
ROOT = pathlib.Path(__file__).parents[1]
BUILT_FROM = ("highway_keras", "models", "tuning", "results", "benchmarks", "setup.cfg")
BUILT_FROM += ("pyproject.toml", "README.md", "LICENSE")


def noise(name="mnist", data_dir=None, validation=0.1, limit=None, input_shape=None):
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
    """Folders of two runs of a thin network, and one of a convolutional network."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "load", noise)
        small_fit(folder / "0", seed=3)
        small_fit(folder / "1", seed=4)
        cifar = {"preprocessing": ("gcn", "mean"), "dropout": 0.5, "l2": 0.001}
        small_fit(folder / "conv", "mnist-highway-16", recipe="quick", **cifar)
    return folder


@pytest.fixture
def zoo(runs, tmp_path, monkeypatch):
    """An empty folder of weights, and images of noise under the name of MNIST."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "weights")
    monkeypatch.setattr(data, "load", noise)
    return tmp_path / "weights"


@pytest.fixture
def packed(zoo, runs):
    return pack([runs / "0", runs / "1"])


def rounded(model, dtype="float16"):
    return [value.astype(dtype).astype("float32") for value in model.get_weights()]


def assert_equal(first, second):
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def saved_network(run):
    return keras.models.load_model(run / "best.keras").layers[-1]


# Packing and loading


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_weights_are_those_of_the_run_rounded(dtype, zoo, runs):
    entry = pack([runs / "0"], dtype).entry
    network = models.create(NAME, weights="mnist")
    assert_equal(network.get_weights(), rounded(saved_network(runs / "0"), dtype))
    whole = keras.models.load_model(models.get(NAME).weights_file("mnist"))
    assert_equal(whole.layers[-1].get_weights(), network.get_weights())
    share = {"float16": 0.5, "float32": 1}[dtype]
    assert entry["dtype"] == dtype and entry["bytes"] < share * 4 * PARAMETERS


def test_a_packed_network_takes_raw_images(packed):
    whole = keras.models.load_model(models.get(NAME).weights_file("mnist"))
    assert training.evaluate(whole, noise()) == packed.after
    x = noise().x_test.astype("float32")
    network = models.create(NAME, weights="mnist")
    np.testing.assert_allclose(
        whole.predict(x, verbose=0), network.predict(x / 256, verbose=0), rtol=1e-4, atol=1e-6
    )


def test_statistics_of_the_preprocessing_come_along(zoo, runs):
    packed = pack([runs / "conv"])
    assert packed.after == pytest.approx(packed.before, abs=1e-2)
    steps = keras.models.load_model(models.get("mnist-highway-16").weights_file("mnist")).layers[0]
    original = keras.models.load_model(runs / "conv" / "best.keras").layers[0]
    assert [layer.name for layer in steps.layers] == ["gcn", "mean"]
    for one, other in zip(steps.get_weights(), original.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_the_index_says_what_was_trained(packed, runs):
    (entry,) = shipped.read_index()
    assert entry == packed.entry
    results = [training.RunFolder(runs / n).read_json()["results"] for n in "01"]
    assert entry["accuracies"] == [result["test_accuracy"] for result in results]
    assert entry["seeds"] == [3, 4] and (entry["recipe"], entry["epochs"]) == ("thin", 1)
    assert (entry["images"], entry["held_out"]) == (50, 10) and entry["preprocessing"] == ["scale"]
    assert "CPU" in entry["hardware"] and f"keras {keras.__version__}" in entry["versions"]
    assert (entry["loss"], entry["accuracy"]) == packed.after
    assert models.get(NAME).weights == ("mnist",) and models.get("thin-plain-10").weights == ()


def test_what_a_recipe_says_of_itself_may_differ(packed, zoo, runs, tmp_path):
    shutil.copytree(runs / "1", tmp_path / "later")
    folder = training.RunFolder(tmp_path / "later")
    settings = folder.read_json()
    settings["recipe"] |= {"source": "a book", "reasons": {"momentum": "in other words"}}
    io.write_json(folder.path / "run.json", settings)
    assert pack([runs / "0", folder.path]).entry["seeds"] == packed.entry["seeds"] == [3, 4]


@pytest.mark.parametrize(
    ("policy", "words"), [("float32", ""), ("mixed_bfloat16", ", in `mixed_bfloat16`")]
)
def test_the_card_says_what_a_network_was_trained_in(policy, words, packed, zoo):
    entry = {**packed.entry, "dtype_policy": policy}
    io.write_json(zoo / shipped.INDEX, [entry])
    assert f"| `thin`, 1 epoch{words} |" in models.card_text(NAME, "mnist")


def test_the_model_card(packed, zoo):
    text = (zoo / f"{NAME}-mnist.md").read_text()
    assert text == models.card_text(NAME, "mnist")
    facts = ("85,660 parameters", "`thin`, 1 epoch", "2 (seeds 3, 4)", packed.entry["sha256"])
    facts += ("| 50 training images, preprocessed by `scale` (gray levels / 256); 10 others held",)
    for fact in facts:
        assert fact in text
    assert f"Test accuracy | {100 * packed.after[1]:.2f} %" in text and "Apache-2.0" in text


def test_a_card_can_explain_every_step_of_the_preprocessing():
    assert model_cards.STEPS.keys() == preprocessing.PREPROCESSING.keys()


def test_packing_again_replaces_the_entry(packed, runs):
    pack([runs / "1"], "float32")
    pack([runs / "conv"])
    entries = [(e["name"], e["dtype"], e["seeds"]) for e in shipped.read_index()]
    assert entries == [(NAME, "float32", [4]), ("mnist-highway-16", "float16", [0])]


def test_what_fit_saved_is_loaded_without_its_preprocessing(runs):
    for name, run in ((NAME, "0"), ("mnist-highway-16", "conv")):
        network = models.create(name, weights=runs / run / "best.keras")
        assert_equal(network.get_weights(), saved_network(runs / run).get_weights())


def test_training_may_start_from_packed_weights(packed, tmp_path):
    start = {"model_options": {"weights": "mnist"}, "learning_rate": 1e-12}
    run = small_fit(tmp_path / "run", **start)
    tuned = saved_network(run.folder.path).get_weights()
    for one, other in zip(tuned, models.create(NAME, weights="mnist").get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


# Mistakes


def test_damaged_weights(packed, zoo):
    file = zoo / packed.entry["file"]
    good = file.read_bytes()
    message = r"weights .*-mnist.keras are damaged: reinstall highway-keras. Expected sha256="
    for damage in (good[:-1], good[:5000] + b"x" + good[5001:]):
        file.write_bytes(damage)
        with pytest.raises(ValueError, match=message):
            models.create(NAME, weights="mnist")
    file.unlink()
    message = r"weights .*-mnist.keras are missing: reinstall highway-keras"
    with pytest.raises(FileNotFoundError, match=message):
        models.get(NAME).weights_file("mnist")


@pytest.mark.filterwarnings("ignore:Skipping nested container")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: models.create(NAME, weights="minst"),
            "`weights` must be None or an existing file, or one of the trained ones: mnist. "
            "Received: weights='minst'",
        ),
        (
            lambda: models.create("thin-plain-10", weights="mnist"),
            "`weights` must be None or an existing file. Received: weights='mnist'",
        ),
        (
            lambda: models.get(NAME).weights_file("cifar10"),
            "must name trained weights of 'thin-highway-10': mnist. Received: weights='cifar10'",
        ),
        (
            lambda: models.card_text("thin-plain-10", "cifar10"),
            "of 'thin-plain-10': there are none yet",
        ),
        (
            lambda: models.create(NAME, weights="mnist", units=49),
            "`weights` does not fit the model 'thin-highway-10'",
        ),
        (
            lambda: models.create(NAME, weights="mnist", implementation="layers"),
            "`weights` does not fit the model 'thin-highway-10'",
        ),
    ],
)
def test_weights_that_are_not_there_or_do_not_fit(call, message, packed):
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("folders", "options", "message"),
    [
        (["0", "conv"], {}, "must be alike. They differ in: model, recipe"),
        (["none"], {}, "`folders` must hold runs that have ended. Received: .*none"),
        (["deep"], {}, r"the network as it is registered. Received: model_options={'depth': 3}"),
        (["0"], {"dtype": "int8"}, "`dtype` must be one of 'float16', 'float32'. Received: dtype="),
        (["large"], {}, "do not fit into float16. Pack them as float32"),
    ],
)
def test_runs_that_cannot_be_packed(folders, options, message, zoo, runs, tmp_path):
    if folders == ["deep"]:
        small_fit(runs / "deep", model_options={"depth": 3})
    if folders == ["large"]:
        shutil.copytree(runs / "0", runs / "large")
        model = keras.models.load_model(runs / "0" / "best.keras")
        model.layers[-1].set_weights([value + 1e5 for value in model.layers[-1].get_weights()])
        model.save(runs / "large" / "best.keras")
    with pytest.raises(ValueError, match=message):
        pack([runs / name for name in folders], **options)
    assert shipped.read_index() == []


# The command


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def test_evaluate_and_predict(packed, tmp_path, capsys):
    assert run("evaluate", NAME, "--weights", "mnist") == 0
    measured, card = capsys.readouterr().out.splitlines()
    accuracy = f"{100 * packed.after[1]:.2f} %"
    assert measured.startswith(f"test accuracy {accuracy}  test loss ")
    assert card == f"its model card says {accuracy}"
    pictures = [tmp_path / f"{n}.png" for n in range(3)]
    for n, path in enumerate(pictures):
        Image.fromarray(noise().x_test[n, ..., 0]).save(path)
    whole = keras.models.load_model(models.get(NAME).weights_file("mnist"))
    expected = whole.predict(noise().x_test[:3], verbose=0).argmax(-1)
    for arguments in (
        [NAME, *pictures, "--weights", "mnist"],
        [NAME, "--weights=mnist", *pictures],
    ):
        assert run("predict", *arguments) == 0
        lines = capsys.readouterr().out.splitlines()[1:]
        assert [int(line.split()[1]) for line in lines] == expected.tolist()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"evaluate {NAME} --weights cifar10", "of 'thin-highway-10': mnist. Received: .*cifar10"),
        ("evaluate thin-higway-10 --weights mnist", "Did you mean thin-highway-10"),
        (f"evaluate {NAME}", r"a network without weights. Use trained ones with --weights mnist,"),
        (
            "predict thin-plain-10 x.png",
            r"without weights. Train it with `fit`, or give a .keras file",
        ),
    ],
)
def test_mistakes_of_the_command(command, message, packed, capsys):
    assert run(*command.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line)


def test_list_shows_weights(packed, capsys):
    run("list")
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
    assert file.with_suffix(".md").read_text() == models.card_text(name, dataset)
    assert models.create(name, weights=dataset).count_params() == models.get(name).parameters
    assert min(entry["accuracies"]) > entry["accuracy"] - 0.01 and entry["hardware"]


@pytest.mark.parametrize(("name", "dataset"), SHIPPED)
def test_shipped_weights_compute_what_they_did(name, dataset):
    entry = shipped.find_entry(name, dataset)
    recorded = json.loads(outputs.RECORD.read_text("utf-8"))[entry["file"]]
    assert recorded["sha256"] == entry["sha256"]  # new weights: `python -m tools.outputs`
    np.testing.assert_allclose(outputs.outputs(name, dataset), recorded["outputs"], atol=2e-3)


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


@pytest.mark.parametrize(("name", "dataset"), SHIPPED)
def test_a_card_says_how_many_images_the_recipe_trains_on(name, dataset):
    total = {"mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000}[dataset]
    entry = shipped.find_entry(name, dataset)
    held_out = round(total * training.get_recipe(entry["recipe"]).validation)
    assert (entry["images"], entry["held_out"]) == (total - held_out, held_out)
    text = models.card_text(name, dataset)
    assert f"| {total - held_out:,} training images" in text
    assert (f"{held_out:,} others held out" in text) == (held_out > 0)


QUICK = [("thin-highway-10", "mnist"), ("mnist-highway-16", "mnist")]


@pytest.mark.parametrize("trained", all_but(QUICK, SHIPPED), ids="-".join)
def test_shipped_weights_reach_the_accuracy_of_their_card(trained, capsys):
    name, dataset = trained
    if not pathlib.Path(os.environ.get("TFDS_DATA_DIR", "none"), dataset).is_dir():
        pytest.skip(f"TFDS_DATA_DIR has no {dataset}")
    assert run("evaluate", name, "--weights", dataset) == 0
    measured, card = capsys.readouterr().out.splitlines()
    # Another processor may decide a handful of the 10,000 images otherwise.
    assert float(measured.split()[2]) == pytest.approx(float(card.split()[4]), abs=0.03)


def test_a_wheel_holds_the_weights(tmp_path):
    if not all(map(importlib.util.find_spec, ("build", "setuptools"))):
        pytest.skip("building a wheel needs build and setuptools")
    for name in BUILT_FROM:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for entry in json.loads(archive.read("highway_keras/models/weights/index.json")):
            content = archive.read(f"highway_keras/models/weights/{entry['file']}")
            assert hashlib.sha256(content).hexdigest() == entry["sha256"]
        assert "highway_keras/cli/command.py" in archive.namelist()
        live = ROOT / "highway_keras/analysis/live"
        files = {
            str(f.relative_to(ROOT))
            for kind in "css html js py".split()
            for f in live.glob(f"*.{kind}")
        }
        assert len(files) > 10 and files <= set(archive.namelist())


# Another top


@pytest.mark.parametrize("name", ["thin-highway-10", "mnist-highway-16"])
def test_without_the_top_the_features_have_the_weights(name):
    whole = models.create(name, weights="mnist")
    features = models.create(name, weights="mnist", include_top=False)
    layer = whole.get_layer(features.layers[-1].name)
    x = np.random.default_rng(0).random((2, *whole.input_shape[1:]), "float32")
    expected = keras.Model(whole.input, layer.output)(x)
    np.testing.assert_array_equal(features(x), expected)


@pytest.mark.parametrize("name", ["thin-highway-10", "mnist-highway-16"])
def test_with_other_classes_only_the_classifier_starts_anew(name):
    whole = models.create(name, weights="mnist")
    with pytest.warns(UserWarning, match=f"predictions of '{name}' starts anew; all other layers"):
        model = models.create(name, weights="mnist", classes=5)
    assert model.output_shape == (None, 5)
    for old, new in zip(whole.layers[:-1], model.layers[:-1], strict=True):
        for weight, copied in zip(old.get_weights(), new.get_weights(), strict=True):
            np.testing.assert_array_equal(weight, copied)


def test_another_top_does_not_excuse_another_network():
    with pytest.raises(ValueError, match="`weights` does not fit the model 'thin-highway-10'"):
        models.create("thin-highway-10", weights="mnist", classes=5, units=20)


@pytest.mark.parametrize("other", [{"classes": 5}, {"include_top": False}])
@pytest.mark.filterwarnings("ignore:predictions of 'thin-highway-10' starts anew")
def test_a_file_may_have_its_own_number_of_classes(other, tmp_path):
    source = models.create(NAME, units=8, classes=3)
    source.save(tmp_path / "three.keras")
    model = models.create(NAME, units=8, weights=tmp_path / "three.keras", **other)
    for old, new in zip(source.layers[:-1], model.layers, strict=False):
        for weight, copied in zip(old.get_weights(), new.get_weights(), strict=True):
            np.testing.assert_array_equal(weight, copied)


@pytest.mark.parametrize("other", [{}, {"classes": 5}, {"include_top": False}])
def test_weights_of_another_activation_do_not_fit(other, tmp_path):
    models.create(NAME, units=8, activation="relu").save(tmp_path / "relu.keras")
    with pytest.raises(ValueError, match="weights"):
        models.create(NAME, units=8, weights=tmp_path / "relu.keras", **other)
    fits = {"activation": "relu", "classifier_activation": None}
    models.create(NAME, units=8, weights=tmp_path / "relu.keras", **fits)


def test_weights_of_another_gate_do_not_fit(tmp_path):
    def gated(name, input_shape, classes, gate="sigmoid"):
        images = keras.Input(input_shape)
        x = Highway(transform_activation=gate)(keras.layers.Flatten()(images))
        return keras.Model(images, keras.layers.Dense(classes, "softmax")(x), name=name)

    models.register("gated", gated, "digits", (2, 2, 1), 3)
    models.create("gated", gate="hard_sigmoid").save(tmp_path / "hard.keras")
    with pytest.raises(ValueError, match="weights"):
        models.create("gated", weights=tmp_path / "hard.keras")
    models.create("gated", weights=tmp_path / "hard.keras", gate="hard_sigmoid")
