"""Loading: the images, splits and fingerprints it promises, and an error for every bad input."""

import sys

import numpy as np
import pytest
from helpers import all_but, needs_data
from picture_folders import CLASSES, images, write_classes, write_parts

from highway_keras.data import DataError, Dataset, PictureArray, dataset, inference_batch_size, load
from highway_keras.data.dataset import hold_out

X, Y = images(60)
GOOD = {"x_train": X, "y_train": Y, "x_test": X[:9], "y_test": Y[:9]}


def npz(folder, **changes):
    """Write a good `.npz` with `changes`; None drops an array."""
    content = {key: value for key, value in (GOOD | changes).items() if value is not None}
    np.savez(folder / "mine.npz", **content)
    return folder / "mine.npz"


# What a run records of its images: resuming and comparing runs rests on these never changing.
SOURCES = {
    "digits": (lambda folder: "digits", "0bebb7b4aef616c7"),
    "npz": (npz, "afb85dc7d20ff65f"),
    "npz, labels in columns": (lambda f: npz(f, y_train=Y[:, None]), "afb85dc7d20ff65f"),
    "folder": (lambda f: str(write_classes(f / "insects", 60)), "5b6f844b0e54bb38"),
    "folder of parts": (lambda f: write_parts(f / "insects"), "d40eb91e03d02090"),
    "arrays": (lambda f: (X, Y), "0698bf081e43ee78"),
    "arrays to test on": (lambda f: ((X, Y), (X[:9], Y[:9])), "afb85dc7d20ff65f"),
}


@pytest.mark.parametrize(("make", "fingerprint"), SOURCES.values(), ids=SOURCES)
def test_fingerprints_of_every_source_stay(make, fingerprint, tmp_path):
    source = make(tmp_path)
    images = load(source, input_shape=(8, 8, 1))
    assert images.fingerprint() == fingerprint
    assert images.source == (None if isinstance(source, tuple) else str(source))
    for part in ("train", "val", "test"):
        x, y = getattr(images, f"x_{part}"), getattr(images, f"y_{part}")
        assert x.dtype == np.uint8 and x.shape == (len(y), 8, 8, 1)
        assert y.dtype == np.int64 and set(y) == set(range(images.classes))


def test_large_images_are_measured_in_smaller_batches():
    shapes = [(28, 28, 1), (32, 32, 3), (256, 256, 3), (2000, 2000, 3)]
    assert list(map(inference_batch_size, shapes)) == [500, 500, 7, 1]


def test_what_is_held_out():
    labels = np.sort(np.random.default_rng(1).integers(0, 7, 1003))
    train, held_out = hold_out(labels, 0.1)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, held_out])), np.arange(1003))
    assert len(held_out) == 100
    assert np.abs(np.bincount(labels[held_out]) - 0.1 * np.bincount(labels)).max() <= 1
    assert np.bincount(labels[train[:350]]).min() > 25  # sorted by class in, a fair sample out
    np.testing.assert_array_equal(held_out, hold_out(labels, 0.1)[1])
    for fraction in (0, 0.0004):
        assert list(map(len, hold_out(labels, fraction))) == [1003, 0]


def test_limit_and_validation():
    full, few, other = load("digits"), load("digits", limit=50), load("digits", validation=0.4)
    np.testing.assert_array_equal(few.x_train, full.x_train[:50])
    np.testing.assert_array_equal(few.y_train, full.y_train[:50])
    np.testing.assert_array_equal(few.x_val, full.x_val)
    assert len(other.x_val) == round(0.4 * 1438)
    np.testing.assert_array_equal(other.x_test, full.x_test)
    none = load("digits", validation=0, limit=np.int64(50))
    assert none.x_val.shape == (0, 8, 8, 1) and len(none.x_train) == 50


def test_class_names(tmp_path):
    assert load(npz(tmp_path)).class_names == ("0", "1", "2")
    assert load(npz(tmp_path, class_names=CLASSES)).class_names == CLASSES
    assert load(npz(tmp_path, class_names=(*CLASSES, "dog"))).classes == 4  # without images yet


# Larger than memory


def test_pictures_that_do_not_fit_stay_on_the_disk(tmp_path, monkeypatch):
    full = load(write_parts(tmp_path), input_shape=(8, 8, 1))
    monkeypatch.setattr(dataset, "MAX_IN_MEMORY", 0)
    streamed = load(tmp_path, input_shape=(8, 8, 1))
    assert isinstance(streamed.x_train, PictureArray) and repr(streamed) == repr(full)
    assert streamed.fingerprint() == full.fingerprint()
    for chosen in (3, [5, 2], slice(4, None, 7), slice(0)):
        np.testing.assert_array_equal(streamed.x_train[chosen], full.x_train[chosen])
    np.testing.assert_array_equal(np.asarray(streamed.x_test), full.x_test)


# Bad inputs


BAD_ARRAYS = {
    "missing key": ("y_test", {"y_test": None}),
    "float images": ("x_train.*round", {"x_train": X / 255}),
    "no images": ("x_test", {"x_test": X[:0], "y_test": Y[:0]}),
    "length mismatch": ("y_test", {"y_test": Y[:8]}),
    "shape mismatch": ("x_test", {"x_test": X[:9, 1:]}),
    "float labels": ("y_train.*float64", {"y_train": Y * 1.0}),
    "one-hot labels": ("y_train.*argmax", {"y_train": np.eye(3, dtype=int)[Y]}),
    "negative labels": ("y_train", {"y_train": Y - 1}),
    "foreign test class": ("y_test", {"y_test": Y[:9] + 2}),
    "a name twice": ("class_names", {"class_names": ("ant", "bee", "ant")}),
}


@pytest.mark.parametrize(("argument", "changes"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_npz_with_bad_arrays(argument, changes, tmp_path):
    with pytest.raises(ValueError, match=argument) as caught:
        load(npz(tmp_path, **changes))
    assert "\n" not in str(caught.value)


def test_npz_that_is_damaged_or_something_else(tmp_path):
    path = npz(tmp_path)
    content = path.read_bytes()
    for damaged in (b"", content[:1000] + b"?" + content[1001:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"mine\.npz"):
            load(path)


MISTAKES = [
    (("CIFAR-10",), {}, ValueError, "source.*Did you mean 'cifar10'"),
    (("absent.npz",), {}, FileNotFoundError, r"absent\.npz"),
    ((None,), {}, ValueError, "source"),
    ((3 * [(X, Y)],), {}, DataError, "source.*3 pairs"),
    (((X, Y),), {"validation": 1.5}, ValueError, "validation"),
    (((X, Y),), {"limit": 0}, ValueError, "limit"),
]


@pytest.mark.parametrize(("arguments", "options", "error", "match"), MISTAKES)
def test_mistake(arguments, options, error, match):
    with pytest.raises(error, match=match) as caught:
        load(*arguments, **options)
    assert "\n" not in str(caught.value)


# Public data sets


def test_without_a_network(tmp_path, monkeypatch):
    pytest.importorskip("tensorflow", reason="TFDS prepares with TensorFlow")
    pytest.importorskip("tensorflow_datasets")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nothing listens
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "elsewhere"))
    for name, folder in (("mnist", tmp_path / "here"), ("cifar10", None)):
        with pytest.raises(DataError, match=f"{folder or 'elsewhere'}.*data_dir.*digits.*npz"):
            load(name, data_dir=folder)


def test_without_what_prepares_public_data(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # its import now fails
    with pytest.raises(ModuleNotFoundError, match=r"tensorflow.*`cpu`"):
        load("mnist", data_dir=tmp_path)


PREPARED = {
    "mnist": (54000, 6000, (28, 28, 1), "7", "384fbb9c51753d40"),
    "cifar10": (45000, 5000, (32, 32, 3), "horse", "ecb7f99086b93bff"),
    "cifar100": (45000, 5000, (32, 32, 3), "beetle", "5b0f69e1ad76bd7e"),
}


@pytest.mark.parametrize("name", all_but(["mnist"], PREPARED))
def test_prepared_copy(name):
    needs_data(name)
    train, validation, shape, seventh, fingerprint = PREPARED[name]
    images = load(name)
    assert isinstance(images, Dataset) and images.input_shape == shape
    assert (len(images.x_train), len(images.x_val), len(images.x_test)) == (
        train,
        validation,
        10000,
    )
    assert images.class_names[7] == seventh and images.fingerprint() == fingerprint
