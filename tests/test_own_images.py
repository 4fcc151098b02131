"""A user's own pictures in folders, from the files to everything that is made of them."""

import json
import os
import pathlib
import shutil

import keras
import numpy as np
import pytest
from helpers import Fails, all_but, run
from picture_folders import CLASSES, images, little, write_classes, write_parts
from PIL import Image

from highway_keras import Highway, analysis, data, training
from highway_keras.data import DataError, dataset, load, picture_files
from highway_keras.util.messages import Notice

pytestmark = pytest.mark.usefixtures("untraced")
SMALL = {"verbose": 0, "recipe": "digits", "batch_size": 16, "epochs": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pictures in `train/` and `test/`."""
    return write_parts(tmp_path_factory.mktemp("images") / "insects")


@pytest.fixture
def copy(folder, tmp_path):
    """A copy of the folder, to change it."""
    return shutil.copytree(folder, tmp_path / "insects")


def fit(source, out, **changes):
    keras.utils.set_random_seed(0)
    return training.fit(little(), source, out=out, **SMALL | changes)


def pictures_of(found):
    return np.concatenate([found.x_train, found.x_val, found.x_test])


# Which files


def test_what_is_no_picture_is_left_out_and_said(tmp_path):
    write_classes(tmp_path, 60)
    for name in (
        "notes.txt",
        ".hidden.png",
        ".cache/0.png",
        "__MACOSX/0.png",
        "cat/clip.gif",
        "ant/.thumb.png",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("no picture")
    Image.new("L", (4, 4)).save(tmp_path / "beside.png")
    beside = pytest.warns(Notice, match="beside the folders of classes are left out: 1")
    with pytest.warns(Notice, match=r"left out: 1 "), beside:
        assert len(load(tmp_path, validation=0).x_train) == 48


def test_folders_with_numbers_are_in_the_order_of_the_numbers(tmp_path):
    names = tuple(map(str, range(12)))
    folder = write_classes(tmp_path / "images", 120, classes=names)
    assert load(folder).class_names == names
    little(classes=12).save(tmp_path / "plain.keras")  # whose order nothing beside it says
    with pytest.warns(Notice, match="10 before 2"):
        training.SavedNetwork(tmp_path / "plain.keras").load(folder)


def test_links_to_folders_are_followed(tmp_path):
    write_classes(tmp_path / "images", 60)
    (tmp_path / "images" / "ant").rename(tmp_path / "elsewhere")
    before = len(pictures_of(load(tmp_path / "images", validation=0)))
    (tmp_path / "images" / "ant").symlink_to(tmp_path / "elsewhere")
    assert len(pictures_of(load(tmp_path / "images", validation=0))) == before * 3 / 2 == 60


def test_pictures_are_read_as_predict_reads_them(tmp_path):
    """Scaled to the size asked for, with a notice, and photos turned as their EXIF data say."""
    write_classes(tmp_path, 30, size=(9, 7))
    turned = tmp_path / "bee" / "photo.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.arange(63, dtype="uint8").reshape(7, 9)).save(turned, exif=exif)
    with pytest.warns(Notice, match="31 are scaled to 6 x 6"):
        found = load(tmp_path, input_shape=(6, 6, 1))
    wanted = data.read_image(turned, (6, 6, 1))
    assert any(np.array_equal(image, wanted) for image in pictures_of(found))
    assert load(tmp_path).input_shape == (9, 7, 1)  # the photo, too, as it is seen
    with pytest.warns(Notice, match="31 are read as colors"):
        assert load(tmp_path, input_shape=(9, 7, 3)).input_shape == (9, 7, 3)


def instead(count, *classes):
    """Replace the folder by pictures of these classes."""
    return lambda folder: [shutil.rmtree(folder), write_classes(folder, count, classes=classes)]


FAULTS = {
    "empty": (lambda f: [shutil.rmtree(path) for path in f.iterdir()], "none"),
    "one class": (instead(5, "ant"), "ant"),
    "few pictures": (instead(2, "ant", "bee"), "2"),
    "other in test": (lambda f: (f / "test/bee").rename(f / "test/wasp"), "bee, wasp"),
    "no pictures": (lambda f: [p.unlink() for p in (f / "train/cat").iterdir()], "cat"),
    "no test": (lambda f: shutil.rmtree(f / "test"), "train/ and test/"),
    "a part of another name": (lambda f: (f / "train").rename(f / "Train"), "Train"),
}


@pytest.mark.parametrize(("spoil", "named"), FAULTS.values(), ids=FAULTS)
def test_a_bad_folder_is_refused(spoil, named, copy):
    spoil(copy)
    with pytest.raises(DataError, match=named) as caught:
        load(copy)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.* of 75 pictures")
def test_results_are_kept_out_of_the_pictures(copy, monkeypatch, capsys):
    monkeypatch.chdir(copy)
    for arguments in ({}, {"out": "run"}, {"out": copy}):
        with pytest.raises(ValueError, match="in the folder of the pictures"):
            training.fit("thin-highway-10", pathlib.Path("."), recipe="digits", **arguments)
    network = copy.parent / "network.keras"
    little(Highway(), classes=len(CLASSES)).save(network)
    for command in ("analyze", "compact", "export"):
        assert run(command, network, "--dataset", copy, "--out", copy / "x") == 2
        assert "in the folder of the pictures" in capsys.readouterr().err
    assert {path.name for path in copy.iterdir()} == {"train", "test"}


@pytest.mark.filterwarnings("ignore:The pictures of")
@pytest.mark.parametrize("most", [dataset.MOST_IN_MEMORY, 0], ids=["in memory", "streamed"])
def test_every_broken_picture_is_named_and_may_be_left_out(most, copy, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "MOST_IN_MEMORY", most)
    broken = [copy / "train/bee/001.png", copy / "train/cat/005.png", copy / "test/ant/000.png"]
    broken[0].write_text("no picture")
    for path in broken[1:]:
        os.truncate(path, 60)
    with pytest.raises(DataError) as caught:
        load(copy)
    assert all(str(path) in str(caught.value) for path in broken)
    with pytest.warns(Notice, match="left out") as said:
        found = load(copy, skip_broken=True)
    assert all(any(str(path) in str(one.message) for one in said) for path in broken)
    for path in broken:
        path.unlink()
    assert found.fingerprint() == load(copy).fingerprint()
    broken[0].write_text("no picture")
    measured = load(copy, test_only=True)
    assert measured.fingerprint(("test",)) == found.fingerprint(("test",))


def test_a_shape_that_cannot_be_is_refused_before_any_picture_is_decoded(copy, monkeypatch):
    Image.new("L", (5, 5)).save(copy / "train" / "ant" / "odd.png")
    monkeypatch.setattr(picture_files, "read_image", None)  # which would fail
    for shape in (None, (8, 8), (None, 8, 1), (0, 8, 1), (8, 8, 2)):  # None: of several sizes
        with pytest.raises(DataError, match="input_shape"):
            load(copy, input_shape=shape)


# From the folder to everything that is made of it


def test_the_classes_keep_their_names(folder, capsys, tmp_path):
    trained = tmp_path / "run"
    options = ["--epochs", 20, "--recipe", "digits", "--model-set", "depth=2", "--out", trained]
    shape = ["--input-shape", 8, 8, 1]
    assert run("fit", "thin-highway-10", "--dataset", folder, *options, *shape) == 0
    capsys.readouterr()
    settings = json.loads((trained / "run.json").read_text())
    assert settings["class_names"] == list(CLASSES)
    picture = folder / "test" / "cat" / "002.png"
    assert run("predict", trained / "best.keras", picture, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["classes"][0]["class"] == "cat"
    for source in ([], ["--dataset", folder]):
        assert run("evaluate", trained / "best.keras", "--json", *source) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["accuracy"] == settings["results"]["test_accuracy"] > 0.9
        assert found["confusion"] == settings["results"]["confusion"]
        assert (found["images"], found["dataset"]) == (15, "insects")
    assert run("analyze", trained / "best.keras", "--out", tmp_path / "look") == 0
    live = (tmp_path / "look" / "live.html").read_text()
    assert all(f'"{name}"' in live for name in CLASSES)
    export = ["export", trained / "best.keras", "--format", "keras", "--no-verify", "--out"]
    assert run(*export, tmp_path / "insects.keras") == 0
    assert (tmp_path / "insects.keras.txt").read_text().split() == list(CLASSES)
    for use in (["predict", "--json", picture], ["evaluate", "--json"]):  # by the card beside it
        assert run(use[0], tmp_path / "insects.keras", *use[1:]) == 0
        assert '"cat"' in capsys.readouterr().out
    assert run(*export, tmp_path / "german.keras", "--class-names", "Biene", "Katze", "Hund") == 0
    for source in ([], ["--dataset", folder]):  # whose names are others
        assert run("evaluate", tmp_path / "german.keras", "--json", *source) == 0
        assert '"Katze"' in capsys.readouterr().out
    named = training.SavedNetwork(tmp_path / "german.keras")  # as if its data had had no names
    named.settings |= {"data_classes": ["0", "1", "2"], "class_names": list(CLASSES)}
    assert named.load(folder).class_names == CLASSES
    sizes = ["--layers", 0, "--out", tmp_path / "small"]
    assert run("compact", tmp_path / "german.keras", *sizes) == 0
    assert run("predict", tmp_path / "small", picture) == 0
    assert "Hund" in capsys.readouterr().out
    (tmp_path / "insects.keras").write_bytes((trained / "final.keras").read_bytes())
    assert training.SavedNetwork(tmp_path / "insects.keras").class_names == ["0", "1", "2"]


COMPARED = [("cd", "dc", False), ("cd", "cd", True), ("cd", None, True), ("01", "dc", True)]


@pytest.mark.parametrize(("known", "given", "fits"), [*COMPARED, (None, "dc", True)])
def test_classes_are_compared_where_both_have_names(known, given, fits, tmp_path):
    x, y = images(20, classes=2)
    arrays = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
    np.savez(tmp_path / "pets.npz", **arrays, **({"class_names": [*given]} if given else {}))
    little(classes=2).save(tmp_path / "best.keras")
    if known:
        (tmp_path / "run.json").write_text(json.dumps({"class_names": [*known]}))
    saved = training.SavedNetwork(tmp_path / "best.keras")
    for use in (saved.load, lambda path: saved.evaluate(load(path))):
        if fits:
            use(tmp_path / "pets.npz")
            continue
        with pytest.raises(ValueError, match=r"c, d.*d, c"):
            use(tmp_path / "pets.npz")


def test_a_split_that_changed_is_said(tmp_path):
    """A run resumes with its own images only."""
    folder = write_classes(tmp_path / "insects", 60)
    result = fit(folder, tmp_path / "run")
    assert fit(folder, tmp_path / "run", resume=True).history == result.history
    saved = training.SavedNetwork(result.folder.best)
    assert saved.evaluate(saved.load())[1] == result.test_accuracy
    shutil.copy(folder / "ant" / "000.png", folder / "ant" / "new.png")
    for source in (None, f"{folder.parent}/./insects/"):
        with pytest.warns(Notice, match="no longer"):
            saved.load(source)
    for shape in (None, saved.model.input_shape[1:]):
        with pytest.warns(Notice, match="no longer"):
            further = {"out": tmp_path / f"further {shape}", "input_shape": shape}
            training.fit(result.folder.best, folder, **further, **SMALL)
    with pytest.raises(ValueError, match="images"):
        fit(folder, tmp_path / "run", resume=True)
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match="not here"):
        saved.load()
    with pytest.raises(FileNotFoundError, match="not here"):
        training.fit(result.folder.best, out=tmp_path / "gone", **SMALL)


def test_a_network_is_measured_without_the_pictures_its_run_left_out(copy, tmp_path, capsys):
    os.truncate(copy / "test/bee/001.png", 60)
    out = ["--out", tmp_path / "run", "--recipe", "digits", "--epochs", 1]
    network = ["thin-highway-10", "--model-set", "depth=2", "--input-shape", 8, 8, 1]
    assert run("fit", *network, "--dataset", copy, *out) == 2
    assert "--skip-broken" in capsys.readouterr().err
    assert run("fit", *network, "--dataset", copy, *out, "--skip-broken") == 0
    assert run("evaluate", tmp_path / "run" / "best.keras") == 0
    assert "(14 images)" in capsys.readouterr().out


def test_arrays_are_no_path_to_find_again(tmp_path):
    x, y = images(60)
    result = fit(((x, y), (x[:9], y[:9])), tmp_path / "run")
    assert result.folder.read_json()["dataset"] is None
    saved = training.SavedNetwork(result.folder.best)
    with pytest.raises(ValueError, match="dataset"):
        saved.load()
    again = saved.evaluate(saved.load(((x, y), (x[:9], y[:9]))))
    assert again == (result.test_loss, result.test_accuracy)


def test_the_pictures_of_a_run_may_move(copy, tmp_path):
    before = fit(copy, tmp_path / "run")
    moved = copy.rename(tmp_path / "moved")
    (broken := moved / "train" / "bee" / "broken.png").write_bytes(b"no picture")
    measured = training.SavedNetwork(tmp_path / "run").evaluate(moved)  # by test pictures alone
    assert measured == (before.test_loss, before.test_accuracy)
    broken.unlink()
    before.folder.settings.unlink()  # the state has them, too
    (moved / "train" / "bee").rename(moved / "train" / "bees")  # in its place among the others
    (moved / "test" / "bee").rename(moved / "test" / "bees")
    again = fit(moved, tmp_path / "run", resume=True)
    assert again.history == before.history
    assert "bees" in again.folder.read_json()["class_names"]
    loaded = training.SavedNetwork(again.folder.best).load()  # where its pictures are now
    assert "bees" in loaded.class_names
    settings = {**again.folder.read_json(), "dataset": "elsewhere"}  # as corrected by hand
    again.folder.write_json(settings)
    assert again.folder.saved(again.folder.best)


def test_a_folder_named_like_a_data_set_stays_a_folder(tmp_path, monkeypatch):
    """As a `Path`, or with ./ or ~/."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    write_classes(tmp_path / "digits", 60)
    found = fit(pathlib.Path("digits"), tmp_path / "run", epochs=1)
    assert found.folder.read_json()["dataset"] == "./digits"
    assert training.SavedNetwork(found.folder.best).load().class_names == CLASSES
    assert load("~/digits").class_names == CLASSES and load("digits").classes == 10


# Larger than memory


@pytest.mark.filterwarnings("ignore:The pictures of")
@pytest.mark.parametrize("kind", all_but(["folder"], ["folder", "arrays"]))
def test_training_on_streamed_images_is_the_same_and_resumes(kind, folder, tmp_path, monkeypatch):
    source = folder if kind == "folder" else images(60)
    changes = {"preprocessing": ("gcn", "mean"), "augmentation": ("crop4", "mirror"), "epochs": 3}
    changes["class_weight"] = {0: 3.0}
    whole = fit(source, tmp_path / "whole", **changes)
    saved = keras.models.load_model(whole.folder.best).layers[0]  # by the training images alone
    of_mean = data.preprocessor(changes["preprocessing"], load(source).x_train)
    np.testing.assert_allclose(saved.get_weights(), of_mean.get_weights(), atol=1e-6)
    plain = fit(source, tmp_path / "plain", **{**changes, "augmentation": (), "epochs": 1})
    assert plain.history[0]["loss"] != whole.history[0]["loss"]
    monkeypatch.setattr(dataset, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(data.PictureArray, "__array__", None)  # which would read them all
    streamed = fit(source, tmp_path / "streamed", **changes)
    for one, other in zip(whole.history, streamed.history, strict=True):
        assert one == pytest.approx(other, rel=1e-4)
    assert streamed.test_loss == pytest.approx(whole.test_loss, rel=1e-4)
    with pytest.raises(ConnectionError):
        fit(source, tmp_path / "run", callbacks=[Fails(0)], **changes)
    again = fit(source, tmp_path / "run", resume=True, **changes)
    assert again.history == streamed.history and again.test_loss == streamed.test_loss


@pytest.mark.filterwarnings("ignore:The pictures of")
def test_a_part_of_streamed_images_is_trained_and_measured(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "MOST_IN_MEMORY", 0)
    assert len(load(load(folder), limit=20).y_train) == 20
    found = fit(load(folder), tmp_path / "run", limit=20)
    assert np.sum(found.confusion) == 15 and len(found.history) == 2


@pytest.mark.filterwarnings("ignore:The pictures of")
def test_streamed_pictures_are_analyzed_batch_by_batch(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "MOST_IN_MEMORY", 0)
    model, streamed = little(keras.layers.Dense(4), Highway()), load(folder)
    monkeypatch.setattr(data.PictureArray, "__array__", None)  # which would read them all
    found = analysis.analyze(model, streamed.x_train, streamed.y_train, tmp_path, verbose=0)
    monkeypatch.undo()
    whole = load(folder)
    expected = analysis.lesions(model, whole.x_train, whole.y_train, verbose=0)
    np.testing.assert_allclose(found.lesions.loss, expected.loss, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:The pictures of")
def test_a_picture_that_vanishes_is_named(copy, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "MOST_IN_MEMORY", 0)
    spoil = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: shutil.rmtree(copy / "train", True)
    )
    with pytest.raises(FileNotFoundError, match=r"train.*\.png"):
        fit(copy, tmp_path / "run", validation=0, epochs=4, callbacks=[spoil])
