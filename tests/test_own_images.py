"""A user's own images: folders, arrays and `tf.data`, from the files to the finished pages."""

import dataclasses
import json
import shutil

import keras
import numpy as np
import pytest
from picture_folders import CLASSES, images, little, write_classes, write_parts
from PIL import Image

from highway_keras import data, training, tuning
from highway_keras.cli import command as cli
from highway_keras.data import DataError, PictureArray, load, memory
from highway_keras.messages import Notice
from highway_keras.training.engines.engine import Engine

SMALL = {"verbose": 0, "recipe": "digits", "batch_size": 16, "epochs": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pictures in `train/` and `test/`."""
    return write_parts(tmp_path_factory.mktemp("images") / "insects")


def fit(dataset, out, **changes):
    keras.utils.set_random_seed(0)
    return training.fit(little(), dataset, out=out, **SMALL | changes)


def run(*arguments):
    try:
        return cli.main([str(argument) for argument in arguments])
    except SystemExit as end:
        return end.code


def parts(found):
    return [getattr(found, f"{xy}_{part}") for part in ("train", "val", "test") for xy in "xy"]


def assert_same_images(one, other):
    for a, b in zip(parts(one), parts(other), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


# Folders


def test_a_folder_with_parts(folder):
    found = load(folder)
    assert repr(found) == (
        "Dataset(name='insects', train=54, validation=6, test=15, input_shape=(8, 8, 1), classes=3)"
    )
    assert found.class_names == CLASSES
    x, y = images(60)
    pairs = {(image.tobytes(), label) for image, label in zip(x, y, strict=True)}
    read = zip(
        *(np.concatenate(p) for p in (parts(found)[0:4:2], parts(found)[1:4:2])), strict=True
    )
    assert {(image.tobytes(), label) for image, label in read} == pairs
    assert found.x_test.dtype == np.uint8 and found.y_test.dtype == np.int64


def test_a_fifth_of_each_class_is_for_testing_where_there_are_no_parts(tmp_path):
    write_classes(tmp_path / "one", 60)
    first, again = load(tmp_path / "one"), load(str(tmp_path / "one"))
    assert [len(array) for array in parts(first)[1::2]] == [43, 5, 12]
    assert np.bincount(first.y_test).tolist() == [4, 4, 4]
    assert_same_images(first, again)
    other = load(tmp_path / "one", validation=0.5)
    np.testing.assert_array_equal(first.x_test, other.x_test)  # whatever is held out


def test_a_split_that_changed_is_said(tmp_path):
    folder = write_classes(tmp_path / "insects", 60)
    result = fit(folder, tmp_path / "run")
    saved = training.SavedNetwork(result.folder.best)
    assert saved.evaluate(saved.load())[1] == result.test_accuracy
    shutil.copy(folder / "ant" / "000.png", folder / "ant" / "new.png")
    with pytest.warns(Notice, match="insects are no longer those of the run, so the network may"):
        saved.load()
    with pytest.warns(Notice, match="are no longer those of the run"):
        saved.load(f"{folder.parent}/./insects/")


@pytest.mark.parametrize("names", [("Train", "Test"), ("training", "testing")])
def test_parts_of_another_name_are_not_classes(names, tmp_path):
    for name in names:
        write_classes(tmp_path / name, 30)
    with pytest.raises(DataError, match=r"named like this, .* with [Tt]est(ing)?, [Tt]rain"):
        load(tmp_path)


def test_what_is_no_picture_is_left_out(tmp_path):
    write_classes(tmp_path / "one", 60)
    for name in ("notes.txt", ".hidden.png", "cat/clip.gif"):
        (tmp_path / "one" / name).write_text("no picture")
    (tmp_path / "one" / ".cache").mkdir()
    assert len(load(tmp_path / "one", validation=0).x_train) == 48


def test_pictures_are_read_as_predict_reads_them(tmp_path):
    """In the size asked for, of which a line says so, and a photo as its EXIF data turn it."""
    write_classes(tmp_path / "one", 30, size=(9, 7))
    turned = tmp_path / "one" / "bee" / "photo.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.arange(63, dtype="uint8").reshape(7, 9)).save(turned, exif=exif)
    with pytest.warns(Notice, match=r"one holds 31 pictures: 31 are scaled to 6 x 6\.$"):
        found = load(tmp_path / "one", input_shape=(6, 6, 1))
    wanted = data.read_image(turned, (6, 6, 1))
    everything = np.concatenate(parts(found)[::2])
    assert any(np.array_equal(image, wanted) for image in everything)
    assert load(tmp_path / "one").input_shape == (9, 7, 1)  # the photo, too, as it is seen
    with pytest.warns(Notice, match=r"pictures: 31 are read as colours\.$"):
        assert load(tmp_path / "one", input_shape=(9, 7, 3)).input_shape == (9, 7, 3)


def broken(folder):
    (folder / "train" / "bee" / "001.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")


def cut(folder):
    path = folder / "train" / "bee" / "001.png"
    path.write_bytes(path.read_bytes()[:60])


def odd_size(folder):
    Image.new("L", (5, 5)).save(folder / "train" / "ant" / "odd.png")


FAULTS = {
    "empty": (shutil.rmtree, lambda f: f.mkdir(), r"two or more classes.* which holds none\."),
    "one class": (
        shutil.rmtree,
        lambda f: write_classes(f, 5, classes=("ant",)),
        "two or more classes.* holds only ant",
    ),
    "broken": (broken, r"001\.png is not a PNG or JPEG picture that can be read"),
    "cut": (cut, r"001\.png is not a PNG or JPEG picture that can be read"),
    "sizes": (odd_size, "`input_shape` must give the size .* with 5 x 5 and 8 x 8"),
    "missing in test": (
        lambda f: shutil.rmtree(f / "test" / "bee"),
        "the same classes in train/ and test/.* Only in train/: bee",
    ),
    "other in test": (
        lambda f: (f / "test" / "bee").rename(f / "test" / "wasp"),
        "Only in train/: bee. Only in test/: wasp",
    ),
    "no pictures": (
        lambda f: [p.unlink() for p in (f / "train" / "cat").iterdir()],
        "PNG or JPEG files for each class.* none for cat",
    ),
    "no test": (lambda f: shutil.rmtree(f / "test"), "train/ and test/, or .* with train. Pict"),
    "a third part": (lambda f: (f / "val").mkdir(), "with test, train, val. Pictures to choose by"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_bad_folder_is_one_line(fault, folder, tmp_path, capsys):
    *spoil, message = fault
    copy = shutil.copytree(folder, tmp_path / "insects")
    for step in spoil:
        step(copy)
    with pytest.raises(DataError, match=message) as caught:
        load(copy)
    assert "\n" not in str(caught.value)
    if "input_shape" not in message:  # which the command takes from the network
        assert run("fit", "thin-plain-10", "--dataset", copy, "--out", tmp_path / "run") == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_few_pictures_are_too_few(tmp_path):
    write_classes(tmp_path / "few", 2, classes=("ant", "bee"))
    with pytest.raises(DataError, match=r"at least 3 pictures, .* with 2"):
        load(tmp_path / "few")


# From the folder to everything that is made of it


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    """A run on the folder, by the command."""
    out = tmp_path_factory.mktemp("runs") / "run"
    options = ["--epochs", 40, "--recipe", "digits", "--model-set", "depth=2", "--out", out]
    shape = ["--input-shape", 8, 8, 1]
    assert run("fit", "thin-highway-10", "--dataset", folder, *options, *shape) == 0
    return out


def test_the_classes_keep_their_names(trained, folder, capsys, tmp_path):
    assert json.loads((trained / "run.json").read_text())["class_names"] == list(CLASSES)
    picture = folder / "test" / "cat" / "002.png"
    assert run("predict", trained / "best.keras", picture, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["classes"][0]["class"] == "cat"
    assert run("analyze", trained / "best.keras", "--out", tmp_path / "look") == 0
    live = (tmp_path / "look" / "live.html").read_text()
    assert all(f'"{name}"' in live for name in CLASSES)
    export = ["export", trained / "best.keras", "--format", "keras", "--out"]
    assert run(*export, tmp_path / "insects.keras") == 0
    assert (tmp_path / "insects.txt").read_text().split() == list(CLASSES)
    card = json.loads((tmp_path / "insects.json").read_text())
    assert card["class_names"] == list(CLASSES)


def test_evaluate_measures_the_folders_test_images(trained, folder, capsys):
    measured = json.loads((trained / "run.json").read_text())["results"]
    for dataset in ([], ["--dataset", folder]):
        assert run("evaluate", trained / "best.keras", "--json", *dataset) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["accuracy"] == measured["test_accuracy"] and found["images"] == 15
        assert found["accuracy"] > 0.9 and found["dataset"] == "insects"


def test_evaluate_holds_no_images_out(trained, tmp_path, capsys):
    write_classes(tmp_path / "few" / "train", 3)  # too few to hold out some of them
    write_classes(tmp_path / "few" / "test", 15)
    assert run("evaluate", trained / "best.keras", "--dataset", tmp_path / "few") == 0
    assert "(15 images)" in capsys.readouterr().out


exports = pytest.param(
    "export",
    marks=pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="exports are traced by TensorFlow"
    ),
)


@pytest.mark.parametrize("command", ["evaluate", "analyze", exports])
def test_a_folder_of_other_classes_is_refused(command, trained, folder, tmp_path, capsys):
    copy = shutil.copytree(folder, tmp_path / "others")
    for part in ("train", "test"):
        (copy / part / "cat").rename(copy / part / "dog")
    options = ["--out", tmp_path / "out"] if command != "evaluate" else []
    assert run(command, trained / "best.keras", "--dataset", copy, *options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "The network's classes are ant, bee, cat. Received:" in line and "ant, bee, dog" in line


@pytest.mark.parametrize(
    ("known", "given", "fits"),
    [
        (("cat", "dog"), ("dog", "cat"), False),
        (("cat", "dog"), ("cat", "dog"), True),
        (("cat", "dog"), None, True),
        (("0", "1"), ("dog", "cat"), True),
        (None, ("dog", "cat"), True),
    ],
)
def test_classes_are_compared_where_both_have_names(known, given, fits, tmp_path):
    x, y = images(20, classes=2)
    arrays = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
    np.savez(tmp_path / "pets.npz", **arrays, **({"class_names": given} if given else {}))
    layers = [keras.Input((8, 8, 1)), keras.layers.Flatten()]
    top = keras.layers.Dense(2, activation="softmax")
    keras.Sequential([*layers, top]).save(tmp_path / "best.keras")
    if known:
        (tmp_path / "run.json").write_text(json.dumps({"class_names": known}))
    saved = training.SavedNetwork(tmp_path / "best.keras")
    for use in (saved.load, lambda path: saved.evaluate(load(path))):
        if fits:
            use(tmp_path / "pets.npz")
            continue
        with pytest.raises(ValueError, match=r"classes are cat, dog\. .*with dog, cat\. Give"):
            use(tmp_path / "pets.npz")


def test_a_run_does_not_resume_with_other_images(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "insects")
    first = fit(copy, tmp_path / "run")
    assert fit(copy, tmp_path / "run", resume=True).history == first.history
    Image.new("L", (8, 8), 77).save(copy / "train" / "ant" / "000.png")
    with pytest.raises(ValueError, match=r"settings differ .images: '\w{16}' → '\w"):
        fit(copy, tmp_path / "run", resume=True)


def test_a_run_of_images_that_were_not_recorded_goes_on(folder, tmp_path):
    """As those of version 0.1.0."""
    first = fit(folder, tmp_path / "run")
    first.folder.state.unlink()
    settings = first.folder.read_json()
    del settings["images"], settings["results"]
    first.folder.write_json(settings)
    assert fit(folder, tmp_path / "run", resume=True).history == first.history


def test_a_search_takes_a_folder(folder, tmp_path):
    size = {"trials": 1, "epochs": 1, "verbose": 0}
    with pytest.warns(Notice, match="75 are scaled to 28 x 28"):
        (found,) = tuning.run_searches([2], ["plain"], dataset=folder, out=tmp_path, **size)
    settings = json.loads((found / "run.json").read_text())
    assert settings["class_names"] == list(CLASSES) and len(settings["images"]) == 16


# Larger than memory


@pytest.fixture
def no_memory(monkeypatch):
    """Nothing fits into memory."""
    monkeypatch.setattr(memory, "SHARE", 0)


def test_pictures_that_do_not_fit_stay_on_the_disk(folder, no_memory, monkeypatch):
    with pytest.warns(Notice, match=r"stay on the disk.* would take .* GiB; .* are free"):
        streamed = load(folder)
    assert all(isinstance(array, PictureArray) for array in parts(streamed)[::2])
    monkeypatch.setattr(memory, "SHARE", 0.5)
    whole = load(folder)
    assert streamed.fingerprint() == whole.fingerprint() and repr(streamed) == repr(whole)
    assert_same_images(streamed, whole)
    np.testing.assert_array_equal(streamed.x_train[3], whole.x_train[3])
    np.testing.assert_array_equal(streamed.x_train[[5, 2]], whole.x_train[[5, 2]])
    assert streamed.x_train[:0].shape == (0, 8, 8, 1)


def test_pictures_of_a_size_that_cannot_fit_are_refused(folder):
    with pytest.warns(Notice, match="stay on the disk"):
        streamed = load(folder, input_shape=(10**6, 10**6, 1))
    message = r"`input_shape` must be so small that .* GiB .* input_shape=\(1000000, 1000000, 1\)"
    with pytest.raises(DataError, match=message):
        streamed.x_train[:2]


def test_training_on_streamed_pictures_is_the_same(folder, tmp_path, monkeypatch):
    changes = {"preprocessing": ("gcn", "mean"), "augmentation": ("mirror",), "epochs": 3}
    whole = fit(folder, tmp_path / "whole", **changes)
    monkeypatch.setattr(memory, "SHARE", 0)
    with pytest.warns(Notice, match="stay on the disk"):
        streamed = fit(folder, tmp_path / "streamed", **changes)
    for one, other in zip(whole.history, streamed.history, strict=True):
        assert one == pytest.approx(other, rel=1e-4)
    assert streamed.test_loss == pytest.approx(whole.test_loss, rel=1e-4)
    assert streamed.best_epoch == whole.best_epoch


def test_a_streamed_run_resumes(folder, tmp_path, no_memory):
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise KeyboardInterrupt

    with pytest.warns(Notice, match="stay on the disk"):
        whole = fit(folder, tmp_path / "whole")
    with pytest.warns(Notice, match="stay"), pytest.raises(KeyboardInterrupt):
        fit(folder, tmp_path / "run", callbacks=[Stop()])
    with pytest.warns(Notice, match="stay"):
        again = fit(folder, tmp_path / "run", resume=True)
    assert again.history == whole.history and again.test_loss == whole.test_loss


def test_arrays_that_do_not_fit_twice_are_preprocessed_in_batches(tmp_path, no_memory, monkeypatch):
    x, y = images(60)
    streamed = fit((x, y), tmp_path / "streamed")
    monkeypatch.setattr(memory, "SHARE", 0.5)
    whole = fit((x, y), tmp_path / "whole")
    assert streamed.test_loss == pytest.approx(whole.test_loss, rel=1e-4)


def test_what_cannot_be_streamed_says_what_it_would_need(tmp_path, monkeypatch):
    x, y = images(60)
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    pictures = PictureArray([str(tmp_path / "a.png")] * 50, (8, 8, 1))
    monkeypatch.setattr(memory, "free", lambda: 2000)
    for source in (tmp_path / "mine.npz", as_tf_data(x, y)):
        with pytest.raises(DataError, match=r"must fit into memory. They would need .* are free"):
            load(source)
    with pytest.raises(DataError, match="The images of 50 pictures must fit into memory"):
        np.asarray(pictures)


def test_a_picture_array_takes_paths_of_any_kind(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(np.full((8, 8), 7, "uint8")).save(path)
    pictures = PictureArray([path, str(path)], (8, 8, 1))
    np.testing.assert_array_equal(pictures[0], np.full((8, 8, 1), 7))
    np.testing.assert_array_equal(pictures[:], np.full((2, 8, 8, 1), 7))


def test_several_devices_do_not_stream():
    Engine(replicas=2).check_streaming(False)
    Engine().check_streaming(True)
    with pytest.raises(ValueError, match="`distribute` needs images that fit into memory"):
        Engine(replicas=2).check_streaming(True)


# Arrays and data sets


def as_tf_data(x, y, shuffle=False):
    tf = pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.from_tensor_slices((x[..., None], y))
    return (dataset.shuffle(100) if shuffle else dataset).batch(7)


def of_unknown_rank(dataset):
    """As `tf.io.decode_image` gives it."""
    tf = pytest.importorskip("tensorflow")

    def forget(x, y):
        return tf.numpy_function(lambda x: x, [x], tf.uint8), y

    return dataset.unbatch().map(forget)


def test_npz_names_its_classes(tmp_path):
    x, y = images(40)
    arrays = {"x_train": x, "y_train": y, "x_test": x[:9], "y_test": y[:9]}
    np.savez(tmp_path / "mine.npz", **arrays, class_names=CLASSES)
    found = load(tmp_path / "mine.npz")
    assert found.class_names == CLASSES
    np.savez(tmp_path / "mine.npz", **arrays, class_names=(*CLASSES, "dog"))
    assert load(tmp_path / "mine.npz").classes == 4  # of which there are no images yet
    for names, message in [
        (CLASSES[:2], "must name every class. Received: 2 names, and label 2"),
        (np.arange(3), r"must be an array of strings.* dtype=int64"),
    ]:
        np.savez(tmp_path / "mine.npz", **arrays, class_names=names)
        with pytest.raises(DataError, match=f"`class_names` in .*mine.npz {message}"):
            load(tmp_path / "mine.npz")


def test_arrays(tmp_path):
    x, y = images(60)
    found = load((x, y))
    assert repr(found).startswith("Dataset(name='arrays', train=43, validation=5, test=12")
    pair = load(((x, y), (x[:9], y[:9])))  # as `keras.datasets` has them
    assert len(pair.x_test) == 9 and pair.input_shape == (8, 8, 1)
    result = fit(((x, y), (x[:9], y[:9])), tmp_path / "run")
    assert result.folder.read_json()["dataset"] is None
    saved = training.SavedNetwork(result.folder.best)
    with pytest.raises(ValueError, match=r"names no path of its data set: pass `dataset`"):
        saved.load()
    assert saved.evaluate(saved.load((x, y)))[1] >= 0
    with pytest.raises(ValueError, match=r"images: '\w+' → '\w+'"):
        fit(((x + 1, y), (x[:9], y[:9])), tmp_path / "run", resume=True)


def test_tf_data_in_whatever_order():
    x, y = images(60)
    found = [load(as_tf_data(x, y, shuffle=True)) for _ in range(2)]
    assert found[0].fingerprint() == found[1].fingerprint() and len(found[0].x_train) == 43
    pair = load((as_tf_data(x, y), as_tf_data(x[:9], y[:9])))
    assert len(pair.x_test) == 9
    as_floats = load(as_tf_data(x.astype("float32"), y))
    assert as_floats.fingerprint() == found[0].fingerprint()
    twins = x.copy()
    twins[1::2] = twins[::2]  # of other classes
    first, second = (
        load(as_tf_data(twins[order], y[order])) for order in (slice(None), slice(None, None, -1))
    )
    assert first.fingerprint() == second.fingerprint()


def test_keras_reads_a_folder_as_tf_data(folder):
    pytest.importorskip("tensorflow")
    read = {"image_size": (8, 8), "color_mode": "grayscale", "verbose": False}
    datasets = [
        keras.utils.image_dataset_from_directory(folder / part, **read)
        for part in ("train", "test")
    ]
    found = load(tuple(datasets))
    assert found.class_names == CLASSES and len(found.x_test) == 15
    ours = {image.tobytes() for image in load(folder).x_test}
    assert {image.tobytes() for image in found.x_test} == ours


def test_tf_data_of_other_classes_to_test_on(folder, tmp_path):
    """Their numbers count the folders: without bee, cat would be 1."""
    pytest.importorskip("tensorflow")
    copy = shutil.copytree(folder, tmp_path / "insects")
    shutil.rmtree(copy / "test" / "bee")
    read = {"image_size": (8, 8), "color_mode": "grayscale", "verbose": False}
    train, test = (
        keras.utils.image_dataset_from_directory(copy / part, **read) for part in ("train", "test")
    )
    with pytest.raises(DataError, match=r"the same classes.* Received: ant, bee, cat and ant, cat"):
        load((train, test))
    del test.class_names
    assert load((train, test)).class_names == CLASSES


def test_a_data_set_stays_as_it_is(tmp_path):
    made = load(images(60), validation=0.3)
    assert load(made).fingerprint() == made.fingerprint()
    assert len(load(made, limit=10).x_train) == 10
    result = fit(made, tmp_path / "run")
    assert "val_accuracy" in result.history[0]


def test_a_limit_takes_images_of_all_classes():
    x, y = images(60)
    order = np.argsort(y, kind="stable")
    made = load((x[order], y[order]))
    by_class = np.argsort(made.y_train, kind="stable")
    made = dataclasses.replace(made, x_train=made.x_train[by_class], y_train=made.y_train[by_class])
    limited = load(made, limit=12)
    assert len(limited.x_train) == 12 and set(limited.y_train) == {0, 1, 2}
    assert_same_images(load(made, limit=12), limited)


def as_columns(made):
    """The same with labels `(n, 1)` and images without channels."""
    labels = {key: getattr(made, key)[:, None] for key in ("y_train", "y_val", "y_test")}
    pixels = {key: getattr(made, key)[..., 0] for key in ("x_train", "x_val", "x_test")}
    return dataclasses.replace(made, **labels, **pixels)


def test_a_data_set_with_labels_in_a_column(tmp_path):
    made = load(images(60))
    assert_same_images(load(as_columns(made)), made)
    little().save(tmp_path / "little.keras")
    saved = training.SavedNetwork(tmp_path / "little.keras")
    expected = saved.evaluate(made)
    assert saved.evaluate(as_columns(made)) == expected
    column = dataclasses.replace(made, y_test=made.y_test[:, None])
    assert training.evaluate(saved.model, column) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda made: {"x_val": made.x_val / 255}, "`x_val` in the data set 'arrays' must be uint"),
        (lambda made: {"y_val": made.y_val + 3}, "must name every class. .* label 5"),
        (lambda made: {"x_test": made.x_test / 255}, "`x_test` in the data set 'arrays' must be "),
    ],
)
def test_a_bad_data_set_is_refused(changes, message, tmp_path):
    made = load(images(60))
    bad = dataclasses.replace(made, **changes(made))
    little().save(tmp_path / "little.keras")
    for use in (load, training.SavedNetwork(tmp_path / "little.keras").evaluate):
        with pytest.raises(DataError, match=message):
            use(bad)


WRONG = {
    "three arrays": (lambda x, y: (x, y, y), TypeError, "`dataset` must be a name, a path"),
    "three pairs": (lambda x, y: ((x, y),) * 3, TypeError, "images to choose by are held out"),
    "nothing": (lambda x, y: [], TypeError, r"Received: dataset=\[\]"),
    "lists": (lambda x, y: (x.tolist(), y), TypeError, "`dataset` must be a name, a path"),
    "a number": (lambda x, y: 5, TypeError, "`dataset` must be the name of a data set, a path"),
    "lengths": (lambda x, y: (x, y[:-1]), DataError, "`x_train` and `y_train` in the images must"),
    "floats": (lambda x, y: (x / 255, y), DataError, "`x_train` in the images must be uint8"),
    "endless": (lambda x, y: as_tf_data(x, y).repeat(), DataError, "must be a finite `tf.data"),
    "unlabelled": (
        lambda x, y: as_tf_data(x, y).map(lambda x, y: x),
        DataError,
        r"pairs \(image, label\)",
    ),
    "scaled": (
        lambda x, y: as_tf_data(x / 255, y),
        DataError,
        "leave out a Rescaling. Received: 0",
    ),
    "unknown": (lambda x, y: of_unknown_rank(as_tf_data(x, y)), DataError, "get one by `image.set"),
    "none": (lambda x, y: as_tf_data(x, y).take(0), DataError, "at least one image"),
}


@pytest.mark.parametrize(("make", "kind", "message"), WRONG.values(), ids=WRONG)
def test_bad_images_in_memory(make, kind, message):
    with pytest.raises(kind, match=message) as caught:
        load(make(*images(30)))
    assert "\n" not in str(caught.value)


def test_only_pictures_have_a_size_to_choose(tmp_path):
    with pytest.raises(ValueError, match="`input_shape` is for pictures in a folder"):
        training.fit("thin-highway-10", "digits", input_shape=(8, 8, 1), out=tmp_path / "run")
