"""The command: what it prints, what it leaves, how it ends."""

import contextlib
import csv
import errno
import importlib.metadata
import inspect
import io
import json
import os
import pathlib
import re
import runpy
import shlex
import subprocess
import sys
import types
import warnings

import keras
import numpy as np
import pytest
from helpers import COMMAND, needs_populations, run
from PIL import Image, ImageOps

import highway_keras
from highway_keras import data, models, paper, results, training, tuning
from highway_keras.cli import backend, saved, shared
from highway_keras.cli import command as cli
from highway_keras.export import export
from highway_keras.models.shipped import find_entry
from highway_keras.training import saved_network
from highway_keras.util.files import replacing, write_json
from highway_keras.util.messages import notice


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The network of the run that the README begins with, but shorter, and what it printed."""
    folder = tmp_path_factory.mktemp("cli")
    command = "fit thin-highway-10 --dataset digits --epochs 8"
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.chdir(folder)
        assert run(*command.split()) == 0
    return folder / "runs" / "thin-highway-10-digits" / "best.keras", out.getvalue()


def accuracy(text):
    return float(re.search(r"test accuracy ([\d.]+) %", text)[1])


# Help, lists and errors in the arguments need no backend

LITTLE = {
    "": 2,
    "--help": 0,
    "--version": 0,
    "list": 0,
    "fit --help": 0,
    "fit thin-higway-10 --dataset digits": 2,
    "fit thin-highway-10 --set speed=1": 2,
    "fit thin-highway-10 --dataset none.npz": 2,
    "fit thin-plain-10 --epochs 0": 2,  # the network, not a run's folder of that name
    "fit thin-highway-10 --dataset digits --out here": 2,
    "evaluate thin-highway-10": 2,
    "predict none.keras x.png": 2,
    "compact kept --out kept": 2,
    "reproduce table1 --model highway-b": 2,
    "search --depth 2 --out .": 2,
}


def test_no_backend_is_imported_to_say_little(tmp_path):
    files = "here/run.json thin-plain-2/run.json kept/best.keras thin-plain-10/best.keras"
    for file in files.split():
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text("{}")
    script = (
        "import sys; from highway_keras_command import main\n"
        f"for command, expected in {LITTLE}.items():\n"
        "    sys.argv = ['highway-keras', *command.split()]\n"
        "    try: code = main()\n"
        "    except SystemExit as end: code = end.code or 0\n"
        "    found = {'keras', 'tensorflow', 'jax', 'numpy', 'sklearn'} & {*sys.modules}\n"
        "    assert code == expected and not found, (command, code, found)\n"
        "    for name in [name for name in sys.modules if name.startswith('highway_keras')]:\n"
        "        if name != 'highway_keras_command': del sys.modules[name]\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == sum(code == 2 for code in LITTLE.values())


def test_every_data_set_with_a_name_is_known_without_keras():
    assert shared.NAMED_DATA == data.NAMES


def test_it_is_installed_and_runs_as_a_module(monkeypatch, capsys):
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="highway-keras")
    assert script.value == "highway_keras_command:main"
    monkeypatch.setattr(sys, "argv", ["highway-keras", "--version"])
    with pytest.raises(SystemExit):
        runpy.run_module("highway_keras", run_name="__main__")
    assert capsys.readouterr().out == f"highway-keras {highway_keras.__version__}\n"


def test_every_command_has_help(capsys):
    """A text with a `%` would be an error."""
    for name in ("", *shared.COMMANDS):
        assert run(*name.split(), "--help") == 0
        assert f"usage: highway-keras {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "function"),
    {
        "fit MODEL": training.fit,
        "export FILE --out PATH": export,
        "search": tuning.run_searches,
        "search --seed 0": tuning.HighwayHyperModel,
        "reproduce table1": paper.reproduce_table,
        "reproduce figure2": paper.reproduce_section4,
        "reproduce gradients": paper.reproduce_gradients,
        "reproduce starts": paper.reproduce_starts,
        "reproduce first-losses": paper.reproduce_first_losses,
        "reproduce authors-log": paper.compare_with_authors,
    }.items(),
)
def test_defaults_are_those_of_the_library(command, function):
    options, compared = vars(cli.parser().parse_args(command.split())), []
    for name, parameter in inspect.signature(function).parameters.items():
        value, default = options.get(name), parameter.default
        if value not in (None, []) and name != "out" and default is not parameter.empty:
            assert value == (list(default) if isinstance(default, tuple) else default)
            compared.append(name)
    assert compared


def test_a_shell_completes_files():
    shtab = pytest.importorskip("shtab")
    script = shtab.complete(cli.parser(), "bash")
    assert "_shtab_highway_keras_predict_pos_1_COMPGEN=_shtab_compgen_files" in script


def test_list_shows_every_network(capsys):
    assert run("list") == 0
    header, *lines = capsys.readouterr().out.splitlines()
    cards = list(map(models.get, models.list_models()))
    for line, card in zip(lines, cards, strict=True):
        counts = (card.layers, card.parameters, card.multiplications)
        assert line.split()[:5] == [card.name, card.dataset, *(f"{count:,}" for count in counts)]
        assert line[header.index("paper %") : header.index("ours %")].strip() == card.paper
    assert run("list", "--json") == 0
    found = {card["name"]: card for card in json.loads(capsys.readouterr().out)}
    assert [*found] == models.list_models()
    assert found["mnist-highway-16"]["weights"] == ["mnist"]
    assert found["mnist-highway-16"]["ours"] == results.accuracies()["mnist-highway-16"]


# fit, evaluate, predict


def test_fit_names_the_next_command_and_evaluate_measures_the_same(trained, capsys, tmp_path):
    network, printed = trained
    assert accuracy(printed) > 90 and "Epoch 8/8" in printed
    saved_as = network.relative_to(network.parents[2])
    assert f"saved {saved_as}\n" in printed
    assert f"highway-keras predict {saved_as}" in printed.splitlines()[-1]
    assert run("evaluate", network) == 0
    text = capsys.readouterr().out
    assert accuracy(text) == accuracy(printed)
    assert re.match(r"test accuracy [\d.]+ %  test loss 0\.\d{4}  \(359 images\)\n", text)
    (tmp_path / "moved.keras").write_bytes(network.read_bytes())
    assert run("evaluate", tmp_path / "moved.keras", "--dataset", "digits", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert f"{100 * found['accuracy']:.2f}" == f"{accuracy(printed):.2f}"
    assert (found["dataset"], found["images"]) == ("digits", 359) and 0 < found["loss"] < 1
    assert found["network"] == str(tmp_path / "moved.keras")


def test_a_saved_network_is_trained_further_on_what_it_was_trained_on(
    trained, capsys, tmp_path, monkeypatch
):
    """Not in its own folder."""
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "runs" / f"{trained[0].parent.name}-further"
    assert run("fit", trained[0].parent, "--epochs", 1, "--learning-rate", 1e-4) == 0
    settings = json.loads((out / "run.json").read_text())
    assert (settings["dataset"], settings["recipe"]["name"]) == ("digits", "digits")
    assert accuracy(capsys.readouterr().out) > 90


def test_a_name_with_weights_is_no_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thin-highway-10").mkdir()
    (tmp_path / "thin-highway-10" / "best.keras").touch()
    found = shared.network_file("thin-highway-10", "mnist")
    assert found == models.get("thin-highway-10").weights_file("mnist")


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


def test_predict_names_the_most_probable_classes(trained, pictures, capsys, monkeypatch):
    command = ["predict", trained[0].parent, pictures, "--top", 3]
    assert run(*command, "--json") == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert "left out: 1 (endings: .txt)" in printed.err and [*found[0]] == ["image", "classes"]
    assert [one["image"] for one in found] == sorted(map(str, pictures.glob("[0-9]/[0-9]*")))
    right = [one["classes"][0]["class"] == pathlib.Path(one["image"]).parent.name for one in found]
    assert np.mean(right) > 0.9
    images = [np.array(Image.open(one["image"]))[..., None] for one in found]
    model = keras.models.load_model(trained[0])
    for one, row in zip(found, model.predict(np.stack(images), verbose=0), strict=True):
        best = np.argsort(-row)[:3]
        assert [c["class"] for c in one["classes"]] == list(map(str, best))
        np.testing.assert_allclose([c["probability"] for c in one["classes"]], row[best], atol=1e-5)
    rows = [(one["image"], c["class"], c["probability"]) for one in found for c in one["classes"]]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(saved, "SECONDS", 0)
    assert run(*command, "--csv") == 0
    printed = capsys.readouterr()
    header, *lines = csv.reader(printed.out.splitlines())
    assert header == ["image", "class", "probability"]
    assert [(path, name, float(p)) for path, name, p in lines] == rows
    assert f"/{len(found)} [" in printed.err  # progress on a terminal
    assert run(*command) == 0
    table = capsys.readouterr().out.splitlines()[1:]
    assert [line.split() for line in table] == [[a, b, f"{c:.4f}"] for a, b, c in rows]


def test_predict_goes_on_after_a_bad_file(trained, pictures, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(saved_network.data, "images_at_once", lambda shape: 2)
    (tmp_path / "prose.png").write_text("no picture")
    good = sorted(map(str, (pictures / "5").iterdir()))[:3]
    paths = [tmp_path / "none.png", tmp_path / "prose.png", *good, tmp_path]
    assert run("predict", trained[0], *paths, "--json") == 1
    printed = capsys.readouterr()
    absent, damaged, counted = printed.err.splitlines()
    assert "none.png" in absent and str(paths[1]) in damaged and "2 of 5 pictures" in counted
    found = json.loads(printed.out)
    assert {one["image"] for one in found if "classes" in one} == {*good}
    errors = {one["image"]: one["error"] for one in found if "error" in one}
    assert errors.keys() == {str(paths[0]), str(paths[1])}
    assert f"highway-keras: {errors[str(paths[1])]}" == damaged


def test_an_interrupted_predict_keeps_its_rows(trained, capsys, monkeypatch):
    def classify(*arguments):
        yield saved_network.Classified("a.png", (("5", 0.75),))
        raise KeyboardInterrupt

    monkeypatch.setattr(training.SavedNetwork, "classify", classify)
    assert run("predict", trained[0], "seven.png", "--csv") == 130
    assert capsys.readouterr().out.splitlines()[1:] == ["a.png,5,0.75"]


def test_the_sample_picture_is_a_seven_and_its_negative_looks_inverted(trained, capsys, tmp_path):
    seven = pathlib.Path(__file__).parents[1] / "examples" / "seven.png"
    negative = tmp_path / "ink.png"
    ImageOps.invert(Image.open(seven)).save(negative)
    for network in (["mnist-highway-16", "--weights", "mnist"], [trained[0]]):
        assert run("predict", *network, seven, negative) == 0
        printed = capsys.readouterr()
        assert network[1:] == [] or printed.out.splitlines()[1].split()[1] == "7"
        (line,) = printed.err.splitlines()
        assert "1 of 2 pictures look inverted" in line and str(negative) in line


def test_a_photo_is_named_by_a_network_in_color(capsys, tmp_path):
    photo = np.random.default_rng(0).integers(0, 256, (40, 60, 3), "uint8")
    Image.fromarray(photo).save(file := tmp_path / "photo.jpg")
    assert run("predict", "highway-a", file, "--weights", "cifar10", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["classes"][0]["class"] in find_entry("highway-a", "cifar10")["class_names"]


def test_options_of_fit_reach_the_library(monkeypatch, capsys):
    """Checked without a run; runs in other tests check the other options."""

    def fit_runs(model, runs, **options):
        received.update(options, runs=runs)
        same = {"folder": training.RunFolder("run"), "best_epoch": 1}
        return [types.SimpleNamespace(test_accuracy=share, **same) for share in (0.97, 0.98)]

    received = {}
    asked = "--recipe thin --epochs 1 --batch-size 64 --learning-rate 0.05 --limit 300 --seed 4"
    asked += " --set momentum=0.5 nesterov=True decay=1 --model-set depth=2 activation=relu"
    asked += " --runs 2 --weights mnist --freeze --class-weight balanced --distribute"
    asked += " --dtype-policy mixed_bfloat16 --data-dir there"
    monkeypatch.setattr(training, "fit_runs", fit_runs)
    assert run("fit", "thin-highway-10", *asked.split()) == 0
    expected = {"recipe": "thin", "epochs": 1, "batch_size": 64, "learning_rate": 0.05}
    expected |= {"limit": 300, "seed": 4, "momentum": 0.5, "nesterov": True, "decay": 1}
    expected |= {"model_options": {"depth": 2, "activation": "relu"}, "runs": 2}
    expected |= {"weights": "mnist", "freeze": True, "class_weight": "balanced"}
    expected |= {"distribute": True, "dtype_policy": "mixed_bfloat16", "data_dir": "there"}
    assert received.items() >= expected.items()
    assert "\n2 runs, best (mean ± std): 98.00 (97.50 ± 0.71) %\n" in capsys.readouterr().out


# How it ends


def stand_in(monkeypatch, function):
    """Let `list` call `function`."""
    monkeypatch.setitem(shared.COMMANDS, "list", (function, "A stand-in.", (), False))


ERRORS = [
    (None, 0, ""),
    (ValueError("two\n lines."), 2, "two lines."),
    (TypeError(), 2, "TypeError"),
    (MemoryError(), 1, "MemoryError"),
    (training.TrainingDiverged("Lower it."), 1, "Lower it."),
    (type("ResourceExhaustedError", (Exception,), {})("OOM"), 1, "OOM"),
    (OSError(errno.EDQUOT, "Full"), 1, "cannot be written (Full)"),
    (OSError(errno.EACCES, "Denied", "x"), 2, "cannot be written (Denied)"),
    (KeyboardInterrupt(), 130, "Interrupted."),
]


def test_a_full_disk_keeps_its_code_where_keras_hides_the_cause(monkeypatch, tmp_path):
    def fit():
        try:
            with replacing(tmp_path / "file"):
                raise OSError(errno.ENOSPC, "Full")
        except OSError as error:
            raise error.with_traceback(None) from None

    stand_in(monkeypatch, fit)
    assert run("list") == 1


@pytest.mark.parametrize(("error", "code", "line"), ERRORS, ids=repr)
def test_exit_codes(error, code, line, monkeypatch, capsys, tmp_path):
    def end():
        if isinstance(error, OSError):
            with replacing(tmp_path / "file"):
                raise error
        if error:
            raise error

    stand_in(monkeypatch, end)
    assert run("list") == code
    printed = capsys.readouterr().err
    assert line in printed if line else printed == ""
    assert len(printed.splitlines()) == bool(line)
    run("list", "--debug")
    assert ("Traceback" in capsys.readouterr().err) == isinstance(error, Exception)


def test_our_own_mistakes_keep_their_traceback(monkeypatch):
    stand_in(monkeypatch, lambda: {}["absent"])
    with pytest.raises(KeyError):
        run("list")


def test_values_of_an_option_given_again_are_added():
    asked = "search --depth 2 --depth 3 4 --rungs 4:3 --rungs 6:1 --kind plain --kind highway"
    options = cli.parser().parse_args(asked.split())
    assert options.depths == [2, 3, 4] and options.rungs == [(4, 3), (6, 1)]
    assert options.kinds == ["plain", "highway"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, BrokenPipeError])
@pytest.mark.parametrize(
    ("command", "again"),
    [
        ("search --depth 2", "search --resume --depth 2"),
        ("search --out 'two  spaces' --resume", "search --out 'two  spaces' --resume"),
        ("fit --out new -- -odd", "fit --resume --out new -- -odd"),
        ("reproduce figure1", "reproduce figure1"),
    ],
)
def test_an_interrupted_command_says_how_it_continues(command, again, error, monkeypatch, capsys):
    def interrupt(**arguments):
        raise error

    name = command.split(" -")[0]
    _, *rest = shared.COMMANDS[name]
    monkeypatch.setitem(shared.COMMANDS, name, (interrupt, *rest))
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker 1")
    for variable in {*cli.REPEATED} - {"KERAS_BACKEND", "KERASTUNER_TUNER_ID"}:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # no GPU
    assert run(*shlex.split(command)) == 130
    variables = "CUDA_VISIBLE_DEVICES='' KERAS_BACKEND=jax KERASTUNER_TUNER_ID='worker 1'"
    again = f"continue with: {variables} highway-keras {again}\n"
    assert capsys.readouterr().err.endswith(again)


def test_mistakes_outside_of_the_arguments(tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(tmp_path / "not mounted")
    (tmp_path / "runs" / "seed-3").mkdir(parents=True)
    (tmp_path / "runs" / "seed-3" / "best.keras").touch()
    with pytest.raises(FileNotFoundError, match=r"runs, .* no best.keras, but runs: seed-3"):
        shared.network_file(str(tmp_path / "runs"), None)
    with pytest.raises(PermissionError, match="`out`"):
        shared.check_paths(out=tmp_path / "link" / "new")
    monkeypatch.setenv("KERAS_BACKEND", "tf")
    with pytest.raises(ValueError, match=r"KERAS_BACKEND.*'tensorflow'"):
        backend.library("data")
    write_json(tmp_path / "run.json", {"path": "caf\udce9"})  # bytes that are not UTF-8
    assert json.loads((tmp_path / "run.json").read_text()) == {"path": "caf\udce9"}


def piped(file=None, **environment):
    """Exit code and stderr of `list` that prints to a file, or to a reader that has left."""
    pipes = {"stdout": file or subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*COMMAND, "list"], **pipes, env={**os.environ, **environment})
    if file is None:
        process.stdout.close()
    with process.stderr:
        message = process.stderr.read()
    return process.wait(60), message


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_nobody_takes(unbuffered):
    assert piped(PYTHONUNBUFFERED=unbuffered) == (0, b"")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            code, message = piped(full, PYTHONUNBUFFERED=unbuffered)
        assert (code, message) == (1, b"highway-keras: No space left on device.\n")
    gone = f"{shlex.join(COMMAND)} evaluate none.keras 2>&1 | true; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", gone]).returncode == 2
    closed = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND, "list"]
    assert subprocess.run(closed).returncode == 0
    inner = "from highway_keras.cli import backend, command; command.main(['list'])\n"
    inner += "with backend.silent_libraries(): pass"
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", inner]
    assert subprocess.run(closed).returncode == 0
    for command in ("--help | true", "--version | true"):
        asked = f"{shlex.join(COMMAND)} {command}; exit ${{PIPESTATUS[0]}}"
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(["bash", "-c", asked], env=environment, stderr=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (0, b"")


def test_stderr_is_given_back_with_the_notices_that_came_meanwhile(capfd, monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", backend._show_warning)
    with backend.silent_libraries():
        notice("no longer those of the run")
        os.write(2, b"progress of a converter\n")
        assert capfd.readouterr().err == ""
    os.write(2, b"heard")
    assert capfd.readouterr().err == "highway-keras: no longer those of the run\nheard"


@needs_populations
@pytest.mark.parametrize("objective", ["loss", "val_loss"])
def test_a_search_without_a_sound_trial_fails(objective, tmp_path, capsys):
    command = "search --depth 2 --kind plain --trials 1 --epochs 3 --limit 64 --dataset digits"
    command += f" --learning-rate 1e38 2e38 --activation relu --out {tmp_path}"
    assert run(*command.split(), "--objective", objective) == 1
    assert "1 of 1 trials diverged" in capsys.readouterr().err


@needs_populations
def test_search_prints_its_best_trials_or_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("highway_keras.tuning.progress.QUIET", 0)  # a line for each epoch
    command = "search --depth 2 --kind plain --trials 3 --epochs 2 --limit 64 --rungs 1:2"
    command += f" --objective val_accuracy --decay 0.99 1 --dataset digits --out {tmp_path}"
    assert run(*command.replace("epochs 2", "epochs 1").split()) == 2  # and does not take --out
    assert "--rungs" in capsys.readouterr().err
    assert run(*command.split(), "--json") == 0
    printed = capsys.readouterr()
    (search,) = json.loads(printed.out)  # nothing else is on stdout
    assert "3/3 trials" in printed.err and search["kind"] == "plain"
    shown = [float(best) for best in re.findall(r"best val_accuracy ([\d.]+)", printed.err)]
    assert shown == sorted(shown) and shown  # also while the best one goes on
    folder = pathlib.Path(search["folder"])
    trials = [json.loads(path.read_text()) for path in folder.glob("trial_*/trial.json")]
    assert search["trials"] == len(trials) == 3 and search["failed"] == 0
    best = max(trials, key=lambda trial: trial["score"])["score"]
    assert search["best"]["score"] == best
    rows = list(csv.DictReader((folder / "trials.csv").read_text().splitlines()))
    assert float(rows[0]["score"]) == best and len(rows) == 3
    assert sorted(row["epochs"] for row in rows) == ["1", "2", "2"]
    assert all(0.99 <= float(row["decay"]) <= 1 for row in rows)
    assert run(*command.split(), "--resume") == 0
    assert len(json.loads((folder / "machine.json").read_text())) == 1  # nothing was trained
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["best:", "saved"]
    assert f"val_accuracy {best:.4g}, learning_rate" in lines[0]
    assert run(*command.replace("trials 3", "trials 5").split(), "--resume") == 0
    assert len((folder / "trials.csv").read_text().splitlines()) == 6
    assert "5/5 trials" in capsys.readouterr().out
    assert run("reproduce", "figure1", "--search", tmp_path, "--out", tmp_path / "figure") == 2
    assert "--search" in capsys.readouterr().err  # not by the loss


def test_a_terminal_that_lacks_a_letter_ends_no_command():
    """`±`, where only ASCII can be printed."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "list"], env=environment, capture_output=True)
    assert done.returncode == 0 and b"\\xb1" in done.stdout
