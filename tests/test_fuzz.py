"""A thousand command lines and a thousand damaged files, drawn at random: one line, never more.

The seed is printed; `FUZZ_SEED=… FUZZ_LINES=…` repeats a run or makes a longer one. Training is
real but short, of 40 digits for an epoch; only what takes minutes has a stand-in, see `stand_ins`.
"""

import argparse
import collections
import contextlib
import importlib
import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import traceback

import keras
import numpy as np
import pytest
from processes import COMMAND
from test_bad_inputs import write_files

from highway_keras import data, training
from highway_keras.cli import command as cli
from highway_keras.data.images import read_image

SEED = int(os.environ.get("FUZZ_SEED", random.SystemRandom().randrange(10**6)))
LINES = int(os.environ.get("FUZZ_LINES", 1000))
SECONDS = 60  # for one command line
PROCESSES = int(os.environ.get("FUZZ_PROCESSES", 30))  # of the lines, as real ones
STAND_IN = "A stand-in for a training of minutes."
NOTICES = r"starts anew; all|holds \d+ pictures: |stay on the disk|"
NOTICES += "weights expect images preprocessed by"
RAW = r"Traceback|\[Errno|\x1b|<class '|object at 0x|NoneType"

# Values by the kind of an option: what is right, what must fail, and what may do either.
WHOLE = ["0", "-1", "2.5", "abc", "1e3", "nan", "9" * 30, "9" * 5000, "0x10", "--", "½", "-0"]
REAL = ["0", "-1", "nan", "inf", "-inf", "abc", "1,5", "1e999", "9" * 400 + "e9", "½"]
TEXT = ["x" * 300, "\x1b[2J", "a\nb", "\udcff", "$x$", "~nobody/x", "/dev/null", "名", " ", "-"]
LITERALS = ["None", "True", "-1", "0", "2", "2.5", "1e999", "nan", "'", "(1", "[1]", "(1,)", "{}"]
LITERALS += ["{1}", "b'x'", "1j", "...", "abc", "-" * 3000 + "1", "9" * 400, "[" * 300, "{[]:1}"]
LITERALS += ["'\\x00'", "'a b'", "$", "9" * 5000, "\udcff", "1_0", "0o7", "[[1],[2]]", "''"]
RECIPE = list(training.Recipe.__dataclass_fields__)
FACTORY = ["depth", "kind", "units", "activation", "transform_bias", "kernel_initializer", "name"]
FACTORY += ["classifier_activation", "include_top", "weights", "implementation", "input_shape"]
FACTORY += ["classes", "width", "pooling", "dropout_rate", "verbose", "stages", "self", "factory"]
NEVER = {"--distribute", "--help"}  # other processes, or no work at all
BASE = {
    "fit": ["thin-highway-10", "--dataset", "digits", "--epochs", "1", "--limit", "40"],
    "search": [*"--depth 2 --kind plain --trials 1 --epochs 1 --dataset digits".split()],
    "analyze": [*"--dataset digits --limit 40".split()],
    "figure1": [*"--depth 2 --kind plain".split()],
    "table1": [*"--runs 1 --limit 40".split()],
    "table2": [*"--runs 1 --limit 40".split()],
    "table3": [*"--runs 1 --limit 40".split()],
    "gradients": ["--limit", "40"],
    "starts": [*"--depth 2 --limit 40 --epochs 1".split()],
    "authors-log": ["--epochs", "1"],
    **{name: ["--trials", "1"] for name in ("figure2", "figure3", "figure4")},
}
WEIGHTS = {"fit": 12, "evaluate": 4, "predict": 6, "export": 3, "list": 1, "search": 1}


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    """A folder of good, damaged and unsuitable files."""
    w = tmp_path_factory.mktemp("fuzz")
    digit = picture(data.load("digits").x_test[0])
    write_files(w, digit)
    for kind in ("jpeg", "gif"):
        digit.save(w / f"picture.{kind}")
    os.mkfifo(w / "fifo.png")
    digits = data.load("digits", limit=40)
    for number, (image, label) in enumerate(zip(digits.x_train, digits.y_train, strict=True)):
        of_class = w / "pictures" / f"class {label}"
        of_class.mkdir(parents=True, exist_ok=True)
        picture(image).save(of_class / f"{number}.png")
    return w


def picture(image):
    from PIL import Image

    return Image.fromarray(image[..., 0])


@pytest.fixture
def stand_ins(monkeypatch):
    """Stand-ins for downloads, verification in other processes, and trainings of minutes."""

    def stand_in(module, name, value):
        monkeypatch.setattr(importlib.import_module(f"highway_keras.{module}"), name, value)

    def few(name, data_dir=None):
        shape = (32, 32, 3) if name.startswith("cifar") else (28, 28, 1)
        x = np.random.default_rng(0).integers(0, 256, (120, *shape), "uint8")
        y = np.arange(120) % (100 if name == "cifar100" else 10)
        return x, y, x, y, tuple(map(str, range(y.max() + 1)))

    def diverged(*arguments, **options):
        raise training.TrainingDiverged(STAND_IN)

    def failed(tasks):
        return [(task, training.TrainingDiverged(STAND_IN)) for task in tasks]

    def norms(*arguments):
        return {"tanh": np.ones((5, 3)), "relu": np.ones((5, 3))}

    stand_in("data.loading", "read_public", few)
    stand_in("export.verification", "verify", lambda *arguments: {"difference": 0, "images": 1})
    stand_in("paper.tables", "train_all", failed)
    stand_in("paper.authors_log", "fit", diverged)
    stand_in("paper.finals", "fit", diverged)
    stand_in("paper.section4", "run_searches", diverged)
    stand_in("paper.gradient_norms", "gradient_norms", norms)
    stand_in("paper.zero_mean_starts", "Population", Untrained)
    stand_in("paper.zero_mean_starts", "start_weights", lambda *arguments: {})
    small = {"epochs": 1, "limit": 40, "trials": 1}
    stand_in("paper.figure1", "PRESETS", dict.fromkeys(["laptop", "paper"], small))


class Untrained:
    """A population that does not train."""

    def __init__(self, kind, hyperparameters, weights):
        self.trials = len(hyperparameters)

    def train(self, images, epoch, order):
        return np.ones(self.trials), np.ones(self.trials)


class Drawing:
    """Draws command lines from the command's own parser, so that no option is left out."""

    def __init__(self, w, seed):
        self.w, self.random = w, random.Random(seed)
        self.commands = dict(_leaves(cli.parser()))

    def line(self):
        """Return the arguments of a command, and whether they must fail."""
        names = list(self.commands)
        weights = [WEIGHTS.get(name[-1], 1) for name in names]
        (name,) = self.random.choices(names, weights)
        parser, self.must_fail = self.commands[name], False
        arguments = [*name, *self._positionals(parser), *self._options(parser)]
        for _ in range(self._few()):
            self._spoil(arguments)
        return arguments, self.must_fail

    def _few(self):
        return self.random.choices([0, 1, 2], [8, 2, 1])[0]

    def _positionals(self, parser):
        return [v for a in parser._get_positional_actions() for v in self._values(a)]

    def _options(self, parser):
        base = BASE.get(parser.prog.split()[-1], [])
        base = base[1:] if base[:1] == ["thin-highway-10"] else base
        base = dict(zip(base[::2], base[1::2], strict=True))
        actions = [a for a in parser._get_optional_actions() if not NEVER & {*a.option_strings}]
        chosen = [a for a in actions if a.required or self.random.random() < 0.25]
        drawn = {a.option_strings[-1]: self._values(a) for a in chosen}
        drawn = {**{flag: [value] for flag, value in base.items()}, **drawn}
        if parser.prog.endswith("fit"):
            drawn.setdefault("--model-set", ["depth=2"])
        items = list(drawn.items())
        self.random.shuffle(items)
        return [part for flag, values in items for part in (flag, *values)]

    def _spoil(self, arguments):
        way = self.random.randrange(5)
        if way == 0:
            arguments.insert(self.random.randrange(len(arguments) + 1), "--unknown")
            self.must_fail = True
        elif way == 1 and len(arguments) > 2:
            del arguments[self.random.randrange(1, len(arguments))]
        elif way == 2:
            place = self.random.randrange(len(arguments))
            arguments[place] = self.random.choice(["", *TEXT])
        elif way == 3:
            arguments.append(arguments[self.random.randrange(len(arguments))])
        else:
            arguments += ["--set", "momentum=0.5", "--set", "momentum=0.9"]
            self.must_fail = True

    def _values(self, action):
        """Return values of one option, none for a flag."""
        if action.nargs == 0:
            return []
        count = self.random.choice([1, 1, 2]) if action.nargs == "+" else action.nargs or 1
        return [self._value(action) for _ in range(count)]

    def _value(self, action):
        name = action.dest
        if name in ("set", "model_set"):
            keys = RECIPE if name == "set" else FACTORY
            return f"{self.random.choice([*keys, 'unknown'])}={self._literal()}"
        if self.random.random() < 0.15:
            return self._wrong(action)
        return str(self.random.choice(self._right(action)))

    def _literal(self):
        return self.random.choice(LITERALS)

    def _wrong(self, action):
        if action.type is int:
            value = self.random.choice(WHOLE)
            self.must_fail |= value not in ("0", "-0") or action.dest not in ("seed",)
            return value
        if action.type is float:
            self.must_fail = True
            return self.random.choice(REAL)
        return self.random.choice(["", *TEXT])

    def _right(self, action):
        w, name = self.w, action.dest
        known = {
            "model": ["thin-highway-10", "thin-plain-10", "thin-residual-10", "mnist-highway-16"],
            "network": [*w.glob("*.keras"), w / "run" / "best.keras", *w.glob("*/best.keras")],
            "images": [*w.glob("*.png"), *w.glob("*.jpeg"), *w.glob("*.gif"), w / "file"],
            "dataset": ["digits", *w.glob("*.npz"), "mnist", "cifar10", "minst", w / "pictures"],
            "input_shape": [8, 12, 1, 3],
            "recipe": ["thin", "digits", "quick", "modern-mnist", "authors", "modern"],
            "out": ["new", "new/below", w / "file", w / "run", w / "empty", "x.keras", "x.onnx"],
            "data_dir": [w / "empty", w / "none"],
            "search": [w / "empty", w / "run"],
            "format": ["keras", "saved_model", "onnx", "litert", "openvino", "pickle"],
            "quantize": ["int8", "float16", "int4"],
            "weights": ["mnist", "digits", w / "deep.weights.h5", w / "run" / "best.keras"],
            "dtype_policy": ["float32", "mixed_bfloat16", "float8"],
            "kind": ["highway", "plain", "residual", "dense"],
            "learning_rate": [0.1, 1e30, 1e-30, 1e308],
            "depth": [2, 3, 10**9],
            "batch_size": [1, 7, 64, 10**6],
            "population": [1, 2],
            "limit": [1, 7, 40],
            "seed": [0, 7, 2**31 - 1],
        }
        if action.choices and action.type is None:
            return list(action.choices)
        return known.get(name, [1])


def _leaves(parser, path=()):
    """The parsers of the commands that do something, by their names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from _leaves(child, (*path, name))
            return
    yield path, parser


def run(arguments):
    """Exit code and the two streams of a command; whatever else it raises comes through."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), at_most(SECONDS):
        try:
            code = cli.main(arguments)
        except SystemExit as end:  # argparse ends so
            code = end.code
    return code, *(stream.buffer.getvalue().decode() for stream in (out, err))


@contextlib.contextmanager
def at_most(seconds):
    def ring(*arguments):
        raise AssertionError(f"hangs: over {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def complaint(arguments, must_fail):
    """What is wrong with how a command ends, empty if nothing is; exit code, what it printed."""
    try:
        code, out, err = run(arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno}"
        return f"{type(error).__name__}: {error!s:.300} ({where})", None, ""
    return wrong_with(code, out, err, must_fail), code, out


def wrong_with(code, out, err, must_fail):
    """What is wrong with how a command ended, empty if nothing is."""
    lines = said(err)
    worked = STAND_IN in err or "Epoch 1" in out
    wrongs = {
        f"exit code {code}": code not in (0, 1, 2),
        "a silent success": code == 0 and must_fail,
        f"found only after the work: {err:.500}": must_fail and worked,
        f"{len(lines)} lines: {err:.500}": len(lines) != (1 if code else 0),
        f"no sentence: {err:.500}": lines and not re.search(r"^highway-keras.*[.?!)]$", lines[0]),
        f"raw: {out + err:.500}": re.search(RAW, out + err),
    }
    return next((wrong for wrong, is_so in wrongs.items() if is_so), "")


def said(err):
    """The lines of stderr, those of several pictures that `predict` counts at the end as one.

    A picture may fail, notices tell what is not wrong, and JSON has stdout to itself.
    """
    besides = "could not be drawn|trials, .* elapsed|" + NOTICES
    lines = [line for line in err.splitlines() if not re.search(besides, line)]
    counted = re.fullmatch(r"highway-keras: (\d+) of (\d+) pictures could .*", (lines or [""])[-1])
    if counted and int(counted[1]) == len(lines) - 1 and int(counted[2]) > 1:
        return lines[-1:]
    return lines


class Tally:
    """How the commands of a test ended, and which of them ended wrong; faults show at once."""

    def __init__(self, capsys):
        self.capsys, self.faults, self.ended = capsys, [], collections.Counter()

    def count(self, number, command, code, fault):
        self.ended[command, code] += 1
        if fault:
            self.faults.append(fault)
            self._say(fault.encode(errors="backslashreplace").decode())
        if number % 20 == 0:
            keras.backend.clear_session()

    def check(self, what):
        count = f"{len(self.faults)} faults, {dict(self.ended)}"
        self._say(f"FUZZ_SEED={SEED}: {LINES} {what}, {count}")
        assert not self.faults, "\n".join([f"FUZZ_SEED={SEED}", *self.faults])

    def _say(self, text):
        with self.capsys.disabled():
            print(f"\n{text}")


@pytest.mark.slow
def test_a_thousand_command_lines(w, stand_ins, tmp_path, monkeypatch, capsys):
    drawing, tally = Drawing(w, SEED), Tally(capsys)
    for number in range(LINES):
        arguments, must_fail = drawing.line()
        folder = tmp_path / "cwd"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        monkeypatch.chdir(folder)
        wrong, code, _ = complaint(arguments, must_fail)
        line = shlex.join(["highway-keras", *arguments])[:600]
        tally.count(number, arguments[0], code, wrong and f"{line}\n    {wrong}")
    tally.check("command lines")


@pytest.mark.slow
def test_a_sample_in_processes_of_their_own(w, stand_ins, tmp_path, monkeypatch, capsys):
    """The same ends as in this process: exit code, streams and no traceback of the real command."""
    drawing, tally = Drawing(w, SEED), Tally(capsys)
    for number in range(min(LINES, PROCESSES)):
        arguments, must_fail = drawing.line()
        while not is_short(arguments):
            arguments, must_fail = drawing.line()
        codes, wrongs = [], []
        for kind, complain in (("here", complaint), ("process", complaint_of_a_process)):
            monkeypatch.chdir(shutil.copytree(w, tmp_path / f"{number}-{kind}", ignore=FIFOS))
            wrong, code, _ = complain([a.replace(f"{w}/", "") for a in arguments], must_fail)
            codes.append(code)
            wrongs.append(wrong)
        wrong = " | ".join(filter(None, wrongs)) or ("" if codes[0] == codes[1] else f"{codes}")
        line = shlex.join(["highway-keras", *arguments])[:600]
        tally.count(number, arguments[0], codes[1], wrong and f"{line}\n    {wrong}")
    tally.check("command lines in processes of their own")


def FIFOS(folder, names):  # which nothing can copy
    return [name for name in names if name.startswith("fifo")]


def is_short(arguments):
    """Whether a command needs neither minutes nor a download, and can be passed to a process."""
    if arguments[0] == "reproduce" or any("\0" in a or len(a) > 10**5 for a in arguments):
        return False
    public = {"mnist", "cifar10"} & {*arguments}
    return "digits" in arguments or arguments[0] == "predict" or not public


def complaint_of_a_process(arguments, must_fail):
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, timeout=2 * SECONDS, errors="replace"
    )
    wrong = wrong_with(done.returncode, done.stdout, done.stderr, must_fail)
    return wrong and f"in a process: {wrong}", done.returncode, done.stdout


# Damaged files


def damage(content, drawn):
    """Return a file's bytes after something happened to them."""
    content = bytearray(content)
    way = drawn.randrange(5)
    place = drawn.randrange(len(content))
    if way == 0:
        return bytes(content[:place])
    if way == 1:
        for _ in range(drawn.randint(1, 20)):
            content[drawn.randrange(len(content))] = drawn.randrange(256)
    elif way == 2:
        content[place : place + drawn.randint(1, 200)] = b""
    elif way == 3:
        content[place:place] = drawn.randbytes(drawn.randint(1, 200))
    else:
        content[place : place + 50] = bytes(50)
    return bytes(content)


def odd_settings(drawn):
    """Return a `run.json` that is JSON, but not what `fit` writes."""
    odd = [5, None, "", [], {}, "x", [1, 2], {"a": 1}, True, -1, 1e308, ["\x1b"] * 10, "digits"]
    keys = ["dataset", "class_names", "model", "recipe", "limit", "seed", "results", "accuracy"]
    settings = {key: drawn.choice(odd) for key in drawn.sample(keys, drawn.randint(0, len(keys)))}
    return json.dumps(drawn.choice([settings, settings, drawn.choice(odd)])).encode()


FIT = "thin-highway-10 --dataset digits --epochs 1 --limit 40 --model-set depth=2 --resume --out"
SEARCH = "--depth 2 --kind plain --trials 2 --epochs 1 --dataset digits --limit 40 --resume --out"
DAMAGED = {  # a file, and the command that reads it
    "picture.png": "predict {run}/best.keras {file}",
    "picture.jpeg": "predict {run}/best.keras {file}",
    "good.npz": "evaluate {run}/best.keras --dataset {file}",
    "run/best.keras": "predict {file} {png}",
    "run/run.json": "predict {run}/best.keras {png}",
    "run/run.json ": "evaluate {run}/best.keras",
    "run/run.json  ": f"fit {FIT} {{run}}",
    "run/state.weights.h5": f"fit {FIT} {{run}}",
    "run/history.csv": f"fit {FIT} {{run}}",
    "run/machine.json": f"fit {FIT} {{run}}",
    "run/best.keras ": f"fit {FIT} {{run}}",
    "search/thin-plain-2/run.json": f"search {SEARCH} {{search}}",
    "search/thin-plain-2/oracle.json": f"search {SEARCH} {{search}}",
    "search/thin-plain-2/tuner0.json": f"search {SEARCH} {{search}}",
    "search/thin-plain-2/trial_0/trial.json": f"search {SEARCH} {{search}}",
    "search/thin-plain-2/trial_1/trial.json": "reproduce figure1 --search {search} --out figure",
}


@pytest.fixture(scope="module")
def searched(w):
    assert cli.main(["search", *SEARCH.split(), str(w / "search")]) == 0
    return w


def put_damaged(w, folder, name, drawn):
    """Copy what a command reads into a folder, with one file damaged; return the paths."""
    shutil.rmtree(folder, ignore_errors=True)
    for source in ("run", "search"):
        shutil.copytree(w / source, folder / source)
    source, file = w / name.strip(), folder / name.strip()
    content = damage(source.read_bytes(), drawn)
    if "run.json" in name and drawn.random() < 0.7:
        content = odd_settings(drawn)
    file.write_bytes(content)
    paths = {"run": folder / "run", "search": folder / "search", "png": w / "picture.png"}
    return {**paths, "file": file}


@pytest.mark.slow
def test_a_thousand_damaged_files(searched, stand_ins, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    drawn, tally = random.Random(SEED), Tally(capsys)
    whole = cli.main(["fit", *FIT.split(), str(searched / "run")])
    accuracy = capsys.readouterr().out.split("%")[0]
    assert whole == 0 and "test accuracy" in accuracy
    for number in range(LINES):
        name = drawn.choice(list(DAMAGED))
        paths = put_damaged(searched, tmp_path / "damaged", name, drawn)
        arguments = DAMAGED[name].format(**paths).split()
        wrong, code, out = complaint(arguments, must_fail=False)
        if arguments[0] == "fit" and code == 0 and accuracy.splitlines()[-1] not in out:
            wrong = wrong or f"another result: {out}"
        tally.count(number, arguments[0], code, wrong and f"{number}: {name}: {wrong}")
    tally.check("damaged files")


@pytest.mark.slow
def test_damaged_pictures_one_by_one(w, tmp_path):
    """Without the network around them, thousands take seconds."""
    drawn = random.Random(SEED)
    for number in range(3 * LINES):
        source = w / drawn.choice(["picture.png", "picture.jpeg"])
        path = tmp_path / source.name
        path.write_bytes(damage(source.read_bytes(), drawn))
        with contextlib.suppress(data.DataError):
            assert read_image(path, (8, 8, 1)).shape == (8, 8, 1), f"FUZZ_SEED={SEED}, {number}"
