"""Loading: the shapes and splits it promises, and one clear line for every bad input."""

import os
import pickle
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from highway_keras.data import NAMES, DataError, Dataset, load, public
from highway_keras.data.dataset import hold_out


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def arrays(n_train=40, n_test=12, shape=(6, 5, 3), classes=4):
    rng = np.random.default_rng(0)
    return {
        "x_train": rng.integers(0, 256, (n_train, *shape), "uint8"),
        "y_train": np.arange(n_train) % classes,
        "x_test": rng.integers(0, 256, (n_test, *shape), "uint8"),
        "y_test": np.arange(n_test) % classes,
    }


def saved(path, **changes):
    """Write a good `.npz` with `changes`; None drops an array."""
    content = {**arrays(), **changes}
    np.savez(path, **{key: value for key, value in content.items() if value is not None})
    return path


def matches(images, labels):
    """The images and labels as a sorted list of pairs, to compare regardless of order."""
    return sorted(
        (image.tobytes(), int(label)) for image, label in zip(images, labels, strict=True)
    )


# Splits


def test_hold_out_is_a_shuffled_partition_even_over_classes():
    labels = np.sort(np.random.default_rng(1).integers(0, 7, 1003))
    kept, held_out = hold_out(labels, 0.1)
    assert len(held_out) == round(0.1 * 1003)
    np.testing.assert_array_equal(np.sort(np.concatenate([kept, held_out])), np.arange(1003))
    expected = 0.1 * np.bincount(labels)
    assert np.abs(np.bincount(labels[held_out]) - expected).max() <= 1
    assert np.bincount(labels[kept[:350]]).min() > 25  # sorted by class in, a fair sample out


def test_hold_out_is_the_same_at_every_call():
    labels = np.arange(100) % 10
    for first, second in zip(hold_out(labels, 0.3), hold_out(labels, 0.3), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("fraction", [0, 0.0, 0.004])
def test_hold_out_nothing(fraction):
    kept, held_out = hold_out(np.zeros(100, int), fraction)
    assert (len(kept), len(held_out)) == (100, 0)


# digits


def test_digits(digits):
    assert isinstance(digits, Dataset)
    assert digits.input_shape == (8, 8, 1) and digits.classes == 10
    assert digits.class_names == tuple("0123456789")
    for x, y in (
        (digits.x_train, digits.y_train),
        (digits.x_val, digits.y_val),
        (digits.x_test, digits.y_test),
    ):
        assert x.dtype == np.uint8 and y.dtype == np.int64
        assert x.shape == (len(y), 8, 8, 1)
        assert set(y) == set(range(10))
    assert digits.x_train.min() == 0 and digits.x_train.max() == 255
    assert len(digits.y_train) + len(digits.y_val) + len(digits.y_test) == 1797


def test_digits_test_images_do_not_depend_on_the_validation_fraction(digits):
    other = load("digits", validation=0.4)
    np.testing.assert_array_equal(digits.x_test, other.x_test)
    assert len(other.x_val) == round(0.4 * 1438)


def test_digits_parts_hold_every_image_once(digits):
    from sklearn.datasets import load_digits

    parts = [digits.x_train, digits.x_val, digits.x_test]
    images = np.concatenate(parts)[..., 0]
    source = np.round(load_digits().images * 255 / 16).astype("uint8")
    labels = np.concatenate([digits.y_train, digits.y_val, digits.y_test])
    assert matches(images, labels) == matches(source, load_digits().target)


def test_limit_keeps_the_first_training_images_only(digits):
    few = load("digits", limit=50)
    np.testing.assert_array_equal(few.x_train, digits.x_train[:50])
    np.testing.assert_array_equal(few.y_train, digits.y_train[:50])
    np.testing.assert_array_equal(few.x_val, digits.x_val)
    np.testing.assert_array_equal(few.x_test, digits.x_test)


def test_numbers_of_numpy_are_taken():
    few = load("digits", validation=np.float32(0.5), limit=np.int64(50))
    assert (len(few.x_train), len(few.x_val)) == (50, 719)


def test_no_validation():
    data = load("digits", validation=0)
    assert data.x_val.shape == (0, 8, 8, 1) and len(data.x_train) == 1438


def test_repr_is_one_line(digits):
    assert repr(digits) == (
        "Dataset(name='digits', train=1294, validation=144, test=359, "
        "input_shape=(8, 8, 1), classes=10)"
    )


def test_dataset_is_frozen(digits):
    with pytest.raises(AttributeError):
        digits.name = "other"


def test_a_users_file_is_read_without_tensorflow_datasets(tmp_path):
    path = saved(tmp_path / "mine.npz")
    script = (
        f"import sys; from highway_keras.data import load; load({str(path)!r}); "
        "print('tensorflow_datasets' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


# A user's .npz


def test_npz(tmp_path):
    data = load(saved(tmp_path / "mine.npz"), validation=0.25)
    source = arrays()
    assert repr(data) == (
        "Dataset(name='mine', train=30, validation=10, test=12, input_shape=(6, 5, 3), classes=4)"
    )
    x, y = np.concatenate([data.x_train, data.x_val]), np.concatenate([data.y_train, data.y_val])
    assert matches(x, y) == matches(source["x_train"], source["y_train"])
    np.testing.assert_array_equal(data.x_test, source["x_test"])
    np.testing.assert_array_equal(data.y_test, source["y_test"])
    assert data.y_test.dtype == np.int64


def test_npz_without_channel_and_with_label_column(tmp_path):
    content = arrays(shape=(6, 5))
    labels = content["y_train"][:, None].astype("uint8")
    data = load(str(saved(tmp_path / "grey.npz", **{**content, "y_train": labels})))
    assert data.input_shape == (6, 5, 1)
    assert data.y_train.shape == (36,) and data.y_train.dtype == np.int64


def test_npz_is_given_by_a_path_from_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    saved(tmp_path / "mine.npz")
    assert load("~/mine.npz").name == "mine"


GOOD = arrays()
WITH_NAN = np.where(np.arange(40) == 7, np.nan, GOOD["y_train"])
BAD_ARRAYS = {
    "missing key": ({"y_test": None}, "Missing: y_test. Received: x_train, y_train, x_test"),
    "no key": (
        dict.fromkeys(GOOD),
        "Missing: x_train, y_train, x_test, y_test. Received: no arrays",
    ),
    "pickled objects": ({"y_train": GOOD["y_train"].astype(object)}, "not a .npz of plain arrays"),
    "float images": (
        {"x_train": GOOD["x_train"] / 255},
        r"`x_train` in .* must be uint8.*\(255 \* x_train\).*Received: dtype=float64",
    ),
    "int64 images": ({"x_test": GOOD["x_test"].astype(int)}, "`x_test` in .* must be uint8"),
    "flat images": (
        {"x_train": GOOD["x_train"].reshape(40, -1)},
        r"`x_train` in .* must be of shape \(n, height, width\).*Received: shape=\(40, 90\)",
    ),
    "channels first": (
        {"x_train": np.moveaxis(GOOD["x_train"], -1, 1)},
        r"channels last; save numpy.moveaxis\(x_train, 1, -1\).*Received: shape=\(40, 3, 6, 5\)",
    ),
    "no images": (
        {"x_train": GOOD["x_train"][:0], "y_train": GOOD["y_train"][:0]},
        r"`x_train` in .* must not be empty. Received: shape=\(0, 6, 5, 3\)",
    ),
    "no labels": ({"y_train": GOOD["y_train"][:0]}, "Received: 40 images and 0 labels"),
    "length mismatch": ({"y_test": GOOD["y_test"][:-1]}, "Received: 12 images and 11 labels"),
    "shape mismatch": (
        {"x_test": GOOD["x_test"][:, 1:]},
        r"of the same shape. Received: \(6, 5, 3\) and \(5, 5, 3\)",
    ),
    "NaN labels": (
        {"y_train": WITH_NAN},
        "`y_train` in .* must not be NaN.* Received: NaN for 1 of 40",
    ),
    "float labels": (
        {"y_train": GOOD["y_train"] * 1.0},
        r"`y_train` in .* must be integers.*save y_train.astype\('int64'\).*dtype=float64",
    ),
    "text labels": ({"y_test": GOOD["y_test"].astype(str)}, "`y_test` in .* must be integers"),
    "negative labels": ({"y_train": GOOD["y_train"] - 1}, "must not be negative.*Received: -1"),
    "one-hot labels": (
        {"y_train": np.eye(4, dtype=int)[GOOD["y_train"]]},
        r"one-hot rows save y_train.argmax\(axis=1\). Received: shape=\(40, 4\)",
    ),
    "huge labels": (
        {"y_train": GOOD["y_train"] + 2**40},
        "without large gaps. Received: label 109",
    ),
    "foreign test class": (
        {"y_test": GOOD["y_test"] + 2},
        "only classes that `y_train` has, 0 to 3. Received: label 5",
    ),
}


@pytest.mark.parametrize(("changes", "message"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_npz_with_bad_arrays(tmp_path, changes, message):
    with pytest.raises(DataError, match=message) as caught:
        load(saved(tmp_path / "bad.npz", **changes))
    assert "\n" not in str(caught.value)


def test_npz_must_exist(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    for name in ("absent", "folder"):
        message = rf"`dataset` must be an existing file\. Received: dataset=.*{name}\.npz"
        with pytest.raises(FileNotFoundError, match=message):
            load(tmp_path / f"{name}.npz")


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.9, 0.999])
def test_npz_cut_short(tmp_path, keep):
    path = saved(tmp_path / "cut.npz")
    content = path.read_bytes()
    path.write_bytes(content[: int(keep if keep > 1 else keep * len(content))])
    with pytest.raises(DataError, match=r"Cannot read .*cut\.npz: it is damaged, cut short"):
        load(path)


def test_npz_with_a_flipped_byte(tmp_path):
    path = saved(tmp_path / "flipped.npz")
    content = bytearray(path.read_bytes())
    content[1000] ^= 0xFF  # inside x_train: the zip's checksum notices
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="it is damaged"):
        load(path)


class _Boobytrap:
    def __reduce__(self):
        return (os.abort, ())


FOREIGN = {
    "text": b"x_train,y_train\n1,2\n",
    "image": b"\x89PNG\r\n\x1a\n" + bytes(64),
    "pickle": pickle.dumps(_Boobytrap()),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_npz_that_is_something_else(tmp_path, content):
    path = tmp_path / "foreign.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"Cannot read .*not a \.npz of plain arrays"):
        load(path)


def test_npy_named_npz(tmp_path):
    with open(tmp_path / "single.npz", "wb") as file:
        np.save(file, GOOD["x_train"])
    with pytest.raises(DataError, match=r"not a \.npz of plain arrays"):
        load(tmp_path / "single.npz")


# Arguments


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "minst",
            r"`dataset` must be one of digits,.* Received: dataset='minst'. Did you mean 'mnist'",
        ),
        ("CIFAR-10", "Did you mean 'cifar10'"),
        (
            "svhn",
            f"one of {', '.join(NAMES)}, a folder of .* ends in .npz. Received: dataset='svhn'",
        ),
        ("images.zip", "or a path that ends in .npz"),
    ],
)
def test_unknown_name(name, message):
    with pytest.raises(ValueError, match=message) as caught:
        load(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("validation", [1, 1.5, -0.1, float("nan"), "0.1", None, True])
def test_bad_validation(validation):
    message = "`validation` must be a number of at least 0 and below 1. Received: validation="
    with pytest.raises(ValueError, match=message):
        load("digits", validation=validation)


@pytest.mark.parametrize("limit", [0, -5, 2.5, "10", True])
def test_bad_limit(limit):
    message = "`limit` must be a positive integer, or None for all of them. Received: limit="
    with pytest.raises(ValueError, match=message):
        load("digits", limit=limit)


@pytest.mark.parametrize(("validation", "part"), [(0.001, "validation"), (0.999, "training")])
def test_validation_that_leaves_a_part_empty(tmp_path, validation, part):
    with pytest.raises(DataError, match=f"leave at least one {part} image of the 40 in"):
        load(saved(tmp_path / "small.npz"), validation=validation)


# Public data sets


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "cifar100"])
def test_offline_without_a_prepared_copy(tmp_path, monkeypatch, name):
    pytest.importorskip("tensorflow", reason="TFDS reads through TensorFlow")
    monkeypatch.setattr(public, "_answers", lambda url: False)
    began = time.perf_counter()
    with pytest.raises(
        DataError, match=f"No prepared copy of '{name}' in .*does not answer"
    ) as caught:
        load(name, data_dir=str(tmp_path))
    assert time.perf_counter() - began < 20  # of which nearly all is importing TensorFlow
    assert "\n" not in str(caught.value)
    for remedy in ("`data_dir`", "'digits'", ".npz"):
        assert remedy in str(caught.value)


def test_data_dir_defaults_to_the_environment(tmp_path, monkeypatch):
    pytest.importorskip("tensorflow", reason="TFDS reads through TensorFlow")
    monkeypatch.setattr(public, "_answers", lambda url: False)
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "elsewhere"))
    with pytest.raises(DataError, match=r"in .*elsewhere"):
        load("mnist")


def test_damaged_prepared_copy(tmp_path):
    tfds = pytest.importorskip("tensorflow_datasets")
    pytest.importorskip("tensorflow", reason="TFDS reads through TensorFlow")
    folder = tfds.builder("mnist", data_dir=str(tmp_path)).data_path
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text('{"name": "mn')
    with pytest.raises(DataError, match=r"Cannot read 'mnist' from .* as `data_dir`") as caught:
        load("mnist", data_dir=str(tmp_path))
    assert "\n" not in str(caught.value)


def test_download_that_breaks_off(tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    pytest.importorskip("tensorflow", reason="TFDS reads through TensorFlow")

    def break_off(self):
        raise ConnectionError("reset by peer\nand more lines")

    monkeypatch.setattr(public, "_answers", lambda url: True)
    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", break_off)
    message = r"Downloading 'mnist' to .* failed: reset by peer. Try again.* `data_dir`, or use 'di"
    with pytest.raises(DataError, match=message):
        load("mnist", data_dir=str(tmp_path))


@pytest.mark.parametrize("module", ["tensorflow", "tensorflow_datasets"])
def test_without_tensorflow(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)  # its import now fails
    with pytest.raises(DataError, match=r"'mnist' needs TensorFlow.*path of a \.npz with x_train"):
        load("mnist")


def test_silent_server_is_given_up_in_time():
    with socket.create_server(("127.0.0.1", 0)) as server:  # takes the connection, never answers
        began = time.perf_counter()
        assert not public._answers(f"http://127.0.0.1:{server.getsockname()[1]}/", seconds=0.5)
        assert time.perf_counter() - began < 3


def test_closed_port_is_given_up_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    began = time.perf_counter()
    assert not public._answers(f"http://127.0.0.1:{port}/")
    assert time.perf_counter() - began < 3


def _require_prepared(name):
    folder = os.path.join(os.environ.get("TFDS_DATA_DIR", ""), name)
    if "TFDS_DATA_DIR" not in os.environ or not os.path.isdir(folder):
        pytest.skip(f"set TFDS_DATA_DIR to a directory with a prepared {name}")


PREPARED = {
    "mnist": (54000, 6000, (28, 28, 1), 10, "7"),
    "cifar10": (45000, 5000, (32, 32, 3), 10, "horse"),
    "cifar100": (45000, 5000, (32, 32, 3), 100, "beetle"),
}


@pytest.mark.parametrize("name", PREPARED)
def test_prepared_copy(name):
    _require_prepared(name)
    train, validation, shape, classes, seventh = PREPARED[name]
    data = load(name)
    assert (len(data.x_train), len(data.x_val), len(data.x_test)) == (train, validation, 10000)
    assert data.input_shape == shape and data.classes == classes
    assert data.class_names[7] == seventh
    assert data.x_train.dtype == np.uint8 and data.y_train.dtype == np.int64
    assert set(data.y_val) == set(range(classes))
