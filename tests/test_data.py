"""Loading: the images, splits and fingerprints it promises, and an error for every bad input."""

import contextlib
import dataclasses
import os
import sys
import types

import keras
import numpy as np
import pytest
from helpers import all_but
from picture_folders import CLASSES, images, write_classes, write_parts

from highway_keras.data import (
    DataError,
    Dataset,
    PictureArray,
    dataset,
    images_at_once,
    load,
    public,
)
from highway_keras.data.dataset import hold_out
from highway_keras.data.public import read_records
from highway_keras.util.messages import Notice

X, Y = images(60)
GOOD = {"x_train": X, "y_train": Y, "x_test": X[:9], "y_test": Y[:9]}


def npz(folder, **changes):
    """Write a good `.npz` with `changes`; None drops an array."""
    content = {key: value for key, value in (GOOD | changes).items() if value is not None}
    np.savez(folder / "mine.npz", **content)
    return folder / "mine.npz"


def as_tf_data(x=X, y=Y, shuffle=False):
    tf = pytest.importorskip("tensorflow")
    pairs = tf.data.Dataset.from_tensor_slices((x, y))
    return (pairs.shuffle(100) if shuffle else pairs).batch(7)


def as_keras_reads(folder, part):
    pytest.importorskip("tensorflow")
    read = {"image_size": (8, 8), "color_mode": "grayscale", "verbose": False}
    return keras.utils.image_dataset_from_directory(folder / part, **read)


def as_keras_reads_both(folder):
    write_parts(folder)
    return as_keras_reads(folder, "train"), as_keras_reads(folder, "test")


# What a run records of its images: resuming and comparing runs rests on these never changing.
SOURCES = {
    "digits": (lambda folder: "digits", "0bebb7b4aef616c7"),
    "npz": (npz, "afb85dc7d20ff65f"),
    "npz, labels in columns": (lambda f: npz(f, y_train=Y[:, None]), "afb85dc7d20ff65f"),
    "folder": (lambda f: str(write_classes(f / "insects", 60)), "5b6f844b0e54bb38"),
    "folder of parts": (lambda f: write_parts(f / "insects"), "d40eb91e03d02090"),
    "arrays": (lambda f: (X, Y), "0698bf081e43ee78"),
    "arrays of int64": (lambda f: (X.astype("int64"), Y), "0698bf081e43ee78"),
    "arrays to test on": (lambda f: ((X, Y), (X[:9], Y[:9])), "afb85dc7d20ff65f"),
    "a Dataset": (lambda f: load((X, Y)), "0698bf081e43ee78"),
    "tf.data": (lambda f: as_tf_data().unbatch(), "87f182e1a18d0f4c"),
    "tf.data, shuffled": (lambda f: as_tf_data(X * 1.0, shuffle=True), "87f182e1a18d0f4c"),
    "Keras's reader": (as_keras_reads_both, "e1dc1b210b6c29db"),
}


@pytest.mark.parametrize(("make", "fingerprint"), SOURCES.values(), ids=SOURCES)
def test_fingerprints_of_every_source_stay(make, fingerprint, tmp_path):
    found = load(make(tmp_path))
    assert found.fingerprint() == fingerprint
    for part in ("train", "val", "test"):
        x, y = getattr(found, f"x_{part}"), getattr(found, f"y_{part}")
        assert x.dtype == np.uint8 and x.shape == (len(y), 8, 8, 1)
        assert y.dtype == np.int64 and set(y) == set(range(found.classes))


def test_large_images_are_measured_in_smaller_batches():
    shapes = [(28, 28, 1), (32, 32, 3), (256, 256, 3), (2000, 2000, 3)]
    assert list(map(images_at_once, shapes)) == [500, 500, 7, 1]


def test_what_is_held_out():
    labels = np.sort(np.random.default_rng(1).integers(0, 7, 1003))
    kept, held_out = hold_out(labels, 0.1)
    np.testing.assert_array_equal(np.sort(np.concatenate([kept, held_out])), np.arange(1003))
    assert len(held_out) == 100
    assert np.abs(np.bincount(labels[held_out]) - 0.1 * np.bincount(labels)).max() <= 1
    assert np.bincount(labels[kept[:350]]).min() > 25  # sorted by class in, a fair sample out
    np.testing.assert_array_equal(held_out, hold_out(labels, 0.1)[1])
    for fraction in (0, 0.0004):
        assert list(map(len, hold_out(labels, fraction))) == [1003, 0]


def test_limit_and_validation():
    whole, few, other = load("digits"), load("digits", limit=50), load("digits", validation=0.4)
    np.testing.assert_array_equal(few.x_train, whole.x_train[:50])
    np.testing.assert_array_equal(few.y_train, whole.y_train[:50])
    np.testing.assert_array_equal(few.x_val, whole.x_val)
    assert len(other.x_val) == round(0.4 * 1438)
    assert len({found.fingerprint(("test",)) for found in (whole, few, other)}) == 1
    none = load("digits", validation=0, limit=np.int64(50))
    assert none.x_val.shape == (0, 8, 8, 1) and len(none.x_train) == 50


def test_a_limit_of_a_data_set_takes_images_of_all_classes():
    made = load((X, Y))
    order = np.argsort(made.y_train, kind="stable")
    made = dataclasses.replace(made, x_train=made.x_train[order], y_train=made.y_train[order])
    limited = load(made, limit=12)
    assert len(limited.x_train) == 12 and set(limited.y_train) == {0, 1, 2}


def test_class_names(tmp_path):
    assert load(npz(tmp_path)).class_names == ("0", "1", "2")
    assert load(npz(tmp_path, class_names=CLASSES)).class_names == CLASSES
    assert load(npz(tmp_path, class_names=(*CLASSES, "dog"))).classes == 4  # without images yet


def test_what_looks_unlike_gray_levels_or_classes_is_said(tmp_path):
    with pytest.warns(Notice, match="`x_train`.* dark: its brightest value is 1,"):
        load(npz(tmp_path, x_train=(X > 127).astype("uint8")))
    with pytest.warns(Notice, match="labels from 0 to 9, .* no image of 7 of these 10 classes"):
        load(npz(tmp_path, y_train=np.where(Y == 2, 9, Y)))


def test_tf_data_of_other_classes_to_test_on(tmp_path):
    """Labels number the folders: without bee, cat would be 1."""
    write_classes(tmp_path / "train", 60)
    write_classes(tmp_path / "test", 15, classes=("ant", "cat"))
    train, test = as_keras_reads(tmp_path, "train"), as_keras_reads(tmp_path, "test")
    with pytest.raises(DataError, match="the same classes"):
        load((train, test))
    del test.class_names
    assert load((train, test)).class_names == CLASSES


# Larger than memory


def test_pictures_that_do_not_fit_stay_on_the_disk(tmp_path, monkeypatch):
    whole = load(write_parts(tmp_path))
    monkeypatch.setattr(dataset, "MOST_IN_MEMORY", 0)
    with pytest.warns(Notice, match="stay on the disk"):
        streamed = load(tmp_path)
    assert isinstance(streamed.x_train, PictureArray) and repr(streamed) == repr(whole)
    assert streamed.fingerprint() == whole.fingerprint()
    for chosen in (3, [5, 2], slice(4, None, 7), slice(0)):
        np.testing.assert_array_equal(streamed.x_train[chosen], whole.x_train[chosen])
    np.testing.assert_array_equal(np.asarray(streamed.x_test), whole.x_test)
    assert load(streamed) is streamed


# Bad inputs


BAD_ARRAYS = {
    "missing key": ("y_test", {"y_test": None}),
    "float images": ("x_train", {"x_train": X / 255}),
    "channels first": ("moveaxis", {"x_train": np.stack(3 * [X], 1)}),
    "wrapped labels": ("y_test", {"y_test": Y[:9].astype("uint64") - np.uint64(1)}),
    "no images": ("x_train", {"x_train": X[:0], "y_train": Y[:0]}),
    "length mismatch": ("y_test", {"y_test": Y[:8]}),
    "shape mismatch": ("shape", {"x_test": X[:9, 1:]}),
    "float labels": ("y_train.*float64", {"y_train": Y * 1.0}),
    "negative labels": ("y_train.*from 0", {"y_train": Y - 1}),
    "labels from 1": ("y_train.*from 0", {"y_train": Y + 1}),
    "one class": ("y_train.*two classes", {"y_train": 0 * Y, "y_test": 0 * Y[:9]}),
    "foreign test class": ("y_train.*label 4", {"y_test": Y[:9] + 2}),
    "a name twice": ("class_names", {"class_names": ("ant", "bee", "ant")}),
}


@pytest.mark.parametrize(("named", "changes"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_npz_with_bad_arrays(named, changes, tmp_path):
    with pytest.raises(ValueError, match=named) as caught:
        load(npz(tmp_path, **changes))
    assert "\n" not in str(caught.value)


DAMAGED = {
    "empty": lambda content: b"",
    "cut late": lambda content: content[: int(0.999 * len(content))],
    "a flipped byte": lambda content: content[:1000] + b"?" + content[1001:],
    "an array": lambda content: content[content.index(b"\x93NUMPY") :],
}


def test_npz_that_is_damaged_or_something_else(tmp_path):
    path = npz(tmp_path)
    content = path.read_bytes()
    for damage in DAMAGED.values():
        path.write_bytes(damage(content))
        with pytest.raises(DataError, match=r"mine\.npz"):
            load(path)


def of_unknown_rank(pairs):
    """As `tf.io.decode_image` gives it."""
    tf = pytest.importorskip("tensorflow")
    return pairs.unbatch().map(lambda x, y: (tf.numpy_function(lambda x: x, [x], tf.uint8), y))


WRONG = {
    "three arrays": (TypeError, lambda: (X, Y, Y)),
    "a number": (TypeError, lambda: 5),
    "floats": (DataError, lambda: (X / 255, Y)),
    "endless": (DataError, lambda: as_tf_data().repeat()),
    "unlabeled": (DataError, lambda: as_tf_data().map(lambda x, y: x)),
    "scaled": (DataError, lambda: as_tf_data(X / 127.5 - 1)),
    "unknown rank": (DataError, lambda: of_unknown_rank(as_tf_data())),
    "none": (DataError, lambda: as_tf_data().take(0)),
    "one-hot, as long as a picture": (
        DataError,
        lambda: as_tf_data(X[..., None], np.eye(8, dtype=int)[Y]).unbatch(),
    ),
    "a bad Dataset": (DataError, lambda: dataclasses.replace(load((X, Y)), x_val=X[:5] / 255)),
    "unnamed classes": (DataError, lambda: dataclasses.replace(load((X, Y)), y_val=Y[:5] + 3)),
    "misspelled name": (ValueError, lambda: "CIFAR-10"),
    "no name": (ValueError, lambda: ""),
    "no file": (FileNotFoundError, lambda: "absent.npz"),
}


@pytest.mark.parametrize(("kind", "make"), WRONG.values(), ids=WRONG)
def test_bad_sources(kind, make):
    with pytest.raises(kind, match=r"dataset|[xy]_train|x_val|class_names") as caught:
        load(make())
    assert "\n" not in str(caught.value)


def test_other_arrays_of_a_file_are_left_out_and_named(tmp_path):
    with pytest.warns(Notice, match="x_val, y_val"):
        load(npz(tmp_path, x_val=X, y_val=Y))


def test_a_class_whose_only_image_is_held_out_is_named():
    y = np.repeat([0, 1, 2], [12, 1, 12])
    with pytest.warns(Notice, match="no image of 1 is left to train on"):
        load((X[: len(y)], y))


def test_bad_arguments():
    # Some fractions would leave a part empty.
    wrong = {"validation": (1.5, -0.1, float("nan"), "0.1", None, True, 0.001, 0.999)}
    wrong["limit"] = (0, 2.5, "10", True)
    for argument, values in wrong.items():
        for value in values:
            with pytest.raises(ValueError, match=argument):
                load((X, Y), **{argument: value})


# Public data sets


def test_without_a_network_or_with_a_damaged_copy(tmp_path, monkeypatch):
    pytest.importorskip("tensorflow", reason="TFDS prepares with TensorFlow")
    tfds = pytest.importorskip("tensorflow_datasets")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nothing listens
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, arguments, folder in (
        ("mnist", {"data_dir": "~/here"}, str(tmp_path / "here")),
        ("cifar10", {}, "elsewhere"),
    ):
        with pytest.raises(DataError, match=f"{folder}.*data_dir.*digits.*npz") as caught:
            load(name, **arguments)
        assert "\n" not in str(caught.value)
    folder = tfds.builder("mnist", data_dir=str(tmp_path)).data_path
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text('{"name": "mn')
    with monkeypatch.context() as old, pytest.raises(DataError, match=r"TensorFlow before 2\.20"):
        old.delattr(tfds, "builder")
        load("mnist")
    with pytest.raises(DataError, match=r"'mnist'.*`data_dir`"):
        load("mnist", data_dir=str(tmp_path))


def test_data_that_another_process_has_just_prepared_are_read(tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    pytest.importorskip("tensorflow", reason="TFDS prepares with TensorFlow")
    requests = pytest.importorskip("requests")
    monkeypatch.setattr(requests, "head", lambda *arguments, **options: None)
    folder, made = tmp_path / "mnist" / "3.0.1", []

    class Builder:
        def __init__(self, name, data_dir):
            self.data_dir, self.is_prepared = str(folder), folder.exists()
            made.append(self)

        def download_and_prepare(self):
            assert self.is_prepared  # else it would rename its own folder over this one

        def as_dataset(self, **options):
            raise RuntimeError("read")

    def lock(path, seconds):
        folder.mkdir(parents=True)  # while this process waited
        return contextlib.nullcontext()

    monkeypatch.setattr(tfds, "builder", Builder)
    monkeypatch.setattr(public, "folder_lock", lock)
    with pytest.raises(DataError, match=": read"):
        load("mnist", data_dir=tmp_path)
    assert len(made) == 2


def test_without_what_prepares_public_data(tmp_path, monkeypatch):
    pytest.importorskip("tensorflow_datasets")
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # its import now fails
    with pytest.raises(DataError, match=r"TensorFlow.*cpu.*data_dir"):
        load("mnist", data_dir=tmp_path)


def test_prepared_records_are_read_without_tensorflow(tmp_path):
    tfds = pytest.importorskip("tensorflow_datasets")
    image, label = tfds.features.Image(shape=(4, 3, 1)), tfds.features.ClassLabel(num_classes=5)
    features = tfds.features.FeaturesDict({"image": image, "label": label})
    pictures = np.random.default_rng(0).integers(0, 256, (5, 4, 3, 1), "uint8")
    with (tmp_path / "records").open("wb") as file:
        for label, image in enumerate(pictures):
            record = features.serialize_example({"image": image, "label": label})
            file.write(len(record).to_bytes(8, "little") + bytes(4) + record + bytes(4))
    split = types.SimpleNamespace(filepaths=[tmp_path / "records"])
    info = types.SimpleNamespace(features=features, splits={"test": split})
    found, labels = read_records(types.SimpleNamespace(info=info), "test")
    np.testing.assert_array_equal(found, pictures)
    assert found.dtype == "uint8" and labels.tolist() == [0, 1, 2, 3, 4]


PREPARED = {
    "mnist": (54000, 6000, (28, 28, 1), "7", "384fbb9c51753d40"),
    "cifar10": (45000, 5000, (32, 32, 3), "horse", "ecb7f99086b93bff"),
    "cifar100": (45000, 5000, (32, 32, 3), "beetle", "5b0f69e1ad76bd7e"),
}


@pytest.mark.parametrize("name", all_but(["mnist"], PREPARED))
def test_prepared_copy(name):
    if not os.path.isdir(os.path.join(os.environ.get("TFDS_DATA_DIR", "absent"), name)):
        pytest.skip(f"set TFDS_DATA_DIR to a directory with a prepared {name}")
    train, validation, shape, seventh, fingerprint = PREPARED[name]
    found = load(name)
    assert isinstance(found, Dataset) and found.input_shape == shape
    assert (len(found.x_train), len(found.x_val), len(found.x_test)) == (train, validation, 10000)
    assert found.class_names[7] == seventh and found.fingerprint() == fingerprint
