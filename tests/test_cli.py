"""The command: how commands compose, what they print, how they end."""

import csv
import importlib.metadata
import json
import pathlib
import re
import runpy
import shlex
import subprocess
import sys

import keras
import numpy as np
import pytest
from helpers import SCRIPT, needs_populations, run
from PIL import Image

import highway_keras
from highway_keras import data, models, results, training
from highway_keras.util.messages import reason

EVIL = "\x1b]0;owned\x07"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a short run on the digits."""
    folder = tmp_path_factory.mktemp("cli") / "run"
    sizes = "--epochs 8 --model-set depth=3"
    command = f"fit thin-highway-10 --dataset digits {sizes} --out {folder}"
    assert run(*command.split()) == 0
    return folder


def accuracy(text):
    return float(re.search(r"test accuracy ([\d.]+) %", text)[1])


# Help, lists and errors in the arguments need no backend

WITHOUT_KERAS = {
    "": 2,
    "--help": 0,
    "--version": 0,
    "list": 0,
    "fit --help": 0,
    "fit thin-higway-10 --dataset digits": 2,
    "fit thin-highway-10 --set speed=1": 2,
    "fit thin-plain-10 --epochs many": 2,
    "reproduce table1 --model highway-b": 2,
}


def test_no_backend_is_imported_to_say_little(tmp_path):
    script = (
        "import sys; from highway_keras_command import main\n"
        f"for command, expected in {WITHOUT_KERAS}.items():\n"
        "    sys.argv = ['highway-keras', *command.split()]\n"
        "    try: code = main()\n"
        "    except SystemExit as end: code = end.code or 0\n"
        "    slow = {'keras', 'tensorflow', 'jax', 'sklearn'} & {*sys.modules}\n"
        "    assert code == expected and not slow, (command, code, slow)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == list(WITHOUT_KERAS.values()).count(2)


def test_it_is_installed_and_runs_as_a_module(monkeypatch, capsys):
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="highway-keras")
    assert script.value == "highway_keras_command:main"
    monkeypatch.setattr(sys, "argv", ["highway-keras", "--version"])
    with pytest.raises(SystemExit):
        runpy.run_module("highway_keras", run_name="__main__")
    assert capsys.readouterr().out == f"highway-keras {highway_keras.__version__}\n"


def test_list_shows_every_network(capsys):
    assert run("list") == 0
    _, *lines = capsys.readouterr().out.splitlines()
    cards = list(map(models.get, models.list_models()))
    for line, card in zip(lines, cards, strict=True):
        counts = (card.layers, card.parameters, card.multiplications)
        assert line.split()[:5] == [card.name, card.dataset, *(f"{count:,}" for count in counts)]
    assert run("list", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert [*rows] == models.list_models()
    assert rows["mnist-highway-16"]["weights"] == ["mnist"]
    assert rows["mnist-highway-16"]["ours"] == results.accuracies()["mnist-highway-16"]


# How commands compose


def test_evaluate_measures_what_fit_said(trained, capsys, tmp_path):
    measured = json.loads((trained / "run.json").read_text())["results"]
    assert run("evaluate", trained) == 0
    printed = capsys.readouterr().out
    assert accuracy(printed) == pytest.approx(100 * measured["test_accuracy"], abs=0.006)
    assert f"lowest of a class {100 * min(measured['class_accuracy'].values()):.2f} %" in printed
    copy = tmp_path / "copy.keras"
    copy.write_bytes((trained / "best.keras").read_bytes())
    assert run("evaluate", copy, "--json") == 0  # the file itself names its data set
    printed = json.loads(capsys.readouterr().out)
    assert printed["accuracy"] == pytest.approx(measured["test_accuracy"])
    assert (printed["dataset"], printed["images"]) == ("digits", 359)


def test_fit_goes_on_from_a_run_with_its_preprocessing(trained, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = f"fit {trained} --epochs 1 --learning-rate 1e-4 --limit 200 --recipe cifar".split()
    assert run(*command) == 0  # the recipe has other steps
    assert accuracy(capsys.readouterr().out) > 80
    settings = json.loads((tmp_path / "runs" / "run-further" / "run.json").read_text())
    assert (settings["dataset"], settings["recipe"]["preprocessing"]) == ("digits", ["scale"])
    assert run(*command, "--dtype-policy", "mixed_bfloat16") == 2


def test_fit_resumes_a_run_that_began_in_python(tmp_path):
    name = "thin-plain-10"
    training.fit(name, "digits", out=tmp_path, epochs=1, verbose=0)
    command = f"fit {name} --dataset digits --epochs 2 --out {tmp_path} --resume"
    assert run(*command.split()) == 0


@pytest.mark.usefixtures("untraced")
def test_options_of_fit_reach_network_data_and_training(tmp_path, capsys):
    options = "--limit 100 --recipe thin --epochs 1 --batch-size 20 --learning-rate 0.05 --seed 3"
    options += " --set momentum=0.5 nesterov=True --model-set depth=2 activation=relu"
    options += " --class-weight balanced --dtype-policy mixed_bfloat16 --runs 2"
    command = f"fit thin-highway-10 --dataset digits {options} --out {tmp_path}"
    assert run(*command.split()) == 0
    assert "2 runs, best (mean ± std)" in capsys.readouterr().out
    for seed in (3, 4):
        settings = json.loads((tmp_path / f"seed-{seed}" / "run.json").read_text())
        recipe = {"epochs": 1, "batch_size": 20, "learning_rate": 0.05, "momentum": 0.5}
        recipe |= {"nesterov": True, "dtype_policy": "mixed_bfloat16"}
        assert settings["recipe"].items() >= recipe.items()
        assert (settings["seed"], settings["limit"]) == (seed, 100)
        assert settings["model_options"] == {"depth": 2, "activation": "relu"}
        assert settings["class_weight"] is not None
        assert settings["images"] == data.load("digits", limit=100).fingerprint()


def test_fit_starts_from_the_included_weights(noise, tmp_path):
    name, options = "thin-highway-10", "--weights mnist --epochs 1 --learning-rate 1e-30"
    assert run("fit", name, *options.split(), "--out", tmp_path) == 0
    start = models.create(name, weights="mnist").get_weights()
    np.testing.assert_equal(models.load(tmp_path).network.get_weights(), start)


@pytest.mark.filterwarnings("ignore::highway_keras.util.messages.Notice")
def test_freeze_trains_the_classifier_alone(trained, tmp_path):
    command = f"fit {trained} --freeze --epochs 1 --limit 100 --out {tmp_path / 'out'}"
    assert run(*command.split()) == 0
    before, after = (models.load(path).network for path in (trained, tmp_path / "out"))
    same = [
        np.array_equal(one, other)
        for one, other in zip(before.get_weights(), after.get_weights(), strict=True)
    ]
    assert same == [True] * (len(same) - 2) + [False] * 2


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder of test images in folders by digit."""
    folder, images = tmp_path_factory.mktemp("pictures"), data.load("digits")
    pairs = zip(images.x_test[:60], images.y_test[:60], strict=True)
    for number, (pixels, label) in enumerate(pairs):
        (folder / str(label)).mkdir(exist_ok=True)
        Image.fromarray(pixels[..., 0]).save(folder / str(label) / f"{number}.png")
    return folder


def test_predict_names_the_most_probable_classes(trained, pictures, capsys):
    command = ["predict", trained, pictures, "--top", 3]
    assert run(*command, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["image"] for row in rows] == sorted(map(str, pictures.glob("*/*")))
    right = [row["classes"][0]["class"] == pathlib.Path(row["image"]).parent.name for row in rows]
    assert np.mean(right) > 0.8
    images = [np.array(Image.open(row["image"]))[..., None] for row in rows]
    expected = keras.models.load_model(trained / "best.keras").predict(np.stack(images), verbose=0)
    for row, shares in zip(rows, expected, strict=True):
        assert [one["class"] for one in row["classes"]] == list(map(str, np.argsort(-shares)[:3]))
        printed = [one["probability"] for one in row["classes"]]
        assert printed == pytest.approx(np.sort(shares)[::-1][:3].tolist(), rel=1e-4)
    assert run(*command, "--csv") == 0
    header, *lines = csv.reader(capsys.readouterr().out.splitlines())
    assert header == ["image", "class", "probability"] and len(lines) == 3 * len(rows)


def test_evaluate_saves_the_wrong_pictures(trained, capsys, tmp_path):
    assert run("evaluate", trained, "--json", "--wrong", tmp_path / "wrong") == 0
    measured = json.loads(capsys.readouterr().out)
    files = sorted((tmp_path / "wrong").iterdir())
    assert len(files) == round((1 - measured["accuracy"]) * measured["images"]) > 0
    images = data.load("digits")
    for file in files:
        number, label, _, answer = file.stem.split()
        assert images.y_test[int(number)] == int(label) != int(answer)
        np.testing.assert_array_equal(
            np.array(Image.open(file)), images.x_test[int(number), ..., 0]
        )
    assert run("evaluate", trained, "--wrong", tmp_path / "wrong") == 1


def test_predict_goes_on_after_a_picture_that_cannot_be_read(trained, pictures, capsys, tmp_path):
    (tmp_path / "prose.png").write_text("no picture")
    good = sorted(map(str, (pictures / "5").iterdir()))[:3]
    assert run("predict", trained, tmp_path / "prose.png", *good, "--json") == 1
    printed = capsys.readouterr()
    assert "prose.png" in printed.err and "1 of 4" in printed.err
    rows = json.loads(printed.out)
    assert [*rows[0]] == ["image", "error"] and [row["image"] for row in rows[1:]] == good


def test_the_zoo_names_the_sample_picture(capsys):
    seven = pathlib.Path(__file__).parents[1] / "examples" / "seven.png"
    assert run("predict", "mnist-highway-16", seven, "--weights", "mnist") == 0
    assert capsys.readouterr().out.splitlines()[1].split()[1] == "7"


def test_analyze_compact_and_export_begin_at_a_run(trained, capsys, tmp_path):
    options = ("--limit", 100, "--threshold", 0.5)
    assert run("analyze", trained, *options, "--out", tmp_path / "page") == 0
    assert "50 points (50 of 100 samples)" in (tmp_path / "page" / "index.html").read_text(
        encoding="utf-8"
    )
    assert (tmp_path / "page" / "live.html").exists()
    smaller, smallest = tmp_path / "smaller", tmp_path / "smallest"
    assert run("compact", trained, "--layers", 1, "--limit", 100, "--out", smaller) == 0
    said = accuracy(capsys.readouterr().out)
    images = data.load("digits", validation=0.0, limit=100)
    classes = models.load(trained).model.predict(images.x_train, verbose=0).argmax(-1)
    first, *_ = results.read_rows(smaller / "compact.csv")
    assert float(first["error"]) == np.mean(classes != images.y_train)
    assert run("compact", smaller, "--budget", 99, "--limit", 100, "--out", smallest) == 0
    assert "0 of 1 gated layers" in capsys.readouterr().out
    assert run("evaluate", smaller) == 0
    assert accuracy(capsys.readouterr().out) == said
    out = tmp_path / "served.keras"
    assert run("export", smaller, "--out", out) == 0
    printed = capsys.readouterr().out
    assert "same class on 359 of 359" in printed and str(out) in printed
    assert run("export", smaller, "--out", out, "--overwrite", "--no-verify") == 0
    assert "same class" not in capsys.readouterr().out


@needs_populations
def test_search_prints_its_best_trials_or_json(tmp_path, capsys):
    command = "search --depth 2 --kind plain --trials 3 --epochs 2 --limit 64 --rungs 1:2"
    command += f" --objective val_accuracy --dataset digits --out {tmp_path} --activation tanh"
    command += " --learning-rate .1 .2 --one-minus-momentum .3 .3 --decay .9 .9"
    assert run(*command.split(), "--seed", 3, "--json") == 0
    (search,) = json.loads(capsys.readouterr().out)  # nothing else is on stdout
    assert (search["kind"], search["trials"], search["failed"]) == ("plain", 3, 0)
    settings = json.loads(pathlib.Path(search["folder"], "run.json").read_text())
    asked = {"seed": 3, "rungs": "1:2", "epochs": 2, "train_images": 64, "dataset": "digits"}
    assert settings.items() >= asked.items()
    rows = list(csv.DictReader(pathlib.Path(search["folder"], "trials.csv").open()))
    assert len(rows) == 3 and float(rows[0]["score"]) == search["best"]["score"]
    more = command.replace("trials 3", "trials 4").split()
    assert run(*more, "--seed", 3, "--resume") == 0
    assert "best: trial" in capsys.readouterr().out
    assert all(0.1 <= float(row["learning_rate"]) <= 0.2 for row in rows)
    fixed = {"one_minus_momentum": "0.3", "decay": "0.9", "activation": "tanh"}
    assert all(row.items() >= fixed.items() for row in rows)
    assert run("reproduce", "figure1", "--search", tmp_path) == 2  # the paper ranks by the loss
    assert "ranked by val_accuracy" in capsys.readouterr().err


# How they end

MISTAKES = {
    "fit thin-highway-10 --dataset minst": "'mnist'",
    "fit thin-highway-10 --dataset digits --set momentun=0.9": "momentum",
    "fit thin-highway-10 --dataset digits --out RUN": "resume",
    "evaluate none.keras": "none.keras",
    "evaluate thin-highway-10": "mnist",
    "evaluate RUN --dataset two.npz": "classes",
    "predict RUN picture.png --top 11": "--top",
    "predict RUN nowhere.png": "nowhere.png",
    "search --dept 10": "--dept",
    "fit plain.keras": "--dataset",
    "compact RUN --out RUN": "--out",
    "compact RUN --budget -1 --out smaller": "--budget",
}


@pytest.fixture(scope="module")
def mistaken(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistaken")
    x, y = np.zeros((20, 8, 8, 1), "uint8"), np.arange(20) % 2
    np.savez(folder / "two.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    Image.new("L", (8, 8)).save(folder / "picture.png")
    models.load(trained).model.save(folder / "plain.keras")
    return folder


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_line_that_names_it(command, trained, mistaken, capfd, monkeypatch):
    monkeypatch.chdir(mistaken)
    code = run(*shlex.split(command.replace("RUN", shlex.quote(str(trained)))))
    printed = capfd.readouterr()
    assert code == (1 if "nowhere" in command else 2) and "Epoch 1" not in printed.out
    (line,) = printed.err.splitlines()
    assert line.startswith("highway-keras") and MISTAKES[command] in line
    assert not (mistaken / "runs").exists()


class Fails(keras.layers.Layer):
    def call(self, x):
        raise ValueError("the cause")

    def compute_output_shape(self, input_shape):
        return input_shape


def test_the_line_of_an_error_is_the_cause_that_keras_quotes():
    model = keras.Sequential([keras.layers.Dense(2), Fails()])
    with pytest.raises(ValueError, match=r"Exception encountered when calling Fails") as caught:
        model(np.ones((1, 3)))
    assert reason(caught.value) == "the cause"
    assert reason(NotImplementedError()) == "NotImplementedError"


def test_an_interrupted_command_says_how_it_continues(tmp_path, monkeypatch, capsys):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(data, "load", interrupt)
    command = f"fit thin-highway-10 --out '{tmp_path} a'"
    assert run(*shlex.split(command)) == 130
    assert f"Continue with: highway-keras {command} --resume" in capsys.readouterr().err
    assert run("reproduce", "authors-log", "--out", f"{tmp_path} b") == 130
    assert "The same command continues its searches and runs." in capsys.readouterr().err


def test_a_reader_that_has_left_ends_quietly():
    command = [sys.executable, "-c", SCRIPT, "list"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    with process.stderr:
        message = process.stderr.read()
    assert (process.wait(60), message) == (0, b"")


def test_the_command_prints_no_control_characters(trained, tmp_path, capsys):
    network = tmp_path / "network.keras"
    names = [EVIL, *map(str, range(9))]
    models.save(network, models.load(trained).model, class_names=names)
    picture = tmp_path / "\x1b[2J.png"
    Image.new("L", (8, 8)).save(picture)
    assert run("predict", network, picture, "--top", 10) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert run("fit", EVIL) == 2 and "\x1b" not in capsys.readouterr().err
