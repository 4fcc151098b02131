"""Command lines and damaged files, drawn at random: one line, never more, and no traceback.

`FUZZ_EXAMPLES=1000 pytest -m slow tests/test_fuzz.py` draws more. Hypothesis prints an example that
fails, and repeats it first in the next run.
"""

import argparse
import inspect
import json
import os
import pathlib
import re
import shutil
import signal

import helpers
import keras
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from picture_folders import write_classes
from PIL import Image
from test_bad_inputs import write_files

from highway_keras import models, training
from highway_keras.cli import command as cli

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", 200))
SECONDS = 300  # for one command line
drawn = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.reuse, Phase.generate],  # Making an example small runs too many commands.
)
pytestmark = pytest.mark.slow

# Values that no option should choke on, by what it takes.
NUMBERS = ["0", "-1", "2.5", "abc", "nan", "inf", "9" * 5000, "1e999", "0x10", "--", "½", ""]
TEXT = ["x" * 300, "\x1b[2J", "a\nb", "\udcff", "$x$", "~nobody/x", "/dev/null", "名", " ", "-", ""]
LITERALS = ["None", "True", "-1", "0", "2", "2.5", "1e999", "nan", "'", "(1", "[1]", "(1,)", "{1}"]
LITERALS += ["b'x'", "1j", "...", "abc", "-" * 3000 + "1", "9" * 5000, "[" * 300, "{[]:1}"]
LITERALS += ["'\\x00'", "'a b'", "$", "\udcff", "1_0", "[[1],[2]]"]
FACTORY = [*inspect.signature(models.thin_mlp).parameters, "width", "pooling", "stages", "self"]
KEYS = {"set": [*training.Recipe.__dataclass_fields__, "unknown"], "model_set": FACTORY}
NETWORKS = "lonely two maps unbuilt logits cut".split()
RUNS = "run few-names odd-dataset bad-settings".split()
VALUES = {
    "model": ["thin-highway-10", "thin-plain-10", "thin-residual-10", "mnist-highway-16", "minst"],
    "network": [f"{n}.keras" for n in NETWORKS] + [f"{r}/best.keras" for r in RUNS] + ["fifo"],
    "images": ["picture.png", "picture.jpeg", "cut.png", "file", "fifo", "empty", "none", "*.png"],
    "dataset": ["digits", "good.npz", "cut.npz", "minst", "pictures"],
    "recipe": ["thin", "digits", "quick", "modern-mnist", "slow"],
    "out": ["new", "new/below", "file", "run", "empty", "x.keras", "x.onnx"],
    "weights": ["mnist", "digits", "run/best.keras"],
    "learning_rate": ["0.1", "1e30", "1e308"],
    "batch_size": ["1", "7", "1000000"],
    "limit": ["1", "7", "40"],
    "seed": ["0", "7", "2147483647"],
    "input_shape": ["8", "1", "3"],
}
# Options that keep each command short. Left out: commands that take minutes or start processes.
BASE = {
    "fit": "--dataset digits --epochs 1 --limit 40 --model-set depth=2",
    "search": "--depth 2 --kind plain --trials 1 --epochs 1 --dataset digits --limit 40",
    "analyze": "--dataset digits --limit 40",
    "evaluate": "",
    "predict": "",
    "export": "--format keras",
    "list": "",
}
NEVER = {"--help", "--distribute", "--version"}


ACTIONS = cli.parser()._actions
(COMMANDS,) = [a.choices for a in ACTIONS if isinstance(a, argparse._SubParsersAction)]


@st.composite
def command_lines(draw):
    """Arguments of a command, drawn from its own parser, so that no option is left out."""
    name = draw(st.sampled_from(sorted(BASE)))
    arguments = [name]
    for action in COMMANDS[name]._actions:
        if NEVER & {*action.option_strings}:
            continue
        if not action.option_strings or draw(st.integers(0, 3)) == 0:
            count = 0 if action.nargs == 0 else action.nargs or 1
            count = draw(st.integers(1, 2)) if count in ("+", "*") else count
            arguments += action.option_strings[-1:] + [draw(values(action)) for _ in range(count)]
    base = BASE[name].split()
    for flag, value in zip(base[::2], base[1::2], strict=True):
        arguments += [] if flag in arguments else [flag, value]
    if draw(st.integers(0, 9)) == 0:
        arguments.insert(draw(st.integers(1, len(arguments))), draw(st.sampled_from(TEXT)))
    return arguments


@st.composite
def values(draw, action):
    if action.dest in KEYS:
        return f"{draw(st.sampled_from(KEYS[action.dest]))}={draw(st.sampled_from(LITERALS))}"
    if draw(st.integers(0, 6)) == 0:
        return draw(st.sampled_from(NUMBERS if action.type in (int, float) else TEXT))
    return draw(st.sampled_from(VALUES.get(action.dest) or [*map(str, action.choices or ["1"])]))


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    """A folder of good, damaged and unsuitable files; nothing is fetched from a network."""
    w = tmp_path_factory.mktemp("fuzz")
    write_files(w)
    Image.open(w / "picture.png").save(w / "picture.jpeg")
    write_classes(w / "pictures", 40)
    search = f"search {BASE['search']} --trials 2 --out {w / 'search'}"
    assert cli.main(search.split()) == 0
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.setenv(name, "http://127.0.0.1:9")
        yield w


@pytest.fixture
def run(w, tmp_path, monkeypatch, capsys):
    """Return a function that runs a command among copies of those files and checks its end."""

    def ring(*arguments):
        raise KeyboardInterrupt(f"hangs: over {SECONDS} s")

    def run(arguments, file=None, damage=None):
        shutil.rmtree(tmp_path / "cwd", ignore_errors=True)
        shutil.copytree(w, tmp_path / "cwd", ignore=shutil.ignore_patterns("fifo"))
        os.mkfifo(tmp_path / "cwd" / "fifo")
        monkeypatch.chdir(tmp_path / "cwd")
        if file and os.path.exists(file):
            pathlib.Path(file).write_bytes(damage(pathlib.Path(file).read_bytes()))
        signal.signal(signal.SIGALRM, ring)
        signal.alarm(SECONDS)
        try:
            code = helpers.run(*arguments)
        finally:
            signal.alarm(0)
        out, err = capsys.readouterr()
        assert code in (0, 1, 2), f"code {code}: {err}"  # 130 if it hangs
        if code and "pictures could not" not in err:  # several pictures are counted
            said = re.findall("^highway-keras.*", err, re.MULTILINE)
            assert len([line for line in said if "is left aside" not in line]) == 1, err
        if "--debug" in arguments:  # a traceback, and then the line
            err = err.rpartition("highway-keras: ")[2]
        assert not re.search(r"Traceback|\[Errno|\x1b|<class '|object at 0x|NoneType", out + err)

    yield run
    keras.backend.clear_session()


@drawn
@given(arguments=command_lines())
def test_command_lines(run, arguments):
    run(arguments)


# Damaged files


@st.composite
def damages(draw):
    """A function that damages the bytes of a file: cut, overwritten, removed or inserted."""
    way = draw(st.sampled_from(["cut", "overwrite", "remove", "insert"]))
    share, noise = draw(st.floats(0, 1)), draw(st.binary(min_size=1, max_size=200))

    def damage(content):
        start = int(share * len(content))
        end = {"cut": len(content), "insert": start}.get(way, start + len(noise))
        return content[:start] + (noise if way in ("overwrite", "insert") else b"") + content[end:]

    return damage


ODD = st.sampled_from([5, None, "", [], {}, "x", [1, 2], {"a": 1}, True, -1, 1e308, ["\x1b"] * 10])
SETTINGS = st.sampled_from("dataset class_names model recipe limit seed results".split())
JSON = (ODD | st.dictionaries(SETTINGS, ODD)).map(lambda c: lambda _: json.dumps(c).encode())
FIT = f"fit thin-highway-10 {BASE['fit']} --resume --out run"
SEARCH = f"search {BASE['search']} --trials 2 --resume --out search"
OF_SEARCH = "search/thin-plain-2"
READERS = {  # of each file, the commands that read it
    "picture.png": ["predict run/best.keras picture.png"],
    "picture.jpeg": ["predict run/best.keras picture.jpeg"],
    "good.npz": ["evaluate run/best.keras --dataset good.npz"],
    "run/best.keras": ["predict run/best.keras picture.png", FIT],
    "run/run.json": ["predict run/best.keras picture.png", "evaluate run/best.keras", FIT],
    "run/state.npz": [FIT],
    "run/history.csv": [FIT],
    f"{OF_SEARCH}/run.json": [SEARCH],
    f"{OF_SEARCH}/tuner0.json": [SEARCH],
    f"{OF_SEARCH}/trial_0/trial.json": [SEARCH, "reproduce figure1 --search search --out figure"],
}
CASES = [(file, line) for file, lines in READERS.items() for line in lines]


@drawn
@given(case=st.sampled_from(CASES), damage=damages(), odd=JSON, is_odd=st.booleans())
def test_damaged_files(run, case, damage, odd, is_odd):
    file, line = case
    run(line.split(), file, odd if is_odd and file.endswith("run.json") else damage)
