"""A user's own pictures in folders, from the files to what is trained on them."""

import json
import os
import shutil

import keras
import numpy as np
import pytest
from helpers import run
from picture_folders import CLASSES, little, write_classes, write_parts
from PIL import Image

from highway_keras import Highway, analysis, data, training
from highway_keras.data import DataError, dataset, load, pictures
from highway_keras.data.folder import PARTS

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


def fit(images, out, **changes):
    keras.utils.set_random_seed(0)
    return training.fit(little(), images, out=out, **SMALL | changes)


def read(folder, **options):
    return load(folder, input_shape=(8, 8, 1), **options)


# Which files


def test_other_and_hidden_files_are_left_out(tmp_path):
    write_classes(tmp_path, 60)
    for name in (".hidden.png", ".cache/0.png", "notes.txt", "cat/clip.gif", "ant/.thumb.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("no picture")
    assert len(read(tmp_path, validation=0).x_train) == 48


@pytest.mark.parametrize("names", [tuple(map(str, range(12))), ("bus", "car", "train")])
def test_classes_may_be_numbers_or_named_like_a_part(names, tmp_path):
    assert read(write_classes(tmp_path / "images", 120, classes=names)).class_names == names


def test_folders_stand_for_the_pictures_in_them(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for file in ("photos/ant.PNG", "photos/[1].png", "photos/old/bee.jpg", "photos/.h/i.png"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8)).save(tmp_path / file)
    (tmp_path / "photos" / "notes.txt").write_text("no picture")
    below = [f"{tmp_path}/photos/{name}" for name in ("[1].png", "ant.PNG", "old/bee.jpg")]
    assert data.find_pictures(["absent.png", "~/photos"]) == ["absent.png", *below]


def test_pictures_are_read_as_predict_reads_them(tmp_path):
    """Scaled to the size asked for, and photos turned as their EXIF data say."""
    write_classes(tmp_path, 30, size=(9, 7))
    turned = tmp_path / "bee" / "photo.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.arange(63, dtype="uint8").reshape(7, 9)).save(turned, exif=exif)
    images = load(tmp_path, input_shape=(6, 6, 1))
    expected = data.read_image(turned, (6, 6, 1))
    pictures = np.concatenate([images.x_train, images.x_val, images.x_test])
    assert any(np.array_equal(image, expected) for image in pictures)


FAULTS = {
    "empty": (lambda f: [shutil.rmtree(path) for path in f.iterdir()], "none"),
    "one class": (lambda f: [shutil.rmtree(f / p / c) for p in PARTS for c in CLASSES[:2]], "cat"),
    "other in test": (lambda f: (f / "test/bee").rename(f / "test/wasp"), "wasp"),
    "no pictures": (lambda f: [p.unlink() for p in (f / "train/cat").iterdir()], "cat"),
    "a part of another name": (lambda f: (f / "test").rename(f / "val"), "train, val"),
    "a third part": (lambda f: shutil.copytree(f / "test", f / "val"), "val"),
}


@pytest.mark.parametrize(("spoil", "message"), FAULTS.values(), ids=FAULTS)
def test_a_bad_folder_is_refused(spoil, message, copy):
    spoil(copy)
    with pytest.raises(ValueError, match=message) as caught:
        read(copy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("most", [dataset.MAX_IN_MEMORY, 0], ids=["in memory", "on disk"])
def test_every_broken_picture_is_named(most, copy, monkeypatch):
    """Before the first step: a run takes the fingerprint of its images."""
    monkeypatch.setattr(dataset, "MAX_IN_MEMORY", most)
    broken = [copy / "train/bee/001.png", copy / "train/cat/005.png"]
    broken[0].write_text("no picture")
    os.truncate(broken[1], 60)
    with pytest.raises(DataError) as caught:
        read(copy, validation=0).fingerprint()
    assert all(str(path) in str(caught.value) for path in broken)
    assert len(read(copy, test_only=True).x_test[:]) == 15


def test_a_shape_that_cannot_be_is_refused_before_any_picture_is_decoded(folder, monkeypatch):
    monkeypatch.setattr(pictures, "read_image", None)  # which would fail
    for shape in (None, (8, 8), (8, 8, 2)):
        with pytest.raises(ValueError, match="input_shape"):
            load(folder, input_shape=shape)


# From the folder to what is made of it


def test_the_classes_keep_their_names(folder, capsys, tmp_path):
    trained = tmp_path / "run"
    options = ["--epochs", 20, "--recipe", "digits", "--model-set", "depth=2", "--out", trained]
    shape = ["--input-shape", 8, 8, 1]
    assert run("fit", "thin-highway-10", "--dataset", folder, *options, *shape) == 0
    capsys.readouterr()
    settings = json.loads((trained / "run.json").read_text())
    assert settings["class_names"] == list(CLASSES) and settings["image_shape"] == [8, 8, 1]
    picture = folder / "test" / "cat" / "002.png"
    assert run("predict", trained / "best.keras", picture, "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["classes"][0]["class"] == "cat"
    for source in ([], ["--dataset", folder]):
        assert run("evaluate", trained / "best.keras", "--json", *source) == 0
        measured = json.loads(capsys.readouterr().out)
        assert measured["accuracy"] == settings["results"]["test_accuracy"] > 0.9
        assert (measured["images"], measured["dataset"]) == (15, "insects")


def test_a_run_resumes_with_its_own_images_only(copy, tmp_path):
    before = fit(read(copy), tmp_path / "run")
    assert fit(read(copy), tmp_path / "run", resume=True).history == before.history
    moved = copy.rename(tmp_path / "moved")
    assert fit(read(moved), tmp_path / "run", resume=True).history == before.history
    shutil.copy(moved / "train/ant/000.png", moved / "train/ant/new.png")
    with pytest.raises(ValueError, match="images"):
        fit(read(moved), tmp_path / "run", resume=True)


# Larger than memory


def test_training_on_pictures_on_the_disk_is_the_same_and_resumes(folder, tmp_path, monkeypatch):
    changes = {"preprocessing": ("gcn", "mean"), "augmentation": ("crop4", "mirror"), "epochs": 3}
    changes["class_weight"] = {0: 3.0}
    in_memory = fit(read(folder), tmp_path / "in memory", **changes)
    monkeypatch.setattr(dataset, "MAX_IN_MEMORY", 0)
    images = read(folder)
    monkeypatch.setattr(data.PictureArray, "__array__", None)  # which would read them all
    streamed = fit(images, tmp_path / "streamed", **changes)
    for one, other in zip(in_memory.history, streamed.history, strict=True):
        assert one == pytest.approx(other, rel=1e-4)
    assert streamed.test_loss == pytest.approx(in_memory.test_loss, rel=1e-4)
    fit(images, tmp_path / "run", **changes | {"epochs": 1})
    again = fit(images, tmp_path / "run", resume=True, **changes)
    assert again.history == streamed.history and again.test_loss == streamed.test_loss


def test_pictures_on_the_disk_are_analyzed_batch_by_batch(folder, monkeypatch):
    monkeypatch.setattr(dataset, "MAX_IN_MEMORY", 0)  # however few
    model, streamed = little(keras.layers.Dense(4), Highway()), read(folder)
    in_memory = np.asarray(streamed.x_train)
    sizes, read_some = [], data.PictureArray.__getitem__

    def spied(self, chosen):
        sizes.append(len(self.paths[chosen]))
        return read_some(self, chosen)

    monkeypatch.setattr(data.PictureArray, "__getitem__", spied)
    monkeypatch.setattr(data.PictureArray, "__array__", None)  # which would read them all
    pictures = streamed.x_train, streamed.y_train
    lesions = analysis.lesions(model, *pictures, batch_size=20, verbose=0)
    assert max(sizes) == 20
    expected = analysis.lesions(model, in_memory, streamed.y_train, verbose=0)
    np.testing.assert_allclose(lesions.loss, expected.loss, rtol=1e-6)
