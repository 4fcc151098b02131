"""What the built wheel holds."""

import hashlib
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

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

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("build", "setuptools"))), reason="cannot build a wheel"
)


def test_it_holds_the_package_and_the_weights(tmp_path):
    for name in BUILT_FROM:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
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
