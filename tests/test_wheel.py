"""The built wheel: what it holds, and what an editor knows of it."""

import hashlib
import importlib.util
import inspect
import json
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
from layer_cases import GATED

ROOT = pathlib.Path(__file__).parents[1]
IN_THE_WHEEL = ("highway_keras", "models", "tuning", "results")
BUILT_FROM = (
    *IN_THE_WHEEL,
    "highway_keras_command.py",
    "setup.cfg",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
READ = {f"{name}.csv" for name in ("accuracy", "authors-logs", "table1", "table2", "table3")}
USER = pathlib.Path(__file__).with_name("typed_user.py")
LAYERS = list(dict.fromkeys(case.layer for case in GATED))
SIGNATURES = ["from highway_keras import layers"]
SIGNATURES += [f"reveal_type(layers.{layer.__name__}.__init__)" for layer in LAYERS]

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("build", "setuptools"))), reason="cannot build a wheel"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    for name in BUILT_FROM:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def test_it_holds_the_package_and_the_weights(wheel):
    with zipfile.ZipFile(wheel) as archive:
        for entry in json.loads(archive.read("highway_keras/models/weights/index.json")):
            content = archive.read(f"highway_keras/models/weights/{entry['file']}")
            assert hashlib.sha256(content).hexdigest() == entry["sha256"]
        inside = set(archive.namelist())
    expected = {"highway_keras_command.py"}
    for folder in IN_THE_WHEEL:
        kept = "highway_keras" if folder == "highway_keras" else f"highway_keras/{folder}"
        for file in (ROOT / folder).rglob("*"):
            left_out = folder == "results" and file.suffix != ".py" and file.name not in READ
            if file.is_file() and "__pycache__" not in file.parts and not left_out:
                expected.add(f"{kept}/{file.relative_to(ROOT / folder)}")
    assert {name for name in inside if ".dist-info/" not in name} == expected


@pytest.mark.slow
def test_a_type_checker_knows_every_argument(wheel, tmp_path):
    """Pyright with its own settings says nothing of what a user writes."""
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    files = {"user.py": USER.read_text("utf-8"), "signatures.py": "\n".join(SIGNATURES)}
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    settings = {"typeCheckingMode": "standard", "extraPaths": ["site"], "include": ["*.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson"]
    command += ["--pythonpath", sys.executable, "--project", tmp_path]
    report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    assert report["summary"]["filesAnalyzed"] == len(files)
    said = {name: [] for name in files}
    for diagnostic in report["generalDiagnostics"]:
        line = diagnostic["range"]["start"]["line"]
        said[pathlib.Path(diagnostic["file"]).name].append(f"{line}: {diagnostic['message']}")
    assert said["user.py"] == []
    for message, layer in zip(said["signatures.py"], LAYERS, strict=True):
        assert layer.__name__ in message
        options = set(inspect.signature(layer).parameters) - {"kwargs"}
        assert [name for name in options if f" {name}: " not in message] == []
