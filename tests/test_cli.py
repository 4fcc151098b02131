"""The command: what it prints, what it leaves, how it ends."""

import csv
import errno
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import warnings

import keras
import numpy as np
import pytest
from PIL import Image
from processes import COMMAND

import highway_keras
from highway_keras import data, io, models, results, training
from highway_keras.cli import backend, predict, zoo
from highway_keras.cli import command as cli
from highway_keras.cli.backend import library
from highway_keras.messages import notice
from highway_keras.training import saved_network


def run(*arguments):
    """Exit code of the command, run in this process."""
    try:
        return cli.main([str(argument) for argument in arguments])
    except SystemExit as end:  # argparse ends so
        return end.code


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of the run that the README begins with, and what it printed."""
    folder, command = tmp_path_factory.mktemp("cli"), "fit thin-highway-10 --dataset digits"
    done = subprocess.run(
        [*COMMAND, *command.split()],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
    )
    assert done.returncode == 0
    # With another backend Keras imports TensorFlow all the same, which then greets.
    assert done.stderr == "" or keras.backend.backend() != "tensorflow"
    return folder / "runs" / "thin-highway-10-digits", done.stdout


def accuracy(text):
    return float(re.search(r"test accuracy ([\d.]+) %", text)[1])


def test_the_installed_script_is_main():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="highway-keras")
    assert script.value == "highway_keras_command:main"


LITTLE = [
    "",
    "--help",
    "--version",
    "list",
    "fit --help",
    "fit",
    "fit thin-higway-10",
    "fit resnet50 --epochs 3",
]
LITTLE += ["fit thin-highway-10 --epochs 0", "fit thin-highway-10 --set speed=1"]
LITTLE += ["evaluate thin-highway-10", "reproduce table1 --model highway-b", "search --kind dense"]


@pytest.mark.parametrize("command", LITTLE)
def test_no_backend_is_imported_to_say_little(command):
    script = (
        "import sys; from highway_keras_command import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*{'keras', 'tensorflow', 'jax', 'numpy', 'sklearn'} & {*sys.modules}, "
        "file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command.split()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == ""


def test_list_shows_every_network(capsys):
    assert run("list") == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "name" and "paper %" in header and "ours %" in header
    assert [line.split()[0] for line in lines] == models.list_models()
    for line, card in zip(lines, map(models.get, models.list_models()), strict=True):
        counts = (card.layers, card.parameters, card.multiplications)
        assert line.split()[1:5] == [card.dataset, *(f"{count:,}" for count in counts)]
        assert line[header.index("paper %") : header.index("ours %")].strip() == card.paper


def test_list_shows_what_was_measured_most_often(capsys, monkeypatch):
    rows = [("fitnet-a", 100, 1, 89.5, 89.5, 0), ("fitnet-a", 100, 3, 89.1, 88.9, 0.15)]
    rows += [("fitnet-b", 100, 1, 91.6, 91.6, 0)]
    keys = ("model", "epochs", "n", "best", "mean", "std")
    table = [dict(zip(keys, map(str, row), strict=True)) for row in rows]
    monkeypatch.setattr(results.rows, "read", lambda name: table if name == "accuracy" else [])
    run("list")
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "  88.90 ± 0.15, n=3  " in lines["fitnet-a"] + "  "  # what weights there are comes last
    assert "  91.60, n=1  " in lines["fitnet-b"] + "  "


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_may_leave_early(unbuffered):
    assert _listing(unbuffered, None) == (0, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_on_a_full_disk(unbuffered):
    with open("/dev/full", "w") as full:
        code, message = _listing(unbuffered, full)
    assert (code, message) == (1, b"highway-keras: No space left on device.\n")


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, 1), (errno.EDQUOT, 1), (errno.EACCES, 2)]
)
def test_a_full_disk_is_no_misuse(number, code, tmp_path, monkeypatch, capsys):
    def write(options):
        with io.replacing(tmp_path / "file"):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(zoo, "_list", write)
    assert run("list") == code
    assert f"cannot be written ({os.strerror(number)})" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ('RuntimeError("The run diverged.")', 1, b"highway-keras: The run diverged.\n"),
        ("KeyboardInterrupt", 130, b"highway-keras: Interrupted.\n"),
    ],
)
def test_without_a_reader_a_failure_is_still_one(error, code, words):
    script = (
        "import sys; from highway_keras.cli import command, zoo\n"
        f"def fail(options): print('so far'); raise {error}\n"
        "zoo._list = fail; sys.exit(command.main(['list']))"
    )
    found, message = _piped([sys.executable, "-c", script], "", None)
    assert (found, message[-len(words) :]) == (code, words)


def _listing(unbuffered, file):
    """The exit code and stderr of `list` to a file, or to a reader that has left."""
    return _piped([*COMMAND, "list"], unbuffered, file)


def _piped(command, unbuffered, file):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    pipes = {"stdout": file or subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, **pipes, env=environment)
    if file is None:
        process.stdout.close()
    with process.stderr:
        message = process.stderr.read()
    return process.wait(60), message


def test_help_names_every_command(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert run("--help") == 0
    text = capsys.readouterr().out
    (commands,) = [
        action.choices for action in cli.parser()._actions if action.metavar == "COMMAND"
    ]
    assert {"list", "fit", "reproduce"} <= {*commands}
    for command in commands:
        assert re.search(rf"^ +{command}\s+[A-Z].*\.$", text, re.M)
        assert run(command, "--help") == 0
        assert f"usage: highway-keras {command}" in capsys.readouterr().out


@pytest.mark.parametrize(("experiment", "limit"), [("gradients", 500), ("starts", 5000)])
def test_help_says_how_many_images_a_measurement_takes(experiment, limit, capsys):
    run("reproduce", experiment, "--help")
    text = " ".join(capsys.readouterr().out.split())
    assert f"number of training images (default: {limit})" in text


# fit, evaluate, predict


def test_fit_reads_real_digits(trained):
    folder, printed = trained
    assert accuracy(printed) > 95
    assert f"saved {folder.relative_to(folder.parents[1]) / 'best.keras'}" in printed
    epochs = training.get_recipe("digits").epochs
    assert f"Epoch {epochs}/{epochs}" in printed


def test_evaluate_measures_the_same(trained, capsys):
    folder, printed = trained
    assert run("evaluate", folder / "best.keras") == 0
    text = capsys.readouterr().out
    assert accuracy(text) == accuracy(printed)
    assert re.fullmatch(r"test accuracy [\d.]+ %  test loss 0\.\d{4}  \(359 images\)\n", text)


def test_evaluate_far_from_its_run(trained, capsys, tmp_path):
    (tmp_path / "moved.keras").write_bytes((trained[0] / "best.keras").read_bytes())
    assert run("evaluate", tmp_path / "moved.keras", "--dataset", "digits") == 0
    assert accuracy(capsys.readouterr().out) == accuracy(trained[1])


@pytest.mark.parametrize("suffix", ["png", "jpeg"])
def test_predict_reads_pictures(trained, capsys, tmp_path, suffix):
    images = data.load("digits")
    chosen = [int(np.flatnonzero(images.y_test == digit)[0]) for digit in range(10)]
    paths = [tmp_path / f"{digit}.{suffix}" for digit in range(10)]
    for path, index in zip(paths, chosen, strict=True):
        Image.fromarray(images.x_test[index, ..., 0]).save(path, quality=95)
    assert run("predict", trained[0] / "best.keras", *paths) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["image", "class", "probability"]
    rows = [line.rsplit(maxsplit=2) for line in lines]
    assert [row[0] for row in rows] == list(map(str, paths))
    model = keras.models.load_model(trained[0] / "best.keras")
    expected = model.predict(images.x_test[chosen], verbose=0)
    if suffix == "png":  # JPEG changes grey levels
        assert [row[1] for row in rows] == [str(digit) for digit in expected.argmax(-1)]
        np.testing.assert_allclose([float(r[2]) for r in rows], expected.max(-1), atol=1e-4)
    assert sum(row[1] == str(digit) for digit, row in enumerate(rows)) >= 9


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder of test images in folders by digit, and what else lies in such folders."""
    folder, images = tmp_path_factory.mktemp("pictures"), data.load("digits")
    for number, (pixels, label) in enumerate(zip(images.x_test, images.y_test, strict=True)):
        (folder / str(label)).mkdir(exist_ok=True)
        suffix = ".PNG" if number % 7 == 0 else ".png"
        Image.fromarray(pixels[..., 0]).save(folder / str(label) / f"{number}{suffix}")
    (folder / "notes.txt").write_text("no picture")
    (folder / "0" / "._0.png").write_text("hidden")
    return folder


def test_predict_takes_folders_and_patterns(trained, pictures, capsys):
    below = sorted(map(str, pictures.glob("[0-9]/[0-9]*")))
    of = {d: [path for path in below if path.startswith(str(pictures / d))] for d in "013"}
    small = [path for path in of["3"] if path.endswith(".png")]
    for names, expected in [
        ([pictures], below),
        ([pictures / "[0-1]"], of["0"] + of["1"]),  # a pattern that matches folders
        ([pictures / "3" / "*.png"], small),
        ([pictures / "**" / "*.png"], [path for path in below if path.endswith(".png")]),
        ([of["3"][0], pictures / "3", pictures / "1"], of["3"] + of["1"]),  # none twice
    ]:
        assert run("predict", trained[0] / "best.keras", *names, "--csv") == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split(",")[0] for line in lines[1:]] == expected


def test_predict_names_the_most_probable_classes(trained, pictures, capsys):
    command = ["predict", trained[0] / "best.keras", pictures / "5", "--top", 3]
    assert run(*command, "--json") == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert printed.err == "" and [*found[0]] == ["image", "classes"]
    images = [np.array(Image.open(one["image"]))[..., None] for one in found]
    model = keras.models.load_model(trained[0] / "best.keras")
    for one, row in zip(found, model.predict(np.stack(images), verbose=0), strict=True):
        best = np.argsort(-row)[:3]
        assert [c["class"] for c in one["classes"]] == list(map(str, best))
        np.testing.assert_allclose([c["probability"] for c in one["classes"]], row[best], atol=1e-5)
    rows = [(one["image"], c["class"], c["probability"]) for one in found for c in one["classes"]]
    assert run(*command, "--csv") == 0
    header, *lines = csv.reader(capsys.readouterr().out.splitlines())
    assert header == ["image", "class", "probability"]
    assert [(path, name, float(p)) for path, name, p in lines] == rows
    assert run(*command) == 0
    table = capsys.readouterr().out.splitlines()[1:]
    assert [line.split() for line in table] == [[a, b, f"{c:.4f}"] for a, b, c in rows]


@pytest.mark.parametrize("option", [None, "--json", "--csv"])
def test_predict_goes_on_after_a_bad_file(option, trained, pictures, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(saved_network, "EVALUATION_BATCH", 2)
    (tmp_path / "prose.png").write_text("no picture")
    good = sorted(map(str, (pictures / "5").iterdir()))[:3]
    paths = [tmp_path / "none.png", tmp_path / "prose.png", *good, tmp_path]
    assert run("predict", trained[0] / "best.keras", *paths, *([option] if option else [])) == 1
    printed = capsys.readouterr()
    assert all(path in printed.out for path in good)
    absent, damaged, counted = printed.err.splitlines()
    assert absent.startswith("highway-keras: `path` must be an existing file. ")
    assert damaged == f"highway-keras: {paths[1]} is not a PNG or JPEG picture that can be read."
    assert counted == "highway-keras: 2 of 5 pictures could not be read."
    if option == "--json":
        errors = {one["image"]: one["error"] for one in json.loads(printed.out) if "error" in one}
        assert errors.keys() == {str(paths[0]), str(paths[1])}
        assert f"highway-keras: {errors[str(paths[1])]}" == damaged


def test_predict_without_any_good_picture(trained, tmp_path, capsys):
    assert run("predict", trained[0] / "best.keras", tmp_path / "none.png") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()  # of one picture without the count
    assert line.startswith("highway-keras: `path` must be an existing file. ")


def test_predict_shows_its_progress_on_a_terminal(trained, pictures, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(predict, "SECONDS", 0)
    assert run("predict", trained[0] / "best.keras", pictures / "5", "--csv") == 0
    printed = capsys.readouterr()
    assert f"/{len(list((pictures / '5').iterdir()))} [" in printed.err
    assert "pictures/s" not in printed.out


def test_predict_reads_thousands_with_one_network(trained, pictures, capsys, tmp_path):
    for number in range(6):
        (tmp_path / str(number)).symlink_to(pictures, target_is_directory=True)
    folders = [tmp_path / str(number) for number in range(6)]
    assert run("predict", trained[0] / "best.keras", *folders, "--csv") == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6 * 359
    right = [line.split(",")[1] == pathlib.Path(line.split(",")[0]).parent.name for line in lines]
    assert np.mean(right) > 0.95


def test_evaluate_prints_json(trained, capsys):
    assert run("evaluate", trained[0] / "best.keras", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert f"{100 * found.pop('accuracy'):.2f}" == f"{accuracy(trained[1]):.2f}"
    assert 0 < found.pop("loss") < 1
    path = str(trained[0] / "best.keras")
    assert found == {"network": path, "dataset": "digits", "images": 359}


def test_list_prints_json(capsys):
    assert run("list", "--json") == 0
    found = {card["name"]: card for card in json.loads(capsys.readouterr().out)}
    assert [*found] == models.list_models()
    card = found["mnist-highway-16"]
    assert card["parameters"] == 38_986 and card["weights"] == ["mnist"]
    assert card["ours"] == results.accuracies()["mnist-highway-16"]


def test_search_prints_json(tmp_path, capsys):
    command = "search --depth 2 --kind highway plain --trials 2 --epochs 1 --limit 64 --json"
    command += f" --dataset digits --out {tmp_path}"
    assert run(*command.split()) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)  # nothing else is on stdout
    assert "2/2 trials" in printed.err
    assert [search["kind"] for search in found] == ["highway", "plain"]
    for search in found:
        folder = pathlib.Path(search["folder"])
        trials = [json.loads(path.read_text()) for path in folder.glob("trial_*/trial.json")]
        assert search["trials"] == len(trials) == 2 and search["failed"] == 0
        best = min(trials, key=lambda trial: trial["score"])
        assert search["best"]["number"] == best["trial_id"]
        assert search["best"]["score"] == best["score"] == min(search["best"]["losses"])
        assert search["best"]["values"] == best["hyperparameters"]["values"]


def test_the_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"highway-keras {highway_keras.__version__}\n"


def test_a_shell_completes_commands_and_files():
    shtab = pytest.importorskip("shtab")
    script = shtab.complete(cli.parser(), "bash")
    for word in ("predict", "--top", "--json", "--version"):
        assert word in script
    assert "_shtab_highway_keras_predict_pos_1_COMPGEN=_shtab_compgen_files" in script


def test_predict_scales_pictures_and_takes_any_mode(trained, capsys, tmp_path):
    images = data.load("digits")
    grey = Image.fromarray(images.x_test[0, ..., 0]).resize((40, 40), Image.Resampling.BICUBIC)
    for mode in ("L", "RGB", "RGBA", "P"):
        grey.convert(mode).save(tmp_path / f"{mode}.png")
    assert run("predict", trained[0] / "best.keras", *sorted(tmp_path.glob("*.png"))) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[1] for line in lines] == 4 * [str(images.y_test[0])]


def test_fit_options(tmp_path, capsys):
    command = "fit thin-plain-10 --dataset digits --epochs 1 --batch-size 64 --learning-rate 0.05"
    command += " --set momentum=0.5 nesterov=True decay=1 --model-set depth=2 activation=relu"
    command += " --limit 300 --seed 4 --runs 2 --recipe thin"
    assert run(*command.split(), "--out", tmp_path / "runs") == 0
    text = capsys.readouterr().out
    assert re.search(r"\n2 runs, best \(mean ± std\): [\d.]+ \([\d.]+ ± [\d.]+\) %\n$", text)
    for seed in (4, 5):
        settings = training.RunFolder(tmp_path / "runs" / f"seed-{seed}").read_json()
        assert settings["seed"] == seed and settings["limit"] == 300
        assert settings["model_options"] == {"depth": 2, "activation": "relu"}
        recipe = training.get_recipe("thin").override(
            epochs=1, batch_size=64, learning_rate=0.05, momentum=0.5, nesterov=True, decay=1
        )
        kept = training.Recipe(**settings["recipe"])
        assert kept.override(**{k: tuple(v) for k, v in vars(kept).items() if type(v) is list}) == (
            recipe
        )


# How it ends


def test_notices_are_shown_after_the_libraries_have_been_silent(capfd, monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", backend._show_warning)
    with backend.silent_libraries():
        notice("no longer those of the run")
        os.write(2, b"progress of a converter\n")
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == "highway-keras: no longer those of the run\n"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (None, 0, ""),
        (ValueError("two\n lines."), 2, "highway-keras: two lines.\n"),
        (FileNotFoundError("No file."), 2, "highway-keras: No file.\n"),
        (TypeError(), 2, "highway-keras: TypeError\n"),
        (training.TrainingDiverged("Lower it."), 1, "highway-keras: Lower it.\n"),
        (KeyboardInterrupt(), 130, "highway-keras: Interrupted.\n"),
    ],
)
def test_exit_codes(error, code, line, monkeypatch, capsys):
    def end():
        if error:
            raise error
        return {}

    monkeypatch.setattr(results, "accuracies", end)
    assert run("list") == code
    assert capsys.readouterr().err == line


def test_our_own_mistakes_keep_their_traceback(monkeypatch):
    monkeypatch.setattr(results, "accuracies", lambda: {}["absent"])
    with pytest.raises(KeyError):
        run("list")


def test_divergence_ends_with_1(tmp_path, capsys):
    command = "fit thin-highway-10 --dataset digits --limit 64 --epochs 1 --learning-rate 1e30"
    command += " --model-set depth=3 activation=relu"
    assert run(*command.split(), "--out", tmp_path / "run") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("highway-keras: The loss or a weight is no longer finite after epoch 1.")


def test_importing_the_backend_gives_stderr_back(capfd):
    import_backend()
    os.write(2, b"heard")
    assert capfd.readouterr().err == "heard"


def test_it_runs_as_a_module(tmp_path):
    command = [sys.executable, "-m", "highway_keras", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == models.list_models()


def test_a_mistake_is_one_line_without_those_of_native_libraries(tmp_path):
    command = [*COMMAND, "evaluate", "none.keras"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.startswith("highway-keras: `network` must be an existing")


CONTROL = "\x1b[2J"  # clears a terminal
TINY = "thin-highway-10 --dataset digits --limit 40 --epochs 1 --model-set depth=2 --out"


SEARCH = "search --depth 2 --kind plain --trials 1 --epochs 1 --dataset digits --limit 40 --out"


@pytest.mark.parametrize("command", [f"fit {TINY}", pytest.param(SEARCH, marks=pytest.mark.slow)])
def test_a_terminal_is_not_told_to_clear_itself_by_a_file_name(command, tmp_path, capsys):
    assert run(*command.split(), tmp_path / CONTROL) == 0
    printed = capsys.readouterr().out
    assert "\\x1b[2J" in printed and CONTROL not in printed


def test_messages_of_the_library_name_flags(tmp_path, capsys):
    small = f"fit thin-highway-10 --dataset digits --limit 40 --epochs 1 --out {tmp_path / 'run'}"
    small += " --model-set depth=2"
    assert run(*small.split()) == 0
    assert run(*small.split()) == 2
    assert capsys.readouterr().err == (
        f"highway-keras: --out already holds a run. Received: --out {tmp_path / 'run'}. "
        "Pass --resume to continue it, or name another folder.\n"
    )
    assert run("reproduce", "figure1", "--search", tmp_path, "--out", tmp_path / "figure") == 2
    assert capsys.readouterr().err.startswith("highway-keras: --search must be a folder that `run_")
